//! Counters of a Bf-Tree.

use crate::mini::Kind;
pub(super) use crate::mini::events::Cause;
use crate::ring::{ClassStats, Ring};
use crate::stats::{BATCH_BINS, BfStats, KindCounts, MergeCauses, SIZE_CLASSES, SizeClass};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Number of copies of the lookup counters, each used by some of the threads.
const SHARDS: usize = 8;

/// Counters of lookups. There are several copies on separate cache lines, because these counters
/// would otherwise be the one thing that all threads write.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Lookups {
    /// Hits by [`Kind`](crate::mini::Kind).
    pub(super) hits: [AtomicU64; 4],
    pub(super) misses: AtomicU64,
}

thread_local! {
    static SHARD: usize = {
        // A plain atomic is enough: any shard will do.
        static THREADS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        THREADS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % SHARDS
    };
}

/// The counters behind [`BfStats`], which documents them.
#[derive(Default)]
pub(super) struct Counters {
    lookups: [Lookups; SHARDS],
    pub(super) leaf_reads: AtomicU64,
    pub(super) promotions: AtomicU64,
    pub(super) mirrors: AtomicU64,
    pub(super) mirror_scans: AtomicU64,
    pub(super) copies_to_tail: AtomicU64,
    pub(super) spared: AtomicU64,
    merges: [AtomicU64; 5],
    merged_records: AtomicU64,
    pub(super) relogged: AtomicU64,
    batches: [AtomicU64; BATCH_BINS],
}

impl Counters {
    #[inline]
    pub(super) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// This thread's copy of the lookup counters.
    #[inline]
    pub(super) fn lookups(&self) -> &Lookups {
        &self.lookups[SHARD.with(|shard| *shard)]
    }

    /// Lookups that mini-pages answered with what the leaf has as well.
    pub(super) fn clean_hits(&self) -> u64 {
        let clean = [Kind::Cache, Kind::Phantom];
        let of = |all: &Lookups| clean.map(|kind| all.hits[kind as usize].load(Ordering::Relaxed));
        self.lookups.iter().flat_map(of).sum()
    }

    /// Merges for any cause.
    pub(super) fn all_merges(&self) -> u64 {
        let merges = self.merges.iter();
        merges.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Counts a merge of `records` records, at least one. The causes are in the order of
    /// [`MergeCauses`].
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
        let sum = |counter: fn(&Lookups) -> &AtomicU64| {
            self.lookups.iter().map(|all| read(counter(all))).sum()
        };
        let hits: [fn(&Lookups) -> &AtomicU64; 4] = [
            |all| &all.hits[0],
            |all| &all.hits[1],
            |all| &all.hits[2],
            |all| &all.hits[3],
        ];
        let [insert, cache, tombstone, phantom] = hits.map(sum);
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
            misses: sum(|all| &all.misses),
            leaf_reads: read(&self.leaf_reads),
            promotions: read(&self.promotions),
            mirrors: read(&self.mirrors),
            mirror_scans: read(&self.mirror_scans),
            copies_to_tail: read(&self.copies_to_tail),
            spared: read(&self.spared),
            merges: MergeCauses {
                eviction,
                copy_on_access,
                room,
                checkpoint,
                leaf_merge,
            },
            merged_records: read(&self.merged_records),
            relogged: read(&self.relogged),
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
