//! The part of a report that all replays have, whatever the device.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::config::ReplayConfig;
use super::look::Looked;
use super::measure::Outcome;
use crate::report::{self, ReplayReport, TimeReport, TraceInfo};

/// Warnings to put before and after the common ones.
#[derive(Default)]
pub(super) struct Said {
    /// Warnings of the plan.
    pub(super) planned: Vec<String>,
    /// Warnings of the prediction.
    pub(super) predicted: Vec<String>,
}

/// A report with the trace, the options and the times, without store, device and write
/// amplification.
pub(super) fn frame<C>(
    (config, looked): (&ReplayConfig, &Looked),
    outcome: &mut Outcome<C>,
    said: Said,
) -> ReplayReport {
    let series = outcome.measures.take_series();
    let phase = &outcome.measures.phase;
    let elapsed_ns = outcome.after.at.0.saturating_sub(outcome.before.at.0);
    ReplayReport {
        schema: report::SCHEMA,
        complete: outcome.done_ops == looked.ops,
        trace: trace(looked, outcome.done_ops),
        preload: looked.loads.report.clone(),
        tree: config.tree.name().into(),
        options: options(config),
        ops: phase.by_op(),
        user_bytes: phase.user_bytes,
        latency_ns: outcome.measures.latencies(),
        time: TimeReport {
            elapsed_ns,
            ops_per_second: rate(phase.ops(), elapsed_ns),
            queued: config.timing,
        },
        series,
        warnings: warnings(looked, outcome, said),
        ..ReplayReport::default()
    }
}

/// The trace, of which this many operations were done.
pub(super) fn trace(looked: &Looked, done_ops: u64) -> TraceInfo {
    TraceInfo {
        name: looked.header.name.clone(),
        source: looked.header.source.clone(),
        ops: done_ops,
        warmup_ops: looked.warmup_ops.min(done_ops),
        records: looked.workload.records().round() as u64,
        blocks: looked.blocks(),
    }
}

/// A warning if nothing is written in the measured part.
pub(super) const NOTHING_WRITTEN: &str =
    "Nothing was written after warm-up: there is no write amplification.";

/// A warning about skipped operations, if there are any.
pub(super) fn skipped(ops: u64) -> Option<String> {
    (ops > 0).then(|| {
        format!("{ops} operations were skipped: no store takes their records (--oversize skip).")
    })
}

/// Warnings that any replay can give.
fn warnings<C>(looked: &Looked, outcome: &Outcome<C>, said: Said) -> Vec<String> {
    let phase = &outcome.measures.phase;
    let mut warnings = said.planned;
    if outcome.done_ops < looked.ops {
        warnings.push(format!(
            "Interrupted after {} of {} operations: all figures are of these, and nothing is \
             predicted.",
            outcome.done_ops, looked.ops
        ));
    }
    warnings.extend(said.predicted);
    warnings.extend(skipped(phase.skipped));
    if phase.user_bytes == 0 {
        warnings.push(NOTHING_WRITTEN.into());
    }
    warnings
}

/// The options that every replay has, by flag name.
fn options(config: &ReplayConfig) -> BTreeMap<String, Value> {
    let mut options = options_of_pass(config);
    options.extend(named([
        ("no-predict", json!(!config.predict)),
        ("daily", json!(config.daily_bytes)),
        ("timing", json!(config.timing)),
    ]));
    options
}

/// The options that decide which operations there are, and who does them, by flag name.
pub(super) fn options_of_pass(config: &ReplayConfig) -> BTreeMap<String, Value> {
    named([
        ("preload", json!(config.preload.name())),
        (
            "oversize",
            json!(format!("{:?}", config.oversize).to_lowercase()),
        ),
        ("clients", json!(config.clients)),
        ("limit", json!(config.limit)),
        ("warmup", json!(config.warmup)),
        ("drain", json!(config.drain)),
        ("seed", json!(config.seed)),
    ])
}

/// Options by flag name.
pub(super) fn named<const N: usize>(pairs: [(&str, Value); N]) -> BTreeMap<String, Value> {
    let named = |(name, value): (&str, Value)| (name.to_string(), value);
    pairs.into_iter().map(named).collect()
}

/// Bytes divided by user bytes; 0 without user bytes.
pub(super) fn over(bytes: u64, user_bytes: u64) -> f64 {
    match user_bytes {
        0 => 0.0,
        user_bytes => bytes as f64 / user_bytes as f64,
    }
}

fn rate(ops: u64, elapsed_ns: u64) -> f64 {
    match elapsed_ns {
        0 => 0.0,
        elapsed_ns => ops as f64 * 1e9 / elapsed_ns as f64,
    }
}
