//! Mini-pages in their ring: what they answer, and when their leaves are written (Bf-Tree §3 to
//! §5).
//!
//! A record in a mini-page lives as long as its neighbours' visits keep the mini-page from the
//! head; a mini-page moves when a record comes in that its block cannot hold, to the tail or into a
//! block that another one has left half-way to the head; used near the head it is copied without
//! what was not used since (§5.5); and what is left behind decides whether everything is merged.
//! Record sets, sizes, ages and the reuse of blocks depend on one another, and no closed form is
//! known. So this module does what is the last resort of a predictor: it plays the mechanism, as a
//! chain of states over leaves, sets of records and addresses, without keys, bytes, pages, log or
//! device, for visits that are drawn from the trace's counts in an order of their own (`visits`),
//! the same in each run. Log and drive are computed from what comes out as they are for a page
//! cache ([`crate::predict::log`], [`crate::predict::device`]).
//!
//! | module | mechanism | paper |
//! |---|---|---|
//! | `ring` | head, tail, free lists, copy-on-access region, padding | §4.1-§4.3 |
//! | `pages` | record sets, dirty and reference bits | §3.1, §5.5 |
//! | `frames` | the write buffer of leaves below, and the WAL rule | §3, Figure 3 |
//! | `visits` | independent visits, as often as counted | |
//! | `model` | promotion, growth, copies to the tail, merges and their causes | §5.1, §5.4, §5.5, §5.7 |
//!
//! *Ignored*: phantoms and tombstones (a get of a key that was never put is one of a key that is
//! there). Leaves are as they are in the end: what a put of a new key merges and splits on its way
//! is not played, so of a tree that grows too few merges are predicted. Mirrors answer no scans:
//! each reads its leaves.

mod frames;
mod model;
mod pages;
mod ring;
mod visits;

use serde::Serialize;
use treering_engine::BfShape;
use treering_traces::OpKind;

use super::cache::CacheShape;
use super::leaf::LeafLevel;
use super::workload::Workload;
use model::{Cause, Counts, Model};
use visits::Visits;

/// Most visits that are looked at; of longer traces only some leaves are, over a ring that is
/// smaller by as much.
const MOST_VISITS: u64 = 8_000_000;

/// A ring is not made smaller than this.
const LEAST_RING: u64 = 4 << 20;

/// Orders in which a short trace is looked at: their mean is steadier than each.
const MOST_ORDERS: u64 = 4;

/// Merges by what made them necessary (§5.5), per measured operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MergeRates {
    /// Evicted at the head.
    pub eviction: f64,
    /// Copied to the tail, with dirty records left behind.
    pub copy_on_access: f64,
    /// Too large.
    pub room: f64,
    /// A checkpoint began.
    pub checkpoint: f64,
}

impl MergeRates {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.eviction + self.copy_on_access + self.room + self.checkpoint
    }
}

/// What mini-pages do. Counts are per measured operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MiniPagesPrediction {
    /// Share of gets that a record of a mini-page answers.
    pub hit_ratio: f64,
    /// Gets answered by a record that was written and is not in the leaf yet.
    pub insert_hits: f64,
    /// Gets answered by a record as the leaf has it.
    pub cache_hits: f64,
    /// Leaves read by gets, scans and puts.
    pub leaf_reads: f64,
    /// Records that a get left in a mini-page.
    pub promotions: f64,
    /// Mini-pages copied to the tail.
    pub copies_to_tail: f64,
    /// Mini-pages evicted at the head.
    pub evictions: f64,
    /// Merges into leaves, by cause.
    pub merges: MergeRates,
    /// Records merged.
    pub merged_records: f64,
    /// Pages read from the device.
    pub page_reads: f64,
    /// Pages written to the device.
    pub page_writes: f64,
}

impl MiniPagesPrediction {
    /// Mean records of a merge.
    #[must_use]
    pub fn records_per_merge(&self) -> f64 {
        self.merged_records / self.merges.total().max(1e-300)
    }
}

/// Measured visits of one leaf.
#[derive(Clone, Copy, Default)]
pub(super) struct LeafVisits {
    /// Looked at, for a get, a scan or a put.
    pub(super) reads: f64,
    /// Merged into.
    pub(super) merges: f64,
}

