//! LodgeTree's replays on persistent memory: against the paper's figures (CLAIMS LT-04, LT-05, LT-12, LT-13) and twice the same.

use std::path::PathBuf;

use tempfile::TempDir;
use treering_engine::{LodgeOptions, NodeSplit, PmTreeKind};
use treering_sim::pm;
use treering_sim::replay::{PmReplayConfig, run_pm};
use treering_sim::report::{LodgeReport, PmReport, ReplayReport};
use treering_traces::{Header, Op, OpKind, Writer};

const KEYS: u64 = 60_000;

fn scattered(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Four of five in a fifth of the key space.
fn skewed(i: u64) -> u64 {
    if i.is_multiple_of(5) {
        scattered(i)
    } else {
        u64::MAX / 5 + scattered(i) / 5
    }
}

fn trace(folder: &TempDir, ops: impl Iterator<Item = Op>) -> PathBuf {
    let path = folder.path().join("trace.trz");
    let ops: Vec<Op> = ops.collect();
    let header = Header {
        schema: Header::SCHEMA.into(),
        name: "lodge".into(),
        source: "made for a test".into(),
        ops: ops.len() as u64,
        warmup_ops: ops.len() as u64 / 2,
        records: None,
        zeros: 0.5,
        seed: None,
    };
    let mut writer = Writer::create(&path, header).expect("a file");
    for op in &ops {
        writer.write(op).expect("a file");
    }
    writer.finish().expect("a file");
    path
}

fn op(kind: OpKind, key: u64) -> Op {
    Op {
        kind,
        key: key.to_be_bytes().to_vec(),
        value_len: if kind == OpKind::Put { 8 } else { 0 },
        scan_len: if kind == OpKind::Scan { 20 } else { 0 },
        ..Op::default()
    }
}

fn replay(
    trace: PathBuf,
    lodge: LodgeOptions,
    set: impl FnOnce(&mut PmReplayConfig),
) -> ReplayReport {
    let profile = pm::builtin("pm").expect("it is built in").1;
    let tree = PmTreeKind::Lodge(lodge);
    let mut config = PmReplayConfig::new(trace, profile, "pm".into(), tree);
    set(&mut config);
    run_pm(&config, &mut |_| {}).expect("it runs")
}

fn inserted(key: impl Fn(u64) -> u64, lodge: LodgeOptions) -> (PmReport, LodgeReport) {
    let folder = TempDir::new().expect("a folder");
    let path = trace(&folder, (0..KEYS).map(|i| op(OpKind::Put, key(i))));
    let report = replay(path, lodge, |_| {});
    let pm = report.pm.expect("it ran on persistent memory");
    let own = pm.lodge.clone().expect("it is one");
    (pm, own)
}

#[test]
fn inner_nodes_leave_as_many_slots_free_as_the_paper_says() {
    let lodge = LodgeOptions::default();
    for (name, key) in [
        ("uniform", scattered as fn(u64) -> u64),
        ("skewed", skewed),
        ("sequential", |i| i << 20),
    ] {
        let (pm, own) = inserted(key, lodge);
        // §II-C, with 2 points to either side; sequential inserts leave halves behind them.
        assert!((0.23..0.60).contains(&own.free_share), "{name}: {own:?}");
        assert!(own.buffered_share < own.free_share, "{name}: LT-13");
        assert!(own.most_leaves_flushed <= 2, "{name}: LT-04");
        assert!(own.pairs_per_flush >= 1.0 && own.pairs_per_leaf >= 1.0);
        // LT-12: a log's room is pinned by what is buffered.
        assert!(pm.log_bytes == 24 * pm.buffered, "{name}: {pm:?}");
        let most = pm.leaf_bytes / 24 / 4 + 16 * u64::from(lodge.log_entries);
        assert!(own.log_room_entries < most, "{name}: {own:?}");
    }
}

#[test]
fn what_lies_together_is_flushed_together() {
    let records = |key: fn(u64) -> u64, t_node| {
        let lodge = LodgeOptions {
            t_node,
            ..LodgeOptions::default()
        };
        let (pm, own) = inserted(key, lodge);
        (
            own.pairs_per_flush,
            own.pairs_per_leaf,
            pm.measured.xbi_leaf,
        )
    };
    let uniform = records(scattered, 2);
    let sequential = records(|i| i << 20, 2);
    assert!(
        sequential.1 > 3.0 * uniform.1,
        "{sequential:?}, {uniform:?}"
    );
    assert!(
        sequential.2 < 0.5 * uniform.2,
        "{sequential:?}, {uniform:?}"
    );
    // More leaves a flush: more records, but not each leaf more of them.
    let wide = records(scattered, 8);
    assert!(wide.0 > 1.5 * uniform.0, "{wide:?}, {uniform:?}");
}

/// §III-C: a burst in a tenth of the key space.
#[test]
fn nodes_in_a_burst_are_split_into_more() {
    let burst = |i| match i {
        0..30_000 => scattered(i),
        _ => u64::MAX / 2 + scattered(i) / 10,
    };
    let (_, aware) = inserted(burst, LodgeOptions::default());
    let double = LodgeOptions {
        node_split: NodeSplit::Double,
        ..LodgeOptions::default()
    };
    let (_, double) = inserted(burst, double);
    let more = |own: &LodgeReport| own.node_splits[1..].iter().sum::<u64>();
    assert_eq!(more(&double), 0, "{double:?}");
    assert!(more(&aware) > 2, "{aware:?}");
}

#[test]
fn mixed_operations_give_the_same_report_twice_whatever_is_timed() {
    let folder = TempDir::new().expect("a folder");
    let mixed = (0..24_000u64).map(|i| {
        let kind = match i % 10 {
            _ if i < 6_000 => OpKind::Put,
            0..=3 => OpKind::Get,
            4..=7 => OpKind::Put,
            8 => OpKind::Delete,
            _ => OpKind::Scan,
        };
        op(kind, scattered(i.wrapping_mul(7919) % 9000))
    });
    let path = trace(&folder, mixed);
    for timing in [false, true] {
        let run = || {
            let set = |config: &mut PmReplayConfig| {
                config.clients = 4;
                config.timing = timing;
            };
            let report = replay(path.clone(), LodgeOptions::default(), set);
            if let Some(latency) = &report.latency_ns {
                let puts = latency.put.as_ref().map_or(0, |l| l.count);
                assert_eq!(puts, report.ops.put);
            }
            serde_json::to_string(&report).expect("JSON")
        };
        let once = run();
        assert_eq!(once, run(), "{timing}");
        assert!(once.contains("\"pairs_per_leaf\""));
    }
}
