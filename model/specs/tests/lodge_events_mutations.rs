//! Seeded bugs of the LodgeTree, and the event at which the judge must refuse each. Needs the
//! feature `mutations`, and a test binary of its own, because a bug is switched on for the whole
//! process.
//!
//! These bugs are not in the list, because they were not refused within a few thousand events:
//! - `lodge-torn-entry-believed` shows only where a crash has torn an entry, and
//!   `lodge-restarts-numbers` only if the log has lost its greatest number;
//! - `lodge-merges-unflushed` and `lodge-leaf-freed-early` need merges of leaves, which are rare here;
//! - `lodge-trusts-what-it-reads` needs a kill in a flush and a power cut soon after, and
//!   `lodge-trust-index` a thread that waits for a node while that is split;
//! - `lodge-split-leaks` leaks records, which the episodes do not have.
//!
//! `tests/pm_crash.rs` and `tests/pm_threads.rs` of the engine, and the oracle, have their tests.
#![cfg(any(treering_mutations, feature = "mutations"))]

mod behaviour;

use treering_specs::conformance::Budget;
use treering_specs::conformance::lodge::run;

#[test]
fn every_seeded_bug_of_the_tree_is_refused_for_the_right_reason() {
    /// What a crash may leave is not what the mirror may leave.
    const MEDIUM: &str = "a crash may leave";
    /// The bug, the number of clients that it needs, and the refusals that reveal it: the kind of
    /// the event, or none for any, and a part of the reason.
    const BUGS: [(&str, u8, &[(&str, &str)]); 15] = [
        (
            "lodge-live-log-reused",
            1,
            &[("OpensLog", "is not enabled")],
        ),
        ("lodge-only-sets-bits", 1, &[("SetsBitmap", "the header")]),
        ("lodge-merge-keeps-stamp", 1, &[("LinksPast", "the header")]),
        ("lodge-flushes-half-a-leaf", 1, &[("Flushed", "the buffer")]),
        (
            "lodge-replays-flushed",
            1,
            &[("Replays", "is not to be replayed")],
        ),
        ("lodge-replays-log-by-log", 1, &[("Replays", "is before")]),
        ("lodge-log-not-fenced", 1, &[("", MEDIUM)]),
        (
            "lodge-logs-before-lock",
            1,
            &[("Appends", "AppendEntry is not enabled")],
        ),
        ("lodge-bitmap-before-pairs", 1, &[("", MEDIUM)]),
        ("lodge-header-not-fenced", 1, &[("", MEDIUM)]),
        ("lodge-switches-before-fence", 1, &[("", MEDIUM)]),
        (
            "lodge-new-leaf-without-stamp",
            1,
            &[("PreparesLeaf", "the header")],
        ),
        (
            "lodge-stamps-at-switch",
            1,
            &[("SwitchesSibling", "the header")],
        ),
        ("lodge-two-words", 1, &[("", MEDIUM)]),
        ("lodge-merge-links-first", 1, &[("", MEDIUM)]),
    ];
    let tlc = behaviour::tlc();
    let mut wrong = Vec::new();
    for (bug, clients, refusals) in BUGS {
        assert!(treering_engine::choose_mutation(Some(bug)), "{bug}");
        let report = run(clients, 1, Budget::Episodes(100));
        treering_engine::choose_mutation(None);
        let accepted = report.accepted();
        let Some((_, refusal)) = report.refusal else {
            wrong.push(format!("{bug} is accepted, in {accepted} events"));
            continue;
        };
        let kind = refusal.heard.kind();
        println!("{bug}: after {accepted} events: {kind}: {}", refusal.why);
        let named = |(event, why): &(&str, &str)| {
            (event.is_empty() || kind == *event) && refusal.why.contains(why)
        };
        if !refusals.iter().any(named) {
            wrong.push(format!(
                "{bug}: expected {refusals:?}; found {kind}: {}",
                refusal.why
            ));
        }
        let behaviour = &refusal.behaviour;
        // One half of a word differs from all versions; and a node that the spec assumes away.
        let none = ["lodge-two-words", "lodge-merge-links-first"];
        wrong.extend(behaviour::wrong(bug, behaviour, tlc.as_ref(), &none));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
