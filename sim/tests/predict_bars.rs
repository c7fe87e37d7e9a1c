//! Played predictions hold outside the grid on which closed forms were tested, and so do their error
//! bars.

use std::path::Path;

use treering_engine::{BfOptions, PageStoreKind, TablePersist, TreeKind};
use treering_sim::predict::{Bars, Model};
use treering_sim::replay::{ReplayConfig, Size, Target, run};
use treering_sim::report::ReplayReport;
use treering_traces::generate::{GenParams, ValueSize, Workload};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

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
        (TreeKind::Bf(BfOptions::default()), PageStoreKind::Shadow),
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

/// Measured and predicted values of components of at least 3 % of the total, with their bars.
fn components(report: &ReplayReport, bars: &Bars) -> Vec<(f64, f64, f64)> {
    let (host, p) = (&report.wa.host, report.prediction.as_ref().expect("one"));
    let device = report.wa.device.as_ref().expect("a drive");
    let all = [
        (host.log, p.host.log, bars.host_log, host.total),
        (host.page, p.host.page, bars.host_page, host.total),
        (host.extra, p.host.extra, bars.host_extra, host.total),
        (host.total, p.host.total, bars.host_total, host.total),
        (device.gc, p.device.gc, bars.device_gc, device.total),
        (
            device.total,
            p.device.total,
            bars.device_total,
            device.total,
        ),
    ];
    let counted = all.iter().filter(|(m, .., total)| *m >= 0.03 * total);
    counted.map(|(m, p, bar, _)| (*m, *p, *bar)).collect()
}

#[test]
fn measured_values_lie_within_narrow_bars() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut inside, mut widths, mut errors) = (0, Vec::new(), Vec::new());
    for trace in traces(folder.path()) {
        for design in designs() {
            let report = replay(&trace, design, Model::Played);
            let bars = report.prediction.as_ref().and_then(|p| p.bars);
            for (measured, predicted, bar) in components(&report, &bars.expect("bars")) {
                let error = (measured / predicted - 1.0).abs();
                inside += usize::from(error <= bar);
                widths.push(2.0 * bar);
                errors.push(error);
            }
        }
    }
    let middle = |list: &mut Vec<f64>, share: f64| {
        list.sort_by(f64::total_cmp);
        list[(share * (list.len() - 1) as f64) as usize]
    };
    let share = inside as f64 / errors.len() as f64;
    assert!(share >= 0.8, "{share} of {} values", errors.len());
    let width = middle(&mut widths, 0.5);
    assert!(width <= 0.15, "{width}");
    let (half, most) = (middle(&mut errors, 0.5), middle(&mut errors, 0.9));
    assert!(half <= 0.01 && most <= 0.05, "median {half}, p90 {most}");
}

#[test]
fn a_model_without_the_order_is_far_outside() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = &traces(folder.path())[4];
    let design = (TreeKind::BTree, PageStoreKind::InPlace);
    let report = replay(trace, design, Model::Independent);
    let predicted = report.prediction.as_ref().expect("one").host.page;
    assert!(report.wa.host.page < 0.5 * predicted, "runs of neighbours");
}
