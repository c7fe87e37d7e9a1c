//! What a Bf-Tree counts.

use crate::ring::{ClassStats, Ring};
use crate::stats::{BATCH_BINS, BfStats, KindCounts, MergeCauses, SIZE_CLASSES, SizeClass};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Why a mini-page is merged, in the order of [`MergeCauses`].
#[derive(Clone, Copy)]
pub(super) enum Cause {
    Eviction,
    CopyOnAccess,
    Room,
    Checkpoint,
    LeafMerge,
}

/// See [`BfStats`], which says what each of them means.
#[derive(Default)]
pub(super) struct Counters {
    /// By [`Kind`](crate::mini::Kind).
    pub(super) hits: [AtomicU64; 4],
    pub(super) misses: AtomicU64,
    pub(super) leaf_reads: AtomicU64,
    pub(super) promotions: AtomicU64,
    pub(super) mirrors: AtomicU64,
    pub(super) mirror_scans: AtomicU64,
    pub(super) copies_to_tail: AtomicU64,
    merges: [AtomicU64; 5],
    merged_records: AtomicU64,
    batches: [AtomicU64; BATCH_BINS],
}

impl Counters {
    #[inline]
    pub(super) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// A merge of so many records, at least one.
    pub(super) fn merged(&self, cause: Cause, records: u64) {
        Counters::add(&self.merges[cause as usize], 1);
        Counters::add(&self.merged_records, records);
        let bin = records.max(1).ilog2() as usize;
        Counters::add(&self.batches[bin.min(BATCH_BINS - 1)], 1);
    }

    pub(super) fn stats(&self, ring: &Ring) -> BfStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mapping_bytes = ring.table_bytes() as u64;
        let ring = ring.stats();
        let [insert, cache, tombstone, phantom] = self.hits.each_ref().map(read);
        let merges = self.merges.each_ref().map(read);
        let [eviction, copy_on_access, room, checkpoint, leaf_merge] = merges;
        let batches = self.batches.each_ref().map(read);
        let mut classes = [SizeClass::default(); SIZE_CLASSES];
        for (class, found) in classes.iter_mut().zip(&ring.classes) {
            *class = size_class(found);
        }
        BfStats {
            hits: KindCounts {
                insert,
                cache,
                tombstone,
                phantom,
            },
            misses: read(&self.misses),
            leaf_reads: read(&self.leaf_reads),
            promotions: read(&self.promotions),
            mirrors: read(&self.mirrors),
            mirror_scans: read(&self.mirror_scans),
            copies_to_tail: read(&self.copies_to_tail),
            merges: MergeCauses {
                eviction,
                copy_on_access,
                room,
                checkpoint,
                leaf_merge,
            },
            merged_records: read(&self.merged_records),
            batches,
            evictions: ring.evictions,
            failed_evictions: ring.failed_evictions,
            full_returns: ring.full_returns,
            classes,
            padding_bytes: ring.padding_bytes,
            tombstone_bytes: ring.tombstone_bytes,
            ring_bytes: ring.capacity_bytes,
            live_bytes: ring.live_bytes(),
            listed_bytes: ring.listed_bytes,
            span_bytes: ring.span_bytes,
            huge_pages: ring.huge_pages,
            mapping_bytes,
        }
    }
}

fn size_class(found: &ClassStats) -> SizeClass {
    SizeClass {
        size: found.size as u64,
        allocated: found.allocated(),
        freed: found.freed,
        evicted: found.evicted,
        live: found.live(),
    }
}
