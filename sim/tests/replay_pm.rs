//! Replays on persistent memory: they match CCL-BTree's figures (CLAIMS CC-18, CC-20 to CC-23) and
//! the predictions, and are deterministic.

use std::path::PathBuf;

use tempfile::TempDir;
use treering_engine::{CclOptions, Cleaning, Logging, PmTreeKind};
use treering_sim::replay::ReplayConfig;
use treering_sim::report::{PmReport, ReplayReport};
use treering_traces::{Op, OpKind};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

use support::{op, replay};

const KEYS: u64 = 200_000;

fn key(i: u64) -> Vec<u8> {
    // The multiples of an odd number are distinct and in no order.
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec()
}

/// A trace that puts `loaded` new keys as warm-up, followed by `then`.
fn trace(folder: &TempDir, loaded: u64, then: impl Iterator<Item = Op>) -> PathBuf {
    let load = (0..loaded).map(|i| op(OpKind::Put, key(i)));
    let ops: Vec<Op> = load.chain(then).collect();
    support::trace(folder, loaded, &ops)
}

fn ccl(batch: usize) -> PmTreeKind {
    PmTreeKind::Ccl(CclOptions {
        batch,
        ..CclOptions::default()
    })
}

fn pm_of(report: &ReplayReport) -> &PmReport {
    report.pm.as_ref().expect("it ran on persistent memory")
}

#[test]
fn insert_amplification_matches_table_1_and_the_prediction() {
    let folder = TempDir::new().expect("a folder");
    let path = trace(
        &folder,
        KEYS,
        (KEYS..2 * KEYS).map(|i| op(OpKind::Put, key(i))),
    );
    let table = [12.58, 10.09, 8.90, 8.28, 7.89];
    let mut before = f64::INFINITY;
    for (batch, paper) in (1..).zip(table) {
        let report = replay(path.clone(), ccl(batch), |_| {});
        let pm = pm_of(&report);
        let xbi = pm.measured.xbi;
        assert!(
            (xbi / paper - 1.0).abs() < 0.12,
            "{batch}: {xbi}, the paper has {paper}"
        );
        assert!(xbi < before, "{batch}: {xbi} after {before}");
        before = xbi;
        let error = pm.error.expect("it was predicted");
        // A log is cleaned only a few times, so one cleaning more or less matters.
        let parts = [
            ("leaf", error.xbi_leaf, 0.11),
            ("log", error.xbi_log, 0.15),
            ("all", error.xbi, 0.06),
        ];
        for (what, error, most) in parts {
            let error = error.expect("the part is too small to compare");
            assert!(error.abs() < most, "{batch}, {what}: {error}");
        }
    }
}

#[test]
fn each_technique_saves_as_much_as_the_paper_states() {
    let folder = TempDir::new().expect("a folder");
    let path = trace(
        &folder,
        KEYS,
        (KEYS..2 * KEYS).map(|i| op(OpKind::Put, key(i))),
    );
    let run = |tree| replay(path.clone(), tree, |_| {});
    let base = run(PmTreeKind::PmTree);
    let naive_log = run(PmTreeKind::Ccl(CclOptions {
        logging: Logging::EveryWrite,
        ..CclOptions::default()
    }));
    let all = run(ccl(2));
    let [base, naive_log, all] = [&base, &naive_log, &all].map(|r| pm_of(r).measured);
    let less = |new: f64, old: f64| 100.0 * (1.0 - new / old);
    // CC-20: leaves; CC-21: all with a naive log; CC-22: the log; CC-23: all.
    let rows = [
        ("leaves", less(all.xbi_leaf, base.xbi_leaf), 62.9..64.9),
        ("all, naive log", less(naive_log.xbi, base.xbi), 33.0..44.0),
        ("the log", less(all.xbi_log, naive_log.xbi_log), 20.0..34.5),
        ("all", less(all.xbi, base.xbi), 41.1..47.5),
    ];
    for (what, found, expected) in rows {
        assert!(expected.contains(&found), "{what}: {found:.1} % less");
    }
    assert!(all.cli > base.cli, "CC-28: more lines, fewer XPLines");
}

