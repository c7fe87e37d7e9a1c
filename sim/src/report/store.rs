//! Space and store in a report.

use serde::Serialize;
use treering_engine::Stats;

use super::numbers::{bytes, grouped};

/// Space used at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SpaceReport {
    /// Bytes of all leaf pages.
    pub logical_bytes: u64,
    /// Bytes in use on the device: pages, log, journal, table.
    pub physical_bytes: u64,
    /// Leaves.
    pub leaves: u64,
    /// Records in leaves; records that are only in mini-pages are not counted.
    pub records: u64,
    /// Mean number of records in a leaf.
    pub records_per_leaf: f64,
    /// Mean used share of a leaf, including header and fence keys.
    pub fill: f64,
    /// Bytes of the in-memory index.
    pub index_bytes: u64,
}

impl SpaceReport {
    /// The same with this many records, and what follows from that.
    pub(crate) fn with_records(self, records: f64) -> SpaceReport {
        SpaceReport {
            records: records.round() as u64,
            records_per_leaf: records / self.leaves.max(1) as f64,
            ..self
        }
    }

    pub(super) fn said(&self) -> String {
        format!(
            "{} leaves, {:.1} records each, {:.0} % full; {} in pages, {} in use on the device",
            grouped(self.leaves),
            self.records_per_leaf,
            self.fill * 100.0,
            bytes(self.logical_bytes as f64),
            bytes(self.physical_bytes as f64)
        )
    }
}

/// The activity of the page store in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreReport {
    /// `in-place`, `cow` or `shadow`.
    pub kind: String,
    /// Pages written by eviction.
    pub pages_written_back: u64,
    /// Pages written by checkpoints.
    pub pages_checkpointed: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Leaf splits.
    pub splits: u64,
    /// Leaf splits that were made because writers waited for the same leaf.
    pub contention_splits: u64,
    /// Writes that waited for their leaf's latch; files only, as simulated clients never wait.
    pub contended_writes: u64,
    /// Leaf merges.
    pub merges: u64,
    /// Log flushes.
    pub log_flushes: u64,
    /// Log bytes appended, before rounding to blocks.
    pub log_appended_bytes: u64,
    /// Device flushes.
    pub flushes: u64,
    /// B⁻-tree eq. (4): bytes of Δ in the log blocks of pages over the bytes of these pages, at the
    /// end; `null` without a modification log.
    pub beta: Option<f64>,
    /// Mean |Δ| of a page at the end, in bytes.
    pub delta_bytes_mean: Option<f64>,
    /// Share of page writes that wrote the whole page.
    pub full_flush_share: Option<f64>,
}

impl StoreReport {
    /// The activity between two moments.
    pub(crate) fn new(kind: &str, (before, after): (&Stats, &Stats)) -> StoreReport {
        let mod_log = after.mod_log.zip(before.mod_log);
        let mod_log = mod_log.map(|(after, before)| after.since(&before));
        StoreReport {
            kind: kind.into(),
            pages_written_back: after.pages_written_back - before.pages_written_back,
            pages_checkpointed: after.pages_checkpointed - before.pages_checkpointed,
            checkpoints: after.checkpoints - before.checkpoints,
            splits: after.splits - before.splits,
            contention_splits: after.contention_splits - before.contention_splits,
            contended_writes: after.contended_writes - before.contended_writes,
            merges: after.merges - before.merges,
            log_flushes: after.log_flushes - before.log_flushes,
            log_appended_bytes: after.log_appended_bytes - before.log_appended_bytes,
            flushes: after.flushes - before.flushes,
            beta: None,
            delta_bytes_mean: mod_log.map(|log| log.delta_bytes as f64 / log.pages.max(1) as f64),
            full_flush_share: mod_log.map(|log| {
                let writes = log.whole_writes + log.delta_writes;
                log.whole_writes as f64 / writes.max(1) as f64
            }),
        }
    }

    pub(super) fn said(&self) -> String {
        format!(
            "{} pages written by eviction, {} by {} checkpoints; {} log flushes; {} splits, {} merges",
            grouped(self.pages_written_back),
            grouped(self.pages_checkpointed),
            grouped(self.checkpoints),
            grouped(self.log_flushes),
            grouped(self.splits),
            grouped(self.merges)
        )
    }

    /// A sentence on waiting writers; `None` if none waited.
    pub(super) fn latches(&self) -> Option<String> {
        (self.contended_writes > 0).then(|| {
            format!(
                "{} writes waited for their leaf's latch; {} splits relieved such contention",
                grouped(self.contended_writes),
                grouped(self.contention_splits)
            )
        })
    }
}