/// What came of it: counts of the measured part, in the whole tree.
pub(super) struct Outcome {
    pub(super) mini_pages: MiniPagesPrediction,
    pub(super) leaves: Vec<LeafVisits>,
    /// Leaves of the tree that each of `leaves` stands for.
    pub(super) weight: f64,
    /// Pages written.
    pub(super) pages_written: f64,
    /// Log flushes because pages were written.
    pub(super) flushes: f64,
}

impl Outcome {
    /// Share of visits, to mini-pages and to leaves, that are answered from memory.
    pub(super) fn hit_ratio(&self) -> f64 {
        let m = &self.mini_pages;
        let visits = m.insert_hits + m.cache_hits + m.leaf_reads + m.merges.total();
        if visits == 0.0 {
            return 1.0;
        }
        (1.0 - m.page_reads / visits).clamp(0.0, 1.0)
    }
}

/// When checkpoints come: each `every` log bytes. `measured` and `again` are what a write of the
/// measured part adds to the log, and one of the warm-up that is no first put; `at_start` is the
/// log's length when the measured part begins.
#[derive(Clone, Copy)]
pub(super) struct LogPace {
    pub(super) every: f64,
    pub(super) again: f64,
    pub(super) measured: f64,
    pub(super) at_start: f64,
    /// The log is flushed when so many bytes wait.
    pub(super) buffer: f64,
}

impl LogPace {
    fn checkpoints(&self, log: f64) -> f64 {
        (log / self.every).floor()
    }
}

/// What the engine is told, and what the log does.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) shape: &'a BfShape,
    pub(super) cache: CacheShape,
    pub(super) page_size: usize,
    pub(super) pace: LogPace,
}

/// Plays the visits of `workload` to `level`, short traces several times, in as many orders.
pub(super) fn play(workload: &Workload, level: &LeafLevel, setting: Setting<'_>) -> Outcome {
    let mut visits = Visits::of(workload, level, setting);
    let orders = (MOST_VISITS / visits.len().max(1)).clamp(1, MOST_ORDERS);
    let runs: Vec<Counts> = (0..orders)
        .map(|order| {
            visits.shuffle(order);
            Model::new(&visits, setting).play(&visits)
        })
        .collect();
    outcome(workload, &visits, &runs)
}

fn outcome(workload: &Workload, visits: &Visits, runs: &[Counts]) -> Outcome {
    let ops = (workload.measured.all_ops() as f64).max(1.0);
    let gets = (workload.measured.of(OpKind::Get) as f64).max(1.0);
    let mean = |count: fn(&Counts) -> f64| {
        runs.iter().map(count).sum::<f64>() * visits.weight / runs.len() as f64
    };
    let each = |count: fn(&Counts) -> f64| mean(count) / ops;
    let mini_pages = MiniPagesPrediction {
        hit_ratio: 1.0 - mean(|c| c.misses) / gets,
        insert_hits: each(|c| c.insert_hits),
        cache_hits: each(|c| c.cache_hits),
        leaf_reads: each(|c| c.leaf_reads),
        promotions: each(|c| c.promotions),
        copies_to_tail: each(|c| c.copies_to_tail),
        evictions: each(|c| c.evictions),
        merges: MergeRates {
            eviction: each(|c| c.merges[Cause::Eviction as usize]),
            copy_on_access: each(|c| c.merges[Cause::CopyOnAccess as usize]),
            room: each(|c| c.merges[Cause::Room as usize]),
            checkpoint: each(|c| c.merges[Cause::Checkpoint as usize]),
        },
        merged_records: each(|c| c.merged_records),
        page_reads: each(|c| c.traffic.reads),
        page_writes: each(|c| c.traffic.writes),
    };
    let mut leaves = vec![LeafVisits::default(); visits.leaves.len()];
    for run in runs {
        for (sum, leaf) in leaves.iter_mut().zip(&run.leaves) {
            sum.reads += leaf.reads / runs.len() as f64;
            sum.merges += leaf.merges / runs.len() as f64;
        }
    }
    Outcome {
        pages_written: mini_pages.page_writes * ops,
        flushes: mean(|c| c.traffic.flushes) / visits.weight,
        mini_pages,
        leaves,
        weight: visits.weight,
    }
}
