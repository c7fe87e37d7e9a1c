//! The configuration of a replay: trace, device, tree and options.

use std::path::PathBuf;

use treering_engine::{Nanos, Options};

use super::fit::Oversize;
use super::preload::Preload;
use super::statistics::Statistics;
use super::stop::Stop;
use super::target::Target;
use super::tree::Tree;
use crate::predict::Method;

/// A number of bytes, or a share of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Share of the data set (keys and values of all records); 0.2 is 20 %.
    Share(f64),
}

/// When a client's write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// At once; the log is flushed when the engine needs it.
    Deferred,
    /// At once; the log is flushed at least once in this interval.
    Interval(Nanos),
    /// After a flush has covered it; waiting clients share a flush (group commit).
    Commit,
}

/// The settings of a replay. Sizes relative to the data set are resolved after the trace has been
/// analysed.
///
/// ```
/// use treering_sim::replay::{ReplayConfig, Size, Target};
///
/// let target = Target::builtin("ssd").expect("a built-in profile");
/// let mut config = ReplayConfig::new("a.trz".into(), target);
/// config.cache = Size::Share(0.2);
/// config.tree.pages_mut().page_size = 8192;
/// assert_eq!(config.tree.name(), "btree");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayConfig {
    /// Trace file.
    pub trace: PathBuf,
    /// Device.
    pub target: Target,
    /// Tree. It must suit the device: trees of pages run on drives and files.
    pub tree: Tree,
    /// Whether the log's size (and with it the checkpoint distance and the log buffer) is fitted to
    /// the data set, so that a small trace wraps its log as often as a large one. Trees of pages
    /// only.
    pub fit_log: bool,
    /// Size of the page cache, including the ring of mini-pages if the tree has one. Trees of pages
    /// only.
    pub cache: Size,
    /// When writes are acknowledged. In persistent memory that is always on return.
    pub acknowledge: Acknowledge,
    /// Virtual clients, at most 2^20 (threads on a file, at most 1,024).
    pub clients: u32,
    /// Share of the operations that is warm-up; `None` for the warm-up that the trace marks.
    pub warmup: Option<f64>,
    /// Whether the warm-up and the measured part each end with a checkpoint that leaves no change
    /// in memory. So the measured part pays for all of its own writes, and for no others; otherwise
    /// it begins with what the warm-up has left in memory, and leaves something there itself. Trees
    /// of pages only.
    pub drain: bool,
    /// Maximum number of operations.
    pub limit: Option<u64>,
    /// Records to load before the trace.
    pub preload: Preload,
    /// Where the trace's statistics are saved.
    pub statistics: Statistics,
    /// Handling of records that do not fit into the store.
    pub oversize: Oversize,
    /// Share of the drive's logical capacity that the store's estimated size takes, if the drive is
    /// sized to the store.
    pub fill: f64,
    /// Whether queues, channels and dies are modelled.
    pub timing: bool,
    /// Whether the predictors run.
    pub predict: bool,
    /// Whether the limit is computed even if the predictors do not run.
    pub explain: bool,
    /// How they predict trees of pages.
    pub method: Method,
    /// Bytes that the user writes per day, for the lifetime. `None`: derived from the trace's
    /// times, or else the device's logical capacity.
    pub daily_bytes: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Signal to end early.
    pub stop: Stop,
}

impl ReplayConfig {
    /// The defaults of `treering replay` for this trace and target.
    pub fn new(trace: PathBuf, target: Target) -> ReplayConfig {
        let tree = match target {
            Target::Pm { .. } => Tree::Pm(treering_engine::PmOptions::default()),
            _ => Tree::Pages(Options::default()),
        };
        ReplayConfig {
            trace,
            target,
            tree,
            fit_log: true,
            cache: Size::Share(0.10),
            acknowledge: Acknowledge::Interval(Nanos(60_000_000_000)),
            clients: 1,
            warmup: None,
            drain: false,
            limit: None,
            preload: Preload::default(),
            statistics: Statistics::default(),
            oversize: Oversize::Reject,
            fill: 0.9,
            timing: false,
            predict: true,
            explain: false,
            method: Method::default(),
            daily_bytes: None,
            seed: 0,
            stop: Stop::default(),
        }
    }

    /// How a run is predicted.
    pub(super) fn predicted_by(&self) -> Method {
        Method {
            drain: self.drain,
            ..self.method
        }
    }
}
