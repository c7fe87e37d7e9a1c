//! Replays without a tree: the trace's own writes on a drive, measured beside predicted.

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::drives::{close, compressing, config, prepared, puts, replay};
use treering_engine::device::FileOptions;
use treering_sim::replay::{Precondition, Preload, ReplayConfig, Target, Tree, run};
use treering_sim::report::{ReplayReport, html, text};
use treering_traces::{Op, OpKind, Writer};

const BLOCK: u64 = 4096;

fn direct(config: ReplayConfig) -> ReplayConfig {
    ReplayConfig {
        tree: Tree::Direct,
        preload: Preload::None,
        ..config
    }
}

/// Random keys below `records`.
fn random(records: u64, ops: u64) -> impl Iterator<Item = u64> {
    let mut random = StdRng::seed_from_u64(9);
    (0..ops).map(move |_| random.random_range(0..records))
}

fn device(report: &ReplayReport) -> (f64, f64) {
    let predicted = report.wa.predicted.as_ref().unwrap().values();
    let predicted = predicted.device.unwrap();
    (report.wa.device.unwrap().total, predicted.total)
}

/// A block trace: `addresses`, then what is done with them.
fn block_trace(folder: &Path, ops: &[(OpKind, u64)]) -> PathBuf {
    let path = folder.join("blocks.trz");
    let mut header = treering_traces::Header::named("blocks", "made by a test");
    header.addresses = true;
    let mut writer = Writer::create(&path, header).unwrap();
    for &(kind, address) in ops {
        let op = Op {
            kind,
            key: address.to_be_bytes().to_vec(),
            value_len: if kind == OpKind::Put { 120 } else { 0 },
            ..Op::default()
        };
        writer.write(&op).unwrap();
    }
    writer.finish().unwrap();
    path
}

#[test]
fn a_drive_alone_is_predicted_by_its_miniature() {
    let folder = tempfile::tempdir().unwrap();
    let path = puts(folder.path(), "t", (40_000, 4000), random(20_000, 120_000));
    for over_provisioning in [0.07, 0.28] {
        for how in [Precondition::None, Precondition::Fill, Precondition::Steady] {
            let base = config(&path, |profile| {
                profile.pages_per_block = 128;
                profile.over_provisioning = over_provisioning;
            });
            let report = replay(&direct(prepared(base, how)));
            assert_eq!(report.tree, "none");
            let host = report.wa.host.total * report.user_bytes as f64 / BLOCK as f64;
            assert!((host - 80_000.0).abs() < 1e-3, "{host} blocks");
            close(
                &format!("{over_provisioning} {how:?}"),
                device(&report),
                0.04,
            );
            let miniature = report.direct.unwrap().miniature.unwrap();
            assert!(miniature.sample >= 4 && miniature.standard_error < 0.3);
        }
    }
}

#[test]
fn a_compressing_drive_alone_is_predicted_by_its_miniature() {
    let folder = tempfile::tempdir().unwrap();
    let path = puts(folder.path(), "t", (20_000, 4096), random(8_000, 60_000));
    for preconditioned in [Precondition::None, Precondition::Steady] {
        let mut config = direct(compressing(&path, |profile| {
            profile.flash.pages_per_block = 64;
            profile.flash.over_provisioning = 0.1;
            profile.logical_over_physical = 1.6;
        }));
        if let Target::Csd { precondition, .. } = &mut config.target {
            *precondition = preconditioned;
        }
        let report = replay(&config);
        close(&format!("{preconditioned:?}"), device(&report), 0.06);
        let stored = |side: &treering_sim::report::HostWa<f64>| side.total;
        let measured = stored(&report.wa.csd.unwrap().stored);
        let predicted = report.wa.predicted.as_ref().unwrap().values();
        let predicted = stored(&predicted.csd.unwrap());
        close("compressed", (measured, predicted), 0.01);
    }
}

#[test]
fn a_block_of_a_block_trace_is_a_block_of_the_drive() {
    let folder = tempfile::tempdir().unwrap();
    // Sparse addresses: gaps take no space.
    let mut ops: Vec<_> = (0..500).map(|i| (OpKind::Put, 1000 * i)).collect();
    ops.push((OpKind::Get, 77));
    ops.push((OpKind::Delete, 3000));
    let path = block_trace(folder.path(), &ops);
    let report = replay(&direct(config(&path, |_| {})));
    assert_eq!(report.direct.unwrap().data_blocks, 501);
    assert_eq!(report.user_bytes, 500 * BLOCK + 8);
    assert_eq!(report.io_bytes.page, 500 * BLOCK);
    assert_eq!(report.io_bytes.read, BLOCK);
    assert_eq!(report.io_bytes.trimmed, BLOCK);
    assert_eq!(report.space.physical_bytes, 499 * BLOCK);
    // Every rendering knows it.
    assert!(text::render(&report).contains("none on ssd"));
    assert!(html::render(&report, None).contains("none"));
}

#[test]
fn long_values_take_several_blocks_and_give_back_what_they_no_longer_need() {
    let folder = tempfile::tempdir().unwrap();
    let put = |key: u64, value_len| Op {
        kind: OpKind::Put,
        key: key.to_be_bytes().to_vec(),
        value_len,
        ..Op::default()
    };
    let ops = [put(1, 10_000), put(2, 0), put(1, 5_000), put(3, 4_096)];
    let path = support::traces::made(folder.path(), "t", 0, ops);
    let report = replay(&direct(config(&path, |_| {})));
    assert_eq!(report.direct.unwrap().data_blocks, 3 + 1 + 1);
    assert_eq!(report.io_bytes.page, (3 + 1 + 2 + 1) * BLOCK);
    assert_eq!(report.io_bytes.trimmed, BLOCK);
    assert_eq!(report.space.physical_bytes, 4 * BLOCK);
}

#[test]
fn only_simulated_drives_run_without_a_tree() {
    let folder = tempfile::tempdir().unwrap();
    let path = puts(folder.path(), "t", (0, 100), 0..10);
    let file = folder.path().join("store");
    for target in [
        Target::builtin("pm").unwrap(),
        Target::File(file.clone(), FileOptions::default()),
    ] {
        let config = direct(ReplayConfig::new(path.clone(), target));
        let error = run(&config, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("none expects a simulated drive"), "{error}");
        assert!(!file.exists());
    }
}