#[test]
fn naive_cleaning_writes_several_times_as_much() {
    let folder = TempDir::new().expect("a folder");
    let path = trace(
        &folder,
        KEYS,
        (KEYS..2 * KEYS).map(|i| op(OpKind::Put, key(i))),
    );
    let run = |cleaning| {
        let tree = PmTreeKind::Ccl(CclOptions {
            cleaning,
            ..CclOptions::default()
        });
        replay(path.clone(), tree, |_| {})
    };
    let (aware, naive) = (run(Cleaning::LocalityAware), run(Cleaning::Naive));
    let (aware, naive) = (pm_of(&aware), pm_of(&naive));
    assert!(aware.cleanings > 0 && naive.cleanings > 0);
    // CC-12: an XPLine per leaf, and two for eleven entries.
    let aware = 2.0 * aware.cleaning_copies as f64 * 24.0 / 256.0 / aware.cleanings as f64;
    let naive = naive.cleaning_flushes as f64 / naive.cleanings as f64;
    assert!(
        naive > 3.0 * aware,
        "{naive} XPLines per naive cleaning, {aware} per locality-aware one"
    );
}

#[test]
fn records_outside_leaves_are_predicted_too() {
    let folder = TempDir::new().expect("a folder");
    let long = (0..3000u64).map(|i| Op {
        value_len: 100,
        ..op(OpKind::Put, key(i % 500))
    });
    let report = replay(trace(&folder, 500, long), ccl(2), |_| {});
    let pm = pm_of(&report);
    let predicted = pm.predicted.expect("it was predicted").values();
    let off = pm.measured.cli / predicted.cli - 1.0;
    assert!(pm.measured.cli > 1.0 && off.abs() < 0.02, "{off}");
    assert_eq!(report.warnings, Vec::<String>::new());
}

#[test]
fn mixed_operations_give_the_same_report_twice_whatever_is_timed() {
    let folder = TempDir::new().expect("a folder");
    let mixed = (0..20_000u64).map(|i| {
        let kind = match i % 10 {
            0..=3 => OpKind::Get,
            4..=7 => OpKind::Put,
            8 => OpKind::Delete,
            _ => OpKind::Scan,
        };
        op(kind, key(i.wrapping_mul(7919) % 9000))
    });
    let path = trace(&folder, 8000, mixed);
    for tree in [PmTreeKind::PmTree, ccl(2)] {
        for timing in [false, true] {
            let run = || {
                let set = |config: &mut ReplayConfig| {
                    config.clients = 4;
                    config.timing = timing;
                };
                let report = replay(path.clone(), tree, set);
                if let Some(latency) = &report.latency_ns {
                    let puts = latency.put.as_ref().map_or(0, |l| l.count);
                    assert_eq!(puts, report.ops.put);
                }
                serde_json::to_string(&report).expect("JSON")
            };
            let once = run();
            assert_eq!(once, run(), "{tree:?}, {timing}");
            assert!(once.contains("\"xbi_leaf\""));
        }
    }
}

/// A value of 2.5 chunks is reported as overflow, in JSON and in text. A value above the limit is
/// refused, clamped, or skipped.
#[test]
fn long_values_are_reported_and_oversize_decides_beyond_the_limit() {
    use treering_engine::MAX_VALUE_BYTES;
    use treering_sim::replay::{Oversize, Target, Tree, run};
    let folder = TempDir::new().expect("a folder");
    let put = |i, value_len| Op {
        value_len,
        ..op(OpKind::Put, key(i))
    };
    let long = (0..12).map(|i| put(i % 3, 9 << 20));
    for tree in [ccl(2), PmTreeKind::PmTree] {
        let path = trace(&folder, 0, long.clone());
        let report = replay(path, tree, |_| {});
        let causes = report.wa.host.page_causes.expect("long values");
        assert!(
            (causes.overflow - 1.0).abs() < 0.01 && causes.leaf < 0.01,
            "{causes:?}"
        );
        assert!(treering_sim::report::text::render(&report).contains("  of it, overflow"));
    }
    let too_long = MAX_VALUE_BYTES as u32 + 1;
    let path = trace(
        &folder,
        0,
        [put(1, 8), put(2, too_long), put(1, 8)].into_iter(),
    );
    let pm = Target::builtin("pm").expect("it is built in");
    let mut config = ReplayConfig::new(path, pm);
    config.tree = Tree::pm(ccl(2));
    let refused = run(&config, &mut |_| {}).expect_err("the value is too long");
    let said = refused.to_string();
    assert!(
        said.contains("16777217 bytes is longer than the maximum of 16777216")
            && said.contains("--oversize"),
        "{said}"
    );
    config.oversize = Oversize::Skip;
    let skipped = run(&config, &mut |_| {}).expect("the long value is skipped");
    assert_eq!(skipped.ops.put, 2);
    assert!(
        skipped
            .warnings
            .iter()
            .any(|w| w.contains("1 operations were skipped"))
    );
    config.oversize = Oversize::Clamp;
    let cut = run(&config, &mut |_| {}).expect("the long value is clamped");
    assert_eq!(cut.ops.put, 3);
}
