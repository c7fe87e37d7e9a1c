//! One point of a figure: a store is loaded, warmed up until it is steady, and measured.

use treering_engine::{BfOptions, Durability, Options, Promote, TreeKind};
use treering_sim::replay::{Part, ReplayError, Rig};
use treering_traces::generate::{GenParams, ValueSize, Workload, build};
use treering_traces::{Op, OpKind, OpSource, TraceError};

/// Number of records (200 M in the paper).
pub(crate) const RECORDS: u64 = 500_000;

/// Bytes of a record: key and value have 16 bytes each.
pub(crate) const RECORD_BYTES: u64 = 32;

/// Cache size as a share of the records' bytes; in the paper 2 GB for 200 M records of 32 bytes.
pub(crate) const CACHE: f64 = 0.3125;

/// Zipf exponent (§6.1).
pub(crate) const THETA: f64 = 0.9;

/// Number of records that a scan reads (CLAIMS BF-31).
const SCAN: u32 = 32;

/// Seed of everything random.
const SEED: u64 = 0;

/// Number of measured operations, and of operations in each window of the warm-up.
const WINDOW: u64 = 400_000;
const MIN_WINDOWS: usize = 4;
const MAX_WINDOWS: usize = 16;

/// Kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    Reads,
    Updates,
    /// Half reads, half updates: the paper's default (§6.1).
    Half,
    Scans,
}

/// The size of the log, which determines how often checkpoints happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// So large that no checkpoint happens: the paper measures without log and checkpoints (§6.1).
    Endless,
    /// As in `treering replay`: half of the data set, with a checkpoint for each half of the log.
    Fitted,
}

/// The parameters of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) tree: TreeKind,
    pub(crate) records: u64,
    /// Cache size as a share of the records' bytes.
    pub(crate) cache: f64,
    pub(crate) theta: f64,
    pub(crate) mix: Mix,
    pub(crate) log: Log,
}

/// A cell's result.
pub(crate) struct Measured {
    pub(crate) part: Part,
    /// Mean number of records in a leaf after the load.
    pub(crate) records_per_leaf: f64,
}

impl Cell {
    pub(crate) fn new(tree: TreeKind, mix: Mix) -> Cell {
        Cell {
            tree,
            records: RECORDS,
            cache: CACHE,
            theta: THETA,
            mix,
            log: Log::Endless,
        }
    }

    fn options(&self) -> Options {
        let data = self.records * RECORD_BYTES;
        let (log_bytes, checkpoint_log_bytes) = match self.log {
            Log::Endless => (2 << 30, 1 << 30),
            Log::Fitted => (data / 2, data / 4),
        };
        Options {
            tree: self.tree,
            cache_bytes: (data as f64 * self.cache) as u64,
            durability: Durability::Deferred,
            log_bytes,
            checkpoint_log_bytes,
            ..Options::default()
        }
    }

    /// Creates an empty store and its source of operations: all records in random order, then
    /// endless operations.
    pub(crate) fn rig(&self) -> Result<(Rig, Box<dyn OpSource + Send>), ReplayError> {
        let (_, profile) = treering_sim::ssd::builtin("ssd").expect("a built-in profile");
        // Twice the leaves that a random load makes.
        let pages = self.records / 30;
        let rig = Rig::new(&profile, &self.options(), pages, SEED)?;
        let (_, source) = build(&self.params(Workload::Zipf))?;
        Ok((rig, source))
    }

    /// The parameters of the trace. Another workload gives the same records other popularity ranks.
    pub(crate) fn params(&self, workload: Workload) -> GenParams {
        let (writes, scans) = match self.mix {
            Mix::Reads => (0.0, 0.0),
            Mix::Updates => (1.0, 0.0),
            Mix::Half => (0.5, 0.0),
            Mix::Scans => (0.0, 1.0),
        };
        GenParams {
            ops: Some(1 << 32),
            theta: Some(self.theta),
            writes: Some(writes),
            scans: (self.mix == Mix::Scans).then_some(scans),
            key_size: Some(16),
            value_size: Some(ValueSize::fixed(16)),
            seed: SEED,
            ..GenParams::new(workload, self.records)
        }
    }

    /// Loads the store, warms it up until it is steady, and measures.
    pub(crate) fn measure(&self) -> Result<Measured, ReplayError> {
        let (mut rig, source) = self.rig()?;
        let mut source = FixedScans(source);
        rig.run(&mut source, self.records)?;
        rig.checkpoint()?;
        let leaves = rig.leaf_fill()?;
        let records_per_leaf = self.records as f64 / leaves.len() as f64;
        let mut last = rig.run(&mut source, WINDOW)?;
        for window in 1..MAX_WINDOWS {
            let part = rig.run(&mut source, WINDOW)?;
            let flat = is_flat(&last, &part);
            last = part;
            if flat && window >= MIN_WINDOWS {
                break;
            }
        }
        let part = rig.run(&mut source, WINDOW)?;
        Ok(Measured {
            part,
            records_per_leaf,
        })
    }
}

/// Whether the numbers of pages, mini-pages and page I/Os hardly changed.
fn is_flat(before: &Part, after: &Part) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 0.01 * a.max(b);
    before.after.leaf_pages == after.after.leaf_pages
        && near(mini_pages(before), mini_pages(after))
        && near(before.page_ios(), after.page_ios())
}

/// Number of mini-pages at the end.
pub(crate) fn mini_pages(part: &Part) -> f64 {
    let bf = part.after.bf.unwrap_or_default();
    bf.classes.iter().map(|class| class.live as f64).sum()
}

/// Gives all scans the same length.
struct FixedScans(Box<dyn OpSource + Send>);

impl OpSource for FixedScans {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let more = self.0.next_op(op)?;
        if op.kind == OpKind::Scan {
            op.scan_len = SCAN;
        }
        Ok(more)
    }
}

/// A tree with mini-pages and these shares, in per cent.
pub(crate) fn bf(copy_on_access_percent: u8, promotion_percent: u8) -> TreeKind {
    TreeKind::Bf(BfOptions {
        copy_on_access_percent,
        promote: Promote::Percent(promotion_percent),
        ..BfOptions::PUBLISHED
    })
}

/// The tree with mini-pages and its default options.
pub(crate) fn default_bf() -> TreeKind {
    TreeKind::Bf(BfOptions::PUBLISHED)
}

/// Formats a number per operation.
pub(crate) fn per_op(n: f64) -> String {
    format!("{n:.4}")
}
