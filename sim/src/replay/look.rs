//! The pass over the trace before the run. It finds the length, the data set, and everything that
//! the predictors may know.

use std::sync::Arc;

use treering_traces::{Blocks, Header, Op, OpSource};

use super::config::ReplayConfig;
use super::error::{ReplayError, setting};
use super::fit::make_fit;
use super::preload::{Input, Loads};
use super::progress::Progress;
use super::statistics::Saved;
use super::target::Target;
use super::tree::Tree;
use crate::predict::{Span, Workload};

/// Results of the pass over a trace.
pub(super) struct Looked {
    /// Operations to replay, including warm-up.
    pub(super) ops: u64,
    pub(super) warmup_ops: u64,
    pub(super) header: Header,
    pub(super) workload: Workload,
    /// Whether the store takes the records of all operations.
    pub(super) all_fit: bool,
    /// Number of measured operations that are skipped, because the store does not take their
    /// records.
    pub(super) skipped: u64,
    /// Time between the first and the last measured operation in the trace; `None` if it has no
    /// times.
    pub(super) measured_span_ns: Option<u64>,
    /// Records to load before the trace; they are included in the operations above.
    pub(super) loads: Arc<Loads>,
}

impl Looked {
    /// How the blocks of a block trace are replayed. `None` if no record is put or loaded.
    pub(super) fn blocks(&self) -> Option<Blocks> {
        let records = self.workload.records();
        let mean = (self.workload.data_bytes() / records).round();
        (self.header.addresses && records > 0.0).then(|| Blocks::as_records_of(mean as u64))
    }
}

/// Maximum number of virtual clients; each is an event in the queue and an operation.
const MAX_VIRTUAL_CLIENTS: u32 = 1 << 20;

/// Maximum number of clients on a file; each is a thread.
const MAX_THREADS: u32 = 1024;

pub(super) fn check_clients(config: &ReplayConfig) -> Result<(), ReplayError> {
    let most = match config.target {
        Target::File(..) => MAX_THREADS,
        _ => MAX_VIRTUAL_CLIENTS,
    };
    if (1..=most).contains(&config.clients) {
        return Ok(());
    }
    let why = format!("{}; expected 1 to {most}", config.clients);
    Err(setting("clients", why))
}

/// Only trees of pages can be drained.
fn check_drain(config: &ReplayConfig) -> Result<(), ReplayError> {
    match config.tree {
        Tree::Direct | Tree::Pm(_) if config.drain => {
            let why = format!(
                "{} keeps no pages in memory; expected a tree of pages",
                config.tree.name()
            );
            Err(setting("drain", why))
        }
        _ => Ok(()),
    }
}

/// The part of a trace that is replayed.
struct Part {
    header: Header,
    /// Operations of the trace, without loaded records, and those of them that are warm-up.
    ops: u64,
    warmup_ops: u64,
}

impl Part {
    /// Checks that there is something to replay.
    fn of(config: &ReplayConfig) -> Result<Part, ReplayError> {
        check_clients(config)?;
        check_drain(config)?;
        let trace = config.trace.as_path();
        let header = treering_traces::open(trace)?.header().clone();
        let ops = config.limit.unwrap_or(u64::MAX).min(header.ops);
        if header.ops == 0 {
            let trace = trace.display().to_string();
            return Err(ReplayError::Empty { trace });
        }
        if ops == 0 {
            return Err(setting(
                "limit",
                "no operations are left to replay; expected at least one",
            ));
        }
        let warmup_ops = match config.warmup {
            Some(share) => (ops as f64 * share) as u64,
            None => header.warmup_ops.min(ops),
        };
        if warmup_ops >= ops {
            let why = format!("all {ops} operations are warm-up; expected some to measure");
            return Err(setting("warmup", why));
        }
        Ok(Part {
            header,
            ops,
            warmup_ops,
        })
    }
}

/// The statistics of a trace up to the limit: from a file that has them, or from a pass, which is
/// saved if asked. Warm-up is a share of the operations, or what the trace marks.
pub(super) fn look_through(
    config: &ReplayConfig,
    progress: &mut dyn FnMut(Progress),
) -> Result<Looked, ReplayError> {
    let part = Part::of(config)?;
    let shares = (part.ops, part.warmup_ops);
    let (found, saved) = Saved::find(config, &part.header, shares, progress)?;
    if let Some(looked) = found {
        return Ok(looked);
    }
    let looked = analyse(config, part, progress)?;
    if let Some(saved) = saved {
        saved.save(&looked)?;
    }
    Ok(looked)
}

/// As [`look_through`], without a file.
pub(super) fn look_again(
    config: &ReplayConfig,
    progress: &mut dyn FnMut(Progress),
) -> Result<Looked, ReplayError> {
    analyse(config, Part::of(config)?, progress)
}

/// Analyses a trace. As in the replay, each operation is first made to fit the store.
fn analyse(
    config: &ReplayConfig,
    part: Part,
    progress: &mut dyn FnMut(Progress),
) -> Result<Looked, ReplayError> {
    let trace = config.trace.as_path();
    let Part {
        header,
        ops,
        warmup_ops,
    } = part;
    let loads = Loads::find(
        &config.preload,
        (trace, &header),
        (ops, warmup_ops),
        config.seed,
        progress,
    )?;
    let loads = Arc::new(loads);
    let (ops, warmup_ops) = (ops + loads.len(), warmup_ops + loads.len());
    let mut input = Input::open(trace, &loads)?;
    let span = Span {
        limit_ops: ops,
        page_size: config.tree.unit_bytes(),
        ..Span::after(warmup_ops)
    };
    let span = span.beside(loads.bytes());
    let mut counted = Counted {
        inner: &mut input,
        seen: 0,
        warmup_ops,
        times: None,
        total: ops,
        progress,
    };
    let loaded = loads.len();
    let (takes, name) = (config.tree.takes(&header), trace.display().to_string());
    let (mut all_fit, mut skipped) = (true, 0);
    let stored = |op: &mut Op, number| {
        let fits = make_fit(op, (number, loaded), takes, config.oversize, &name)?;
        all_fit &= fits;
        skipped += u64::from(!fits && number > warmup_ops);
        Ok::<_, ReplayError>(fits)
    };
    let mut workload = Workload::analyze_stored(&mut counted, span, stored)?;
    workload.zeros = header.zeros;
    let measured_span_ns = counted.times.map(|(first, last)| last - first);
    Ok(Looked {
        ops,
        warmup_ops,
        header,
        workload,
        all_fit,
        skipped,
        measured_span_ns,
        loads,
    })
}

/// An operation source that reports progress and records the times after warm-up.
struct Counted<'a> {
    inner: &'a mut dyn OpSource,
    seen: u64,
    warmup_ops: u64,
    /// Minimum and maximum.
    times: Option<(u64, u64)>,
    total: u64,
    progress: &'a mut dyn FnMut(Progress),
}

impl OpSource for Counted<'_> {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, treering_traces::TraceError> {
        self.seen += 1;
        if self.seen & 0xffff == 0 {
            (self.progress)(Progress::Analyse(self.seen, self.total));
        }
        let found = self.inner.next_op(op)?;
        let measured = found && (self.warmup_ops + 1..=self.total).contains(&self.seen);
        if let Some(time) = op.time_ns.filter(|_| measured) {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        Ok(found)
    }
}
