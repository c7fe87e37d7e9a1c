//! What a tree over these leaves exposes of them: its parts, its structure, its counters.

use super::Leaves;
use crate::pm::entries::ENTRY_BYTES;
use crate::pm::layout::BLOCK;
use crate::pm::logs::Logs;
use crate::pm::medium::Medium;
use crate::pm::tree::{Base, Structure};
use crate::stats::{FLUSH_BINS, PmStats};
use crate::sync::Arc;
use crate::sync::atomic::Ordering::Relaxed;

impl Leaves {
    /// Returns the parts that every tree has.
    pub(crate) fn base(&self) -> Base<'_> {
        Base {
            medium: &self.medium,
            space: &self.space,
            records: &self.records,
            clock: &self.clock,
        }
    }

    /// Returns how often the structure has changed.
    pub(crate) fn structure(&self) -> Structure {
        Structure {
            splits: self.counters.splits.load(Relaxed),
            merges: self.counters.merges.load(Relaxed),
            index_bytes: self.index.bytes() as u64,
        }
    }

    /// Returns the counters of leaves and buffer nodes.
    pub(crate) fn stats(&self) -> PmStats {
        let counters = &self.counters;
        let mut flushes = [0; FLUSH_BINS];
        for (bin, counter) in flushes.iter_mut().zip(&counters.flushes) {
            *bin = counter.load(Relaxed);
        }
        let (node_bytes, flush_time_bytes) = self.nodes.bytes();
        PmStats {
            buffer_hits: counters.hits.load(Relaxed),
            buffer_misses: counters.misses.load(Relaxed),
            flushes,
            buffered: counters.buffered.load(Relaxed),
            leaf_bytes: self.space.leaves() * BLOCK,
            named_leaves: self.index.len() as u64,
            record_bytes: self.space.record_bytes(),
            retired_record_bytes: self.space.retired_bytes().0,
            node_bytes,
            flush_time_bytes,
            ..PmStats::default()
        }
    }

    /// Creates logs over the chunks that recovery has kept.
    pub(crate) fn logs(&self, medium: Arc<Medium>, count: usize, kept: u64) -> Logs {
        let (space, clock) = (Arc::clone(&self.space), Arc::clone(&self.clock));
        Logs::new(medium, space, clock, count, kept)
    }

    /// As [`Leaves::stats`], including the counters of the tree's logs.
    pub(crate) fn stats_with(&self, logs: &Logs) -> PmStats {
        PmStats {
            log_appends: logs.appended(),
            log_bytes: logs.live() * ENTRY_BYTES,
            log_peak_bytes: logs.peak() * ENTRY_BYTES,
            log_chunk_bytes: self.space.live_log_bytes(),
            ..self.stats()
        }
    }
}
