//! What the engine does is what `WalRecovery` allows, and what a broken one does is not.

use std::time::Duration;

use treering_model::mirror::wal_recovery::WalRecovery;
use treering_model::oracle::events::{Budget, Cast, Report, Variant, cover, run};
use treering_model::{Config, Mirror};

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
        assert!(report.accepted() > 10_000, "{}", report.accepted());
    }
}

#[test]
fn the_same_seed_is_the_same_episode() {
    let once = accepted(Variant::Cow, Cast::OneThread, 10);
    assert_eq!(accepted(Variant::Cow, Cast::OneThread, 10), once);
}

/// With `RUSTFLAGS="--cfg treering_mutations"`: seeded bugs of the engine, and the event at which the judge must refuse each.
#[cfg(treering_mutations)]
mod mutations {
    use super::*;
    use std::process::Command;
    use treering_model::oracle::events::{Setup, run_on, setups};

    /// The bug, and the refusals that name it: the kind of the event, and a part of the reason.
    const BUGS: [(&str, &[(&str, &str)]); 7] = [
        ("page-before-log", &[("PageWriting", "WriteBack")]),
        (
            "truncate-before-superblock",
            &[("LogTruncated", "TruncateLog")],
        ),
        // The flush that failed is believed by a client, or by write-back.
        (
            "log-acks-before-flush",
            &[
                ("Acknowledged", "Acknowledge"),
                ("Acknowledged", "called durable"),
                ("PageWriting", "WriteBack"),
            ],
        ),
        (
            "log-retries-failed-flush",
            &[
                ("LogAppended", "AppendLog"),
                ("LogFlushBegins", "FlushLog"),
                ("Acknowledged", "Acknowledge"),
            ],
        ),
        // Read again, or to be durable by the checkpoint's end.
        (
            "clean-without-write",
            &[("PageLoaded", "Reload"), ("PagesFlushed", "FlushPages")],
        ),
        (
            "redo-ignores-page-lsn",
            &[("PageRedone", "the record to be redone")],
        ),
        ("log-keeps-epoch", &[("Crashed", "log place")]),
    ];

    #[test]
    fn every_seeded_bug_is_refused_for_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        // Some bugs would not let the tree be built: it is built here, without them.
        for variant in Variant::ALL {
            for (n, setup) in setups(variant).unwrap().iter().enumerate() {
                let name = format!("{}-{n}", variant.name());
                setup.write(&folder.path().join(name)).unwrap();
            }
        }
        for (bug, expected) in BUGS {
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "mutations::judge", "--ignored", "--nocapture"])
                .env("TREERING_MUTATION", bug)
                .env("TREERING_SETUPS", folder.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            let verdict = said.lines().find(|line| line.starts_with("verdict"));
            let verdict = verdict.unwrap_or_else(|| panic!("{bug}: no verdict: {said}"));
            println!("{bug}: {verdict}");
            assert!(
                expected.iter().any(|(kind, why)| {
                    verdict.contains(&format!("at {kind}:")) && verdict.contains(why)
                }),
                "{bug}: expected one of {expected:?}, found {verdict}"
            );
        }
    }

    /// The body of a process that has one bug; not a test of its own.
    #[test]
    #[ignore = "run by every_seeded_bug_is_refused_for_what_it_is, in a process for each bug"]
    fn judge() {
        let folder = std::path::PathBuf::from(std::env::var_os("TREERING_SETUPS").unwrap());
        for variant in Variant::ALL {
            let setups: Vec<Setup> = (0..2)
                .map(|n| Setup::read(&folder.join(format!("{}-{n}", variant.name()))).unwrap())
                .collect();
            let report = run_on(&setups, Cast::OneThread, 1, Budget::Episodes(200)).unwrap();
            if let Some((_, refusal)) = report.refusal {
                let kind = refusal.entry.heard.kind();
                println!(
                    "\nverdict after {} episodes at {kind}: {}",
                    report.episodes, refusal.why
                );
                return;
            }
        }
        println!("\nverdict: accepted");
    }
}

#[test]
fn walks_over_the_mirror_lead_the_engine() {
    let specs = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../specs/wal_recovery");
    let config = Config::read(&specs.join("MCWalRecovery_smoke.cfg")).unwrap();
    let mirror = WalRecovery::from_config(&config).unwrap();
    let limit = std::env::var("TREERING_COVER_SECONDS").map_or(4, |s| s.parse().unwrap());
    let cover = cover::run(&mirror, Duration::from_secs(limit)).unwrap();
    if let Some(mismatch) = &cover.mismatch {
        panic!(
            "{}\nafter {}\nin\n{}",
            mismatch.why,
            mismatch.walk.join(", "),
            mismatch.state
        );
    }
    println!("{cover:#?} {}", cover.taken_in_all());
}
