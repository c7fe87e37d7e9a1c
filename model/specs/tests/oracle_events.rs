//! Checks that `WalRecovery` allows everything that the engine does, and refuses a broken engine.

use std::time::Duration;

use treering_engine::PageStoreKind;
use treering_specs::check::tools;
use treering_specs::conformance::{Budget, Cast, Length, Report, Setup, Variant};
use treering_specs::conformance::{cover, mini, ring, run, shadow, tla, traced};
use treering_specs::mirror::wal_recovery::WalRecovery;
use treering_specs::{Config, Mirror};

fn accepted(variant: Variant, cast: Cast, episodes: u64) -> Report {
    let report = run(variant, cast, 1, Budget::Episodes(episodes)).unwrap();
    if let Some((seed, refusal)) = &report.refusal {
        panic!("{variant:?}, episode of seed {seed}: {refusal}");
    }
    report
}

#[test]
fn episodes_are_accepted() {
    for variant in Variant::ALL {
        let report = accepted(variant, Cast::OneThread, 100);
        assert_eq!(report.never_heard(), Vec::<&str>::new());
        assert_eq!(report.never_taken(), Vec::<&str>::new());
        assert!(report.accepted() > 50_000, "{}", report.accepted());
    }
}

#[test]
fn concurrent_clients_are_accepted() {
    for variant in Variant::ALL {
        let report = accepted(variant, Cast::Threads, 6);
        assert!(report.accepted() > 10_000, "{}", report.accepted());
    }
}

#[test]
fn the_same_seed_gives_the_same_episode() {
    let once = accepted(Variant::Cow, Cast::OneThread, 10);
    assert_eq!(accepted(Variant::Cow, Cast::OneThread, 10), once);
}

fn walks(limit: Duration) -> cover::Cover {
    let specs =
        std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs/wal_recovery");
    let config = Config::read(&specs.join("MCWalRecovery_smoke.cfg")).unwrap();
    let cover = cover::run(&WalRecovery::from_config(&config).unwrap(), limit).unwrap();
    if let Some(mismatch) = &cover.mismatch {
        panic!("{mismatch}");
    }
    cover
}

#[test]
fn the_engine_follows_walks_over_the_mirror() {
    let cover = walks(Duration::from_secs(6));
    assert_eq!((cover.states, cover.edges), (71_101, 321_509));
    assert!(cover.taken_in_all() > 5_000, "{}", cover.taken_in_all());
    assert_eq!(cover.taken.len(), 24, "{:?}", cover.taken);
}

#[test]
#[ignore = "slow: takes minutes; in release: cargo test --release -p treering-specs --test oracle_events -- --ignored --nocapture"]
fn the_engine_takes_every_possible_edge() {
    let cover = walks(Duration::from_secs(900));
    println!("{cover:#?}\n{} edges taken", cover.taken_in_all());
    assert_eq!(cover.left.values().sum::<usize>(), 0);
}

#[test]
#[ignore = "slow: run in release: cargo test --release -p treering-specs --test oracle_events -- --ignored --nocapture"]
fn a_million_events_are_accepted() {
    for variant in Variant::ALL {
        let began = std::time::Instant::now();
        let report = run(variant, Cast::Mixed(6), 7, Budget::Events(1_000_000)).unwrap();
        if let Some((seed, refusal)) = &report.refusal {
            panic!("{variant:?}, episode of seed {seed}: {refusal}");
        }
        println!(
            "{variant:?} in {:?}: {} of {report:#?}",
            began.elapsed(),
            report.accepted()
        );
    }
}

#[test]
fn tlc_accepts_a_recording_and_refuses_a_forged_one() {
    let specs = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs");
    let Some(tlc) = tlc(&specs) else { return };
    let setup = Setup::new(Variant::InPlace, 4).unwrap();
    let length = Length {
        lives: 3,
        steps: 40,
    };
    let mut episodes = (1..).map(|seed| {
        let (judge, refusal) = traced(&setup, seed, length).unwrap();
        assert_eq!(refusal, None);
        judge
    });
    // An episode with all events that the check distinguishes.
    let judge = episodes
        .find(|judge| {
            let actions = tla::actions(judge);
            [
                "Crash",
                "Restart",
                "RedoRecord",
                "FinishRecovery",
                "TruncateLog",
            ]
            .iter()
            .all(|wanted| actions.contains(wanted))
        })
        .unwrap();
    let module = tla::module(&judge).unwrap();
    println!("{} events, {:?}", module.events, tla::actions(&judge));
    assert_eq!(
        tla::check(&module, &tlc, &specs).unwrap(),
        tla::Verdict::Accepted
    );
    // Replaces the end of a flush by another step.
    let forged = tla::Module {
        tla: module
            .tla
            .replacen("do |-> \"CompleteFlush\"", "do |-> \"Reload\", k |-> k1", 1),
        ..module
    };
    assert_eq!(
        tla::check(&forged, &tlc, &specs).unwrap(),
        tla::Verdict::Refused
    );
}

/// TLC, if it is installed already.
fn tlc(specs: &std::path::Path) -> Option<tools::Tlc> {
    let here = specs.join("target/dependency").is_dir() || std::env::var_os("TLC_JAR").is_some();
    let found = here.then(|| tools::tlc(specs, &mut |_| {}));
    match found {
        Some(Ok(tlc)) => Some(tlc),
        Some(Err(missing)) => {
            eprintln!("NOT RUN: {missing}");
            None
        }
        None => {
            eprintln!(
                "NOT RUN: TLC is missing; `treering check` downloads it, or name it in TLC_JAR"
            );
            None
        }
    }
}

/// The budget also ends a running episode, whatever threads it has. The run does not exceed its
/// time, and the events so far are judged.
#[test]
fn running_episodes_end_with_the_budget() {
    let at_once = Budget::Within {
        episodes: 4,
        begins_for: Duration::from_secs(600),
        at_most: Duration::ZERO,
    };
    for cast in [Cast::OneThread, Cast::Threads] {
        let all = run(Variant::InPlace, cast, 3, Budget::Episodes(4)).unwrap();
        let cut = run(Variant::InPlace, cast, 3, at_once).unwrap();
        assert_eq!((all.interrupted, cut.interrupted), (0, 4), "{cast:?}");
        assert!(cut.refusal.is_none(), "{cast:?}: {cut:?}");
        let (all, cut) = (all.accepted(), cut.accepted());
        assert!(10 * cut < all, "{cast:?}: {cut} of {all} events");
    }
    let store = PageStoreKind::InPlace;
    let cut = mini::run_mixed(store, 3, at_once);
    assert_eq!((cut.interrupted, cut.accepted()), (4, 0));
    let cut = ring::run_mixed(3, at_once);
    assert_eq!((cut.interrupted, cut.accepted()), (4, 0));
    let all = shadow::run(shadow::Variant::Plain, 3, Budget::Episodes(4)).unwrap();
    let cut = shadow::run(shadow::Variant::Plain, 3, at_once).unwrap();
    assert_eq!((all.interrupted, cut.interrupted), (0, 4));
    assert!(10 * cut.accepted() < all.accepted(), "{cut:?}");
}
