//! What the engine does is what `WalRecovery` allows, and what a broken one does is not.

use treering_model::oracle::events::{Budget, Cast, Report, Variant, run};

fn accepted(variant: Variant, cast: Cast, episodes: u64) -> Report {
    let report = run(variant, cast, 1, Budget::Episodes(episodes)).unwrap();
    if let Some((seed, refusal)) = &report.refusal {
        panic!("{variant:?}, episode of seed {seed}: {refusal}");
    }
    report
}

#[test]
fn episodes_are_accepted_event_by_event() {
    for variant in Variant::ALL {
        let report = accepted(variant, Cast::OneThread, 100);
        assert_eq!(report.never_heard(), Vec::<&str>::new());
        assert_eq!(report.never_taken(), Vec::<&str>::new());
        assert!(report.accepted() > 50_000, "{}", report.accepted());
    }
}

#[test]
fn threads_are_accepted_too() {
    for variant in Variant::ALL {
        let report = accepted(variant, Cast::Threads, 6);
        println!("{report:#?}");
        assert!(report.accepted() > 10_000, "{}", report.accepted());
    }
}

#[test]
fn the_same_seed_is_the_same_episode() {
    let once = accepted(Variant::Cow, Cast::OneThread, 10);
    assert_eq!(accepted(Variant::Cow, Cast::OneThread, 10), once);
}
