//! Before the run: the trace is looked through once, and what is relative becomes bytes and blocks.
//!
//! Shares of the data set (`--cache 20%`) need the data set's size; a drive that is neither empty nor bursting needs the store's.
//! Both come from one pass over the trace, which is also all that the predictors get to see.

use std::sync::Arc;

use treering_engine::node::LayoutChoice;
use treering_engine::{BLOCK_SIZE, Durability, MAX_VALUE_BYTES, Nanos, Options, required_blocks};
use treering_traces::{Blocks, Header, Op, OpKind, OpSource};

use super::preload::{Input, Loads, Preload};
use super::{Acknowledge, Oversize, Progress, ReplayConfig, ReplayError, Size, Target};
use crate::predict::leaf::LeafLevel;
use crate::predict::{Span, Workload, blocks_per_place};
use crate::ssd::{GcPolicy, SsdProfile};

/// Pages that a store gets beyond what its leaves are expected to take: enough for a small trace to be wrong about them.
const SPARE_PAGES: f64 = 64.0;

/// A fitted log is never smaller than this, in bytes and in pages.
const MIN_FITTED_LOG: u64 = 1 << 20;
const MIN_FITTED_LOG_PAGES: u64 = 64;

/// Bytes of a redo record of a put whose value is out of line, with a short key.
const LEAST_LONG_RECORD: f64 = 60.0;

/// Most clients of a simulated drive, each an event in the queue and an operation in hand.
const MAX_VIRTUAL_CLIENTS: u32 = 1 << 20;

/// Most clients of a file, each a thread.
const MAX_THREADS: u32 = 1024;

/// A replay whose every size is known.
pub(super) struct Plan {
    /// Operations to replay, warm-up included.
    pub(super) ops: u64,
    pub(super) warmup_ops: u64,
    pub(super) engine: Options,
    /// Blocks of the device.
    pub(super) device_blocks: u64,
    pub(super) workload: Workload,
    /// From the first measured operation to the last in the trace's own times; nothing if it has none.
    pub(super) measured_span_ns: Option<u64>,
    pub(super) trace_name: String,
    pub(super) trace_source: String,
    /// Of a block trace: what its blocks are replayed as.
    pub(super) blocks: Option<Blocks>,
    pub(super) zeros: f64,
    /// What is loaded before the trace.
    pub(super) loads: Arc<Loads>,
    pub(super) warnings: Vec<String>,
}

/// What one pass over a trace has found.
pub(super) struct Looked {
    /// Operations to replay, warm-up included.
    pub(super) ops: u64,
    pub(super) warmup_ops: u64,
    pub(super) header: Header,
    pub(super) workload: Workload,
    /// As in [`Plan::measured_span_ns`].
    pub(super) measured_span_ns: Option<u64>,
    /// What is loaded before the trace, counted in the operations above.
    pub(super) loads: Arc<Loads>,
}

impl Looked {
    /// Of a block trace: what its blocks are replayed as. `None` if no record is put, or loaded.
    pub(super) fn blocks(&self) -> Option<Blocks> {
        let records = self.workload.records();
        let mean = (self.workload.data_bytes() / records).round();
        (self.header.addresses && records > 0.0).then(|| Blocks::as_records_of(mean as u64))
    }
}

/// What of a trace is replayed, and after what.
pub(super) struct Extent<'a> {
    pub(super) trace: &'a std::path::Path,
    pub(super) preload: &'a Preload,
    pub(super) limit: Option<u64>,
    pub(super) warmup: Option<f64>,
    /// Bytes of the pages that records will be in.
    pub(super) page_size: usize,
    pub(super) seed: u64,
}

