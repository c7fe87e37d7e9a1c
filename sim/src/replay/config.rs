//! What to replay, on what, and how.

use std::path::PathBuf;

use treering_engine::{Nanos, Options};

use super::fit::Oversize;
use super::preload::Preload;
use super::stop::Stop;
use super::target::Target;
use super::tree::Tree;

/// A share of something or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Share of the data set's bytes (keys and values of all records), 0.2 for 20 %.
    Share(f64),
}

/// When a client's write counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledge {
    /// At once; the log is flushed when the engine needs it.
    Deferred,
    /// At once; the log is flushed at least this often.
    Interval(Nanos),
    /// When a flush has covered it; clients that wait share one.
    Commit,
}

/// A whole replay's settings. Sizes relative to the data set are resolved once the trace has been
/// looked through.
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
    /// Tree. It must be one that runs on the device: of pages on drives and files.
    pub tree: Tree,
    /// Whether the log's size (and with it the checkpoint's distance and the buffer) is fitted to
    /// the data set, so that a small trace goes round its log as a large one does. Trees of pages.
    pub fit_log: bool,
    /// Page cache, with the ring of mini-pages if the tree has one. Trees of pages.
    pub cache: Size,
    /// When writes count as done. In persistent memory they do when they return.
    pub acknowledge: Acknowledge,
    /// Virtual clients, at most 2^20 (threads on a file, at most 1,024).
    pub clients: u32,
    /// Share of the operations that is warm-up; `None`: what the trace marks.
    pub warmup: Option<f64>,
    /// At most so many operations.
    pub limit: Option<u64>,
    /// What is loaded before the trace.
    pub preload: Preload,
    /// What becomes of records that no store takes.
    pub oversize: Oversize,
    /// Share of the drive's logical capacity that the store's estimated footprint takes, when the
    /// drive is sized to it.
    pub fill: f64,
    /// Whether queues, channels and dies are modelled.
    pub timing: bool,
    /// Whether the predictors run.
    pub predict: bool,
    /// Bytes that the user writes a day, for the lifetime; `None`: as the trace's times say, or as
    /// much as the device's logical capacity.
    pub daily_bytes: Option<u64>,
    /// Decides everything random.
    pub seed: u64,
    /// When to end early.
    pub stop: Stop,
}

impl ReplayConfig {
    /// The defaults of `treering replay` for a trace and a target.
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
            limit: None,
            preload: Preload::default(),
            oversize: Oversize::Reject,
            fill: 0.9,
            timing: false,
            predict: true,
            daily_bytes: None,
            seed: 0,
            stop: Stop::default(),
        }
    }
}
