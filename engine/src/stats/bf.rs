//! Counters of the mini-pages of a Bf-Tree.

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
