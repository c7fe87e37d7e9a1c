//! What to replay, on what, and how.

use std::path::PathBuf;

use treering_engine::device::FileOptions;
use treering_engine::{Nanos, Options};

use super::plan::Extent;
use super::preload::Preload;
use super::stop::Stop;
use crate::csd::CsdProfile;
use crate::ssd::SsdProfile;

/// A share of something or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Share of the data set's bytes (keys and values of all records), 0.2 for 20 %.
    Share(f64),
}

/// What happens to records that no page can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// The replay ends with an error.
    Reject,
    /// The value is cut to the longest that a store takes; a key that is too long is an error.
    Clamp,
    /// The operation is left out and counted.
    Skip,
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

/// What the drive has been through before the store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Fresh from the factory.
    None,
    /// Every page written once, in order, by somebody else.
    Fill,
    /// As [`Precondition::Fill`], then overwritten at random until garbage collection is steady.
    Steady,
}

/// What the store runs on.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A simulated drive.
    Ssd {
        /// The drive.
        profile: Box<SsdProfile>,
        /// Its name in the report.
        name: String,
        /// Logical capacity in bytes; `None` sizes the drive to the store: see [`ReplayConfig::fill`].
        capacity_bytes: Option<u64>,
        /// Before the run.
        precondition: Precondition,
    },
    /// A simulated drive with built-in compression, fresh from the factory.
    Csd {
        /// The drive.
        profile: Box<CsdProfile>,
        /// Its name in the report.
        name: String,
        /// Logical capacity in bytes; `None` sizes the drive to the store: see [`ReplayConfig::fill`].
        capacity_bytes: Option<u64>,
        /// What it has been through before.
        precondition: Precondition,
    },
    /// A real file, created if need be.
    File(PathBuf, FileOptions),
}

/// A whole replay's settings. Sizes relative to the data set are resolved once the trace has been looked through.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayConfig {
    /// Trace file.
    pub trace: PathBuf,
    /// Device.
    pub target: Target,
    /// Engine options; `cache_bytes` and `durability` are set from the fields below.
    pub engine: Options,
    /// Whether the log's size (and with it the checkpoint's distance and the buffer) is fitted to the data set, so that a small trace
    /// goes round its log as a large one does.
    pub fit_log: bool,
    /// Page cache, with the ring of mini-pages if the tree has one.
    pub cache: Size,
    /// When writes count as done.
    pub acknowledge: Acknowledge,
    /// Virtual clients, at most 2^20 (threads on a file, at most 1,024).
    pub clients: u32,
    /// Share of the operations that is warm-up; `None`: what the trace marks.
    pub warmup: Option<f64>,
    /// At most so many operations.
    pub limit: Option<u64>,
    /// What is loaded before the trace.
    pub preload: Preload,
    /// Records that fit no page.
    pub oversize: Oversize,
    /// Share of the drive's logical capacity that the store's estimated footprint takes, when the drive is sized to it.
    pub fill: f64,
    /// Whether queues, channels and dies are modelled.
    pub timing: bool,
    /// Whether the predictors run.
    pub predict: bool,
    /// Bytes that the user writes a day, for the lifetime; `None`: as the trace's times say, or as much
    /// as the drive's logical capacity.
    pub daily_bytes: Option<u64>,
    /// Decides everything random.
    pub seed: u64,
    /// When to end early.
    pub stop: Stop,
}

impl ReplayConfig {
    pub(super) fn extent(&self) -> Extent<'_> {
        Extent {
            trace: &self.trace,
            preload: &self.preload,
            limit: self.limit,
            warmup: self.warmup,
            page_size: self.engine.page_size,
            seed: self.seed,
        }
    }

    /// The defaults of `treering replay` for a trace and a target.
    pub fn new(trace: PathBuf, target: Target) -> ReplayConfig {
        ReplayConfig {
            trace,
            target,
            engine: Options::default(),
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
