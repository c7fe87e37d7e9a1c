//! The least that the memory allows, and where the rest of the bytes goes.

use serde::Serialize;

use super::numbers::{bytes, grouped};
use super::wa::HostWa;

/// A lower bound of what any policy writes with this memory; see [`crate::limit`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitReport {
    /// Bytes of memory: the whole cache.
    pub memory_bytes: u64,
    /// The number of leaves that keys and values fill.
    pub leaves: f64,
    /// Bytes of the smallest write of a leaf.
    pub write_bytes: u64,
    /// The least number of such writes in the measured part.
    pub writes: f64,
    /// Puts and deletes for each of them; `null` if there need not be any.
    pub changes_per_write: Option<f64>,
    /// Whether only a sample of the changes was looked at, so that the bound is an estimate.
    pub estimated: bool,
    /// Bytes divided by user bytes: each change once in the log, and these writes.
    pub host: HostWa<f64>,
    /// The measured host total divided by the bound; `null` if that is zero.
    pub above: Option<f64>,
}

impl LimitReport {
    /// A sentence about it.
    pub(super) fn said(&self) -> String {
        let sample = if self.estimated { "about " } else { "" };
        let above = self.above.map_or(String::new(), |above| {
            format!(", of which the measured total is {above:.2} times")
        });
        format!(
            "{sample}{:.3} bytes a user byte{above}: {} writes of {} for {} leaves with {} of memory",
            self.host.total,
            grouped(self.writes.round() as u64),
            bytes(self.write_bytes as f64),
            grouped(self.leaves.round() as u64),
            bytes(self.memory_bytes as f64),
        )
    }
}

/// A step of the waterfall from the limit to what the device wrote.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaterfallStep {
    /// What the bytes are for, in one word or two; the same in all reports.
    pub name: &'static str,
    /// Bytes divided by user bytes; negative if the step saves some.
    pub wa: f64,
    /// The sum up to here.
    pub sum: f64,
    /// What it is, with figures.
    pub what: String,
}

/// The steps, with their sums.
#[derive(Debug, Default)]
pub(crate) struct Waterfall(Vec<WaterfallStep>);

impl Waterfall {
    /// Adds a step, unless nothing is written for it.
    pub(crate) fn add(&mut self, name: &'static str, wa: f64, what: impl Into<String>) {
        if wa.abs() < 0.000_5 {
            return;
        }
        let sum = self.sum() + wa;
        let what = what.into();
        self.0.push(WaterfallStep {
            name,
            wa,
            sum,
            what,
        });
    }

    /// The sum so far.
    pub(crate) fn sum(&self) -> f64 {
        self.0.last().map_or(0.0, |step| step.sum)
    }

    pub(crate) fn into_steps(self) -> Vec<WaterfallStep> {
        self.0
    }
}
