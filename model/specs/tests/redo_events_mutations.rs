//! Seeded bugs of the redo log, and the event at which the judge must refuse each. Needs the feature
//! `mutations`, and a test binary of its own, because a bug is switched on for the whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

mod behaviour;

use treering_specs::conformance::Budget;
use treering_specs::conformance::redo::{Variant, run_on, setups};

#[test]
fn every_seeded_bug_of_the_log_is_refused_for_the_right_reason() {
    /// The bug, and the refusals that reveal it: the kind of the event, and a part of the reason.
    const BUGS: [(&str, &[(&str, &str)]); 16] = [
        (
            "log-acks-before-flush",
            &[("Acknowledged", "durable"), ("Acknowledged", "Acknowledge")],
        ),
        (
            "log-retries-failed-flush",
            &[("Acknowledged", "durable"), ("Acknowledged", "Acknowledge")],
        ),
        ("refuses-for-nothing", &[("Refused", "blames the device")]),
        ("log-keeps-epoch", &[("WritesBlock", "the block")]),
        ("log-counts-no-unforced", &[("WritesBlock", "the block")]),
        (
            "restart-trusts-log",
            &[
                ("MarksEnd", "the last flush"),
                ("RecoveryBegins", "the last flush"),
            ],
        ),
        (
            "restart-trusts-end",
            &[("RecoveryBegins", "the end is marked")],
        ),
        (
            "restart-trusts-superblock",
            &[
                ("MarksEnd", "the superblock"),
                ("RecoveryBegins", "the superblock"),
            ],
        ),
        ("drop-leaves-no-witness", &[("Dropped", "no witness")]),
        (
            "drop-writes-after-failure",
            &[("WritesWitness", "WriteWitness")],
        ),
        (
            "drop-forgets-log",
            &[("Dropped", "has lost records"), ("Dropped", "no witness")],
        ),
        (
            "sparse-reader-knows-no-closed",
            &[("Read", "the last record"), ("Damaged", "there is none")],
        ),
        (
            "sparse-closed-block-suspected",
            &[("Damaged", "there is none")],
        ),
        ("sparse-goes-on-in-block", &[("LogAppended", "the LSN")]),
        (
            "truncate-before-superblock",
            &[("LogTruncated", "the oldest position")],
        ),
        (
            "truncate-to-end",
            &[("LogTruncated", "the oldest position")],
        ),
    ];
    let stores = setups(Variant::Mixed).unwrap();
    let tlc = behaviour::tlc();
    let mut wrong = Vec::new();
    for (bug, expected) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let report = run_on(&stores, 1, Budget::Episodes(500));
        treering_engine::choose_mutation(None);
        let report = report.unwrap();
        let (episodes, heard) = (report.episodes, report.accepted());
        let Some((_, refusal)) = report.refusal else {
            wrong.push(format!("{bug} is accepted, in {heard} events"));
            continue;
        };
        let (kind, why) = (refusal.heard.kind(), &refusal.why);
        println!("{bug}: after {episodes} episodes and {heard} events at {kind}: {why:.300}");
        if !expected.iter().any(|(k, w)| *k == kind && why.contains(w)) {
            wrong.push(format!(
                "{bug}: expected one of {expected:?}, found {kind}: {why:.300}"
            ));
        }
        let behaviour = &refusal.behaviour;
        // What recovery does not write again was durable by chance: the spec cannot tell.
        let none = ["restart-trusts-log", "restart-trusts-superblock"];
        wrong.extend(behaviour::wrong(bug, behaviour, tlc.as_ref(), &none));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
