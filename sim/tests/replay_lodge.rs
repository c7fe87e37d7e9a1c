//! Replays of LodgeTree on persistent memory: they match the paper's figures (CLAIMS LT-04, LT-05,
//! LT-12, LT-13) and are deterministic.

use std::path::PathBuf;

use tempfile::TempDir;
use treering_engine::{LodgeOptions, NodeSplit, PmTreeKind};
use treering_sim::replay::ReplayConfig;
use treering_sim::report::{LodgeReport, PmReport, ReplayReport, html, text};
use treering_traces::{Op, OpKind};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

const KEYS: u64 = 60_000;

fn scattered(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Four of five keys are in a fifth of the key space.
fn skewed(i: u64) -> u64 {
    if i.is_multiple_of(5) {
        scattered(i)
    } else {
        u64::MAX / 5 + scattered(i) / 5
    }
}

fn trace(folder: &TempDir, ops: impl Iterator<Item = Op>) -> PathBuf {
    let ops: Vec<Op> = ops.collect();
    support::trace(folder, ops.len() as u64 / 2, &ops)
}

fn op(kind: OpKind, key: u64) -> Op {
    support::op(kind, key.to_be_bytes().to_vec())
}

fn replay(
    trace: PathBuf,
    lodge: LodgeOptions,
    set: impl FnOnce(&mut ReplayConfig),
) -> ReplayReport {
    support::replay(trace, PmTreeKind::Lodge(lodge), set)
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
fn inner_nodes_have_as_many_free_slots_as_the_paper_states() {
    let lodge = LodgeOptions::default();
    for (name, key) in [
        ("uniform", scattered as fn(u64) -> u64),
        ("skewed", skewed),
        ("sequential", |i| i << 20),
    ] {
        let (pm, own) = inserted(key, lodge);
        // §II-C, with a tolerance of 2 points. Sequential inserts leave half-full nodes behind.
        assert!((0.23..0.60).contains(&own.free_share), "{name}: {own:?}");
        assert!(own.buffered_share < own.free_share, "{name}: LT-13");
        assert!(own.most_leaves_flushed <= 2, "{name}: LT-04");
        assert!(own.pairs_per_flush >= 1.0 && own.pairs_per_leaf >= 1.0);
        // LT-12: only buffered records keep log space in use.
        assert!(pm.log_bytes == 24 * pm.buffered, "{name}: {pm:?}");
        let most = pm.leaf_bytes / 24 / 4 + 16 * u64::from(lodge.log_entries);
        assert!(own.log_room_entries < most, "{name}: {own:?}");
    }
}

#[test]
fn neighbouring_records_are_flushed_together() {
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
    // Flushing more leaves at once flushes more records, but not more records per leaf.
    let wide = records(scattered, 8);
    assert!(wide.0 > 1.5 * uniform.0, "{wide:?}, {uniform:?}");
}

/// §III-C: a burst of inserts in a tenth of the key space.
#[test]
fn nodes_are_split_into_more_than_two_during_a_burst() {
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

/// The first half inserts new keys. The second half updates any of them.
fn updated(i: u64) -> u64 {
    let half = KEYS / 2;
    // Hash twice: the multiples of a single number are too evenly spaced to be random.
    let any = scattered(scattered(i) >> 7 ^ i) >> 20;
    scattered(if i < half { i } else { any % half })
}

fn off(measured: f64, predicted: f64) -> f64 {
    (measured / predicted - 1.0).abs()
}

/// Like `updated`, but 95 of 100 updates go to a thousandth of the keys. The other records stay in
/// buffers and keep their logs alive, so that logs are cleaned.
fn few_updated(i: u64) -> u64 {
    let half = KEYS / 2;
    match i {
        _ if i < half || i.is_multiple_of(20) => updated(i),
        _ => scattered((scattered(i) >> 20) % (half / 1000)),
    }
}

type Order = fn(u64) -> u64;

const ORDERS: [(&str, Order); 4] = [
    ("uniform inserts", scattered),
    ("skewed inserts", skewed),
    ("sequential inserts", |i| i << 20),
    ("uniform updates", updated),
];

#[test]
fn amplification_of_lodge_is_predicted() {
    let mut errors = Vec::new();
    for (name, key) in ORDERS {
        let (pm, _) = inserted(key, LodgeOptions::default());
        let (m, p) = (
            pm.measured,
            pm.predicted.expect("records lie in leaves").values(),
        );
        let own = [
            off(m.xbi, p.xbi),
            off(m.xbi_leaf, p.xbi_leaf),
            off(m.xbi_log, p.xbi_log),
            off(m.cli, p.cli),
        ];
        println!("{name}: {own:.4?}");
        assert!(
            own.iter().all(|e| *e < 0.05),
            "{name}: {own:?}, {m:?}, {p:?}"
        );
        errors.extend(own);
        let error = pm.error.expect("there is a prediction");
        assert!(error.xbi.is_some_and(|e| (e.abs() - own[0]).abs() < 1e-9));
    }
    errors.sort_by(f64::total_cmp);
    assert!(errors[errors.len() / 2] < 0.02, "{errors:?}");
}

/// Occupancy and grouping are predicted for all options.
#[test]
fn buffer_occupancy_and_flush_grouping_are_predicted() {
    let default = LodgeOptions::default();
    let sets = [
        default,
        LodgeOptions {
            t_node: 1,
            ..default
        },
        LodgeOptions {
            t_node: 8,
            ..default
        },
        LodgeOptions {
            slots: 12,
            node_split: NodeSplit::Double,
            ..default
        },
        LodgeOptions {
            t_split: 14,
            ..default
        },
    ];
    for (n, options) in sets.into_iter().enumerate() {
        for (name, key) in ORDERS {
            let (pm, own) = inserted(key, options);
            let p = own.predicted.expect("records lie in leaves");
            let amplified = pm.predicted.expect("the same").values();
            let errors = [
                off(own.flushes as f64, p.flushes),
                off(own.pairs_per_flush, p.pairs_per_flush),
                off(own.pairs_per_leaf, p.pairs_per_leaf),
                off(own.nodes as f64, p.nodes),
                off(own.free_share, p.free_share),
                (own.buffered_share - p.buffered_share).abs(),
                off(pm.measured.xbi, amplified.xbi),
                off(pm.measured.cli, amplified.cli),
            ];
            println!("{n}, {name}: {errors:.4?}");
            assert!(
                errors.iter().all(|e| *e < 0.05),
                "{n}, {name}: {errors:?}, {own:?}"
            );
        }
    }
}

#[test]
fn reports_show_measured_beside_predicted() {
    let folder = TempDir::new().expect("a folder");
    let path = trace(&folder, (0..6_000).map(|i| op(OpKind::Put, scattered(i))));
    let report = replay(path.clone(), LodgeOptions::default(), |_| {});
    let pm = report.pm.clone().expect("it ran on persistent memory");
    let xbi = format!("{:.3}", pm.predicted.expect("it was predicted").xbi.value());
    let said = "index no leaf";
    for shown in [text::render(&report), html::render(&report, None)] {
        assert!(shown.contains(&xbi), "{xbi}: {shown}");
        assert_eq!(
            shown.matches(said).count(),
            2,
            "once measured, once predicted"
        );
    }
    let json = serde_json::to_value(&report).expect("JSON");
    assert!(json["pm"]["error"]["xbi"].is_number());
    assert!(json["pm"]["lodge"]["predicted"]["free_share"].is_number());
    let unpredicted = replay(path, LodgeOptions::default(), |config| {
        config.predict = false;
    });
    let json = serde_json::to_value(&unpredicted).expect("JSON");
    assert!(json["pm"]["predicted"].is_null() && json["pm"]["lodge"]["predicted"].is_null());
}

#[test]
fn log_cleaning_is_predicted() {
    let (pm, own) = inserted(few_updated, LodgeOptions::default());
    assert!(pm.cleanings > 3 && pm.cleaning_flushes > 300, "{pm:?}");
    let (m, p) = (
        pm.measured,
        pm.predicted.expect("records lie in leaves").values(),
    );
    let nodes = own.predicted.expect("the same");
    let errors = [
        off(m.xbi, p.xbi),
        off(m.cli, p.cli),
        off(own.flushes as f64, nodes.flushes),
        (own.buffered_share - nodes.buffered_share).abs(),
    ];
    println!("{errors:.4?}");
    assert!(errors.iter().all(|e| *e < 0.10), "{errors:?}");
    // Without cleaning, more records would stay in buffers.
    let lazy = LodgeOptions {
        log_percent: 100,
        ..LodgeOptions::default()
    };
    let (_, own) = inserted(few_updated, lazy);
    let unclean = own.predicted.expect("the same").buffered_share;
    assert!(unclean > 2.0 * nodes.buffered_share, "{unclean}, {nodes:?}");
}

#[test]
fn other_xp_buffers_are_predicted() {
    for (replacement, full_lines, lines) in [
        ("lru", "at-once", 64),
        ("random", "on-eviction", 64),
        ("random", "at-once", 1024),
    ] {
        for (name, key) in ORDERS {
            let folder = TempDir::new().expect("a folder");
            let path = trace(&folder, (0..KEYS).map(|i| op(OpKind::Put, key(i))));
            let report = replay(path, LodgeOptions::default(), |config| {
                let memory = &mut config.target.memory_mut().expect("persistent").buffer;
                memory.replacement = replacement.into();
                memory.full_lines = full_lines.into();
                memory.lines = lines;
            });
            let pm = report.pm.expect("it ran on persistent memory");
            let error = off(pm.measured.xbi, pm.predicted.expect("the same").xbi.value());
            println!(
                "{replacement} {full_lines} {lines}, {name}: {error:.4} {:?} {:?}",
                pm.measured, pm.predicted
            );
            assert!(
                error < 0.10,
                "{replacement} {full_lines} {lines}, {name}: {error}"
            );
        }
    }
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
            let set = |config: &mut ReplayConfig| {
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
