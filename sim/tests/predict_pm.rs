//! Predictions for persistent memory from the order of accesses, against replays: workloads that
//! independent draws cannot predict (long records, deletes, reads, moving popularity), and a check
//! that a wrong model would be seen.

use std::path::PathBuf;

use tempfile::TempDir;
use treering_engine::{CclOptions, GlobalOptions, LodgeOptions, PmTreeKind};
use treering_sim::report::{PmReport, ReplayReport};
use treering_traces::{Op, OpKind};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

use support::{op, replay};

const KEYS: u64 = 4_000;
const OPS: u64 = 40_000;

/// A key of eight bytes, or a longer one.
fn key(i: u64, long: bool) -> Vec<u8> {
    let mut key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
    if long {
        key.extend_from_slice(b"-and-more");
    }
    key
}

/// Reads, overwrites of recent keys, new keys and deletes, after a load; values of 8 to 700 bytes.
fn trace(folder: &TempDir, long: bool) -> PathBuf {
    let value = |i: u64| if long { 8 + (i * 37 % 693) as u32 } else { 8 };
    let put = |i: u64, n: u64| Op {
        value_len: value(n),
        ..op(OpKind::Put, key(i, long))
    };
    let load = (0..KEYS).map(|i| put(i, i));
    let then = (0..OPS).map(|n| {
        let random = n.wrapping_mul(0xd134_2543_de82_ef95) >> 33;
        let newest = KEYS + n / 10;
        match n % 10 {
            0 => put(newest, n),
            1 => op(OpKind::Delete, key(random % newest, long)),
            2..=4 => op(OpKind::Get, key(newest - random % 300, long)),
            _ => put(newest - random % 1_000, n),
        }
    });
    let ops: Vec<Op> = load.chain(then).collect();
    support::trace(folder, KEYS, &ops)
}

fn trees() -> [PmTreeKind; 4] {
    [
        PmTreeKind::PmTree,
        PmTreeKind::Ccl(CclOptions::default()),
        PmTreeKind::Lodge(LodgeOptions::default()),
        PmTreeKind::Global(GlobalOptions::default()),
    ]
}

fn pm_of(report: &ReplayReport) -> &PmReport {
    report.pm.as_ref().expect("it ran on persistent memory")
}

/// Measured over predicted, minus one, of the totals and the parts that matter.
fn errors(measured: &PmReport, predicted: &PmReport) -> Vec<(&'static str, f64)> {
    let (m, p) = (
        measured.measured,
        predicted.predicted.expect("predicted").values(),
    );
    let all = [
        ("cli", m.cli, p.cli, m.cli),
        ("xbi", m.xbi, p.xbi, m.xbi),
        ("leaves", m.xbi_leaf, p.xbi_leaf, m.xbi),
        ("logs", m.xbi_log, p.xbi_log, m.xbi),
    ];
    let matters = all.into_iter().filter(|(_, m, _, all)| *m > 0.03 * all);
    matters.map(|(what, m, p, _)| (what, m / p - 1.0)).collect()
}

#[test]
fn every_tree_is_predicted_in_the_order_of_the_trace() {
    let folder = TempDir::new().expect("a folder");
    for long in [false, true] {
        let path = trace(&folder, long);
        for tree in trees() {
            let report = replay(path.clone(), tree, |_| {});
            let pm = pm_of(&report);
            for (what, error) in errors(pm, pm) {
                let name = tree.name();
                assert!(error.abs() < 0.05, "{name}, long {long}, {what}: {error}");
            }
            let activity = pm.predicted_activity.expect("predicted");
            let hits = activity.hit_ratio.expect("there are lookups");
            assert!((report.cache.hit_ratio - hits).abs() < 0.01, "{hits}");
            let leaves = report.space.leaves as f64;
            assert!((leaves / activity.leaves - 1.0).abs() < 0.02, "{leaves}");
        }
    }
}

#[test]
fn the_prediction_for_another_tree_is_seen_to_be_wrong() {
    let folder = TempDir::new().expect("a folder");
    let path = trace(&folder, false);
    let of = |batch| {
        let tree = PmTreeKind::Ccl(CclOptions {
            batch,
            ..CclOptions::default()
        });
        replay(path.clone(), tree, |_| {})
    };
    let (two, three) = (of(2), of(3));
    let worst = errors(pm_of(&two), pm_of(&three));
    let worst = worst
        .into_iter()
        .fold(0.0, |worst, (_, e)| e.abs().max(worst));
    assert!(worst > 0.05, "{worst}");
}
