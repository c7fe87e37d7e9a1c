//! Played predictions hold outside the grid on which closed forms were tested, and so do their error
//! bars.

use std::path::Path;

use treering_engine::{BfOptions, PageStoreKind, TablePersist, TreeKind};
use treering_sim::predict::{Estimate, Model};
use treering_sim::replay::{ReplayConfig, Size, Target, run};
use treering_sim::report::{PredictedValue, ReplayReport};
use treering_traces::generate::{GenParams, ValueSize, Workload};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

use support::tally::Tally;

/// Popularity that moves, scans, deletes, ascending keys, a queue, values of many lengths.
fn traces(folder: &Path) -> Vec<std::path::PathBuf> {
    let kinds = [
        Workload::Latest,
        Workload::YcsbE,
        Workload::Hotspot,
        Workload::Mixgraph,
        Workload::Sequential,
        Workload::Shifting,
        Workload::Log,
    ];
    let mut all = Vec::new();
    for workload in kinds {
        let mut params = GenParams::new(workload, 30_000);
        params.ops = Some(60_000);
        params.seed = 11;
        all.push(support::traces::generated(
            folder,
            &format!("{workload:?}"),
            &params,
        ));
    }
    let mut params = GenParams::new(Workload::Zipf, 30_000);
    params.ops = Some(60_000);
    params.deletes = Some(0.1);
    params.value_size = Some(ValueSize { min: 50, max: 900 });
    all.push(support::traces::generated(folder, "deletes", &params));
    all
}

fn designs() -> Vec<(TreeKind, PageStoreKind)> {
    let lazily = PageStoreKind::CopyOnWrite {
        table: TablePersist::Checkpoint,
    };
    vec![
        (TreeKind::BTree, PageStoreKind::InPlace),
        (TreeKind::BTree, lazily),
        (TreeKind::Bf(BfOptions::PUBLISHED), PageStoreKind::Shadow),
        (TreeKind::Bf(BfOptions::default()), PageStoreKind::InPlace),
    ]
}

fn replay(trace: &Path, (tree, store): (TreeKind, PageStoreKind), model: Model) -> ReplayReport {
    let target = Target::builtin("ssd").expect("it is built in");
    let mut config = ReplayConfig::new(trace.to_path_buf(), target);
    let options = config.tree.pages_mut();
    (options.tree, options.store) = (tree, store);
    config.cache = Size::Share(0.1);
    config.method.model = model;
    run(&config, &mut |_| {}).expect("it runs")
}

fn add(tally: &mut Tally, what: &str, report: &ReplayReport) {
    let (host, device) = (&report.wa.host, report.wa.device.expect("a drive"));
    let p = report.wa.predicted.as_ref().expect("a prediction");
    let of = p.device.expect("a drive");
    let ratio = device.nand_over_host;
    for (row, measured, predicted, total) in [
        ("log", host.log, p.host.log, host.total),
        ("page", host.page, p.host.page, host.total),
        ("extra", host.extra, p.host.extra, host.total),
        ("total", host.total, p.host.total, host.total),
        ("gc", device.gc, of.gc, device.total),
        ("device", device.total, of.total, device.total),
        ("flash over host", ratio, of.nand_over_host, ratio),
    ] {
        tally.add(&format!("{what} {row}"), measured, predicted, total);
    }
    for figure in &report.cache.compared {
        let predicted = figure.predicted.expect("a prediction");
        let what = format!("{what} {}", figure.name);
        tally.add(&what, figure.measured, predicted, figure.total);
    }
}

#[test]
fn measured_values_lie_within_narrow_bars() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut tally, mut hits) = (Tally::default(), Tally::default());
    for trace in traces(folder.path()) {
        for design in designs() {
            let report = replay(&trace, design, Model::Played);
            let name = trace.file_stem().expect("a name").to_string_lossy();
            let what = format!("{name} {:?}", design.0);
            add(&mut tally, &what, &report);
            let p = report.prediction.as_ref().expect("a prediction");
            // Traces with scans have none.
            let Some(half_width) = p.bars.expect("bars").hit_ratio else {
                continue;
            };
            let predicted = PredictedValue {
                estimate: Estimate::new(p.hit_ratio, Some(half_width)),
                model: Model::Played,
            };
            let measured = report.cache.hit_ratio;
            hits.add(&format!("{what} hits"), measured, predicted, 0.0);
        }
    }
    let [half, most] = tally.check(0.8, 0.15);
    assert!(half <= 0.01 && most <= 0.05, "median {half}, p90 {most}");
    hits.check(0.8, 0.15);
}

#[test]
fn a_compressing_drive_lies_within_its_bars() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut tally = Tally::default();
    for trace in &traces(folder.path())[..3] {
        for tree in [TreeKind::BTree, TreeKind::Bf(BfOptions::default())] {
            let target = Target::builtin("csd").expect("it is built in");
            let mut config = ReplayConfig::new(trace.clone(), target);
            config.tree.pages_mut().tree = tree;
            config.cache = Size::Share(0.1);
            let report = run(&config, &mut |_| {}).expect("it runs");
            let name = trace.file_stem().expect("a name").to_string_lossy();
            let what = format!("{name} {}", report.tree);
            add(&mut tally, &what, &report);
            let p = report.wa.predicted.as_ref().expect("a prediction");
            let (m, p) = (
                report.wa.csd.expect("it compresses").stored,
                p.csd.expect("so"),
            );
            for (row, m, p, all) in [
                ("stored log", m.log, p.log, m.total),
                ("stored page", m.page, p.page, m.total),
                ("stored total", m.total, p.total, m.total),
            ] {
                tally.add(&format!("{what} {row}"), m, p, all);
            }
        }
    }
    tally.check(0.8, 0.15);
}

#[test]
fn a_model_without_the_order_is_far_outside() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = &traces(folder.path())[4];
    let design = (TreeKind::BTree, PageStoreKind::InPlace);
    let report = replay(trace, design, Model::Independent);
    let predicted = report.prediction.as_ref().expect("one").host.page;
    assert!(report.wa.host.page < 0.5 * predicted, "runs of neighbours");
    // It says of no value how far it may be off, so nothing is outside.
    assert!(report.outside.is_empty(), "{:?}", report.outside);
}
