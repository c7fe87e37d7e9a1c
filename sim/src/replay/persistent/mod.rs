//! A replay on simulated persistent memory.
//!
//! ```text
//! client free ──▶ its next operation runs on the real engine, as one call ──▶ pm.submit(client, now)
//!      ▲                                                                          │ lines of all clients interleave
//!      └───────────────────────── pm.next_done(): who is done first ◀────────────┘
//!                                  store.due()? one step of cleaning, on a client of its own
//! ```
//!
//! As on drives, clients are in closed loop, and operations run one after the other on the engine; what they ask of the device is served in virtual
//! time. All virtual clients are one thread to the engine, so they share a log. A write is durable when it returns: `--durability` has nothing to say.

mod report;

use std::path::PathBuf;
use std::sync::Arc;

use treering_engine::{
    Cleaning, Kv, Logging, Nanos, NodeSplit, PmOptions, PmStore, PmTreeKind, Stats,
};
use treering_traces::{Op, OpKind, OpSource};

use super::measure::{Latencies, Series};
use super::outcome::Phase;
use super::plan::{Extent, Looked, Takes, look_through, make_fit, stored};
use super::preload::{Input, Preload};
use super::stop::Stop;
use super::values::Values;
use super::{Failure, Oversize, Progress, ReplayError};
use crate::pm::{FullLines, PmCounters, PmProfile, Replacement, SimPm};
use crate::predict::pm::buffer::XpBuffer;
use crate::predict::pm::growth::Growth;
use crate::predict::pm::lodge::LodgeShape;
use crate::predict::pm::{self as predict, LogCleaning, Logged, PmPrediction, PmTree};
use crate::predict::workload::Workload;
use crate::report::{LodgePredicted, ReplayReport, SeriesPoint};
use crate::ssd::{Served, TimingMode};

/// Bytes of a leaf and of a log entry (CCL-BTree §3.3, §4.1).
const LEAF_BYTES: f64 = 256.0;
const ENTRY_BYTES: f64 = 24.0;

/// Slots of a LodgeTree's leaf (LodgeTree §IV-A).
const LODGE_SLOTS: f64 = 27.0;

/// Chunks beyond what leaves, logs and records are expected to take.
const SPARE_CHUNKS: f64 = 8.0;

/// Most clients.
const MAX_CLIENTS: u32 = 1 << 20;

/// A replay on persistent memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PmReplayConfig {
    /// Trace file.
    pub trace: PathBuf,
    /// The device.
    pub profile: PmProfile,
    /// Its name in the report.
    pub name: String,
    /// The tree.
    pub tree: PmTreeKind,
    /// Bytes of the device; `None` sizes it to the store.
    pub capacity_bytes: Option<u64>,
    /// Virtual clients, at most 2^20.
    pub clients: u32,
    /// Share of the operations that is warm-up; `None`: what the trace marks.
    pub warmup: Option<f64>,
    /// At most so many operations.
    pub limit: Option<u64>,
    /// What is loaded before the trace.
    pub preload: Preload,
    /// What becomes of values that no store takes.
    pub oversize: Oversize,
    /// Whether queues are modelled.
    pub timing: bool,
    /// Whether the predictors run.
    pub predict: bool,
    /// Bytes that the user writes a day, for the lifetime; `None`: as the trace's times say, or as much
    /// as the device's capacity.
    pub daily_bytes: Option<u64>,
    /// Decides everything random.
    pub seed: u64,
    /// When to end early.
    pub stop: Stop,
}

impl PmReplayConfig {
    /// The defaults of `treering replay` for a trace, a device and a tree.
    #[must_use]
    pub fn new(trace: PathBuf, profile: PmProfile, name: String, tree: PmTreeKind) -> Self {
        PmReplayConfig {
            trace,
            profile,
            name,
            tree,
            capacity_bytes: None,
            clients: 1,
            warmup: None,
            limit: None,
            preload: Preload::default(),
            oversize: Oversize::Reject,
            timing: false,
            predict: true,
            daily_bytes: None,
            seed: 0,
            stop: Stop::default(),
        }
    }

