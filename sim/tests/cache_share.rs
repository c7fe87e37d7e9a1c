//! A cache size given as a share of the data set means a share of the data in the store when
//! measuring begins.

use std::path::{Path, PathBuf};

use treering_sim::replay::{Oversize, Preload, ReplayConfig, Size, Target, run};
use treering_sim::report::{ReplayReport, text};
use treering_sim::ssd::builtin;
use treering_traces::{Op, OpKind};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

const KEY: u64 = 8;

/// Writes a trace of puts of new keys with these value lengths; the first `warmup_ops` are warm-up.
fn trace(folder: &Path, warmup_ops: u64, values: &[u32]) -> PathBuf {
    let put = |(number, value_len): (u64, &u32)| Op {
        kind: OpKind::Put,
        key: (number * 7919 % 100_003).to_be_bytes().to_vec(),
        value_len: *value_len,
        ..Op::default()
    };
    let puts = (0u64..).zip(values).map(put);
    support::traces::made(folder, "shares", warmup_ops, puts)
}

fn replay(trace: &Path, oversize: Oversize) -> ReplayReport {
    let (_, mut profile) = builtin("ssd").expect("it is built in");
    profile.pages_per_block = 32;
    let target = Target::ssd(profile, "ssd");
    let mut config = ReplayConfig::new(trace.to_path_buf(), target);
    config.cache = Size::Share(0.25);
    config.preload = Preload::None;
    config.oversize = oversize;
    run(&config, &mut |_| {}).expect("it runs")
}

#[test]
fn a_share_is_of_the_data_in_the_store_after_warm_up() {
    let folder = tempfile::tempdir().expect("a folder");
    // The first half is warm-up; the second half doubles the store.
    let report = replay(&trace(folder.path(), 3000, &[292; 6000]), Oversize::Reject);
    assert_eq!(report.cache.data_set_bytes, 3000 * (KEY + 292));
    assert_eq!(report.cache.budget_bytes, 3000 * (KEY + 292) / 4);
    assert_eq!(report.options["cache"], 3000 * (KEY + 292) / 4);
    assert_eq!(report.cache.frames, report.cache.budget_bytes / 4096);
    let text = text::render(&report);
    assert!(
        text.contains("219.7 KiB requested, 25.0 % of 878.9 KiB"),
        "{text}"
    );
}

#[test]
fn without_warm_up_a_share_is_of_the_data_at_the_end_of_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = replay(&trace(folder.path(), 0, &[292; 3000]), Oversize::Reject);
    assert_eq!(report.cache.data_set_bytes, 3000 * (KEY + 292));
}

#[test]
fn clamped_and_skipped_values_count_as_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let longest = treering_engine::MAX_VALUE_BYTES as u64;
    let values: Vec<u32> = (0..4000)
        .map(|n| {
            if n % 1500 == 0 {
                longest as u32 + 1
            } else {
                292
            }
        })
        .collect();
    let path = trace(folder.path(), 3000, &values);
    let skipped = replay(&path, Oversize::Skip).cache.data_set_bytes;
    assert_eq!(skipped, 2998 * (KEY + 292));
    let cut = replay(&path, Oversize::Clamp).cache.data_set_bytes;
    assert_eq!(cut, 2998 * (KEY + 292) + 2 * (KEY + longest));
}
