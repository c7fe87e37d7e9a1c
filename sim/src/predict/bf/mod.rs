//! Predicts mini-pages: what they answer from their ring, and when their leaves are written
//! (Bf-Tree §3 to §5).
//!
//! A record stays in a mini-page as long as visits to its neighbours keep the mini-page away from
//! the head. A mini-page moves when its block cannot hold another record: to the tail, or into a
//! reused block half-way to the head. If it is used near the head, it is copied without the records
//! that were not used since (§5.5). If one of these is dirty, the whole mini-page is merged.
//!
//! Record sets, sizes, ages and the reuse of blocks depend on one another, and no closed form is
//! known. So this module simulates the mechanism, a predictor's last resort. The state consists of
//! leaves, record sets and addresses, without keys, bytes, pages, log or device. The visits are
//! drawn from the trace's counts in a random order that is the same in every run (`visits`). Writes
//! of log and drive follow from the result as they do for a page cache ([`crate::predict::log`],
//! [`crate::predict::device`]).
//!
//! | module | mechanism | paper |
//! |---|---|---|
//! | `ring` | head, tail, free lists, copy-on-access region, padding | §4.1-§4.3 |
//! | `pages` | record sets, dirty and reference bits | §3.1, §5.5 |
//! | `frames` | the write buffer of leaves below, and the WAL rule | §3, Figure 3 |
//! | `visits` | independent visits with the trace's counts | |
//! | `model` | promotion, growth, copies to the tail, merges and their causes | §5 |
//! | `shuffled` | the visits in random order, and checkpoints | |
//!
//! *Ignored by `shuffled`*: phantoms and tombstones (a get of a key that was never put counts as a
//! hit in the leaf). Leaves have their final size: merges and splits caused by puts of new keys are
//! not simulated, so it predicts too few merges for a growing tree. Mirrors answer no scans; each
//! scan reads its leaves.

mod below;
mod frames;
mod model;
mod moves;
mod pages;
mod promotion;
mod ring;
mod shuffled;
mod visits;

use serde::Serialize;
use treering_engine::BfShape;
use treering_traces::OpKind;

use super::cache::CacheShape;
use super::leaf::LeafLevel;
use super::workload::Workload;
pub(super) use below::Below;
pub(super) use model::{Counts as MiniPageCounts, Key, Model as MiniPageModel};
pub(super) use pages::Record;

use frames::Traffic;
use model::{Cause, Counts};
use shuffled::Run;
use visits::Visits;

/// Maximum number of simulated visits. Longer traces are simulated for a sample of the leaves, with
/// a proportionally smaller ring.
const MOST_VISITS: u64 = 8_000_000;

/// Minimum size of the simulated ring.
const LEAST_RING: u64 = 4 << 20;

/// Number of random orders in which a short trace is simulated; their mean varies less.
const MOST_ORDERS: u64 = 4;

/// Merges by cause (§5.5), per measured operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MergeRates {
    /// The mini-page was evicted at the head.
    pub eviction: f64,
    /// The mini-page was copied to the tail and left dirty records behind.
    pub copy_on_access: f64,
    /// The mini-page was too large.
    pub room: f64,
    /// A checkpoint began.
    pub checkpoint: f64,
}

impl MergeRates {
    /// The merges of all causes.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.eviction + self.copy_on_access + self.room + self.checkpoint
    }
}

