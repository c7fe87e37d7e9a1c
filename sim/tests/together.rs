//! One tree on several drives (`run_together`): each report is the one of a replay alone.

use std::path::Path;

use treering_engine::{Nanos, PageStoreKind, TablePersist};
use treering_sim::replay::{
    Acknowledge, Precondition, ReplayConfig, Size, Target, run, run_together,
};
use treering_traces::generate::{GenParams, Workload, build};
use treering_traces::{Op, OpSource, Writer};

/// A trace of half puts over few records, so that the log wraps and drives collect garbage.
fn trace(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("trace.trz");
    let mut params = GenParams::new(Workload::Zipf, 4_000);
    params.ops = Some(12_000);
    let (header, mut source) = build(&params).unwrap();
    let mut writer = Writer::create(&path, header).unwrap();
    let mut op = Op::default();
    while source.next_op(&mut op).unwrap() {
        writer.write(&op).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// A drive with this share of spare flash and this policy of garbage collection.
fn drive(device: &str, spare: f64, gc: &str, how: Precondition) -> Target {
    let mut target = Target::builtin(device).expect("a built-in profile");
    let flash = target.flash_mut().expect("it has flash");
    (flash.over_provisioning, flash.gc) = (spare, gc.into());
    *target.precondition_mut().expect("it is a drive") = how;
    *target.capacity_mut().expect("it is simulated") = Some(24 << 20);
    target
}

fn drives() -> Vec<Target> {
    vec![
        drive("ssd", 0.07, "greedy", Precondition::None),
        drive("csd", 0.07, "greedy", Precondition::Steady),
        drive("ssd", 0.28, "fifo", Precondition::Fill),
        drive("csd", 0.28, "fifo", Precondition::None),
        drive("ssd", 0.28, "greedy", Precondition::Steady),
    ]
}

/// Replays together and alone; returns which had a report.
fn compare(configs: &[ReplayConfig], what: &str) -> Vec<bool> {
    let together = run_together(configs, &mut |_| {}).unwrap();
    let mut had = Vec::new();
    for (config, report) in configs.iter().zip(together) {
        had.push(report.is_some());
        if let Some(report) = report {
            let alone = run(config, &mut |_| {}).unwrap();
            let text = |report| serde_json::to_string_pretty(report).unwrap();
            let (text, expected) = (text(&report), text(&alone));
            let differ = (text.lines().zip(expected.lines())).find(|(a, b)| a != b);
            let name = config.target.name();
            assert_eq!(differ, None, "{what}, {name}");
            assert_eq!(text.len(), expected.len(), "{what}, {name}");
        }
    }
    had
}

fn configs(path: &Path, change: impl Fn(&mut ReplayConfig)) -> Vec<ReplayConfig> {
    let config = |target| {
        let mut config = ReplayConfig::new(path.to_owned(), target);
        config.cache = Size::Share(0.1);
        config.warmup = Some(0.3);
        change(&mut config);
        config
    };
    drives().into_iter().map(config).collect()
}

#[test]
fn a_client_alone_does_the_same_on_every_drive() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path());
    for store in [
        PageStoreKind::InPlace,
        PageStoreKind::CopyOnWrite {
            table: TablePersist::Checkpoint,
        },
        PageStoreKind::Shadow,
    ] {
        for (acknowledge, drain) in [
            (Acknowledge::Deferred, false),
            (Acknowledge::Commit, false),
            (Acknowledge::Commit, true),
        ] {
            let configs = configs(&path, |config| {
                config.tree.pages_mut().store = store;
                config.acknowledge = acknowledge;
                config.drain = drain;
            });
            let what = format!("{store:?} {acknowledge:?}, drained: {drain}");
            assert_eq!(compare(&configs, &what), [true; 5], "{what}");
        }
    }
}

#[test]
fn drives_that_the_clock_tells_apart_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path());
    let mut left_out = 0;
    for interval in [100_000, 20_000_000, 60_000_000_000] {
        for clients in [1, 7] {
            let configs = configs(&path, |config| {
                config.acknowledge = Acknowledge::Interval(Nanos(interval));
                config.clients = clients;
            });
            let had = compare(&configs, &format!("{interval} ns, {clients} clients"));
            // The first drive that compresses leads.
            assert!(had[1]);
            left_out += had.iter().filter(|had| !**had).count();
        }
    }
    assert!(left_out > 0, "no interval ended elsewhere");
}

#[test]
fn clients_and_queues_are_those_of_each_drive() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path());
    for (clients, timing) in [(6, false), (1, true), (6, true)] {
        let configs = configs(&path, |config| {
            config.clients = clients;
            config.timing = timing;
            config.acknowledge = Acknowledge::Commit;
        });
        let had = compare(&configs, &format!("{clients} clients, {timing}"));
        if clients == 1 {
            assert_eq!(had, [true; 5]);
        }
    }
}

#[test]
fn what_is_known_to_differ_does_not_run_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path());
    let mut configs = configs(&path, |_| {});
    *configs[0].target.capacity_mut().unwrap() = Some(25 << 20);
    let Target::Csd { profile, .. } = &mut configs[3].target else {
        panic!("the fourth drive compresses");
    };
    profile.level = 6;
    let had = compare(&configs, "another size, another codec");
    assert_eq!(had, [false, true, true, false, true]);
    configs[4].clients = 2;
    assert_eq!(compare(&configs, "another client"), [false; 5]);
}
