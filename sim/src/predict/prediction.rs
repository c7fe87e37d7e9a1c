//! What the predictors say of a tree of pages.

use serde::Serialize;

use super::bf::MiniPagesPrediction;
use super::device::DeviceWa;
use super::tried::Untried;

/// Bytes the engine writes, over user bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostWa {
    /// Redo log.
    pub log: f64,
    /// Pages at their home.
    pub page: f64,
    /// Journal, page table, snapshots, superblocks.
    pub extra: f64,
    /// All of them.
    pub total: f64,
}

impl HostWa {
    /// Of bytes by class: log, page, extra.
    pub(super) fn new([log, page, extra]: [f64; 3], user: f64) -> HostWa {
        HostWa {
            log: log / user,
            page: page / user,
            extra: extra / user,
            total: (log + page + extra) / user,
        }
    }
}

/// What the predictors say of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Whether keys were sampled, because there are too many for the memory: then all of this is
    /// estimated. Left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// By the engine, over user bytes.
    pub host: HostWa,
    /// Overflow blocks of long values among its pages, over user bytes.
    pub overflow: f64,
    /// By the drive, over user bytes.
    pub device: DeviceWa,
    /// After compression, over user bytes: α·WA of B⁻-tree eq. (2); `null` where nothing
    /// compresses.
    pub stored: Option<HostWa>,
    /// Share of page accesses that the cache answers.
    pub hit_ratio: f64,
    /// The same for an LRU cache of equal size, by Che's approximation.
    pub lru_hit_ratio: f64,
    /// Leaves at the end of the trace.
    pub leaves: f64,
    /// Mean number of records in a leaf.
    pub records_per_leaf: f64,
    /// Operations between two visits of the clock hand to a frame; infinite (JSON null) if all
    /// pages fit.
    pub rotation_ops: f64,
    /// Log bytes a flush writes, before rounding to blocks.
    pub log_group_bytes: f64,
    /// Checkpoints that begin within the measured part.
    pub checkpoints: u64,
    /// The mini-pages, if the tree has them.
    pub mini_pages: Option<MiniPagesPrediction>,
    /// The modification log, if pages have one.
    pub mod_log: Option<ModLogPrediction>,
    /// What lies outside the bounds between which predictions were held against measurements.
    pub untried: Vec<Untried>,
    /// Where the trace strays from what the models assume.
    pub warnings: Vec<String>,
}

/// What the predictors say of the modification log.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModLogPrediction {
    /// β at the end, B⁻-tree eq. (4).
    pub beta: f64,
    /// Mean |Δ| of a page at the end, in bytes.
    pub delta_bytes_mean: f64,
    /// Share of page writes that are whole.
    pub full_flush_share: f64,
}
