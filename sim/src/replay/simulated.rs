//! A replay on the simulated drive, in virtual time.
//!
//! ```text
//! event queue ──earliest──▶ client ──▶ its operation runs on the real engine, as one call
//!      ▲                                     │ the drive records what it was asked
//!      └────── the client's next turn ◀── drive.serve(now): when is that done?
//!                                            │
//!              background client ◀── store.due()? pump, serve: its I/O delays the others
//! ```
//!
//! Clients are in closed loop: the next operation of the trace goes to the client that is free first (a trace's own client
//! numbers play no part). An operation that needs no I/O takes no time.
//!
//! *Group commit* happens in virtual time: a client that waits for durability waits for the first log flush that begins after
//! its operation did, and for what the operation itself reads. While one is in flight, others gather for the next.

use std::sync::Arc;

use treering_engine::{ClassBytes, Kv, Lsn, Nanos, Stats, Store, Task};
use treering_traces::{Op, OpKind, OpSource};

use super::drive::Drive;
use super::measure::{Latencies, Series};
use super::outcome::{Outcome, Phase};
use super::plan::{Fit, Plan, Takes, fit};
use super::preload::Input;
use super::values::Values;
use super::{Acknowledge, Failure, Progress, ReplayConfig, ReplayError};
use crate::clock::{VirtualClock, VirtualNanos};
use crate::csd::CompressionCounters;
use crate::queue::EventQueue;
use crate::ssd::SsdCounters;

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A client is free.
    Free(u32),
    /// The log flush that clients gathered for begins.
    Flush,
}

/// A client that waits for the next log flush.
struct Waiter {
    client: u32,
    kind: OpKind,
    began: VirtualNanos,
    written: VirtualNanos,
    queue_ns: u64,
}

/// A run on its way.
pub(super) struct Simulation<'a> {
    config: &'a ReplayConfig,
    plan: &'a Plan,
    drive: Drive,
    store: Store,
    clock: Arc<VirtualClock>,
    events: EventQueue<Event>,
    waiting: Vec<Waiter>,
    /// When the log flush in flight is done.
    flush_done: VirtualNanos,
    /// When the background client is done.
    background_done: VirtualNanos,
    values: Values,
    buffer: Vec<u8>,
    number: u64,
    phase: Phase,
    latencies: Latencies,
    series: Option<Series>,
    start: Option<Snapshot>,
}

/// Counters when the measured part began.
struct Snapshot {
    at: VirtualNanos,
    stats: Stats,
    drive: SsdCounters,
    compression: Option<CompressionCounters>,
}

