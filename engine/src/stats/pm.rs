//! Counters of a tree in persistent memory.

use crate::options::limits::PM_BATCH;

/// The number of bins in the histogram of leaf flushes.
pub const FLUSH_BINS: usize = *PM_BATCH.end() + 2;

/// Counters and current sizes of a tree in persistent memory. Figures for buffers or logs are zero
/// if the tree has none.
///
/// [`Stats::written`](super::Stats::written) counts the cache lines whose write-back was requested,
/// 64 bytes each: leaves and records as `page`, log entries as `log`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmStats {
    /// Lookups answered by the buffer node, without reading the leaf.
    pub buffer_hits: u64,
    /// Lookups that read the leaf.
    pub buffer_misses: u64,
    /// Writes that overwrote a buffered change of the same key that was not in the leaf yet.
    pub buffer_overwrites: u64,
    /// Writes that found their buffer full.
    pub trigger_writes: u64,
    /// Log entries appended, including copies made by log cleaning.
    pub log_appends: u64,
    /// Leaf flushes by the number of changes that each wrote.
    pub flushes: [u64; FLUSH_BINS],
    /// Completed cleanings of the log.
    pub cleanings: u64,
    /// Log entries copied by those cleanings.
    pub cleaning_copies: u64,
    /// Leaves flushed by those cleanings: all leaves if cleaning is naive, else those whose entries
    /// could not be copied because the log had no room.
    pub cleaning_flushes: u64,
    /// Buffered changes that are not in leaves now.
    pub buffered: u64,
    /// Bytes of leaves in use now.
    pub leaf_bytes: u64,
    /// Leaves that the index above refers to now.
    pub named_leaves: u64,
    /// Bytes of entries in live log chunks now.
    pub log_bytes: u64,
    /// The greatest value that `log_bytes` has had.
    pub log_peak_bytes: u64,
    /// Bytes of live log chunks now.
    pub log_chunk_bytes: u64,
    /// Bytes of records outside leaves now, including those that wait to be freed.
    pub record_bytes: u64,
    /// The part of `record_bytes` that is no longer needed and waits to be freed.
    pub retired_record_bytes: u64,
    /// Bytes of DRAM for buffer nodes.
    pub node_bytes: u64,
    /// Bytes of DRAM for the times of leaf flushes.
    pub flush_time_bytes: u64,
    /// Figures that only a LodgeTree has.
    pub lodge: Option<LodgeStats>,
}

/// Counters and current sizes that only a LodgeTree has. In its [`PmStats`], log entries are those
/// still needed, their peak is the capacity of the logs in use, and buffer nodes are last-level
/// inner nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LodgeStats {
    /// Flushes of last-level inner nodes. Each writes to at most t_node leaves, or splits one.
    pub flushes: u64,
    /// Changes written to leaves by those flushes.
    pub flushed: u64,
    /// The greatest number of leaves written by one flush without a split.
    pub most_leaves_flushed: u64,
    /// Leaves in which slots had to be cleared before updates could be written.
    pub clears: u64,
    /// Splits of last-level inner nodes, by the number of resulting nodes: 2, 3, and so on. The
    /// last bin also counts all larger splits.
    pub node_splits: [u64; FLUSH_BINS],
    /// Logs opened.
    pub logs_opened: u64,
    /// Capacity in entries of the logs in use now.
    pub log_room_entries: u64,
    /// Last-level inner nodes now.
    pub nodes: u64,
    /// Slots of last-level inner nodes now.
    pub slots: u64,
    /// Slots that index leaves now.
    pub leaves: u64,
    /// Slots that hold buffered changes now.
    pub buffered: u64,
}

impl LodgeStats {
    /// Returns the share of last-level inner nodes' slots that index no leaf, from 0 to 1. These
    /// slots are available for buffering (§II-C).
    #[must_use]
    pub fn free_share(&self) -> f64 {
        if self.slots == 0 {
            return 0.0;
        }
        1.0 - self.leaves as f64 / self.slots as f64
    }

    fn since(&self, earlier: &LodgeStats) -> LodgeStats {
        let mut node_splits = self.node_splits;
        for (bin, before) in node_splits.iter_mut().zip(earlier.node_splits) {
            *bin -= before;
        }
        LodgeStats {
            flushes: self.flushes - earlier.flushes,
            flushed: self.flushed - earlier.flushed,
            clears: self.clears - earlier.clears,
            node_splits,
            logs_opened: self.logs_opened - earlier.logs_opened,
            ..*self
        }
    }
}

impl PmStats {
    /// Returns the number of leaf flushes of all sizes.
    #[must_use]
    pub fn leaf_flushes(&self) -> u64 {
        self.flushes.iter().sum()
    }

    /// Returns the difference to `earlier` for all counters. Current sizes, such as
    /// [`PmStats::leaf_bytes`], are taken from `self`.
    #[must_use]
    pub fn since(&self, earlier: &PmStats) -> PmStats {
        let mut flushes = self.flushes;
        for (bin, before) in flushes.iter_mut().zip(earlier.flushes) {
            *bin -= before;
        }
        PmStats {
            buffer_hits: self.buffer_hits - earlier.buffer_hits,
            buffer_misses: self.buffer_misses - earlier.buffer_misses,
            buffer_overwrites: self.buffer_overwrites - earlier.buffer_overwrites,
            trigger_writes: self.trigger_writes - earlier.trigger_writes,
            log_appends: self.log_appends - earlier.log_appends,
            flushes,
            cleanings: self.cleanings - earlier.cleanings,
            cleaning_copies: self.cleaning_copies - earlier.cleaning_copies,
            cleaning_flushes: self.cleaning_flushes - earlier.cleaning_flushes,
            lodge: self
                .lodge
                .map(|lodge| lodge.since(&earlier.lodge.unwrap_or_default())),
            ..*self
        }
    }
}