/// Looks through a trace, or as much of it as `limit` says; warm-up is a share of that, or what the trace marks.
/// `stored` makes of each operation what the store does ([`Workload::analyze_stored`]); it is told
/// the operation's number and how many are loaded before the trace.
pub(super) fn look_through(
    extent: &Extent<'_>,
    mut stored: impl FnMut(&mut Op, (u64, u64)) -> Result<bool, ReplayError>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Looked, ReplayError> {
    let Extent {
        trace,
        limit,
        warmup,
        ..
    } = *extent;
    let header = treering_traces::open(trace)?.header().clone();
    let ops = limit.unwrap_or(u64::MAX).min(header.ops);
    if header.ops == 0 {
        let trace = trace.display().to_string();
        return Err(ReplayError::Empty { trace });
    }
    if ops == 0 {
        return Err(setting(
            "limit",
            "no operation is left to replay; expected one or more",
        ));
    }
    let warmup_ops = match warmup {
        Some(share) => (ops as f64 * share) as u64,
        None => header.warmup_ops.min(ops),
    };
    if warmup_ops >= ops {
        let why = format!("all {ops} operations are warm-up; expected some to measure");
        return Err(setting("warmup", &why));
    }
    let shares = (ops, warmup_ops);
    let loads = Loads::find(
        extent.preload,
        (trace, &header),
        shares,
        extent.seed,
        progress,
    )?;
    let loads = Arc::new(loads);
    let (ops, warmup_ops) = (ops + loads.len(), warmup_ops + loads.len());
    let mut input = Input::open(trace, &loads)?;
    let span = Span {
        limit_ops: ops,
        page_size: extent.page_size,
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
    let stored = |op: &mut Op, number| stored(op, (number, loaded));
    let mut workload = Workload::analyze_stored(&mut counted, span, stored)?;
    workload.zeros = header.zeros;
    let measured_span_ns = counted.times.map(|(first, last)| last - first);
    Ok(Looked {
        ops,
        warmup_ops,
        header,
        workload,
        measured_span_ns,
        loads,
    })
}

/// Looks through the trace and settles every size.
pub(super) fn plan(
    config: &ReplayConfig,
    progress: &mut dyn FnMut(Progress),
) -> Result<Plan, ReplayError> {
    check_clients(config)?;
    let looked = {
        let limits = treering_engine::node::limits(config.engine.page_size);
        let takes = Takes::of_pages(&limits);
        let trace = config.trace.display().to_string();
        let stored = stored(takes, config.oversize, &trace);
        look_through(&config.extent(), stored, progress)?
    };
    let blocks = looked.blocks();
    let Looked {
        ops,
        warmup_ops,
        header,
        workload,
        measured_span_ns,
        loads,
    } = looked;
    let mut warnings = Vec::new();
    let engine = engine_options(config, &workload, &mut warnings)?;
    let leaves = LeafLevel::grow(&workload, engine.page_size, engine.leaf_layouts()).count();
    let places = leaves + overflow_places(&engine, &workload);
    let device_blocks = device_blocks(config, &engine, places)?;
    warnings.extend(tiny_drive(config, device_blocks));
    warnings.extend(no_closed_form(config));
    warnings.extend(not_as_dense(config, &workload, engine.leaf_layouts()));
    Ok(Plan {
        ops,
        warmup_ops,
        engine,
        device_blocks,
        workload,
        measured_span_ns,
        trace_name: header.name,
        trace_source: header.source,
        blocks,
        zeros: header.zeros,
        loads,
        warnings,
    })
}

fn check_clients(config: &ReplayConfig) -> Result<(), ReplayError> {
    let most = match config.target {
        Target::File(..) => MAX_THREADS,
        Target::Ssd { .. } | Target::Csd { .. } => MAX_VIRTUAL_CLIENTS,
    };
    if (1..=most).contains(&config.clients) {
        return Ok(());
    }
    let why = format!("{}; expected 1 to {most}", config.clients);
    Err(setting("clients", &why))
}

fn setting(flag: &'static str, why: &str) -> ReplayError {
    ReplayError::Setting {
        flag,
        why: why.into(),
    }
}

fn engine_options(
    config: &ReplayConfig,
    workload: &Workload,
    warnings: &mut Vec<String>,
) -> Result<Options, ReplayError> {
    let least = config.engine.least_cache_bytes();
    let cache_bytes = match config.cache {
        Size::Bytes(bytes) => bytes,
        Size::Share(share) => {
            let bytes = (workload.data_set_bytes() * share) as u64;
            if bytes < least {
                warnings.push(format!(
                    "The cache is {least} bytes, the least that works: {:.1} % of the data set are {bytes}.",
                    share * 100.0
                ));
            }
            bytes.max(least)
        }
    };
    let durability = match config.acknowledge {
        // On a simulated device the replay flushes for waiting clients itself, in virtual time.
        Acknowledge::Commit if matches!(config.target, Target::File(..)) => Durability::PerCommit,
        Acknowledge::Commit | Acknowledge::Deferred => Durability::Deferred,
        Acknowledge::Interval(Nanos(0)) => {
            return Err(setting(
                "durability",
                "an interval of 0; expected more, or `commit`",
            ));
        }
        Acknowledge::Interval(interval) => Durability::Grouped(interval),
    };
    let mut options = Options {
        cache_bytes,
        durability,
        ..config.engine.clone()
    };
    if config.fit_log {
        fit_log(&mut options, workload.data_bytes());
    }
    Ok(options)
}

/// Sizes the log to half of the data set, at most to what was configured, with a checkpoint each half of it. A short trace over few
/// records then goes round its log, and its drive, as often as a long one over many.
fn fit_log(options: &mut Options, data_bytes: f64) {
    let page = options.page_size as u64;
    let least = MIN_FITTED_LOG.max(MIN_FITTED_LOG_PAGES * page);
    let half = (data_bytes / 2.0) as u64 / page * page;
    options.log_bytes = half.max(least).min(options.log_bytes);
    options.checkpoint_log_bytes = options.log_bytes / 2;
    options.log_buffer_bytes = options.log_buffer_bytes.min(options.log_bytes / 4);
}

/// Places for the long values of all records, and for those that were replaced while the log behind
/// that is not flushed yet.
fn overflow_places(engine: &Options, workload: &Workload) -> f64 {
    let per_place = blocks_per_place(engine);
    let live = workload.overflow_sum(engine.page_size, |blocks| blocks.div_ceil(per_place));
    if live == 0.0 {
        return 0.0;
    }
    let values = workload.overflow_sum(engine.page_size, |_| 1);
    // A record of the log is 60 bytes or more.
    let unflushed = engine.log_buffer_bytes as f64 / LEAST_LONG_RECORD;
    live + (live / values * unflushed).min(live)
}

fn device_blocks(config: &ReplayConfig, engine: &Options, leaves: f64) -> Result<u64, ReplayError> {
    let fitted = {
        let pages = (leaves / config.fill + SPARE_PAGES).ceil() as u64;
        required_blocks(engine, pages)
    };
    match &config.target {
        Target::Ssd {
            capacity_bytes: Some(bytes),
            ..
        }
        | Target::Csd {
            capacity_bytes: Some(bytes),
            ..
        } => {
            let blocks = bytes / BLOCK_SIZE as u64;
            let needed = required_blocks(engine, leaves.ceil() as u64);
            if blocks < needed {
                let why = format!(
                    "{bytes} bytes; expected at least the {} that the store of this trace takes",
                    needed * BLOCK_SIZE as u64
                );
                return Err(setting("capacity", &why));
            }
            Ok(blocks)
        }
        Target::Ssd { profile, .. } => Ok(whole_erase_blocks(fitted, profile)),
        Target::Csd { .. } | Target::File(..) => Ok(fitted),
    }
}

/// The largest logical size, not below `blocks`, that takes no more erase blocks: over-provisioning then comes out as the profile says.
fn whole_erase_blocks(blocks: u64, profile: &SsdProfile) -> u64 {
    let alpha = 1.0 + profile.over_provisioning;
    let pages = f64::from(profile.pages_per_block);
    let erase_blocks = (blocks as f64 * alpha / pages).ceil();
    blocks.max((erase_blocks * pages / alpha) as u64)
}

/// Policies for which the literature has no formula are predicted as greedy cleaning.
fn no_closed_form(config: &ReplayConfig) -> Option<String> {
    let Target::Ssd { profile, .. } = &config.target else {
        return None;
    };
    let policy = GcPolicy::parse(&profile.gc)?;
    let unknown = matches!(policy, GcPolicy::CostBenefit | GcPolicy::WindowedGreedy(_));
    (unknown && config.predict).then(|| {
        format!(
            "No closed form is known for garbage collection by {policy}: it is predicted as greedy."
        )
    })
}

/// Which leaves become dense is a matter of all their keys, and a trace with more of them than fit memory is known by some.
fn not_as_dense(
    config: &ReplayConfig,
    workload: &Workload,
    layouts: LayoutChoice,
) -> Option<String> {
    let unknown = layouts.may_be_dense() && workload.sample_weight() > 1.0;
    (unknown && config.predict).then(|| {
        format!(
            "Leaves are predicted as if none became dense: one key in {:.0} does not say which do.",
            workload.sample_weight()
        )
    })
}

/// A drive needs a whole erase block to spare, however few it has.
fn tiny_drive(config: &ReplayConfig, device_blocks: u64) -> Option<String> {
    let Target::Ssd { profile, .. } = &config.target else {
        return None;
    };
    let (asked, pages) = (
        profile.over_provisioning,
        u64::from(profile.pages_per_block),
    );
    let least = (device_blocks.div_ceil(pages) + 1) * pages;
    let found = least as f64 / device_blocks as f64 - 1.0;
    (found > 1.05 * asked).then(|| {
        format!(
            "The drive is so small that the one erase block it must have to spare is {:.1} % over-provisioning, not {:.1} % \
             (--capacity or more records would change that).",
            100.0 * found,
            100.0 * asked
        )
    })
}

/// An operation source that reports how far it is, and notes times after warm-up.
struct Counted<'a> {
    inner: &'a mut dyn OpSource,
    seen: u64,
    warmup_ops: u64,
    /// Least and greatest.
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

/// Makes of the operations of a trace what a store does of them ([`look_through`]).
pub(super) fn stored<'a>(
    takes: Takes,
    oversize: Oversize,
    trace: &'a str,
) -> impl FnMut(&mut Op, (u64, u64)) -> Result<bool, ReplayError> + 'a {
    move |op, numbers| make_fit(op, numbers, takes, oversize, trace)
}