/// Opens a store on `drive` and replays the trace on it.
pub(super) fn run(
    config: &ReplayConfig,
    plan: &Plan,
    drive: Drive,
    name: &str,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, ReplayError> {
    let clock = Arc::new(VirtualClock::new());
    let store = Store::open(drive.device(), clock.clone(), &plan.engine)
        .map_err(|e| Failure::from(e).on(name))?;
    // Store and drive end together: what nobody will read is not written.
    store.abandon_on_drop();
    let simulation = Simulation {
        config,
        plan,
        drive,
        store,
        clock,
        events: EventQueue::with_capacity(config.clients as usize + 1),
        waiting: Vec::new(),
        flush_done: VirtualNanos::ZERO,
        background_done: VirtualNanos::ZERO,
        values: Values::new(config.seed, plan.zeros),
        buffer: Vec::new(),
        number: 0,
        phase: Phase::default(),
        latencies: Latencies::default(),
        series: None,
        start: None,
    };
    // Making the store is over before the first client comes.
    simulation.drive.serve(Nanos(0));
    let trace = config.trace.display().to_string();
    (simulation.replay(&trace, progress)).map_err(|e| e.on(name))
}

impl Simulation<'_> {
    fn replay(
        mut self,
        trace: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        progress(Progress::Replay(0, self.plan.ops));
        let mut reader = Input::open(&self.config.trace, &self.plan.loads)?;
        let mut op = Op::default();
        let mut last = VirtualNanos::ZERO;
        for client in 1..self.config.clients {
            self.events.push(VirtualNanos::ZERO, Event::Free(client));
        }
        // The client at hand needs no trip through the queue while it is the earliest.
        let mut at_hand = Some((VirtualNanos::ZERO, 0u32));
        while let Some((now, client)) = self.next_client(&mut at_hand)? {
            last = last.max(now);
            let ended = self.number == self.plan.ops || self.config.stop.is_set();
            if ended || !reader.next_op(&mut op)? {
                continue;
            }
            if self.number == self.plan.warmup_ops {
                self.begin_measuring(now);
            }
            self.number += 1;
            if self.number & 0x3fff == 0 {
                progress(Progress::Replay(self.number, self.plan.ops));
            }
            let free_at = self.operate(&op, now, client, trace)?;
            self.background(free_at.unwrap_or(now))?;
            self.sample(now);
            if let Some(free_at) = free_at {
                last = last.max(free_at);
                at_hand = Some((free_at, client));
            }
        }
        if self.start.is_none() {
            // Told to stop in warm-up: nothing was measured.
            self.begin_measuring(last);
        }
        self.outcome(last)
    }

    /// The client that is free first; none when all have finished and nobody waits.
    fn next_client(
        &mut self,
        at_hand: &mut Option<(VirtualNanos, u32)>,
    ) -> Result<Option<(VirtualNanos, u32)>, Failure> {
        loop {
            if let Some((at, client)) = at_hand.take() {
                match self.events.next_at() {
                    Some(earlier) if earlier <= at => self.events.push(at, Event::Free(client)),
                    _ => return Ok(Some((at, client))),
                }
            }
            match self.events.pop() {
                None => return Ok(None),
                Some((at, Event::Free(client))) => return Ok(Some((at, client))),
                Some((at, Event::Flush)) => self.group_flush(at)?,
            }
        }
    }

    /// Does one operation at `now`; says when its client is free again, or nothing if it waits for a flush.
    fn operate(
        &mut self,
        op: &Op,
        now: VirtualNanos,
        client: u32,
        trace: &str,
    ) -> Result<Option<VirtualNanos>, Failure> {
        self.clock.advance_to(now);
        let mut lsn = None;
        let mut user_bytes = 0;
        match op.kind {
            OpKind::Get => drop(self.store.get(&op.key, &mut self.buffer)?),
            OpKind::Put => {
                let limits = self.phase.limits(self.plan.engine.page_size);
                let len = match fit(
                    op,
                    (self.number, self.plan.loads.len()),
                    Takes::of_pages(&limits),
                    self.config.oversize,
                    trace,
                )? {
                    Fit::Yes(len) => len,
                    Fit::Skip => {
                        self.phase.skipped += 1;
                        return Ok(Some(now));
                    }
                };
                let value = match op.zeros {
                    None => self.values.make(self.number, len as usize),
                    Some(zeros) => {
                        self.values
                            .make_with(self.number, len as usize, f64::from(zeros) / 255.0)
                    }
                };
                lsn = Some(self.store.put(&op.key, value)?);
                user_bytes = op.key.len() as u64 + u64::from(len);
            }
            OpKind::Delete => {
                lsn = Some(self.store.delete(&op.key)?);
                user_bytes = op.key.len() as u64;
            }
            OpKind::Scan => super::scan(&self.store, op)?,
        }
        self.phase.count(op.kind, user_bytes);
        let served = self.drive.serve(Nanos(now.0));
        let done = VirtualNanos(served.done.0);
        match (lsn, self.config.acknowledge) {
            (Some(lsn), Acknowledge::Commit) if lsn.0 > 0 => {
                let waiter = Waiter {
                    client,
                    kind: op.kind,
                    began: now,
                    written: done,
                    queue_ns: served.queue_ns,
                };
                self.wait_for_flush(waiter, lsn)?;
                Ok(None)
            }
            _ => {
                self.note(op.kind, done.since(now), served.queue_ns);
                Ok(Some(done))
            }
        }
    }

    /// Puts a client among those that wait; the flush begins when the one in flight is done.
    fn wait_for_flush(&mut self, waiter: Waiter, _lsn: Lsn) -> Result<(), Failure> {
        let begins = waiter.written.max(self.flush_done);
        if self.waiting.is_empty() {
            self.events.push(begins, Event::Flush);
        }
        self.waiting.push(waiter);
        Ok(())
    }

    /// One log flush for everybody who waits.
    fn group_flush(&mut self, at: VirtualNanos) -> Result<(), Failure> {
        self.clock.advance_to(at);
        self.store.pump(Task::FlushLog)?;
        let served = self.drive.serve(Nanos(at.0));
        let done = VirtualNanos(served.done.0);
        self.flush_done = done;
        for waiter in std::mem::take(&mut self.waiting) {
            // Waiting for the flush before, and for the busy drive, is queueing.
            let queue = waiter.queue_ns + at.since(waiter.written) + served.queue_ns;
            self.note(waiter.kind, done.since(waiter.began), queue);
            self.events.push(done, Event::Free(waiter.client));
        }
        Ok(())
    }

    /// Does the background work that is due, on a client of its own.
    fn background(&mut self, now: VirtualNanos) -> Result<(), Failure> {
        // Intervals are over when they are over, not an operation later.
        self.clock.advance_to(now);
        while let Some(task) = self.store.due() {
            let begins = self.background_done.max(now);
            self.store.pump(task)?;
            self.background_done = VirtualNanos(self.drive.serve(Nanos(begins.0)).done.0);
        }
        Ok(())
    }

    fn note(&mut self, kind: OpKind, total_ns: u64, queue_ns: u64) {
        if self.config.timing && self.start.is_some() {
            self.latencies.note(kind, total_ns, queue_ns.min(total_ns));
        }
    }

    fn begin_measuring(&mut self, at: VirtualNanos) {
        let stats = self.store.stats();
        let drive = self.drive.counters();
        let measured = self.plan.ops - self.plan.warmup_ops;
        let written = self.reached();
        self.series = Some(Series::new(at.0, measured, written, drive.nand_gc));
        self.phase = Phase::default();
        self.drive.restart_in_use_mean();
        self.start = Some(Snapshot {
            at,
            stats,
            drive,
            compression: self.drive.compression(),
        });
    }

    fn sample(&mut self, now: VirtualNanos) {
        let is_due = |series: &Series| series.due(self.phase.ops());
        if self.series.as_ref().is_some_and(is_due) {
            let (written, gc) = (self.reached(), self.drive.counters().nand_gc);
            if let Some(series) = &mut self.series {
                series.note(now.0, &self.phase, written, gc);
            }
        }
    }

    /// Bytes that the engine wrote so far, as the drive stores them.
    fn reached(&self) -> ClassBytes {
        match self.drive.compression() {
            None => self.store.stats().written,
            Some(compression) => {
                let [log, page, extra] = compression.stored;
                ClassBytes { log, page, extra }
            }
        }
    }

    /// Counters first: what comes after must not count.
    fn outcome(self, end: VirtualNanos) -> Result<Outcome, Failure> {
        let stats = self.store.stats();
        let drive = self.drive.counters();
        let compression = self.drive.compression();
        let start = self.start.expect("measuring has begun");
        check_counters(&stats, &drive)?;
        Ok(Outcome {
            phase: self.phase,
            done_ops: self.number,
            before: start.stats,
            after: stats,
            elapsed_ns: end.since(start.at),
            latencies: self.latencies,
            series: self.series.map(|s| s.points).unwrap_or_default(),
            drive: Some((start.drive, drive)),
            compression: start.compression.zip(compression),
            leaves: self.store.leaf_fill()?,
            kernel: None,
        })
    }
}

/// Engine and drive have counted the same bytes, class by class, from the store's first block on.
fn check_counters(stats: &Stats, drive: &SsdCounters) -> Result<(), ReplayError> {
    let names = ["log", "page", "extra"];
    for (i, class) in treering_engine::IoClass::ALL.into_iter().enumerate() {
        for (engine, drive) in [
            (stats.written.get(class), drive.host_written[class as usize]),
            (stats.read.get(class), drive.host_read[class as usize]),
        ] {
            if engine != drive {
                return Err(ReplayError::CountersDiffer {
                    class: names[i],
                    engine,
                    drive,
                });
            }
        }
    }
    Ok(())
}
