//! The predictions for a tree of pages.

use serde::Serialize;

use super::bf::MiniPagesPrediction;
use super::device::DeviceWa;
use super::estimate::{Bars, Model};
use super::policies::OtherPolicies;
use super::tried::Untried;

/// Bytes that the engine writes, divided by user bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostWa {
    /// Redo log.
    pub log: f64,
    /// Pages at their home locations.
    pub page: f64,
    /// Journal, page table, snapshots, superblocks.
    pub extra: f64,
    /// The sum.
    pub total: f64,
}

impl HostWa {
    /// Divides bytes by class (log, page, extra) by user bytes.
    pub(super) fn new([log, page, extra]: [f64; 3], user: f64) -> HostWa {
        HostWa {
            log: log / user,
            page: page / user,
            extra: extra / user,
            total: (log + page + extra) / user,
        }
    }
}

/// The predictions for a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Whether keys were sampled because there are too many for the memory, which makes all figures
    /// here estimates. Left out if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Bytes written by the engine, divided by user bytes.
    pub host: HostWa,
    /// Bytes of overflow blocks of long values, divided by user bytes. `host.page` includes them.
    pub overflow: f64,
    /// Bytes written by the drive, divided by user bytes.
    pub device: DeviceWa,
    /// After compression, divided by user bytes: α·WA of B⁻-tree eq. (2); `null` without
    /// compression.
    pub stored: Option<HostWa>,
    /// Share of page accesses that hit the cache.
    pub hit_ratio: f64,
    /// The same for caches of equal size with other replacement policies.
    #[serde(flatten)]
    pub other_policies: OtherPolicies,
    /// Leaves at the end of the trace.
    pub leaves: f64,
    /// Mean number of records in a leaf.
    pub records_per_leaf: f64,
    /// Operations between two visits of the clock hand to a frame; infinite (JSON null) if all
    /// pages fit.
    pub rotation_ops: f64,
    /// Log bytes written per flush, before rounding to blocks.
    pub log_group_bytes: f64,
    /// Checkpoints that begin within the measured part.
    pub checkpoints: u64,
    /// Predictions for mini-pages, if the tree has them.
    pub mini_pages: Option<MiniPagesPrediction>,
    /// Predictions for the modification log, if pages have one.
    pub mod_log: Option<ModLogPrediction>,
    /// The model that made this prediction.
    #[serde(skip)]
    pub model: Model,
    /// Error bars of the components; `None` if the model gives none. Left out if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bars: Option<Bars>,
    /// Quantities outside the range in which predictions were tested.
    pub untried: Vec<Untried>,
    /// Properties of the trace that violate the models' assumptions.
    pub warnings: Vec<String>,
}

/// Predictions for the modification log.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModLogPrediction {
    /// β at the end, B⁻-tree eq. (4).
    pub beta: f64,
    /// Mean |Δ| of a page at the end, in bytes.
    pub delta_bytes_mean: f64,
    /// Share of page writes that write the whole page.
    pub full_flush_share: f64,
}