/// Makes an operation one that the store takes ([`fit`]); `false` if it is to be left out.
pub(super) fn make_fit(
    op: &mut Op,
    numbers: (u64, u64),
    takes: Takes,
    oversize: Oversize,
    trace: &str,
) -> Result<bool, ReplayError> {
    if op.kind != OpKind::Put {
        return Ok(true);
    }
    Ok(match fit(op, numbers, takes, oversize, trace)? {
        Fit::Yes(value_len) => {
            op.value_len = value_len;
            true
        }
        Fit::Skip => false,
    })
}

/// What to do with a record that no store takes.
pub(super) enum Fit {
    /// Do it, with a value of this length.
    Yes(u32),
    Skip,
}

/// What a store takes.
#[derive(Clone, Copy)]
pub(super) struct Takes {
    /// Bytes of the longest key.
    pub(super) max_key: usize,
    /// Bytes of a page, which decide about keys; `None`: it has no pages, and takes every key.
    pub(super) page_size: Option<usize>,
}

impl Takes {
    /// A store of pages.
    pub(super) fn of_pages(limits: &treering_engine::node::Limits) -> Takes {
        Takes {
            max_key: limits.max_key,
            page_size: Some(limits.page_size),
        }
    }

    /// One in persistent memory, whose chunks are longer than any key of a trace.
    pub(super) const OF_MEMORY: Takes = Takes {
        max_key: u16::MAX as usize,
        page_size: None,
    };

