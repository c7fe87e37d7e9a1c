//! Counters of a running store.

mod bf;
mod pm;

pub use bf::{BATCH_BINS, BfStats, KindCounts, MergeCauses, SIZE_CLASSES, SizeClass};
pub use pm::{FLUSH_BINS, LodgeStats, PmStats};

use crate::types::{Access, IoClass};

/// Bytes by I/O class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassBytes {
    /// Redo log.
    pub log: u64,
    /// Pages at their home.
    pub page: u64,
    /// Journal, page table, snapshots, superblocks.
    pub extra: u64,
}

impl ClassBytes {
    /// Adds `bytes` to `class`.
    pub fn add(&mut self, class: IoClass, bytes: u64) {
        match class {
            IoClass::Log => self.log += bytes,
            IoClass::Page => self.page += bytes,
            IoClass::Extra => self.extra += bytes,
        }
    }

    /// The bytes of one class.
    pub fn get(&self, class: IoClass) -> u64 {
        match class {
            IoClass::Log => self.log,
            IoClass::Page => self.page,
            IoClass::Extra => self.extra,
        }
    }

    /// All classes together.
    pub fn total(&self) -> u64 {
        self.log + self.page + self.extra
    }

    /// What was added since `earlier`.
    pub fn since(&self, earlier: &ClassBytes) -> ClassBytes {
        ClassBytes {
            log: self.log - earlier.log,
            page: self.page - earlier.page,
            extra: self.extra - earlier.extra,
        }
    }
}

/// What the modification log of pages has done and holds (B⁻-tree §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModLogStats {
    /// Page writes that were Δ to the log block.
    pub delta_writes: u64,
    /// Bytes of Δ in them.
    pub delta_bytes_written: u64,
    /// Page writes that were whole.
    pub whole_writes: u64,
    /// Bytes of Δ in all log blocks now: the numerator of β (eq. (4)).
    pub delta_bytes: u64,
    /// Pages that `delta_bytes` is of: those that were read or written since the store was opened.
    pub pages: u64,
}

impl ModLogStats {
    /// What was done since `earlier`; what it holds is what it holds now.
    #[must_use]
    pub fn since(&self, earlier: &ModLogStats) -> ModLogStats {
        ModLogStats {
            delta_writes: self.delta_writes - earlier.delta_writes,
            delta_bytes_written: self.delta_bytes_written - earlier.delta_bytes_written,
            whole_writes: self.whole_writes - earlier.whole_writes,
            ..*self
        }
    }
}

/// What a store's long values are and were, see [`crate::MAX_VALUE_BYTES`]: in a store of pages
/// those on overflow blocks, in persistent memory those of several pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverflowStats {
    /// Values written.
    pub values_written: u64,
    /// Bytes of their blocks or pieces: a part of the bytes of class `Page`.
    pub bytes_written: u64,
    /// Bytes of these read because a value was asked for.
    pub bytes_read: u64,
    /// Values whose places became free.
    pub values_freed: u64,
    /// Places that long values take now, and those whose end is not durable yet.
    pub places: u64,
}

/// What a store has done since it was opened, and what it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How the device is reached.
    pub access: Access,
    /// Bytes written, by class, counted where the engine issues them.
    pub written: ClassBytes,
    /// Bytes read, by class.
    pub read: ClassBytes,
    /// Bytes trimmed.
    pub trimmed_bytes: u64,
    /// Device flushes.
    pub flushes: u64,
    /// Page accesses answered by a frame of the cache.
    pub cache_hits: u64,
    /// Page accesses that had to read the device.
    pub cache_misses: u64,
    /// Pages evicted from their frames.
    pub evictions: u64,
    /// Pages written by write-back (eviction ahead of need).
    pub pages_written_back: u64,
    /// Pages written by checkpoints.
    pub pages_checkpointed: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Leaf splits.
    pub splits: u64,
    /// Those of them that parted what writers waited for.
    pub contention_splits: u64,
    /// Writes that waited for the latch of their leaf; of a Bf-Tree, whose writers lock pages above, none.
    pub contended_writes: u64,
    /// Leaf merges.
    pub merges: u64,
    /// Log records appended.
    pub log_records: u64,
    /// Log bytes appended, before block rounding.
    pub log_appended_bytes: u64,
    /// Log flushes that wrote something.
    pub log_flushes: u64,
    /// Times the log went on at the beginning of its region.
    pub log_wraps: u64,
    /// Leaf pages now.
    pub leaf_pages: u64,
    /// Places for pages that are taken now: by leaves, by index snapshots, and by what is free once
    /// something else is durable.
    pub places_taken: u64,
    /// Page frames of the cache.
    pub cache_frames: u64,
    /// Bytes of the in-memory index.
    pub index_bytes: u64,
    /// Memory that the store's parts take now.
    pub memory: MemoryStats,
    /// The long values.
    pub overflow: OverflowStats,
    /// The mini-pages, if the tree has them.
    pub bf: Option<BfStats>,
    /// The modification log, if pages have one.
    pub mod_log: Option<ModLogStats>,
    /// The tree's parts, if it is in persistent memory.
    pub pm: Option<PmStats>,
}

/// Memory of a store on a block device, by what it is for. What is not here is small and does not
/// grow: locks, counters, a few buffers of a page's size a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Page frames: [`crate::Options::frames`] pages and four more, with what is known of each.
    pub cache_bytes: u64,
    /// The ring of mini-pages: [`crate::Options::ring_bytes`].
    pub ring_bytes: u64,
    /// The index above the leaves: grows with their number.
    pub index_bytes: u64,
    /// Maps of page names and places: grow with the largest number in use, some bytes each.
    pub map_bytes: u64,
    /// The log's two buffers, each of [`crate::Options::log_buffer_bytes`] and as much again, or
    /// 256 KiB.
    pub log_buffer_bytes: u64,
    /// Page images on their way to the device: [`crate::Options::write_batch_pages`].
    pub write_buffer_bytes: u64,
}

impl MemoryStats {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.cache_bytes
            + self.ring_bytes
            + self.index_bytes
            + self.map_bytes
            + self.log_buffer_bytes
            + self.write_buffer_bytes
    }
}
