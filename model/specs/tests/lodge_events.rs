//! Checks that `SurrogateBuffer` allows everything that the engine's LodgeTree does.

use treering_oracle::deadline::Deadline;
use treering_specs::conformance::Budget;
use treering_specs::conformance::lodge::{Episode, LABELS, Report, run};
use treering_specs::conformance::persistent::episode::run_until;
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

/// A kill came before the store of a slot that may have been anything, before a delete over an
/// entry with the same pair, and before the fence of the log floor.
#[test]
fn what_a_kill_leaves_is_not_taken_for_more() {
    let episode = |keys, slots, t_node, t_split, log_entries, seed| Episode {
        clients: 1,
        keys,
        slots,
        t_node,
        t_split,
        log_entries,
        seed,
    };
    for episode in [
        episode(51, 8, 3, 7, 7, 1551474615808073613),
        episode(19, 5, 3, 5, 8, 4504985774214511021),
        episode(16, 5, 1, 10, 8, 6062844205530776204),
    ] {
        let (tally, refusal) = run_until(&episode, &Deadline::never());
        if let Some(refusal) = refusal {
            panic!("{episode:?}: {refusal}");
        }
        assert!(tally.heard > 0);
    }
}

/// Threads decide what happens, so some steps are rare in them: more episodes follow until all were
/// taken.
#[test]
fn concurrent_clients_are_accepted() {
    let mut tally = Tally::default();
    for seed in 2..12 {
        tally.add(&accepted(2, seed, Budget::Episodes(12)).tally);
        if tally.never(LABELS).is_empty() {
            return;
        }
    }
    takes_every_action(&tally);
}

#[test]
#[ignore = "slow: run in release: cargo test --release -p treering-specs --test lodge_events -- --ignored --nocapture"]
fn two_million_events_are_accepted() {
    for seed in [11, 12] {
        let report = accepted(1, seed, Budget::Events(1_000_000));
        println!("{} episodes", report.episodes);
    }
}
