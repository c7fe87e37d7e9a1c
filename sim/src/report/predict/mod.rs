//! The report of a prediction without a run: one structure, `treering.predict/1`, with three
//! renderings: JSON (the structure itself), [`text`](render) and HTML or SVG
//! ([`html::predict_page`](super::html::predict_page)).
//!
//! It has a row for each configuration. The predicted numbers are those that a replay with the same
//! configuration shows beside its measurements.

mod axes;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use super::numbers::{bytes, grouped};
use super::pm::{Amplification, LodgePredicted};
use super::predicted::PredictedValue;
use super::preload::{PreloadReport, preloaded};
use super::run::{ByOp, TraceInfo};
use super::wa::{WaSide, is_untried, untried_note};
use crate::predict::Prediction;
use crate::predict::tried::{Decides, Untried};

pub(super) use axes::{Axis, Panel};
pub use text::render;

/// Name and version of the document.
pub const SCHEMA: &str = "treering.predict/1";

/// Predictions for some configurations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PredictReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Whether every configuration is predicted.
    pub complete: bool,
    /// The trace. No operation was replayed; `ops` is the number of operations that the predictions
    /// are for.
    pub trace: TraceInfo,
    /// The records that exist before the trace.
    pub preload: PreloadReport,
    /// The tree.
    pub tree: String,
    /// The device.
    pub device: PredictedDevice,
    /// The options that all configurations share, by flag name.
    pub options: BTreeMap<String, serde_json::Value>,
    /// Operations after warm-up, by kind.
    pub ops: ByOp<u64>,
    /// How often the trace was read for its statistics.
    pub passes: u64,
    /// The requested number of configurations.
    pub requested: u64,
    /// The configurations, in the order in which they were requested.
    pub configurations: Vec<PredictedRun>,
}

/// The device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PredictedDevice {
    /// `ssd`, `csd`, `pm` or `own`.
    pub kind: &'static str,
    /// Name of the profile.
    pub profile: String,
}

/// The prediction for one configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PredictedRun {
    /// Options in force, by flag name.
    pub options: BTreeMap<String, serde_json::Value>,
    /// Requested share of the data set for the cache; `null` if bytes were requested.
    pub cache_share: Option<f64>,
    /// Bytes of keys and values that puts and deletes write after warm-up.
    pub user_bytes: u64,
    /// Write amplification; `null` in persistent memory, and if nothing is written.
    pub wa: Option<WaSide<PredictedValue>>,
    /// Amplification in persistent memory; `null` on other devices, and without a predictor.
    pub pm: Option<Amplification<PredictedValue>>,
    /// Share of page accesses answered from memory; `null` in persistent memory.
    pub hit_ratio: Option<PredictedValue>,
    /// The full prediction, as in `treering.replay/2`; `null` in persistent memory.
    pub prediction: Option<Prediction>,
    /// A LodgeTree's inner nodes; `null` for other trees.
    pub lodge: Option<LodgePredicted>,
    /// The properties for which predictions were not tested; empty if there are none.
    pub untried: Vec<Untried>,
    /// Warnings that a reader should know before trusting the numbers.
    pub warnings: Vec<String>,
}

impl PredictedRun {
    /// The predicted write amplification by component, in the order of tables and charts; empty
    /// without a prediction.
    pub(super) fn components(&self) -> Vec<(&'static str, PredictedValue, Decides)> {
        if let Some(pm) = &self.pm {
            return vec![
                ("CLI", pm.cli, Decides::All),
                ("XBI", pm.xbi, Decides::All),
                ("leaves", pm.xbi_leaf, Decides::All),
                ("logs", pm.xbi_log, Decides::All),
            ];
        }
        let Some(wa) = &self.wa else {
            return Vec::new();
        };
        let mut rows = vec![
            ("host log", wa.host.log, Decides::All),
            ("host page", wa.host.page, Decides::All),
            ("host extra", wa.host.extra, Decides::All),
        ];
        rows.extend(wa.device.map(|d| ("device gc", d.gc, Decides::Collection)));
        rows.push(("host total", wa.host.total, Decides::All));
        rows.extend(
            wa.csd
                .map(|csd| ("compressed total", csd.total, Decides::All)),
        );
        rows.extend(wa.device.map(|d| ("device total", d.total, Decides::All)));
        rows
    }

    /// Whether the prediction for the engine (or else for garbage collection) is outside the tested
    /// range.
    pub(super) fn is_untried(&self, decides: Decides) -> bool {
        is_untried(&self.untried, decides)
    }
}

impl PredictReport {
    /// Sentences on the trace, the tree and the device.
    pub(super) fn about(&self) -> Vec<String> {
        // Nothing is known before the trace was read.
        if self.passes == 0 {
            return Vec::new();
        }
        let user = self.configurations.first().map_or(0, |run| run.user_bytes);
        let mut lines = vec![format!(
            "{} operations after {} of warm-up; {} keys put; {} written by the user",
            grouped(self.trace.ops - self.trace.warmup_ops),
            grouped(self.trace.warmup_ops),
            grouped(self.trace.records),
            bytes(user as f64)
        )];
        lines.extend(self.trace.blocks.map(|blocks| blocks.to_string()));
        lines.extend(preloaded(&self.preload));
        lines.push(format!(
            "{} on {} ({}), predicted from the trace alone; nothing was run",
            self.tree, self.device.kind, self.device.profile
        ));
        lines
    }

    /// The line that explains intervals; `None` if no value has one.
    pub(super) fn legend(&self) -> Option<&'static str> {
        let components = self
            .configurations
            .iter()
            .flat_map(PredictedRun::components);
        let mut values = components.map(|(_, value, _)| value);
        let any = values.any(|value| value.has_interval());
        any.then_some("±: 90 % interval of the prediction")
    }

    /// Warnings and notes on values outside the tested range, each once. If one is not about all
    /// configurations, it says about which.
    pub(super) fn notes(&self) -> Vec<String> {
        let all = &self.configurations;
        let axes = Axis::varied(all);
        let mut found: Vec<(String, Vec<usize>)> = Vec::new();
        for (i, run) in all.iter().enumerate() {
            let note = untried_note(&run.untried);
            let warnings = run.warnings.iter().map(|w| format!("Warning: {w}"));
            for note in note.into_iter().chain(warnings) {
                match found.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, at)) => at.push(i),
                    None => found.push((note, vec![i])),
                }
            }
        }
        let said = |(note, at): (String, Vec<usize>)| {
            if at.len() == all.len() || axes.is_empty() {
                return note;
            }
            let names = at.iter().map(|i| Axis::name_of(&axes, &all[*i]));
            format!("{note} ({})", names.collect::<Vec<_>>().join("; "))
        };
        found.into_iter().map(said).collect()
    }
}
