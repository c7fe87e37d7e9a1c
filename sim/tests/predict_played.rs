//! Played predictions of compositions and workloads that closed forms do not cover: modification
//! logs below mini-pages, trees that grow, merges after deletes, holes, trims that wait.

use std::path::{Path, PathBuf};

use treering_engine::{
    BfOptions, LogPacking, ModLog, PageStoreKind, Promote, TablePersist, TreeKind,
};
use treering_sim::replay::{ReplayConfig, Size, Target, run};
use treering_sim::report::ReplayReport;
use treering_traces::generate::{GenParams, ValueSize, Workload};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

const BF: TreeKind = TreeKind::Bf(BfOptions {
    copy_on_access_percent: 10,
    promote: Promote::Percent(30),
    relog_percent: 0,
    growth_percent: 100,
    spare_percent: 0,
    max_mini_page_percent: 50,
});

fn trace(folder: &Path, workload: Workload, change: impl FnOnce(&mut GenParams)) -> PathBuf {
    let mut params = GenParams::new(workload, 30_000);
    params.ops = Some(90_000);
    params.seed = 23;
    change(&mut params);
    support::traces::generated(folder, &format!("{workload:?}"), &params)
}

fn config(trace: &Path, tree: TreeKind, device: &str) -> ReplayConfig {
    let target = Target::builtin(device).expect("it is built in");
    let mut config = ReplayConfig::new(trace.to_path_buf(), target);
    config.tree.pages_mut().tree = tree;
    config.cache = Size::Share(0.1);
    config
}

/// Replays, and checks that a model was played.
fn replay(config: &ReplayConfig) -> ReplayReport {
    let report = run(config, &mut |_| {}).expect("it runs");
    let prediction = report.prediction.as_ref().expect("a prediction");
    assert!(prediction.bars.is_some(), "no model was played");
    report
}

/// Measured over predicted minus one: log, pages, all of the host, all of the drive.
fn errors(report: &ReplayReport) -> [f64; 4] {
    let (host, predicted) = (&report.wa.host, report.prediction.as_ref().expect("one"));
    let device = report.wa.device.as_ref().expect("a drive");
    [
        host.log / predicted.host.log - 1.0,
        host.page / predicted.host.page - 1.0,
        host.total / predicted.host.total - 1.0,
        device.total / predicted.device.total - 1.0,
    ]
}

/// The error of what is left of pages after compression.
fn stored_error(report: &ReplayReport) -> f64 {
    let measured = report.wa.csd.as_ref().expect("it compresses").stored.page;
    let predicted = report.prediction.as_ref().and_then(|p| p.stored);
    measured / predicted.expect("it compresses").page - 1.0
}

fn within(what: &str, errors: &[f64], most: f64) {
    let far = errors.iter().any(|error| error.abs() > most);
    assert!(!far, "{what}: {errors:?}, more than {most}");
}

#[test]
fn modification_logs_below_mini_pages_are_played() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), Workload::Zipf, |_| {});
    let lazily = PageStoreKind::CopyOnWrite {
        table: TablePersist::Checkpoint,
    };
    for store in [PageStoreKind::InPlace, lazily, PageStoreKind::Shadow] {
        for log in [LogPacking::Packed, LogPacking::Sparse] {
            for device in ["ssd", "csd"] {
                let mut config = config(&trace, BF, device);
                let options = config.tree.pages_mut();
                options.store = store;
                options.log_packing = log;
                options.mod_log = Some(ModLog::default());
                let report = replay(&config);
                let what = format!("{} {log:?} on {device}", store.name());
                within(&what, &errors(&report), 0.04);
                if device == "csd" {
                    within(&what, &[stored_error(&report)], 0.03);
                }
                let predicted = report.prediction.and_then(|p| p.mod_log).expect("a log");
                let share = report.store.full_flush_share.expect("a log");
                within(&what, &[share - predicted.full_flush_share], 0.03);
            }
        }
    }
}

#[test]
fn the_log_of_mini_pages_over_a_growing_tree_is_predicted() {
    let folder = tempfile::tempdir().expect("a folder");
    for workload in [Workload::Latest, Workload::YcsbD] {
        let trace = trace(folder.path(), workload, |_| {});
        let report = replay(&config(&trace, BF, "ssd"));
        assert!(report.store.splits > 0, "{workload:?}");
        within(&format!("{workload:?}"), &errors(&report), 0.03);
    }
}

#[test]
fn leaves_that_deletes_leave_sparse_are_merged() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), Workload::Uniform, |params| {
        params.writes = Some(0.25);
        params.deletes = Some(0.5);
    });
    let stores = PageStoreKind::ALL.map(|store| (TreeKind::BTree, store));
    let designs = stores.into_iter().chain([(BF, PageStoreKind::InPlace)]);
    for (tree, store) in designs {
        let mut config = config(&trace, tree, "ssd");
        config.tree.pages_mut().store = store;
        let report = replay(&config);
        assert!(report.store.merges > 50, "{}", report.store.merges);
        within(
            &format!("{tree:?} {}", store.name()),
            &errors(&report),
            0.03,
        );
    }
}

#[test]
fn a_record_that_is_deleted_and_put_again_is_stored_twice_but_its_key_only_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), Workload::Zipf, |params| {
        params.deletes = Some(0.2);
    });
    for tree in [TreeKind::BTree, BF] {
        let report = replay(&config(&trace, tree, "csd"));
        within(&format!("{tree:?}"), &[stored_error(&report)], 0.015);
    }
}

#[test]
fn long_values_are_compressed_by_the_drives_codec() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), Workload::Zipf, |params| {
        params.ops = Some(30_000);
        params.value_size = Some(ValueSize {
            min: 1500,
            max: 5000,
        });
        params.zeros = 0.2;
    });
    let report = replay(&config(&trace, TreeKind::BTree, "csd"));
    within("long values", &[stored_error(&report)], 0.015);
    let log = report.wa.csd.as_ref().expect("it compresses").stored.log;
    let predicted = report.prediction.and_then(|p| p.stored);
    within(
        "log",
        &[log / predicted.expect("it compresses").log - 1.0],
        0.05,
    );
}

#[test]
fn a_shadow_is_trimmed_when_its_successor_is_durable() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), Workload::Uniform, |params| {
        params.ops = Some(150_000);
    });
    let mut config = config(&trace, TreeKind::BTree, "ssd");
    config.tree.pages_mut().store = PageStoreKind::Shadow;
    let report = replay(&config);
    let measured = report.wa.device.as_ref().expect("a drive").gc;
    let predicted = report.prediction.as_ref().expect("one").device.gc;
    within("gc", &[measured / predicted - 1.0], 0.05);
}