    fn extent(&self) -> Extent<'_> {
        Extent {
            trace: &self.trace,
            preload: &self.preload,
            limit: self.limit,
            warmup: self.warmup,
            page_size: crate::pm::XPLINE_SIZE,
            seed: self.seed,
        }
    }

    fn options(&self) -> PmOptions {
        PmOptions {
            tree: self.tree,
            ..PmOptions::default()
        }
    }

    fn batch(&self) -> usize {
        match self.tree {
            PmTreeKind::PmTree | PmTreeKind::Global(_) | PmTreeKind::Lodge(_) => 0,
            PmTreeKind::Ccl(ccl) => ccl.batch,
        }
    }

    /// What is predicted; nothing for a buffer of all leaves together.
    fn predict(&self, workload: &Workload, xp_buffer: &XpBuffer) -> Option<Predicted> {
        if let PmTreeKind::Lodge(lodge) = self.tree {
            let shape = LodgeShape {
                slots: lodge.slots,
                t_node: lodge.t_node,
                t_split: lodge.t_split,
                burst_factor: match lodge.node_split {
                    NodeSplit::Double => None,
                    NodeSplit::HotnessAware => Some(f64::from(lodge.burst_factor)),
                },
                log_entries: f64::from(lodge.log_entries),
                entitled_entries: lodge.logs as f64 * f64::from(lodge.log_entries),
                log_share: f64::from(lodge.log_percent) / 100.0,
            };
            let p = predict::lodge::predict(workload, &shape, xp_buffer);
            return Some(Predicted {
                pm: p.pm,
                lodge: Some(LodgePredicted {
                    flushes: p.node_flushes,
                    pairs_per_flush: p.pairs_per_flush,
                    pairs_per_leaf: p.pairs_per_leaf,
                    nodes: p.nodes,
                    free_share: p.free_share,
                    buffered_share: p.buffered_share,
                }),
            });
        }
        let tree = self.predicted_tree()?;
        Some(Predicted {
            pm: predict::predict(workload, &tree, xp_buffer),
            lodge: None,
        })
    }

    /// CCL-BTree, or a tree without buffers, as the predictor needs it.
    fn predicted_tree(&self) -> Option<PmTree> {
        let nothing = PmTree {
            batch: 0,
            logged: Logged::Nothing,
            cleaning: LogCleaning::LocalityAware,
            log_share: f64::INFINITY,
            garbage_share: 0.0,
            logs: 1.0,
            clients: f64::from(self.clients),
        };
        let ccl = match self.tree {
            PmTreeKind::PmTree => return Some(nothing),
            PmTreeKind::Global(_) | PmTreeKind::Lodge(_) => return None,
            PmTreeKind::Ccl(ccl) => ccl,
        };
        Some(PmTree {
            batch: ccl.batch,
            logged: match ccl.logging {
                Logging::WriteConservative => Logged::WriteConservative,
                Logging::EveryWrite => Logged::Naive,
            },
            cleaning: match ccl.cleaning {
                Cleaning::LocalityAware => LogCleaning::LocalityAware,
                Cleaning::Naive => LogCleaning::Naive,
            },
            log_share: f64::from(ccl.log_percent) / 100.0,
            garbage_share: f64::from(ccl.garbage_percent) / 100.0,
            ..nothing
        })
    }
}

/// What the predictors say.
#[derive(Clone, Copy)]
struct Predicted {
    pm: PmPrediction,
    lodge: Option<LodgePredicted>,
}

/// Replays a trace on persistent memory. `progress` is called every few ten thousand operations.
///
/// # Errors
/// [`ReplayError`].
pub fn run_pm(
    config: &PmReplayConfig,
    progress: &mut dyn FnMut(Progress),
) -> Result<ReplayReport, ReplayError> {
    if !(1..=MAX_CLIENTS).contains(&config.clients) {
        let why = format!("{}; expected 1 to {MAX_CLIENTS}", config.clients);
        return Err(ReplayError::Setting {
            flag: "clients",
            why,
        });
    }
    let trace = config.trace.display().to_string();
    let looked = look_through(
        &config.extent(),
        stored(Takes::OF_MEMORY, config.oversize, &trace),
        progress,
    )?;
    let bytes = config
        .capacity_bytes
        .unwrap_or_else(|| device_bytes(config, &looked));
    let mode = if config.timing {
        TimingMode::Queued
    } else {
        TimingMode::Counting
    };
    let pm = Arc::new(SimPm::new(&config.profile, bytes, mode, config.seed)?);
    let store = PmStore::open(pm.clone(), &config.options())
        .map_err(|e| Failure::from(e).on(&config.name))?;
    // Making the store is over before the first client comes.
    pm.serve(Nanos(0));
    let simulation = Simulation {
        config,
        trace: &trace,
        looked: &looked,
        pm,
        store,
        reader: Input::open(&config.trace, &looked.loads)?,
        op: Op::default(),
        under_way: vec![None; config.clients as usize],
        cleaning: false,
        cleaning_bytes: 0,
        parked: Vec::new(),
        values: Values::new(config.seed, looked.header.zeros),
        buffer: Vec::new(),
        number: 0,
        phase: Phase::default(),
        latencies: Latencies::default(),
        series: None,
        start: None,
    };
    let outcome = simulation
        .replay(progress)
        .map_err(|e| e.on(&config.name))?;
    let buffer = &config.profile.buffer;
    let xp_buffer = XpBuffer {
        lines: f64::from(buffer.lines * config.profile.dimms),
        replacement: Replacement::parse(&buffer.replacement).unwrap_or(Replacement::Random),
        full_lines: FullLines::parse(&buffer.full_lines).unwrap_or(FullLines::AtOnce),
    };
    let fits = predict::fits_leaves(&looked.workload);
    // Predictions are of the whole trace.
    let complete = outcome.done_ops == looked.ops;
    let predicted = (config.predict && fits && complete)
        .then(|| config.predict(&looked.workload, &xp_buffer))
        .flatten();
    Ok(report::of(config, &looked, outcome, predicted, bytes))
}

