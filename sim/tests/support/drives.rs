//! Helpers to replay generated traces on small simulated drives.

use std::path::{Path, PathBuf};

use treering_engine::{PageStoreKind, TablePersist};
use treering_sim::csd::CsdProfile;
use treering_sim::replay::{Precondition, ReplayConfig, Target, run};
use treering_sim::report::ReplayReport;
use treering_sim::ssd::builtin;
use treering_traces::generate::{GenParams, ValueSize, Workload};
use treering_traces::{Op, OpKind};

pub(crate) const STORES: [PageStoreKind; 4] = [
    PageStoreKind::Shadow,
    PageStoreKind::InPlace,
    PageStoreKind::CopyOnWrite {
        table: TablePersist::EachFlush,
    },
    PageStoreKind::CopyOnWrite {
        table: TablePersist::Checkpoint,
    },
];

pub(crate) fn trace(folder: &Path, name: &str, set: impl FnOnce(&mut GenParams)) -> PathBuf {
    let mut params = GenParams::new(Workload::Zipf, 20_000);
    params.ops = Some(60_000);
    params.theta = Some(0.8);
    params.writes = Some(0.7);
    params.key_size = Some(8);
    params.value_size = Some(ValueSize::fixed(100));
    set(&mut params);
    super::traces::generated(folder, name, &params)
}

/// A small workload, for tests that try many combinations.
pub(crate) fn small(params: &mut GenParams) {
    params.records = 5_000;
    params.ops = Some(10_000);
}

/// A trace that puts these numbers with values of `value_len` bytes; the first `warmup_ops` puts
/// are warm-up.
pub(crate) fn puts(
    folder: &Path,
    name: &str,
    (warmup_ops, value_len): (u64, u32),
    keys: impl Iterator<Item = u64>,
) -> PathBuf {
    let put = |key: u64| Op {
        kind: OpKind::Put,
        key: key.to_be_bytes().to_vec(),
        value_len,
        ..Op::default()
    };
    super::traces::made(folder, name, warmup_ops, keys.map(put))
}

pub(crate) fn config(
    trace: &Path,
    change: impl FnOnce(&mut treering_sim::ssd::SsdProfile),
) -> ReplayConfig {
    let (_, mut profile) = builtin("ssd").unwrap();
    // Erase blocks small enough for a drive of a few thousand pages.
    profile.pages_per_block = 32;
    change(&mut profile);
    let target = Target::ssd(profile, "ssd");
    ReplayConfig::new(trace.to_path_buf(), target)
}

pub(crate) fn prepared(mut config: ReplayConfig, how: Precondition) -> ReplayConfig {
    if let Target::Ssd { precondition, .. } = &mut config.target {
        *precondition = how;
    }
    config
}

pub(crate) fn replay(config: &ReplayConfig) -> ReplayReport {
    run(config, &mut |_| {}).unwrap_or_else(|e| panic!("{config:?}: {e}"))
}

pub(crate) fn gc(report: &ReplayReport) -> (f64, f64) {
    let predicted = report.wa.predicted.as_ref().unwrap().values();
    let predicted = predicted.device.unwrap();
    (report.wa.device.as_ref().unwrap().gc, predicted.gc)
}

pub(crate) fn close(what: &str, (measured, predicted): (f64, f64), within: f64) {
    assert!(
        (measured / predicted - 1.0).abs() < within,
        "{what}: measured {measured}, predicted {predicted}"
    );
}

/// A replay on a compressing drive, with zeros in the values.
pub(crate) fn compressing(trace: &Path, change: impl FnOnce(&mut CsdProfile)) -> ReplayConfig {
    let (_, mut profile) = treering_sim::csd::builtin("csd").unwrap();
    profile.flash.pages_per_block = 32;
    change(&mut profile);
    let target = Target::csd(profile, "csd");
    ReplayConfig::new(trace.to_path_buf(), target)
}
