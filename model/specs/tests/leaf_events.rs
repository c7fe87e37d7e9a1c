//! Checks that `LeafBuffering` allows everything that the engine's CCL-BTree does.

use treering_specs::conformance::Budget;
use treering_specs::conformance::leaf::{LABELS, Report, UNBUFFERED, run, run_mixed};
use treering_specs::conformance::refused::Tally;

fn accepted(clients: u8, seed: u64, budget: Budget) -> Report {
    let report = run(clients, seed, budget);
    if let Some((episode, refusal)) = &report.refusal {
        panic!("{episode:?}: {refusal}");
    }
    println!("{clients} clients: {:?}", report.tally);
    report
}

fn takes_every_action(tally: &Tally) {
    let never = tally.never(LABELS);
    assert!(
        never.is_empty(),
        "these actions were never taken: {never:?}"
    );
}

#[test]
fn events_of_one_client_are_accepted() {
    takes_every_action(&accepted(1, 1, Budget::Episodes(30)).tally);
}

#[test]
fn concurrent_clients_are_accepted() {
    takes_every_action(&accepted(2, 2, Budget::Episodes(12)).tally);
}

#[test]
fn the_tree_without_buffers_is_accepted_and_logs_nothing() {
    let report = run_mixed(Some(0), 3, Budget::Episodes(6));
    if let Some((episode, refusal)) = &report.refusal {
        panic!("{episode:?}: {refusal}");
    }
    println!("without buffers: {:?}", report.tally);
    let never = report.tally.never(&UNBUFFERED);
    assert!(never.is_empty(), "never taken: {never:?}");
    let of_log = ["AppendLog", "FenceLog", "ScanBuffer", "Replay"];
    let taken = |action: &&str| report.tally.taken.contains_key(*action);
    assert!(!of_log.iter().any(taken), "nothing is logged");
}

#[test]
#[ignore = "slow: run in release: cargo test --release -p treering-specs --test leaf_events -- --ignored --nocapture"]
fn two_million_events_are_accepted() {
    for (clients, seed) in [(1, 11), (2, 12)] {
        let report = accepted(clients, seed, Budget::Events(1_000_000));
        println!("{} episodes", report.episodes);
    }
}
