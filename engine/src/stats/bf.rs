//! Counters of a Bf-Tree's mini-pages.

/// The greatest number of size classes of mini-pages: from 64 bytes to half of the page, and two for
/// mirrors.
pub const SIZE_CLASSES: usize = 32;

/// The number of bins in the histogram of merges. The last bin begins at 2,048 records, more than
/// half of the largest page can hold.
pub const BATCH_BINS: usize = 12;

/// Counters and current sizes of a Bf-Tree's mini-pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BfStats {
    /// Lookups answered by a record in a mini-page, by kind of record.
    pub hits: KindCounts,
    /// Lookups that had to read the leaf, because there was no mini-page or it had no record of the
    /// key.
    pub misses: u64,
    /// Leaf reads by lookups, scans and writes. Reads for merges are not counted.
    pub leaf_reads: u64,
    /// Records that a lookup copied from the leaf to the mini-page.
    pub promotions: u64,
    /// Mini-pages that became mirrors of their leaves.
    pub mirrors: u64,
    /// Leaves that scans read from mirrors, without reading the page.
    pub mirror_scans: u64,
    /// Mini-pages moved from near the ring's head to its tail because they were used.
    pub copies_to_tail: u64,
    /// Mini-pages that the head reached and that went to the tail instead, because they had few
    /// changes, or none and were used.
    pub spared: u64,
    /// Merges of a mini-page's dirty records into its leaf, by cause.
    pub merges: MergeCauses,
    /// Records written to leaves by those merges.
    pub merged_records: u64,
    /// Dirty records that checkpoints logged again instead of merging them.
    pub relogged: u64,
    /// Merges by their number of records: bin `i` counts merges of `2^i` to `2^(i+1) - 1` records.
    pub batches: [u64; BATCH_BINS],
    /// Mini-pages evicted from the ring.
    pub evictions: u64,
    /// Evictions that failed because of a device failure.
    pub failed_evictions: u64,
    /// Allocations that found the ring full.
    pub full_returns: u64,
    /// The size classes in ascending order. Classes that this page size does not use have size 0.
    pub classes: [SizeClass; SIZE_CLASSES],
    /// Bytes of the ring used as padding before its physical end.
    pub padding_bytes: u64,
    /// Bytes of the ring that became tombstones, left behind by a mini-page that moved or was
    /// freed.
    pub tombstone_bytes: u64,
    /// The ring's size in bytes.
    pub ring_bytes: u64,
    /// Bytes of the ring that mini-pages occupy now, including their block headers.
    pub live_bytes: u64,
    /// Bytes of the ring on free lists now.
    pub listed_bytes: u64,
    /// Bytes between the ring's head and tail now: mini-pages, free blocks, padding and tombstones.
    pub span_bytes: u64,
    /// Whether the kernel accepted the advice to back the ring with huge pages. A ring smaller than
    /// 2 MiB does not ask for them.
    pub huge_pages: bool,
    /// Bytes of the mapping table.
    pub mapping_bytes: u64,
}

/// Counts by kind of record (Bf-Tree, Table 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// Insert records: written, and not in the leaf yet.
    pub insert: u64,
    /// Cache records: the same as in the leaf.
    pub cache: u64,
    /// Tombstone records: deleted, and perhaps still in the leaf.
    pub tombstone: u64,
    /// Phantom records: keys known to be absent from the leaf, either by a record that says so or
    /// because a mirror does not have them.
    pub phantom: u64,
}

impl KindCounts {
    /// Returns the sum of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.insert + self.cache + self.tombstone + self.phantom
    }
}

/// Counts of merges by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCauses {
    /// The mini-page was evicted at the ring's head.
    pub eviction: u64,
    /// The mini-page was used near the head, and its dirty records were merged before it moved to
    /// the tail.
    pub copy_on_access: u64,
    /// The mini-page had become too large, or the leaf might not have had room for further records.
    pub room: u64,
    /// A checkpoint began.
    pub checkpoint: u64,
    /// The leaf was merged with a neighbour.
    pub leaf_merge: u64,
}

impl MergeCauses {
    /// Returns the sum of all causes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.eviction + self.copy_on_access + self.room + self.checkpoint + self.leaf_merge
    }
}

/// Counters of the mini-pages of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeClass {
    /// Payload size in bytes.
    pub size: u64,
    /// Mini-pages allocated.
    pub allocated: u64,
    /// Mini-pages freed by the tree because they grew, moved or were merged away.
    pub freed: u64,
    /// Mini-pages evicted.
    pub evicted: u64,
    /// Mini-pages in the ring now.
    pub live: u64,
}

/// How the bytes of a Bf-Tree's ring are used at one moment. The parts add up to the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingUse {
    /// Keys and values of records that the leaf does not have yet.
    pub dirty: u64,
    /// The number of these records.
    pub dirty_records: u64,
    /// What these records take beside key and value.
    pub dirty_slots: u64,
    /// Records that are the same as in the leaf, or known to be absent from it.
    pub clean: u64,
    /// Headers of blocks and of mini-pages.
    pub headers: u64,
    /// Unused bytes in mini-pages.
    pub slack: u64,
    /// Blocks between head and tail without a mini-page: free ones, tombstones and padding.
    pub holes: u64,
    /// The room from the tail to the head.
    pub free: u64,
}

impl RingUse {
    /// Name and bytes of each part.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, u64); 7] {
        [
            ("dirty", self.dirty),
            ("dirty_slots", self.dirty_slots),
            ("clean", self.clean),
            ("headers", self.headers),
            ("slack", self.slack),
            ("holes", self.holes),
            ("free", self.free),
        ]
    }
}

impl BfStats {
    /// Returns the difference to `earlier` for all counters. Current sizes, such as
    /// [`BfStats::span_bytes`], are taken from `self`.
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
            spared: self.spared - earlier.spared,
            merges: MergeCauses {
                eviction: merges.eviction - merged.eviction,
                copy_on_access: merges.copy_on_access - merged.copy_on_access,
                room: merges.room - merged.room,
                checkpoint: merges.checkpoint - merged.checkpoint,
                leaf_merge: merges.leaf_merge - merged.leaf_merge,
            },
            merged_records: self.merged_records - earlier.merged_records,
            relogged: self.relogged - earlier.relogged,
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
