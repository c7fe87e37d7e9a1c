//! Seeded bugs of the shadowed page store, and the event at which the judge must refuse each. Needs
//! the feature `mutations`, and a test binary of its own, because a bug is switched on for the
//! whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

mod behaviour;

use treering_specs::conformance::Budget;
use treering_specs::conformance::shadow::{Variant, run_on, setups};

#[test]
fn every_seeded_bug_of_the_store_is_refused_for_the_right_reason() {
    /// Refusals that reveal wrong reads.
    const READ: [(&str, &str); 3] = [
        ("RecoveryBegins", "the choice of page"),
        ("Loaded", "the choice"),
        ("Loaded", "slot, base and |Δ|"),
    ];
    /// The bug, and the refusals that reveal it: the kind of the event, and a part of the reason.
    const BUGS: [(&str, &[(&str, &str)]); 12] = [
        ("trims-at-once", &[("Trims", "Trim")]),
        ("resets-log-at-once", &[("Crashed", "Log of page")]),
        ("nameless-log", &READ),
        ("believes-torn-slot", &READ),
        ("takes-first-slot", &READ),
        ("leaves-leftovers", &READ),
        ("trims-live-log", &[("Trims", "the log block")]),
        ("restart-trusts-slots", &[("Crashed", "of page p")]),
        ("forgets-dirty", &[("WritesDelta", "|Δ|")]),
        ("logs-last-changes", &[("WritesDelta", "|Δ|")]),
        (
            "page-before-log",
            &[("WritesWhole", "WriteWhole"), ("WritesDelta", "WriteDelta")],
        ),
        (
            "checkpoint-skips-pages",
            &[("SuperblockWriting", "Checkpoint")],
        ),
    ];
    let stores = setups(Variant::BMinus).unwrap();
    let tlc = behaviour::tlc();
    let mut wrong = Vec::new();
    for (bug, expected) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let report = run_on(&stores, 1, Budget::Episodes(2000));
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
