//! A tree of pages on a simulated drive, in virtual time.
//!
//! ```text
//! event queue ──earliest──▶ client ──▶ its operation runs on the real engine
//!      ▲                                     │ the drive records what it was asked
//!      └────── the client's next turn ◀── drive.serve(now): when is that done?
//!                                            │
//!              background client ◀── store.due()? pump, serve: its I/O delays the others
//! ```
//!
//! *Group commit* happens in virtual time: a client that waits for durability waits for the first
//! log flush that begins after its operation did, and for what the operation itself reads. While
//! one is in flight, others gather for the next.

use std::sync::Arc;

use treering_engine::device::BlockDevice;
use treering_engine::{
    ClassBytes, Durability, IoClass, Kv, LeafFill, Lsn, Nanos, Options, Stats, Store, Task,
};
use treering_traces::OpKind;

use crate::clock::{VirtualClock, VirtualNanos};
use crate::drive::{DriveCounters, SimDrive};
use crate::queue::EventQueue;
use crate::replay::config::{Acknowledge, ReplayConfig};
use crate::replay::error::{Failure, ReplayError};
use crate::replay::measure::Measures;
use crate::replay::virtual_time::{Backend, Free};
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

/// A store, its drive, and its clients.
pub(super) struct DriveBackend {
    drive: Arc<dyn SimDrive>,
    store: Store,
    clock: Arc<VirtualClock>,
    /// Whether writes wait for a flush.
    commits: bool,
    events: EventQueue<Event>,
    /// The client at hand needs no trip through the queue while it is the earliest.
    at_hand: Option<(VirtualNanos, u32)>,
    waiting: Vec<Waiter>,
    /// When the log flush in flight is done.
    flush_done: VirtualNanos,
    /// When the background client is done.
    background_done: VirtualNanos,
    /// When the last client was free.
    last: VirtualNanos,
}

impl DriveBackend {
    /// A new store on `drive`.
    pub(super) fn open(
        drive: Arc<dyn SimDrive>,
        engine: &Options,
        config: &ReplayConfig,
    ) -> Result<DriveBackend, Failure> {
        debug_assert_ne!(
            engine.durability,
            Durability::PerCommit,
            "clients wait here"
        );
        let clock = Arc::new(VirtualClock::new());
        let device: Arc<dyn BlockDevice> = drive.clone();
        let store = Store::open(device, clock.clone(), engine)?;
        // Store and drive end together: what nobody will read is not written.
        store.abandon_on_drop();
        // Making the store is over before the first client comes.
        drive.serve(Nanos(0));
        let mut events = EventQueue::with_capacity(config.clients as usize + 1);
        for client in 1..config.clients {
            events.push(VirtualNanos::ZERO, Event::Free(client));
        }
        Ok(DriveBackend {
            drive,
            store,
            clock,
            commits: config.acknowledge == Acknowledge::Commit,
            events,
            at_hand: Some((VirtualNanos::ZERO, 0)),
            waiting: Vec::new(),
            flush_done: VirtualNanos::ZERO,
            background_done: VirtualNanos::ZERO,
            last: VirtualNanos::ZERO,
        })
    }

    /// How full the leaves are. Pages are read for that.
    pub(super) fn leaf_fill(&self) -> Result<Vec<LeafFill>, Failure> {
        Ok(self.store.leaf_fill()?)
    }

    /// Puts a client among those that wait; the flush begins when the one in flight is done.
    fn wait_for_flush(&mut self, waiter: Waiter) {
        let begins = waiter.written.max(self.flush_done);
        if self.waiting.is_empty() {
            self.events.push(begins, Event::Flush);
        }
        self.waiting.push(waiter);
    }

    /// One log flush for everybody who waits.
    fn group_flush(&mut self, at: VirtualNanos, measures: &mut Measures) -> Result<(), Failure> {
        self.clock.advance_to(at);
        self.store.pump(Task::FlushLog)?;
        let served = self.drive.serve(Nanos(at.0));
        let done = VirtualNanos(served.done.0);
        self.flush_done = done;
        for waiter in std::mem::take(&mut self.waiting) {
            // Waiting for the flush before, and for the busy drive, is queueing.
            let queue = waiter.queue_ns + at.since(waiter.written) + served.queue_ns;
            measures.note(waiter.kind, done.since(waiter.began), queue);
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
}

impl Backend for DriveBackend {
    type Store = Store;
    type Counters = DriveCounters;

    fn store(&self) -> &Store {
        &self.store
    }

    #[inline]
    fn next_free(&mut self, measures: &mut Measures) -> Result<Option<Free>, Failure> {
        loop {
            let (at, client) = match self.at_hand.take() {
                Some((at, client)) => match self.events.next_at() {
                    Some(earlier) if earlier <= at => {
                        self.events.push(at, Event::Free(client));
                        continue;
                    }
                    _ => (at, client),
                },
                None => match self.events.pop() {
                    None => return Ok(None),
                    Some((at, Event::Free(client))) => (at, client),
                    Some((at, Event::Flush)) => {
                        self.group_flush(at, measures)?;
                        continue;
                    }
                },
            };
            self.last = self.last.max(at);
            return Ok(Some(Free {
                client,
                at: Nanos(at.0),
            }));
        }
    }

    #[inline]
    fn begin(&self, now: Nanos) {
        self.clock.advance_to(VirtualNanos(now.0));
    }

    #[inline]
    fn serve(
        &mut self,
        free: Free,
        (kind, lsn): (OpKind, Option<Lsn>),
        measures: &mut Measures,
    ) -> Result<(), Failure> {
        let (now, client) = (VirtualNanos(free.at.0), free.client);
        let served = self.drive.serve(free.at);
        let done = VirtualNanos(served.done.0);
        match lsn {
            Some(lsn) if self.commits && lsn.0 > 0 => {
                self.wait_for_flush(Waiter {
                    client,
                    kind,
                    began: now,
                    written: done,
                    queue_ns: served.queue_ns,
                });
                self.background(now)
            }
            _ => {
                measures.note(kind, done.since(now), served.queue_ns);
                self.at_hand = Some((done, client));
                self.background(done)
            }
        }
    }

    fn idle(&mut self, free: Free) -> Result<(), Failure> {
        let now = VirtualNanos(free.at.0);
        self.begin(free.at);
        self.at_hand = Some((now, free.client));
        self.background(now)
    }

    fn settle(&mut self) -> Nanos {
        Nanos(self.last.0)
    }

    fn counters(&self) -> DriveCounters {
        DriveCounters {
            flash: self.drive.counters(),
            compression: self.drive.compression(),
        }
    }

    fn reached(&self) -> (ClassBytes, u64) {
        let written = match self.drive.compression() {
            None => self.store.stats().written,
            Some(compression) => {
                let [log, page, extra] = compression.stored;
                ClassBytes { log, page, extra }
            }
        };
        (written, self.drive.counters().nand_gc)
    }

    fn begin_measuring(&mut self) {
        self.drive.restart_mean();
    }
}

/// Engine and drive have counted the same bytes, class by class, from the store's first block on.
pub(super) fn check_counters(stats: &Stats, drive: &SsdCounters) -> Result<(), ReplayError> {
    let names = ["log", "page", "extra"];
    for (i, class) in IoClass::ALL.into_iter().enumerate() {
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
