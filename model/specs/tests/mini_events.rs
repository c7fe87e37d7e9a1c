//! Checks that `MiniPage` allows everything that the engine's Bf-tree does.

use treering_specs::conformance::mini::{ALONE, Episode, Report, TOGETHER, run, run_episode};
use treering_specs::conformance::refused::Tally;

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
    let report = accepted(1, 1, 60_000);
    let never = report.tally.never(&ALONE);
    assert!(
        never.is_empty(),
        "these actions were never taken: {never:?}"
    );
}

#[test]
fn concurrent_clients_are_accepted() {
    let mut all = Tally::default();
    for clients in [2, 4, 8] {
        all.add(&accepted(clients, 2, 50_000).tally);
    }
    let never = all.never(&[&ALONE[..], &TOGETHER].concat());
    assert!(
        never.is_empty(),
        "these actions were never taken: {never:?}"
    );
}

#[test]
fn episodes_take_every_action_within_a_few_hundred_calls() {
    let episodes = 0..20;
    let complete = episodes.filter(|seed| {
        let (tally, refusal) = run_episode(&Episode::new(1, *seed));
        assert!(refusal.is_none(), "seed {seed}: {}", refusal.unwrap());
        tally.never(&ALONE).is_empty()
    });
    let complete = complete.count();
    assert!(
        complete >= 10,
        "only {complete} of 20 episodes take every action"
    );
}
