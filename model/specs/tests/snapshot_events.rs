//! Checks that `IndexSnapshot` allows everything that the engine's tree, the snapshot of its index
//! and its recovery do.

use treering_specs::conformance::Budget;
use treering_specs::conformance::snapshot::{Report, Setup, run, run_episode, taken};

fn accepted(seed: u64, budget: Budget) -> Report {
    let report = run(seed, budget).unwrap();
    if let Some((episode, refusal)) = &report.refusal {
        panic!("{episode:?}: {refusal}");
    }
    println!("{:?}", report.tally);
    report
}

#[test]
fn trees_and_their_snapshots_are_accepted() {
    let report = accepted(1, Budget::Episodes(100));
    let never = report.tally.never(&taken());
    assert!(
        never.is_empty(),
        "these actions were never taken: {never:?}"
    );
    let early = report.tally.taken.get("(ReadEarlier)").copied();
    assert!(early > Some(20), "the index had changed {early:?} times");
}

#[test]
fn episodes_repeat_exactly() {
    let setup = Setup::new().unwrap();
    let of = |seed| run_episode(&setup, seed, None).unwrap();
    let (first, again) = (of(7), of(7));
    assert!(first.1.is_none() && again.1.is_none());
    assert_eq!(first.0, again.0);
    assert!(first.0.heard > 200, "{:?}", first.0);
}

/// A page is written, merged away and freed. A checkpoint writes a chunk to its slot and does not
/// end. The next process finds a home without a page, and the page in the journal.
#[test]
fn a_page_that_the_journal_restores_is_accepted() {
    let setup = Setup::new().unwrap();
    let (tally, refusal) = run_episode(&setup, 5_483_567_492_889_850_179, None).unwrap();
    if let Some(refusal) = refusal {
        panic!("{refusal}");
    }
    assert!(
        tally.taken.contains_key("(RestorePage)"),
        "{:?}",
        tally.taken
    );
}

#[test]
#[ignore = "slow: run in release: cargo test --release -p treering-specs --test snapshot_events -- --ignored --nocapture"]
fn a_million_events_are_accepted() {
    let report = accepted(11, Budget::Events(1_000_000));
    println!("{} episodes", report.episodes);
}
