//! Counters of a tree in persistent memory.

use crate::options::limits::PM_BATCH;

/// Bins of the histogram of leaf flushes.
pub const FLUSH_BINS: usize = *PM_BATCH.end() + 2;

/// What a tree in persistent memory has done, and what it holds now. Where a tree has no buffers or no log, their figures are zeros.
///
/// [`Stats::written`](super::Stats::written) counts the lines whose write-back was asked for, 64 bytes each: leaves and records as `page`, log entries as `log`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmStats {
    /// Lookups that the buffer node answered, without a look at the leaf.
    pub buffer_hits: u64,
    /// Lookups that read the leaf.
    pub buffer_misses: u64,
    /// Writes that overwrote what was buffered, and not in the leaf, of their key.
    pub buffer_overwrites: u64,
    /// Writes that found their buffer full.
    pub trigger_writes: u64,
    /// Log entries appended, copies of cleaning included.
    pub log_appends: u64,
    /// Leaf flushes by the changes that they brought.
    pub flushes: [u64; FLUSH_BINS],
    /// Cleanings of the log that ended.
    pub cleanings: u64,
    /// Entries that they copied.
    pub cleaning_copies: u64,
    /// Leaves that they flushed: all if cleaning is naive, else those for which the log had no room.
    pub cleaning_flushes: u64,
    /// Changes in buffers that are not in leaves, now.
    pub buffered: u64,
    /// Bytes of leaves in use, now.
    pub leaf_bytes: u64,
    /// Leaves that the tree above them names, now.
    pub named_leaves: u64,
    /// Bytes of entries in live log chunks, now.
    pub log_bytes: u64,
    /// The most of them that there were.
    pub log_peak_bytes: u64,
    /// Bytes of live log chunks, now.
    pub log_chunk_bytes: u64,
    /// Bytes of records outside leaves, now, those included that wait to be free.
    pub record_bytes: u64,
    /// Of them, bytes of those that nobody needs and that wait to be free.
    pub retired_record_bytes: u64,
    /// DRAM for buffer nodes.
    pub node_bytes: u64,
    /// DRAM for the times of leaf flushes.
    pub flush_time_bytes: u64,
    /// What only a LodgeTree has.
    pub lodge: Option<LodgeStats>,
}

/// What a LodgeTree has done and holds, beside [`PmStats`]: there a log's entries are those that are needed, their peak is of the room of logs in use, and buffer nodes
/// are last-level inner nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LodgeStats {
    /// Flushes of last-level inner nodes; each goes to t_node leaves at most, or splits one.
    pub flushes: u64,
    /// Changes that they brought to leaves.
    pub flushed: u64,
    /// The most leaves that one went to without a split.
    pub most_leaves_flushed: u64,
    /// Leaves in which slots had to be cleared before updates could be written.
    pub clears: u64,
    /// Splits of last-level inner nodes, into 2, 3, ... and the last bin's or more.
    pub node_splits: [u64; FLUSH_BINS],
    /// Logs opened.
    pub logs_opened: u64,
    /// Entries that logs in use have room for, now.
    pub log_room_entries: u64,
    /// Last-level inner nodes, now.
    pub nodes: u64,
    /// Their slots.
    pub slots: u64,
    /// Slots that index leaves.
    pub leaves: u64,
    /// Slots that hold buffered changes.
    pub buffered: u64,
}

impl LodgeStats {
    /// Share of the slots of last-level inner nodes that index no leaf: what a buffer can be made of (§II-C). 0 to 1.
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
    /// Leaf flushes, of whatever size.
    #[must_use]
    pub fn leaf_flushes(&self) -> u64 {
        self.flushes.iter().sum()
    }

    /// What was counted since `earlier`; of what is measured now, such as [`PmStats::leaf_bytes`], what it is now.
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
