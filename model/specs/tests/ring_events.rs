//! Checks that `CircularBuffer` allows everything that the engine's ring does.

use treering_specs::conformance::ring::{ALONE, Report, run};

/// The tests together accept more than a million events.
fn accepted(clients: u8, seed: u64, events: u64) -> Report {
    let report = run(clients, seed, events);
    if let Some((episode, refusal)) = &report.refusal {
        panic!("{episode:?}: {refusal}");
    }
    println!("{clients} clients: {:?}", report.tally);
    report
}

#[test]
fn events_of_one_client_are_accepted() {
    let report = accepted(1, 1, 500_000);
    for label in ALONE {
        assert!(
            report.tally.taken.contains_key(label),
            "{label} was never taken"
        );
    }
}

#[test]
fn concurrent_clients_are_accepted() {
    for clients in [2, 4, 8] {
        let report = accepted(clients, 2, 200_000);
        for label in ALONE {
            assert!(
                report.tally.taken.contains_key(label),
                "{label} was never taken"
            );
        }
    }
}
