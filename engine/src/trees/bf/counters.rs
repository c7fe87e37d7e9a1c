//! What a Bf-Tree counts.

use crate::ring::{ClassStats, Ring};
use crate::stats::{BATCH_BINS, BfStats, KindCounts, SIZE_CLASSES, SizeClass};
use crate::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// See [`BfStats`], which says what each of them means.
#[derive(Default)]
pub(super) struct Counters {
    /// By [`Kind`](crate::mini::Kind).
    pub(super) hits: [Counter; 4],
    pub(super) misses: Counter,
    pub(super) leaf_reads: Counter,
    pub(super) promotions: Counter,
    pub(super) copies_to_tail: Counter,
    merged_records: Counter,
    batches: [Counter; BATCH_BINS],
}

impl Counters {
    /// A merge of so many records, at least one.
    pub(super) fn merged(&self, records: u64) {
        self.merged_records.add(records);
        let bin = records.max(1).ilog2() as usize;
        self.batches[bin.min(BATCH_BINS - 1)].add(1);
    }

    pub(super) fn stats(&self, ring: &Ring) -> BfStats {
        let mapping_bytes = ring.table_bytes() as u64;
        let ring = ring.stats();
        let [insert, cache, tombstone, phantom] = self.hits.each_ref().map(Counter::get);
        let batches = self.batches.each_ref().map(Counter::get);
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
            misses: self.misses.get(),
            leaf_reads: self.leaf_reads.get(),
            promotions: self.promotions.get(),
            copies_to_tail: self.copies_to_tail.get(),
            merges: batches.iter().sum(),
            merged_records: self.merged_records.get(),
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