/// Predicted counts of mini-pages, per measured operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MiniPagesPrediction {
    /// Share of gets that a mini-page answers.
    pub hit_ratio: f64,
    /// Gets answered by a record that was written and not merged into the leaf yet.
    pub insert_hits: f64,
    /// Gets answered by a record that is the same in the leaf.
    pub cache_hits: f64,
    /// Leaves read by gets, scans and puts.
    pub leaf_reads: f64,
    /// Leaves read by checkpoints that log records again.
    pub relog_reads: f64,
    /// Records that gets copied to a mini-page.
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
    /// What these counts of the measured part say, each counted for `weight`; without page reads
    /// and writes.
    pub(super) fn of(workload: &Workload, counts: &Counts, weight: f64) -> MiniPagesPrediction {
        let ops = (workload.measured.all_ops() as f64).max(1.0);
        let gets = (workload.measured.of(OpKind::Get) as f64).max(1.0);
        let each = |count: f64| count * weight / ops;
        let merges = |cause: Cause| each(counts.merges[cause as usize]);
        MiniPagesPrediction {
            hit_ratio: 1.0 - counts.misses * weight / gets,
            insert_hits: each(counts.insert_hits),
            cache_hits: each(counts.cache_hits),
            leaf_reads: each(counts.leaf_reads),
            relog_reads: each(counts.relog_reads),
            promotions: each(counts.promotions),
            copies_to_tail: each(counts.copies_to_tail),
            evictions: each(counts.evictions),
            merges: MergeRates {
                eviction: merges(Cause::Eviction),
                copy_on_access: merges(Cause::CopyOnAccess),
                room: merges(Cause::Room),
                checkpoint: merges(Cause::Checkpoint),
            },
            merged_records: each(counts.merged_records),
            page_reads: 0.0,
            page_writes: 0.0,
        }
    }

    /// Share of the visits to mini-pages and leaves that memory answers.
    pub(super) fn memory_hit_ratio(&self) -> f64 {
        let of_leaves = self.leaf_reads + self.relog_reads + self.merges.total();
        let visits = self.insert_hits + self.cache_hits + of_leaves;
        if visits == 0.0 {
            return 1.0;
        }
        (1.0 - self.page_reads / visits).clamp(0.0, 1.0)
    }

    /// Mean number of records in a merge.
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

/// The result of the simulation: counts of the measured part for the whole tree.
pub(super) struct Outcome {
    pub(super) mini_pages: MiniPagesPrediction,
    pub(super) leaves: Vec<LeafVisits>,
    /// Number of the tree's leaves that each of `leaves` represents.
    pub(super) weight: f64,
    /// Pages written.
    pub(super) pages_written: f64,
    /// Log flushes caused by page writes.
    pub(super) flushes: f64,
    /// Log positions that records take which checkpoints log again.
    pub(super) relogged: f64,
}

impl Outcome {
    /// Share of the visits to mini-pages and leaves that memory answers.
    pub(super) fn hit_ratio(&self) -> f64 {
        self.mini_pages.memory_hit_ratio()
    }
}

/// When checkpoints begin, in log bytes: every `every` bytes. A write of the measured part adds
/// `measured` bytes to the log, a write of the warm-up other than a first put adds `again`.
/// `at_start` is the log's length at the beginning of the measured part.
#[derive(Clone, Copy)]
pub(super) struct LogPace {
    pub(super) every: f64,
    pub(super) again: f64,
    pub(super) measured: f64,
    pub(super) at_start: f64,
    /// The log is flushed when this many bytes are waiting.
    pub(super) buffer: f64,
}

impl LogPace {
    fn checkpoints(&self, log: f64) -> f64 {
        (log / self.every).floor()
    }
}

/// The settings of the engine and the growth of the log.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) shape: &'a BfShape,
    pub(super) cache: CacheShape,
    pub(super) page_size: usize,
    pub(super) pace: LogPace,
}

/// Simulates the visits of `workload` to `level`; a short trace in several random orders.
pub(super) fn play(workload: &Workload, level: &LeafLevel, setting: Setting<'_>) -> Outcome {
    let mut visits = Visits::of(workload, level, setting);
    let orders = (MOST_VISITS / visits.len().max(1)).clamp(1, MOST_ORDERS);
    let runs: Vec<Run> = (0..orders)
        .map(|order| {
            visits.shuffle(order);
            shuffled::play(&visits, setting)
        })
        .collect();
    outcome(workload, &visits, &runs)
}

fn outcome(workload: &Workload, visits: &Visits, runs: &[Run]) -> Outcome {
    let ops = (workload.measured.all_ops() as f64).max(1.0);
    let mut sum = Counts::default();
    runs.iter().for_each(|run| sum.add(&run.counts));
    let part = visits.weight / runs.len() as f64;
    let mean =
        |count: fn(&Traffic) -> f64| runs.iter().map(|run| count(&run.traffic)).sum::<f64>() * part;
    let mini_pages = MiniPagesPrediction {
        page_reads: mean(|t| t.reads) / ops,
        page_writes: mean(|t| t.writes) / ops,
        ..MiniPagesPrediction::of(workload, &sum, part)
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
        flushes: mean(|t| t.flushes) / visits.weight,
        relogged: sum.relogged / runs.len() as f64,
        mini_pages,
        leaves,
        weight: visits.weight,
    }
}
