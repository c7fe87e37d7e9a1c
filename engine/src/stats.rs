//! Counters of a running store.

use crate::types::IoClass;

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

/// What a store has done since it was opened, and what it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes written, by class, counted where the engine issues them.
    pub written: ClassBytes,
    /// Bytes read, by class.
    pub read: ClassBytes,
    /// Bytes trimmed.
    pub trimmed_bytes: u64,
    /// Device flushes.
    pub flushes: u64,
    /// Page accesses answered by the cache.
    pub cache_hits: u64,
    /// Page accesses that had to read the device.
    pub cache_misses: u64,
    /// Pages evicted from the cache.
    pub evictions: u64,
    /// Pages written by write-back (eviction ahead of need).
    pub pages_written_back: u64,
    /// Pages written by checkpoints.
    pub pages_checkpointed: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Leaf splits.
    pub splits: u64,
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
    /// Page frames of the cache.
    pub cache_frames: u64,
    /// Bytes of the in-memory index.
    pub index_bytes: u64,
}
