//! Error bars of played predictions for persistent memory, held against replays: of all trees, with
//! records inside and outside the leaves, and with several clients.

use std::path::{Path, PathBuf};

use treering_engine::{CclOptions, GlobalOptions, LodgeOptions, PmTreeKind};
use treering_sim::report::ReplayReport;
use treering_traces::generate::{GenParams, ValueSize, Workload};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

use support::replay;
use support::tally::Tally;

fn trees() -> [PmTreeKind; 4] {
    [
        PmTreeKind::PmTree,
        PmTreeKind::Ccl(CclOptions::default()),
        PmTreeKind::Lodge(LodgeOptions::default()),
        PmTreeKind::Global(GlobalOptions::default()),
    ]
}

fn trace(
    folder: &Path,
    name: &str,
    workload: Workload,
    set: impl FnOnce(&mut GenParams),
) -> PathBuf {
    let mut params = GenParams::new(workload, 20_000);
    params.ops = Some(40_000);
    params.seed = 19;
    set(&mut params);
    support::traces::generated(folder, name, &params)
}

/// Popularity that moves, scans, deletes, ascending keys; records in the leaves or outside.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let kinds = [
        Workload::Latest,
        Workload::YcsbE,
        Workload::Hotspot,
        Workload::Mixgraph,
        Workload::Sequential,
        Workload::Uniform,
    ];
    let mut all = Vec::new();
    for workload in kinds {
        for value in [8, 120] {
            let name = format!("{workload:?}-{value}");
            all.push(trace(folder, &name, workload, |p| {
                p.key_size = Some(8);
                p.value_size = Some(ValueSize::fixed(value));
            }));
        }
    }
    all.push(trace(folder, "deletes", Workload::Zipf, |p| {
        p.deletes = Some(0.1);
        p.value_size = Some(ValueSize { min: 8, max: 900 });
    }));
    all
}

fn add(tally: &mut Tally, what: &str, report: &ReplayReport) {
    let pm = report.pm.as_ref().expect("it ran on persistent memory");
    let (m, p) = (pm.measured, pm.predicted.expect("a prediction"));
    let rows = [
        ("cli", m.cli, p.cli, m.cli),
        ("xbi", m.xbi, p.xbi, m.xbi),
        ("leaves", m.xbi_leaf, p.xbi_leaf, m.xbi),
        ("logs", m.xbi_log, p.xbi_log, m.xbi),
        ("rest", m.xbi_extra, p.xbi_extra, m.xbi),
    ];
    for (row, measured, predicted, total) in rows {
        tally.add(&format!("{what} {row}"), measured, predicted, total);
    }
}

fn held(paths: &[PathBuf], clients: u32, timing: bool) -> Tally {
    let mut tally = Tally::default();
    for path in paths {
        for tree in trees() {
            let report = replay(path.clone(), tree, |config| {
                config.clients = clients;
                config.timing = timing;
            });
            let name = path.file_stem().expect("a name").to_string_lossy();
            add(&mut tally, &format!("{name} {}", tree.name()), &report);
        }
    }
    tally
}

#[test]
fn one_client_lies_within_narrow_bars() {
    let folder = tempfile::tempdir().expect("a folder");
    held(&traces(folder.path()), 1, false).check(0.8, 0.15);
}

#[test]
fn bars_grow_with_clients_and_queues_as_errors_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = traces(folder.path());
    let some = [&all[1], &all[4], &all[10]].map(PathBuf::clone);
    held(&some, 8, false).check(0.8, 0.15);
    held(&some, 1, true).check(0.8, 0.15);
    held(&some, 8, true).check(0.8, 0.4);
}
