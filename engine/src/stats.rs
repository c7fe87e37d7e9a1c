//! Counters of a running store.

use crate::options::limits::PM_BATCH;
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

/// Most size classes that mini-pages have: 64 bytes to half of the largest page, and two for mirrors.
pub const SIZE_CLASSES: usize = 12;

/// Bins of the histogram of merges: the last begins at 2,048 records, more than half of the largest page holds.
pub const BATCH_BINS: usize = 12;

/// What the mini-pages of a Bf-Tree have done, and what they are now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BfStats {
    /// Lookups answered by a record of a mini-page.
    pub hits: KindCounts,
    /// Lookups for which the mini-page had no record, or for which there was none: they read the leaf.
    pub misses: u64,
    /// Leaves read, by lookups, scans and writes; not those that merges change.
    pub leaf_reads: u64,
    /// Records that a lookup of the leaf left in the mini-page.
    pub promotions: u64,
    /// Mini-pages that became mirrors of their leaves.
    pub mirrors: u64,
    /// Leaves that scans found in mirrors, without a look at the page.
    pub mirror_scans: u64,
    /// Mini-pages moved from near the head to the tail because they were used.
    pub copies_to_tail: u64,
    /// Merges of a mini-page's dirty records into its leaf, by cause.
    pub merges: MergeCauses,
    /// Records that went down with them.
    pub merged_records: u64,
    /// Merges by their records: bin `i` counts those of `2^i` to `2^(i+1) - 1`.
    pub batches: [u64; BATCH_BINS],
    /// Mini-pages evicted from the ring.
    pub evictions: u64,
    /// Evictions that failed because the device did.
    pub failed_evictions: u64,
    /// Allocations that found the ring full.
    pub full_returns: u64,
    /// Size classes, ascending; those that this page size does not have are of size 0.
    pub classes: [SizeClass; SIZE_CLASSES],
    /// Bytes of the ring that were laid as padding before its physical end.
    pub padding_bytes: u64,
    /// Bytes of the ring that became tombstones: left by a mini-page that moved or went.
    pub tombstone_bytes: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// Bytes of the ring in mini-pages now, their blocks' headers included.
    pub live_bytes: u64,
    /// Bytes of the ring on free lists now.
    pub listed_bytes: u64,
    /// Bytes from the ring's head to its tail now: mini-pages, free blocks, padding and tombstones.
    pub span_bytes: u64,
    /// Whether the kernel took the advice to back the ring with huge pages; a ring below 2 MiB does not ask.
    pub huge_pages: bool,
    /// Bytes of the mapping table.
    pub mapping_bytes: u64,
}

/// Something by kind of record (Bf-Tree, Table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// Written, and not in the leaf yet.
    pub insert: u64,
    /// As the leaf has it.
    pub cache: u64,
    /// Deleted, and perhaps still in the leaf.
    pub tombstone: u64,
    /// Known not to be in the leaf: by a record that says so, or by a mirror that has none.
    pub phantom: u64,
}

impl KindCounts {
    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.insert + self.cache + self.tombstone + self.phantom
    }
}

/// Merges by what made them necessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCauses {
    /// The mini-page was evicted at the ring's head.
    pub eviction: u64,
    /// It was used near the head, and left records behind on its way to the tail.
    pub copy_on_access: u64,
    /// It had become too large, or its leaf might not have held what was to come.
    pub room: u64,
    /// A checkpoint began.
    pub checkpoint: u64,
    /// Its leaf was merged with a neighbour.
    pub leaf_merge: u64,
}

impl MergeCauses {
    /// All causes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.eviction + self.copy_on_access + self.room + self.checkpoint + self.leaf_merge
    }
}

/// Mini-pages of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeClass {
    /// Bytes of payload.
    pub size: u64,
    /// Allocated.
    pub allocated: u64,
    /// Freed by the tree: grown, moved, merged away.
    pub freed: u64,
    /// Evicted.
    pub evicted: u64,
    /// In the ring now.
    pub live: u64,
}

impl BfStats {
    /// What was counted since `earlier`; of what is measured now, such as [`BfStats::span_bytes`], what it is now.
    #[must_use]
    pub fn since(&self, earlier: &BfStats) -> BfStats {
        let (hits, before) = (&self.hits, &earlier.hits);
        let (merges, merged) = (&self.merges, &earlier.merges);
        let mut batches = self.batches;
        for (bin, before) in batches.iter_mut().zip(earlier.batches) {
            *bin -= before;
        }
        let mut classes = self.classes;
        for (class, before) in classes.iter_mut().zip(earlier.classes) {
            class.allocated -= before.allocated;
            class.freed -= before.freed;
            class.evicted -= before.evicted;
        }
        BfStats {
            hits: KindCounts {
                insert: hits.insert - before.insert,
                cache: hits.cache - before.cache,
                tombstone: hits.tombstone - before.tombstone,
                phantom: hits.phantom - before.phantom,
            },
            misses: self.misses - earlier.misses,
            leaf_reads: self.leaf_reads - earlier.leaf_reads,
            promotions: self.promotions - earlier.promotions,
            mirrors: self.mirrors - earlier.mirrors,
            mirror_scans: self.mirror_scans - earlier.mirror_scans,
            copies_to_tail: self.copies_to_tail - earlier.copies_to_tail,
            merges: MergeCauses {
                eviction: merges.eviction - merged.eviction,
                copy_on_access: merges.copy_on_access - merged.copy_on_access,
                room: merges.room - merged.room,
                checkpoint: merges.checkpoint - merged.checkpoint,
                leaf_merge: merges.leaf_merge - merged.leaf_merge,
            },
            merged_records: self.merged_records - earlier.merged_records,
            batches,
            evictions: self.evictions - earlier.evictions,
            failed_evictions: self.failed_evictions - earlier.failed_evictions,
            full_returns: self.full_returns - earlier.full_returns,
            classes,
            padding_bytes: self.padding_bytes - earlier.padding_bytes,
            tombstone_bytes: self.tombstone_bytes - earlier.tombstone_bytes,
            ..*self
        }
    }
}

/// Bins of the histogram of leaf flushes.
pub const FLUSH_BINS: usize = *PM_BATCH.end() + 2;

/// What a tree in persistent memory has done, and what it holds now. Where a tree has no buffers or no log, their figures are zeros.
///
/// [`Stats::written`] counts the lines whose write-back was asked for, 64 bytes each: leaves and records as `page`, log entries as `log`.
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
