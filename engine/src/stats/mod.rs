//! Counters and current sizes of an open store.

mod bf;
mod pm;

pub use bf::{BATCH_BINS, BfStats, KindCounts, MergeCauses, RingUse, SIZE_CLASSES, SizeClass};
pub use pm::{FLUSH_BINS, LodgeStats, PmStats};

use crate::types::{Access, IoClass};

/// Bytes by I/O class.
///
/// ```
/// use treering_engine::{ClassBytes, IoClass};
///
/// let mut written = ClassBytes::default();
/// written.add(IoClass::Log, 4096);
/// let before = written;
/// written.add(IoClass::Page, 8192);
///
/// assert_eq!(written.total(), 12_288);
/// assert_eq!(written.since(&before).get(IoClass::Page), 8192);
/// assert_eq!(written.since(&before).get(IoClass::Log), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassBytes {
    /// Redo log.
    pub log: u64,
    /// Pages written to their places.
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

    /// Returns the bytes of one class.
    pub fn get(&self, class: IoClass) -> u64 {
        match class {
            IoClass::Log => self.log,
            IoClass::Page => self.page,
            IoClass::Extra => self.extra,
        }
    }

    /// Returns the sum of all classes.
    pub fn total(&self) -> u64 {
        self.log + self.page + self.extra
    }

    /// Returns the bytes added since `earlier`.
    pub fn since(&self, earlier: &ClassBytes) -> ClassBytes {
        ClassBytes {
            log: self.log - earlier.log,
            page: self.page - earlier.page,
            extra: self.extra - earlier.extra,
        }
    }
}

/// Counters and current sizes of the pages' modification logs (B⁻-tree §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModLogStats {
    /// Page writes that wrote Δ to the log block.
    pub delta_writes: u64,
    /// Bytes of Δ written by them.
    pub delta_bytes_written: u64,
    /// Page writes that wrote the whole page.
    pub whole_writes: u64,
    /// Bytes of Δ in all log blocks now: the numerator of β (eq. (4)).
    pub delta_bytes: u64,
    /// Number of pages that `delta_bytes` covers: those read or written since the store was opened.
    pub pages: u64,
}

impl ModLogStats {
    /// Returns the difference to `earlier` for all counters. Current sizes are taken from `self`.
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

/// Counters and current sizes of long values, see [`crate::MAX_VALUE_BYTES`]. In a store of pages,
/// a long value is one on overflow blocks; in persistent memory, one of several pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverflowStats {
    /// Long values written.
    pub values_written: u64,
    /// Bytes of their blocks or pieces written. They are also counted in class `Page`.
    pub bytes_written: u64,
    /// Bytes of their blocks or pieces read by lookups and scans.
    pub bytes_read: u64,
    /// Long values whose places were freed.
    pub values_freed: u64,
    /// Places in use by long values now, including values whose deletion is not durable yet.
    pub places: u64,
}

/// Counters since a store was opened, and its current sizes.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::device::MemDevice;
/// use treering_engine::{Kv, Options, Store, SystemClock, required_blocks};
///
/// # fn main() -> treering_engine::Result<()> {
/// let options = Options::default();
/// let device = Arc::new(MemDevice::new(required_blocks(&options, 64)));
/// let store = Store::open(device, Arc::new(SystemClock::new()), &options)?;
/// let before = store.stats();
/// for n in 0..100_u32 {
///     store.put(&n.to_be_bytes(), &[7; 100])?;
/// }
/// store.checkpoint()?;
///
/// // Write amplification by component: bytes written to the device per byte that the user wrote.
/// let written = store.stats().written.since(&before.written);
/// let user_bytes = 100.0 * (4.0 + 100.0);
/// let amplification = written.total() as f64 / user_bytes;
/// assert!(amplification > 1.0 && written.log > 0 && written.page > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// How the device is reached.
    pub access: Access,
    /// Bytes written, by class, as the engine issued them.
    pub written: ClassBytes,
    /// Bytes read, by class.
    pub read: ClassBytes,
    /// Bytes trimmed.
    pub trimmed_bytes: u64,
    /// Flushes of the device.
    pub flushes: u64,
    /// Page accesses that hit the cache.
    pub cache_hits: u64,
    /// Page accesses that missed the cache and read the device.
    pub cache_misses: u64,
    /// Pages evicted from the cache.
    pub evictions: u64,
    /// Dirty pages written back ahead of eviction.
    pub pages_written_back: u64,
    /// Pages written by checkpoints.
    pub pages_checkpointed: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Leaf splits.
    pub splits: u64,
    /// Leaf splits made to reduce contention among writers. They are included in `splits`.
    pub contention_splits: u64,
    /// Writes that waited for the latch of their leaf. Always zero for a Bf-Tree, whose writers
    /// lock the mini-pages instead.
    pub contended_writes: u64,
    /// Leaf merges.
    pub merges: u64,
    /// Log records appended.
    pub log_records: u64,
    /// Log bytes appended, before block rounding.
    pub log_appended_bytes: u64,
    /// Log flushes that wrote at least one block.
    pub log_flushes: u64,
    /// Times the log wrapped around to the beginning of its region.
    pub log_wraps: u64,
    /// Leaf pages in the tree now.
    pub leaf_pages: u64,
    /// Places for pages in use now: by leaves, by index snapshots, and by images that become free
    /// once their replacement is durable.
    pub places_taken: u64,
    /// Page frames in the cache.
    pub cache_frames: u64,
    /// Bytes of the in-memory index.
    pub index_bytes: u64,
    /// Memory used now, by purpose.
    pub memory: MemoryStats,
    /// Long values.
    pub overflow: OverflowStats,
    /// Mini-pages, if the tree has them.
    pub bf: Option<BfStats>,
    /// Modification logs, if the pages have them.
    pub mod_log: Option<ModLogStats>,
    /// The parts of a tree in persistent memory.
    pub pm: Option<PmStats>,
}

/// Memory of a store on a block device, by purpose. Parts that are small and do not grow are left
/// out: locks, counters, and a few page-sized buffers per thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Page frames and their descriptors: [`crate::Options::frames`] pages and four more.
    pub cache_bytes: u64,
    /// The ring of mini-pages: [`crate::Options::ring_bytes`].
    pub ring_bytes: u64,
    /// The index above the leaves. Grows with their number.
    pub index_bytes: u64,
    /// Maps of page names and places. They take a few bytes for each number up to the largest in
    /// use.
    pub map_bytes: u64,
    /// The log's two buffers, each of [`crate::Options::log_buffer_bytes`] plus the smaller of the
    /// same again and 256 KiB.
    pub log_buffer_bytes: u64,
    /// Page images being written to the device: [`crate::Options::write_batch_pages`].
    pub write_buffer_bytes: u64,
}

impl MemoryStats {
    /// Returns the sum of all parts.
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
