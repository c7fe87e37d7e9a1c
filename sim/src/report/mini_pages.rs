//! The part of the report that only a Bf-Tree has: the activity of mini-pages in the measured part,
//! and their state at its end.

use serde::Serialize;
use treering_engine::BfStats;

use super::numbers::{bytes, grouped};

/// Statistics of mini-pages; counts are of the measured part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MiniPagesReport {
    /// Share of lookups answered by a record of a mini-page.
    pub hit_ratio: f64,
    /// Lookups answered by a record of a mini-page.
    pub hits: HitsByKind,
    /// Lookups that read the leaf.
    pub misses: u64,
    /// Leaves read by lookups, scans and writes, in memory or not; leaves changed by merges are not
    /// counted.
    pub leaf_reads: u64,
    /// Records that lookups copied from the leaf into the mini-page.
    pub promotions: u64,
    /// Mini-pages that became mirrors of their leaves.
    pub mirrors: u64,
    /// Leaves that scans read from mirrors instead of the page.
    pub mirror_scans: u64,
    /// Mini-pages moved from near the head to the tail because they were used.
    pub copies_to_tail: u64,
    /// Mini-pages that the head reached and that went to the tail instead, as `--spare` asks for.
    pub spared: u64,
    /// Mini-pages evicted from the ring.
    pub evictions: u64,
    /// Merges of a mini-page's dirty records into its leaf.
    pub merges: u64,
    /// The merges by cause.
    pub merges_by: MergesByCause,
    /// Records that these merges wrote to leaves.
    pub merged_records: u64,
    /// Dirty records that checkpoints logged again instead of merging them.
    pub relogged: u64,
    /// Mean number of records in a merge; `null` without merges.
    pub records_per_merge: Option<f64>,
    /// Merges by number of records, in bins that end below the next power of two, up to the last
    /// bin that is not empty.
    pub merge_sizes: Vec<MergeBin>,
    /// Mini-pages by size, ascending.
    pub sizes: Vec<SizeBin>,
    /// The ring buffer that holds the mini-pages.
    pub ring: RingReport,
    /// Bytes of the mapping table, which is not part of the cache.
    pub mapping_bytes: u64,
}

/// Lookups by the kind of record that answered them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HitsByKind {
    /// Written, and not yet in the leaf.
    pub insert: u64,
    /// Equal to the record in the leaf.
    pub cache: u64,
    /// Deleted, and perhaps still in the leaf.
    pub tombstone: u64,
    /// Known to be absent from the leaf.
    pub phantom: u64,
}

impl HitsByKind {
    /// Name and count, in report order.
    pub fn iter(&self) -> [(&'static str, u64); 4] {
        [
            ("insert", self.insert),
            ("cache", self.cache),
            ("tombstone", self.tombstone),
            ("phantom", self.phantom),
        ]
    }

    /// The sum of all kinds.
    pub fn total(&self) -> u64 {
        self.iter().into_iter().map(|(_, n)| n).sum()
    }
}

/// Merges by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MergesByCause {
    /// The mini-page was evicted at the ring's head.
    pub eviction: u64,
    /// It was used near the head and moved to the tail, leaving dirty records behind, which were
    /// merged.
    pub copy_on_access: u64,
    /// It had become too large, or its leaf might not have had room for further records.
    pub room: u64,
    /// A checkpoint began.
    pub checkpoint: u64,
    /// Its leaf was merged with a neighbour.
    pub leaf_merge: u64,
}

impl MergesByCause {
    /// Cause (as part of a sentence) and count, in report order.
    pub fn iter(&self) -> [(&'static str, u64); 5] {
        [
            ("evicted", self.eviction),
            ("used near the head", self.copy_on_access),
            ("short of room", self.room),
            ("for a checkpoint", self.checkpoint),
            ("before a leaf merge", self.leaf_merge),
        ]
    }
}

/// Merges of `least` to `most` records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MergeBin {
    /// The lower bound, a power of two.
    pub least: u64,
    /// The upper bound, one below the next power of two.
    pub most: u64,
    /// Number of merges.
    pub merges: u64,
}

impl MergeBin {
    /// `1`, `2-3`, `4-7`.
    pub(super) fn name(&self) -> String {
        if self.least == self.most {
            self.least.to_string()
        } else {
            format!("{}-{}", self.least, self.most)
        }
    }
}

/// Mini-pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeBin {
    /// Size in bytes, without the block's header.
    pub bytes: u64,
    /// Mini-pages that were allocated at this size or grew to it in the measured part.
    pub allocated: u64,
    /// Mini-pages that grew, moved or were dropped in the measured part.
    pub freed: u64,
    /// Mini-pages evicted in the measured part.
    pub evicted: u64,
    /// Mini-pages in the ring at the end.
    pub live: u64,
}

/// The ring buffer: counts are of the measured part, bytes in use are those at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RingReport {
    /// Its capacity.
    pub capacity_bytes: u64,
    /// Bytes from head to tail: mini-pages, free blocks, padding and tombstones.
    pub used_bytes: u64,
    /// Bytes of mini-pages, including block headers.
    pub live_bytes: u64,
    /// Bytes of blocks on free lists.
    pub free_list_bytes: u64,
    /// Bytes of padding written before the physical end in the measured part.
    pub padding_bytes: u64,
    /// Bytes of tombstones that moved or dropped mini-pages left in the measured part.
    pub tombstone_bytes: u64,
    /// Allocations that found the ring full.
    pub full_returns: u64,
    /// Evictions that failed because of a device error.
    pub failed_evictions: u64,
    /// Whether the kernel accepted the advice to use huge pages; a ring below 2 MiB does not ask.
    pub huge_pages: bool,
}

