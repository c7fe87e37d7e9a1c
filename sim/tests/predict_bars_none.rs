//! Error bars of predictions for a drive without a tree, held against replays.

use std::path::{Path, PathBuf};

use treering_sim::replay::{Precondition, Preload, ReplayConfig, Target, Tree};
use treering_traces::generate::{GenParams, ValueSize, Workload};

#[path = "support/mod.rs"]
#[allow(dead_code)]
mod support;

use support::drives::{compressing, config, prepared, replay};
use support::tally::Tally;

fn traces(folder: &Path) -> Vec<PathBuf> {
    let kinds = [
        Workload::Zipf,
        Workload::Latest,
        Workload::Hotspot,
        Workload::Sequential,
    ];
    let mut all = Vec::new();
    for workload in kinds {
        for (value, zeros) in [(4000, 0.3), (7000, 0.7)] {
            let mut params = GenParams::new(workload, 12_000);
            params.ops = Some(50_000);
            params.seed = 23;
            let is_free = !matches!(workload, Workload::Mixgraph | Workload::Latest);
            params.writes = is_free.then_some(0.8);
            params.value_size = Some(ValueSize {
                min: value / 2,
                max: value,
            });
            params.zeros = zeros;
            let name = format!("{workload:?}-{value}");
            all.push(support::traces::generated(folder, &name, &params));
        }
    }
    all
}

fn direct(config: ReplayConfig) -> ReplayConfig {
    ReplayConfig {
        tree: Tree::Direct,
        preload: Preload::None,
        ..config
    }
}

fn drives(path: &Path) -> Vec<(String, ReplayConfig)> {
    let mut all = Vec::new();
    for how in [Precondition::None, Precondition::Steady] {
        for over_provisioning in [0.07, 0.28] {
            let of = config(path, |profile| {
                profile.pages_per_block = 128;
                profile.over_provisioning = over_provisioning;
            });
            let name = format!("ssd {over_provisioning} {how:?}");
            all.push((name, direct(prepared(of, how))));
        }
        let mut of = compressing(path, |profile| {
            profile.flash.pages_per_block = 64;
            profile.flash.over_provisioning = 0.1;
            profile.logical_over_physical = 1.3;
        });
        if let Target::Csd { precondition, .. } = &mut of.target {
            *precondition = how;
        }
        all.push((format!("csd {how:?}"), direct(of)));
    }
    all
}

#[test]
fn measured_values_lie_within_narrow_bars() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut tally = Tally::default();
    for path in traces(folder.path()) {
        for (drive, config) in drives(&path) {
            let report = replay(&config);
            let (wa, name) = (&report.wa, path.file_stem().expect("a name"));
            let mut add = |row, measured, predicted, total| {
                let what = format!("{} on {drive}: {row}", name.to_string_lossy());
                tally.add(&what, measured, predicted, total);
            };
            let predicted = wa.predicted.as_ref().expect("a prediction");
            let (m, p) = (
                wa.device.expect("a drive"),
                predicted.device.expect("a drive"),
            );
            add("gc", m.gc, p.gc, m.total);
            add("total", m.total, p.total, m.total);
            add("ratio", m.nand_over_host, p.nand_over_host, 0.0);
            if let Some((m, p)) = wa.csd.zip(predicted.csd) {
                let all = m.stored.total;
                add("compressed", all, p.total, all);
            }
            let host = predicted.host.total.estimate;
            assert_eq!(host.low, host.high, "what the host writes is known");
        }
    }
    tally.check(0.8, 0.15);
}
