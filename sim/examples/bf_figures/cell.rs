//! One point of a figure: a store, loaded, warmed up until it is steady, and measured.

use treering_engine::{BfOptions, Durability, Options, TreeKind};
use treering_sim::replay::{Part, ReplayError, Rig};
use treering_traces::generate::{GenParams, ValueSize, Workload, build};
use treering_traces::{Op, OpKind, OpSource, TraceError};

/// 200 M in the paper.
pub(crate) const RECORDS: u64 = 500_000;

/// Key and value, 16 bytes each.
pub(crate) const RECORD_BYTES: u64 = 32;

/// 2 GB of cache over 200 M records of 32 bytes.
pub(crate) const CACHE: f64 = 0.3125;

/// §6.1.
pub(crate) const THETA: f64 = 0.9;

/// Records of a scan (CLAIMS BF-31).
const SCAN: u32 = 32;

/// Decides everything random.
const SEED: u64 = 0;

/// What is measured is so many operations, after windows of as many that warm up.
const WINDOW: u64 = 400_000;
const MIN_WINDOWS: usize = 4;
const MAX_WINDOWS: usize = 16;

/// Kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    Reads,
    Updates,
    /// Half of each: the paper's default (§6.1).
    Half,
    Scans,
}

/// How often the log makes a checkpoint necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// Never while it is measured: the paper measures without log and checkpoints (§6.1).
    Endless,
    /// As `treering replay` has it: half of the data set, a checkpoint each half of that.
    Fitted,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) tree: TreeKind,
    pub(crate) records: u64,
    /// Of the records' bytes.
    pub(crate) cache: f64,
    pub(crate) theta: f64,
    pub(crate) mix: Mix,
    pub(crate) log: Log,
}

/// A cell's result.
pub(crate) struct Measured {
    pub(crate) part: Part,
    /// Mean records of a leaf after the load.
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

    /// An empty store, and what it is to be fed with: all records in random order, then operations
    /// without end.
    pub(crate) fn rig(&self) -> Result<(Rig, Box<dyn OpSource + Send>), ReplayError> {
        let (_, profile) = treering_sim::ssd::builtin("ssd").expect("a built-in profile");
        // Twice what the leaves of a random load take.
        let pages = self.records / 30;
        let rig = Rig::new(&profile, &self.options(), pages, SEED)?;
        let (_, source) = build(&self.params(Workload::Zipf))?;
        Ok((rig, source))
    }

    /// The same records under a law of popularity by another name, which gives each of them another
    /// rank.
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

    /// Loads, warms up until nothing changes any more, measures.
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

/// Page count, mini-page count and page I/Os are what they were.
fn is_flat(before: &Part, after: &Part) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 0.01 * a.max(b);
    before.after.leaf_pages == after.after.leaf_pages
        && near(mini_pages(before), mini_pages(after))
        && near(before.page_ios(), after.page_ios())
}

/// Mini-pages at the end.
pub(crate) fn mini_pages(part: &Part) -> f64 {
    let bf = part.after.bf.unwrap_or_default();
    bf.classes.iter().map(|class| class.live as f64).sum()
}

/// Scans of as many records each.
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

/// The tree with mini-pages and these shares, in percent.
pub(crate) fn bf(copy_on_access_percent: u8, promotion_percent: u8) -> TreeKind {
    TreeKind::Bf(BfOptions {
        copy_on_access_percent,
        promotion_percent,
    })
}

/// The tree with mini-pages as it is by default.
pub(crate) fn default_bf() -> TreeKind {
    TreeKind::Bf(BfOptions::default())
}

/// A number of things for each operation.
pub(crate) fn per_op(n: f64) -> String {
    format!("{n:.4}")
}