/// Room for twice the leaves that keys coming in this order make, for the longest log between two cleanings, and for records that fit no leaf.
fn device_bytes(config: &PmReplayConfig, looked: &Looked) -> u64 {
    let workload = &looked.workload;
    let batch = config.batch();
    let grown = Growth::play(workload, batch, 0.0).leaves.len() as f64;
    let leaves = 2.0 * grown * workload.sample_weight() * LEAF_BYTES;
    let chunk = config.options().chunk_bytes as f64;
    // Of the log, for each byte of leaves.
    let longest = match config.tree {
        PmTreeKind::PmTree => 0.0,
        PmTreeKind::Ccl(ccl) => {
            let buffered = 4.0 * ENTRY_BYTES * ccl.batch as f64 / LEAF_BYTES;
            buffered.max(2.0 * f64::from(ccl.log_percent) / 100.0)
        }
        // An entry for each change of sixteen bytes.
        PmTreeKind::Global(global) => 2.0 * 1.5 * f64::from(global.buffer_percent) / 100.0,
        // A node's slots are an entry each at most, and it has two leaves or more.
        PmTreeKind::Lodge(lodge) => {
            let buffered = ENTRY_BYTES * lodge.slots as f64 / (4.0 * LEAF_BYTES);
            buffered.max(2.0 * f64::from(lodge.log_percent) / 100.0)
        }
    };
    // As many bytes a slot; but leaves may be split earlier.
    let leaves = match config.tree {
        PmTreeKind::Lodge(lodge) => leaves * LODGE_SLOTS / lodge.t_split as f64,
        _ => leaves,
    };
    let log = leaves * longest + 4.0 * chunk;
    // A record in bytes has a head and is rounded up, and its successor is written before it is given up.
    let records = 4.0 * workload.data_bytes() + 64.0 * workload.records();
    (leaves + log + records + SPARE_CHUNKS * chunk) as u64
}

/// A run on its way.
struct Simulation<'a> {
    config: &'a PmReplayConfig,
    /// Its name, for errors.
    trace: &'a str,
    looked: &'a Looked,
    pm: Arc<SimPm>,
    store: PmStore,
    reader: Input,
    op: Op,
    /// What each client is at, since when, and whether that is measured.
    under_way: Vec<Option<(OpKind, Nanos, bool)>>,
    /// Whether the background client is at work.
    cleaning: bool,
    /// Bytes that reached the medium while it was, if that is counted at once.
    cleaning_bytes: u64,
    /// Clients that wait for it, if it stops everybody.
    parked: Vec<u32>,
    values: Values,
    buffer: Vec<u8>,
    number: u64,
    phase: Phase,
    latencies: Latencies,
    series: Option<Series>,
    start: Option<Snapshot>,
}

/// Counters at a moment.
struct Snapshot {
    at: Nanos,
    stats: Stats,
    device: PmCounters,
}

/// A finished run.
struct Outcome {
    phase: Phase,
    before: Snapshot,
    after: Snapshot,
    /// Operations done, warm-up included.
    done_ops: u64,
    /// Bytes that cleaning wrote to the medium; none if those of others come in between.
    cleaning_bytes: Option<u64>,
    latencies: Latencies,
    series: Vec<SeriesPoint>,
}