impl MiniPagesReport {
    /// Builds the report from the counters of the measured part.
    pub(crate) fn new(stats: &BfStats) -> MiniPagesReport {
        let hits = HitsByKind {
            insert: stats.hits.insert,
            cache: stats.hits.cache,
            tombstone: stats.hits.tombstone,
            phantom: stats.hits.phantom,
        };
        let lookups = hits.total() + stats.misses;
        let merges = stats.merges.total();
        MiniPagesReport {
            hit_ratio: if lookups == 0 {
                0.0
            } else {
                hits.total() as f64 / lookups as f64
            },
            hits,
            misses: stats.misses,
            leaf_reads: stats.leaf_reads,
            promotions: stats.promotions,
            mirrors: stats.mirrors,
            mirror_scans: stats.mirror_scans,
            copies_to_tail: stats.copies_to_tail,
            spared: stats.spared,
            evictions: stats.evictions,
            merges,
            merges_by: MergesByCause {
                eviction: stats.merges.eviction,
                copy_on_access: stats.merges.copy_on_access,
                room: stats.merges.room,
                checkpoint: stats.merges.checkpoint,
                leaf_merge: stats.merges.leaf_merge,
            },
            merged_records: stats.merged_records,
            relogged: stats.relogged,
            records_per_merge: (merges > 0).then(|| stats.merged_records as f64 / merges as f64),
            merge_sizes: merge_sizes(&stats.batches),
            sizes: sizes(stats),
            ring: RingReport {
                capacity_bytes: stats.ring_bytes,
                used_bytes: stats.span_bytes,
                live_bytes: stats.live_bytes,
                free_list_bytes: stats.listed_bytes,
                padding_bytes: stats.padding_bytes,
                tombstone_bytes: stats.tombstone_bytes,
                full_returns: stats.full_returns,
                failed_evictions: stats.failed_evictions,
                huge_pages: stats.huge_pages,
            },
            mapping_bytes: stats.mapping_bytes,
        }
    }
}

impl MiniPagesReport {
    /// Names and values, as shown by text and HTML.
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let list = |parts: Vec<String>| match parts.is_empty() {
            true => "none".to_string(),
            false => parts.join(", "),
        };
        let hits = self.hits.iter();
        let hits = hits.map(|(name, n)| format!("{} {name}", grouped(n)));
        let merges = self.merge_sizes.iter();
        let merges = merges.map(|bin| format!("{}: {}", bin.name(), grouped(bin.merges)));
        let causes = self.merges_by.iter().into_iter();
        let causes = causes.filter(|(_, n)| *n > 0);
        let causes = causes.map(|(why, n)| format!("{why}: {}", grouped(n)));
        let live = self.sizes.iter().filter(|size| size.live > 0);
        let live = live.map(|s| format!("{}: {}", bytes(s.bytes as f64), grouped(s.live)));
        let ring = &self.ring;
        let mean = self
            .records_per_merge
            .map_or("-".into(), |mean| format!("{mean:.1}"));
        vec![
            (
                "lookups answered",
                format!(
                    "{:.1} %, {}; {} by the leaf",
                    self.hit_ratio * 100.0,
                    hits.join(", "),
                    grouped(self.misses)
                ),
            ),
            (
                "promotions",
                format!(
                    "{} records by lookups; {} leaves read by all operations",
                    grouped(self.promotions),
                    grouped(self.leaf_reads)
                ),
            ),
            (
                "merges",
                format!(
                    "{} of {} records, {mean} each",
                    grouped(self.merges),
                    grouped(self.merged_records)
                ),
            ),
            (
                "logged again",
                format!("{} records by checkpoints", grouped(self.relogged)),
            ),
            ("causes of merges", list(causes.collect())),
            ("records per merge", list(merges.collect())),
            (
                "ring",
                format!(
                    "{} of {} in use, {} mini-pages, {} free; huge pages: {}",
                    bytes(ring.used_bytes as f64),
                    bytes(ring.capacity_bytes as f64),
                    bytes(ring.live_bytes as f64),
                    bytes(ring.free_list_bytes as f64),
                    if ring.huge_pages { "yes" } else { "no" }
                ),
            ),
            (
                "leaf mirrors",
                format!(
                    "{} made; scans read {} leaves from one",
                    grouped(self.mirrors),
                    grouped(self.mirror_scans)
                ),
            ),
            (
                "head of the ring",
                format!(
                    "{} evicted, {} spared, {} copied to the tail, {} of tombstones, {} of padding",
                    grouped(self.evictions),
                    grouped(self.spared),
                    grouped(self.copies_to_tail),
                    bytes(ring.tombstone_bytes as f64),
                    bytes(ring.padding_bytes as f64)
                ),
            ),
            ("sizes at the end", list(live.collect())),
        ]
    }
}

fn merge_sizes(batches: &[u64]) -> Vec<MergeBin> {
    let bins = batches
        .iter()
        .rposition(|n| *n > 0)
        .map_or(0, |last| last + 1);
    (batches[..bins].iter().enumerate())
        .map(|(i, merges)| MergeBin {
            least: 1 << i,
            most: (2 << i) - 1,
            merges: *merges,
        })
        .collect()
}

fn sizes(stats: &BfStats) -> Vec<SizeBin> {
    (stats.classes.iter())
        .filter(|class| class.size > 0)
        .map(|class| SizeBin {
            bytes: class.size,
            allocated: class.allocated,
            freed: class.freed,
            evicted: class.evicted,
            live: class.live,
        })
        .collect()
}