    /// What is said of a record that it does not take.
    fn refusal(self, key: usize, value: usize) -> String {
        match self.page_size {
            Some(page_size) => format!(
                "a key of {key} bytes with a value of {value} is over what a store with pages of {page_size} bytes takes: \
                 a key of {}, a value of {MAX_VALUE_BYTES}; expected a larger --page for the key, or --oversize clamp or skip",
                self.max_key
            ),
            None => format!(
                "a value of {value} bytes is longer than the {MAX_VALUE_BYTES} that a store takes; \
                 expected --oversize clamp or skip"
            ),
        }
    }
}

/// Holds one put against the limits of a store: of keys, by the page, and of values. It is number
/// `number` of all, of which `loaded` come before the trace: what of these no store takes is made
/// to fit, or left out, as the trace itself will say so if it matters.
pub(super) fn fit(
    op: &Op,
    (number, loaded): (u64, u64),
    takes: Takes,
    oversize: Oversize,
    trace: &str,
) -> Result<Fit, ReplayError> {
    let value_len = op.value_len as usize;
    let key_fits = op.key.len() <= takes.max_key;
    if key_fits && value_len <= MAX_VALUE_BYTES {
        return Ok(Fit::Yes(op.value_len));
    }
    let reject = || ReplayError::Operation {
        trace: trace.into(),
        op: number.saturating_sub(loaded),
        why: takes.refusal(op.key.len(), value_len),
    };
    if number <= loaded {
        return Ok(match key_fits {
            true => Fit::Yes(MAX_VALUE_BYTES as u32),
            false => Fit::Skip,
        });
    }
    match oversize {
        Oversize::Reject => Err(reject()),
        Oversize::Skip => Ok(Fit::Skip),
        Oversize::Clamp if !key_fits => Err(reject()),
        Oversize::Clamp => Ok(Fit::Yes(MAX_VALUE_BYTES as u32)),
    }
}
