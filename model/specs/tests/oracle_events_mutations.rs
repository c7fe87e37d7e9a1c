//! Seeded bugs of the engine, and the event at which the judge must refuse each. Needs the feature
//! `mutations`, and a test binary of its own, because a bug is switched on for the whole process.
#![cfg(any(treering_mutations, feature = "mutations"))]

use treering_specs::conformance::{Budget, Cast, Variant, run_on, setups};

#[test]
fn every_seeded_bug_is_refused_for_the_right_reason() {
    /// The bug, and the refusals that reveal it: the kind of the event, and a part of the reason.
    const BUGS: [(&str, &[(&str, &str)]); 8] = [
        ("page-before-log", &[("PageWriting", "WriteBack")]),
        (
            "truncate-before-superblock",
            &[("LogTruncated", "TruncateLog")],
        ),
        // A client or write-back trusts the failed flush.
        (
            "log-acks-before-flush",
            &[
                ("Acknowledged", "Acknowledge"),
                ("Acknowledged", "reported durable"),
                ("PageWriting", "WriteBack"),
            ],
        ),
        (
            "log-retries-failed-flush",
            &[
                ("LogAppended", "AppendLog"),
                ("LogFlushBegins", "FlushLog"),
                ("Acknowledged", "Acknowledge"),
            ],
        ),
        // The page is read again, or must be durable at the end of the checkpoint.
        (
            "clean-without-write",
            &[("PageLoaded", "Reload"), ("PagesFlushed", "FlushPages")],
        ),
        (
            "redo-ignores-page-lsn",
            &[("PageRedone", "the record to be redone")],
        ),
        (
            "log-keeps-epoch",
            &[("Crashed", "log place"), ("RecoveryBegins", "log place")],
        ),
        ("checkpoint-skips-pages", &[("PagesFlushed", "FlushPages")]),
    ];
    // The tree is created without the bug, because some bugs would prevent that.
    let setups: Vec<_> = Variant::ALL.map(|v| setups(v).unwrap()).into();
    for (bug, expected) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let mut found = None;
        for stores in &setups {
            let report = run_on(stores, Cast::OneThread, 1, Budget::Episodes(200)).unwrap();
            found = found.or(report
                .refusal
                .map(|(_, refusal)| (report.episodes, refusal)));
        }
        treering_engine::choose_mutation(None);
        let (episodes, refusal) = found.unwrap_or_else(|| panic!("{bug} is accepted"));
        let (kind, why) = (refusal.entry.heard.kind(), &refusal.why);
        println!("{bug}: after {episodes} episodes at {kind}: {why}");
        assert!(
            expected.iter().any(|(k, w)| *k == kind && why.contains(w)),
            "{bug}: expected one of {expected:?}, found {kind}: {why}"
        );
    }
}
