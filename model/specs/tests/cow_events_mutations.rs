//! Seeded bugs of the copy-on-write store, and the event at which the judge must refuse each. Needs
//! the feature `mutations`, and a test binary of its own, because a bug is switched on for the
//! whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

mod behaviour;

use treering_specs::conformance::Budget;
use treering_specs::conformance::cow::{Setup, Variant, run_on};

/// The bug, the store, and the refusals that reveal it: the kind of the event, and a part of the
/// reason.
type Bug = (
    &'static str,
    Variant,
    &'static [(&'static str, &'static str)],
);

const BUGS: [Bug; 8] = [
    (
        "table-before-page",
        Variant::Each,
        &[("WritesTable", "not durable")],
    ),
    (
        "cow-frees-held",
        Variant::Checkpoints,
        &[
            ("WritesImage", "WriteImage"),
            ("WritesChunk", "WriteSnapshot"),
            ("Crashed", "slot"),
        ],
    ),
    (
        "snapshot-freed-early",
        Variant::Checkpoints,
        &[("Crashed", "slot")],
    ),
    (
        "restart-trusts-table",
        Variant::Each,
        &[("Crashed", "the table is")],
    ),
    (
        "restart-trusts-superblock",
        Variant::Checkpoints,
        &[("Crashed", "superblock")],
    ),
    (
        "checkpoint-skips-pages",
        Variant::Each,
        &[("WritesChunk", "WriteSnapshot")],
    ),
    (
        "truncate-before-superblock",
        Variant::Checkpoints,
        &[("LogTruncated", "the redo start")],
    ),
    (
        "page-before-log",
        Variant::Checkpoints,
        &[("WritesImage", "WriteImage")],
    ),
];

#[test]
fn every_seeded_bug_of_the_store_is_refused_for_the_right_reason() {
    let setup = |variant| Setup::new(variant).unwrap();
    let (each, checkpoints) = (setup(Variant::Each), setup(Variant::Checkpoints));
    let tlc = behaviour::tlc();
    let mut wrong = Vec::new();
    for (bug, variant, expected) in BUGS {
        let setup = match variant {
            Variant::Each => &each,
            Variant::Checkpoints => &checkpoints,
        };
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let report = run_on(setup, 1, Budget::Episodes(2000));
        treering_engine::choose_mutation(None);
        let report = report.unwrap();
        let (episodes, heard) = (report.episodes, report.accepted());
        let (_, refusal) = report
            .refusal
            .unwrap_or_else(|| panic!("{bug} is accepted, in {heard} events"));
        let (kind, why) = (refusal.heard.kind(), &refusal.why);
        println!("{bug}: after {episodes} episodes and {heard} events at {kind}: {why}");
        assert!(
            expected.iter().any(|(k, w)| *k == kind && why.contains(w)),
            "{bug}: expected one of {expected:?}, found {kind}: {why}"
        );
        let behaviour = &refusal.behaviour;
        wrong.extend(behaviour::wrong(bug, behaviour, tlc.as_ref(), &[]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
