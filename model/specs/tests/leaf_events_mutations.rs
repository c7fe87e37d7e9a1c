//! Seeded bugs of the CCL-BTree, and the event at which the judge must refuse each. Needs the
//! feature `mutations`, and a test binary of its own, because a bug is switched on for the whole
//! process.
//!
//! One bug is not refused, `ccl-torn-entry-believed`: an entry is written although a mix of its words
//! and of those below would pass its check of fourteen bits. That shows once in thousands of entries
//! that a crash has torn. `tests/pm_crash.rs` of the engine has the test.
#![cfg(any(treering_mutations, feature = "mutations"))]

mod behaviour;

use treering_specs::conformance::Budget;
use treering_specs::conformance::leaf::run;

#[test]
fn every_seeded_bug_of_the_tree_is_refused_for_the_right_reason() {
    /// What a crash may leave is not what the mirror may leave.
    const MEDIUM: &str = "a crash may leave";
    /// The bug, the number of clients that it needs, and the refusals that reveal it: the kind of
    /// the event, or none for any, and a part of the reason.
    const BUGS: [(&str, u8, &[(&str, &str)]); 19] = [
        (
            "ccl-early-timestamp",
            1,
            &[("StoresHeader", "the timestamp")],
        ),
        (
            "ccl-timestamp-not-stored",
            1,
            &[("StoresHeader", "the timestamp")],
        ),
        (
            "ccl-merge-keeps-timestamp",
            1,
            &[("StoresHeader", "the timestamp")],
        ),
        (
            "ccl-replay-ignores-timestamp",
            1,
            &[("Replays", "does not lack")],
        ),
        ("ccl-trigger-acked-early", 1, &[("", MEDIUM)]),
        ("ccl-log-not-fenced", 1, &[("", MEDIUM)]),
        ("pm-data-not-fenced", 1, &[("", MEDIUM)]),
        ("pm-header-before-data", 1, &[("StoresHeader", "at Batch")]),
        ("pm-split-header-first", 1, &[("StoresHeader", "at Batch")]),
        (
            "ccl-reclaim-before-copy",
            1,
            &[("FloorRises", "Reclaim is not enabled")],
        ),
        (
            "ccl-copy-keeps-epoch",
            1,
            &[("Visited", "what is unflushed")],
        ),
        (
            "ccl-floor-not-stored",
            1,
            &[
                ("Flips", "FlipEpoch is not enabled"),
                ("Takes", "is not free"),
            ],
        ),
        ("ccl-fingerprints-believed", 1, &[("Got", "the answer")]),
        (
            "ccl-stale-copy-cached",
            1,
            &[("Buffered", "the cached"), ("Visited", "the cached")],
        ),
        (
            "pm-anchor-dropped",
            1,
            &[("StoresRecords", "are stored, and not")],
        ),
        // An older entry of a key is replayed over a newer one, or the newer one is not replayed.
        (
            "ccl-replay-unordered",
            2,
            &[("FloorRises", "DropLogs"), ("Replays", "does not lack")],
        ),
        // A chunk of leaves becomes a log's as it is. One crash in thousands would take its words for
        // an entry.
        ("pm-log-over-records", 1, &[("", MEDIUM)]),
        (
            "pm-trust-index",
            2,
            &[
                ("Flushes", "the flush"),
                ("Buffered", ""),
                ("Got", "the answer"),
                ("", "does not hold"),
                ("", "is not in the list"),
                ("", "is not enabled"),
            ],
        ),
        ("pm-read-unvalidated", 2, &[("Got", "the answer")]),
    ];
    let tlc = behaviour::tlc();
    let mut wrong = Vec::new();
    for (bug, clients, refusals) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let report = run(clients, 1, Budget::Episodes(400));
        treering_engine::choose_mutation(None);
        let accepted = report.accepted();
        let (_, refusal) = report
            .refusal
            .unwrap_or_else(|| panic!("{bug} is accepted"));
        let kind = refusal.heard.kind();
        println!("{bug}: after {accepted} events: {kind}: {}", refusal.why);
        let named = |(event, why): &(&str, &str)| {
            (event.is_empty() || kind == *event) && refusal.why.contains(why)
        };
        assert!(
            refusals.iter().any(named),
            "{bug}: expected {refusals:?}; found {refusal}"
        );
        // Episodes with threads do not repeat.
        let none = if clients > 1 { &[bug][..] } else { &[] };
        let behaviour = &refusal.behaviour;
        wrong.extend(behaviour::wrong(bug, behaviour, tlc.as_ref(), none));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
