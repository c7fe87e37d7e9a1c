//! Predictions from popularity alone are marked next to every number outside the range of parameters
//! in which they were tested.

use std::path::{Path, PathBuf};

use treering_engine::{PageStoreKind, TreeKind};
use treering_sim::predict::Model;
use treering_sim::predict::tried::Decides;
use treering_sim::replay::{ReplayConfig, Target, run};
use treering_sim::report::{ReplayReport, html, text};
use treering_traces::generate::{GenParams, ValueSize, Workload};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

/// 5,000 records of 8+400 bytes: about 800 leaves, as in the bundled sample.
fn trace(folder: &Path, workload: Workload) -> PathBuf {
    let mut params = GenParams::new(workload, 5_000);
    params.ops = Some(20_000);
    params.key_size = Some(8);
    params.value_size = Some(ValueSize::fixed(400));
    if workload == Workload::Zipf {
        params.theta = Some(0.9);
        params.writes = Some(0.5);
    }
    support::traces::generated(folder, &format!("{workload:?}"), &params)
}

fn on_ssd(trace: &Path) -> ReplayConfig {
    let target = Target::builtin("ssd").expect("it is built in");
    let mut config = ReplayConfig::new(trace.to_path_buf(), target);
    config.method.model = Model::Independent;
    config
}

fn on_csd(trace: &Path) -> ReplayConfig {
    let target = Target::builtin("csd").expect("it is built in");
    let mut config = ReplayConfig::new(trace.to_path_buf(), target);
    config.method.model = Model::Independent;
    config.tree.pages_mut().tree = TreeKind::BTree;
    config.tree.pages_mut().store = PageStoreKind::Shadow;
    config
}

fn replay(config: &ReplayConfig) -> ReplayReport {
    run(config, &mut |_| {}).expect("it runs")
}

/// The names of the table rows that have a predicted value, and whether each is marked.
fn marks(report: &ReplayReport) -> Vec<(String, bool)> {
    let text = text::render(report);
    let rows = text
        .lines()
        .skip_while(|l| !l.starts_with("Write amplification"));
    let rows = rows.skip(1).take_while(|line| line.starts_with("  "));
    let cells = rows.filter_map(|row| Some((row.get(..46)?, row.get(57..74)?)));
    let marked = cells.map(|(name, cell)| (name.trim().to_string(), cell));
    let predicted = marked.filter(|(_, cell)| cell.trim() != "-");
    predicted
        .map(|(name, cell)| (name, cell.ends_with('?')))
        .collect()
}

#[test]
fn no_engine_figure_is_marked_within_the_tested_range() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = replay(&on_ssd(&trace(folder.path(), Workload::Zipf)));
    let marks = marks(&report);
    assert_eq!(marks.len(), 7, "{marks:?}");
    for (name, marked) in marks {
        // Only for the prediction of garbage collection is the drive too small.
        assert_eq!(marked, name == "device gc", "{name}");
    }
}

#[test]
fn every_prediction_for_small_skewed_stores_on_a_compressing_drive_is_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = replay(&on_csd(&trace(folder.path(), Workload::Zipf)));
    let marks = marks(&report);
    assert!(marks.len() >= 10, "{marks:?}");
    assert!(marks.iter().all(|(_, marked)| *marked), "{marks:?}");
    let named: Vec<&str> = report.wa.untried.iter().map(|u| u.what.as_str()).collect();
    for what in ["share of writes", "mean record", "page size", "leaves"] {
        assert!(named.contains(&what), "{named:?}");
    }
    assert!(text::render(&report).contains("? The predictor was not tested for such runs"));
    let page = html::render(&report, None);
    assert!(page.contains("The predictor was not tested for such runs"));
    assert!(page.matches(" ?</td>").count() >= 10);
}

#[test]
fn read_modify_writes_are_reported_as_bursts() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = replay(&on_ssd(&trace(folder.path(), Workload::YcsbF)));
    let mut untried = report.wa.untried.iter();
    let bursts = untried.find(|u| u.what.starts_with("burstiness"));
    let bursts = bursts.unwrap_or_else(|| panic!("{:?}", report.wa.untried));
    assert!(bursts.found.is_some_and(|found| found > 1.4));
    assert_eq!(bursts.decides, Decides::All);
}