impl Simulation<'_> {
    fn replay(mut self, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, Failure> {
        progress(Progress::Replay(0, self.looked.ops));
        let mut last = Nanos(0);
        for client in 0..self.config.clients {
            self.next(client, Nanos(0), progress)?;
        }
        while let Some((client, served)) = self.pm.next_done() {
            last = last.max(served.done);
            self.done(client, &served, progress)?;
        }
        self.pm.settle();
        if self.start.is_none() {
            // Told to stop in warm-up: nothing was measured.
            self.begin_measuring(last);
        }
        let after = self.snapshot(last);
        Ok(Outcome {
            phase: self.phase,
            before: self.start.expect("measuring has begun"),
            after,
            done_ops: self.number,
            cleaning_bytes: (!self.config.timing).then_some(self.cleaning_bytes),
            latencies: self.latencies,
            series: self.series.map(|s| s.points).unwrap_or_default(),
        })
    }

    fn background(&self) -> u32 {
        self.config.clients
    }

    /// Whether cleaning stops everybody (CCL-BTree §3.4, naive; §3.2, of a global buffer: "foreground threads can be stalled").
    fn stops_everybody(&self) -> bool {
        match self.config.tree {
            PmTreeKind::PmTree | PmTreeKind::Lodge(_) => false,
            PmTreeKind::Ccl(ccl) => ccl.cleaning == Cleaning::Naive,
            PmTreeKind::Global(_) => true,
        }
    }

    /// A client is done, and goes on.
    fn done(
        &mut self,
        client: u32,
        served: &Served,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Failure> {
        let now = served.done;
        if client == self.background() {
            self.cleaning = false;
            self.clean(now)?;
            if !self.cleaning {
                for parked in std::mem::take(&mut self.parked) {
                    self.next(parked, now, progress)?;
                }
            }
            return Ok(());
        }
        if let Some((kind, began, true)) = self.under_way[client as usize].take()
            && self.config.timing
        {
            let total = now.0 - began.0;
            self.latencies.note(kind, total, served.queue_ns.min(total));
        }
        if self.cleaning && self.stops_everybody() {
            self.parked.push(client);
            return Ok(());
        }
        self.next(client, now, progress)
    }

    /// The client's next operation, if there is one; and cleaning, if that is due.
    fn next(
        &mut self,
        client: u32,
        now: Nanos,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Failure> {
        loop {
            let ended = self.number == self.looked.ops || self.config.stop.is_set();
            if ended || !self.reader.next_op(&mut self.op)? {
                return Ok(());
            }
            if self.number == self.looked.warmup_ops {
                self.begin_measuring(now);
            }
            self.number += 1;
            if self.number & 0x3fff == 0 {
                progress(Progress::Replay(self.number, self.looked.ops));
            }
            let numbers = (self.number, self.looked.loads.len());
            let oversize = self.config.oversize;
            if make_fit(
                &mut self.op,
                numbers,
                Takes::OF_MEMORY,
                oversize,
                self.trace,
            )? {
                break;
            }
            self.phase.skipped += 1;
        }
        let kind = self.op.kind;
        let user_bytes = self.operate()?;
        self.phase.count(kind, user_bytes);
        self.under_way[client as usize] = Some((kind, now, self.start.is_some()));
        self.pm.submit(client, now);
        self.sample(now);
        if !self.cleaning {
            self.clean(now)?;
        }
        Ok(())
    }

    /// One step of cleaning, if it is due.
    fn clean(&mut self, now: Nanos) -> Result<(), Failure> {
        if let Some(task) = self.store.due() {
            let before = self.pm.counters();
            self.store.pump(task)?;
            let written = self.pm.counters().since(&before);
            self.cleaning_bytes += written.media_write_bytes().iter().sum::<u64>();
            self.pm.submit(self.background(), now);
            self.cleaning = true;
        }
        Ok(())
    }

    /// Bytes that the user wrote.
    fn operate(&mut self) -> Result<u64, Failure> {
        let op = &self.op;
        match op.kind {
            OpKind::Get => drop(self.store.get(&op.key, &mut self.buffer)?),
            OpKind::Put => {
                let len = op.value_len as usize;
                let value = match op.zeros {
                    None => self.values.make(self.number, len),
                    Some(zeros) => {
                        let share = f64::from(zeros) / 255.0;
                        self.values.make_with(self.number, len, share)
                    }
                };
                self.store.put(&op.key, value)?;
            }
            OpKind::Delete => drop(self.store.delete(&op.key)?),
            OpKind::Scan => super::scan(&self.store, op)?,
        }
        Ok(op.user_bytes())
    }

    fn snapshot(&self, at: Nanos) -> Snapshot {
        Snapshot {
            at,
            stats: self.store.stats(),
            device: self.pm.counters(),
        }
    }

    fn begin_measuring(&mut self, at: Nanos) {
        let start = self.snapshot(at);
        let measured = self.looked.ops - self.looked.warmup_ops;
        self.series = Some(Series::new(at.0, measured, media_bytes(&start.device), 0));
        self.phase = Phase::default();
        self.cleaning_bytes = 0;
        self.start = Some(start);
    }

    fn sample(&mut self, now: Nanos) {
        if let Some(series) = &mut self.series
            && series.due(self.phase.ops())
        {
            let written = media_bytes(&self.pm.counters());
            series.note(now.0, &self.phase, written, 0);
        }
    }
}

fn media_bytes(device: &PmCounters) -> treering_engine::ClassBytes {
    let [log, page, extra] = device.media_write_bytes();
    treering_engine::ClassBytes { log, page, extra }
}
