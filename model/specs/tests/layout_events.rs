//! Checks that `LeafLayout` allows everything that the engine does with its leaves, and in
//! recovery.

use treering_specs::conformance::Budget;
use treering_specs::conformance::layout::setup::Leaves;
use treering_specs::conformance::layout::{Report, run, run_episode, run_on, setups, taken};

fn accepted(seed: u64, budget: Budget) -> Report {
    let report = run(seed, budget).unwrap();
    if let Some((episode, refusal)) = &report.refusal {
        panic!("{episode:?}: {refusal}");
    }
    println!("{:?}", report.tally);
    report
}

#[test]
fn leaves_of_all_layouts_are_accepted() {
    let report = accepted(1, Budget::Episodes(250));
    let never = report.tally.never(&taken());
    assert!(
        never.is_empty(),
        "these actions were never taken: {never:?}"
    );
}

/// Leaves become semi-dense.
#[test]
fn semi_dense_leaves_are_accepted() {
    let mut stores = setups().unwrap();
    stores.retain(|setup| setup.leaves() == Leaves::Semi);
    let report = run_on(&stores, 5, Budget::Episodes(120)).unwrap();
    if let Some((episode, refusal)) = &report.refusal {
        panic!("{episode:?}: {refusal}");
    }
    println!("{:?}", report.tally);
    for action in ["LayOut", "Divide", "RedoRecord"] {
        let taken = report.tally.taken.get(action);
        assert!(taken > Some(&10), "{action}: {taken:?}");
    }
}

#[test]
fn episodes_repeat_exactly() {
    for setup in setups().unwrap() {
        let of = |seed| run_episode(&setup, seed).unwrap();
        let (first, again) = (of(7), of(7));
        assert!(first.1.is_none() && again.1.is_none());
        assert_eq!(first.0, again.0);
        assert!(first.0.heard > 100, "{:?}", first.0);
    }
}

#[test]
#[ignore = "slow: run in release: cargo test --release -p treering-specs --test layout_events -- --ignored --nocapture"]
fn a_million_events_are_accepted() {
    let report = accepted(11, Budget::Events(1_000_000));
    println!("{} episodes", report.episodes);
}
