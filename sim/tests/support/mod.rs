//! Helpers shared by the replay tests: traces, and replays on persistent memory.

pub(crate) mod drives;
pub(crate) mod tally;
pub(crate) mod traces;

use std::path::PathBuf;

use tempfile::TempDir;
use treering_engine::PmTreeKind;
use treering_sim::pm;
use treering_sim::replay::{ReplayConfig, Target, Tree, run};
use treering_sim::report::ReplayReport;
use treering_traces::{Op, OpKind};

/// An operation on a record with a value of eight bytes.
pub(crate) fn op(kind: OpKind, key: Vec<u8>) -> Op {
    Op {
        kind,
        key,
        value_len: if kind == OpKind::Put { 8 } else { 0 },
        scan_len: if kind == OpKind::Scan { 20 } else { 0 },
        ..Op::default()
    }
}

/// Writes a trace of these operations.
pub(crate) fn trace(folder: &TempDir, warmup_ops: u64, ops: &[Op]) -> PathBuf {
    traces::made(folder.path(), "trace", warmup_ops, ops.iter().cloned())
}

/// A replay on the calibrated device. `set` may change any of its settings.
pub(crate) fn replay(
    trace: PathBuf,
    tree: PmTreeKind,
    set: impl FnOnce(&mut ReplayConfig),
) -> ReplayReport {
    let profile = pm::builtin("pm").expect("it is built in").1;
    let target = Target::pm(profile, "pm");
    let mut config = ReplayConfig::new(trace, target);
    config.tree = Tree::pm(tree);
    set(&mut config);
    run(&config, &mut |_| {}).expect("it runs")
}
