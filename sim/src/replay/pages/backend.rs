//! A tree of pages on a simulated drive, in virtual time.
//!
//! ```text
//! event queue ──earliest──▶ client ──▶ its operation runs on the real engine
//!      ▲                                     │ the drive records the requests
//!      └────── the client's next turn ◀── drive.serve(now): when is it done?
//!              background client ◀── store.due()? pump, serve: its I/O delays the others
//! ```
//!
//! *Group commit* happens in virtual time: a client that waits for durability waits for the first
//! log flush that begins after its operation, and for what the operation itself reads. While a
//! flush is in flight, other clients gather for the next.

use std::sync::Arc;

use treering_engine::device::BlockDevice;
use treering_engine::{
    ClassBytes, Durability, IoClass, Kv, Lsn, Nanos, Options, RingUse, Stats, Store, Task,
};
use treering_traces::OpKind;

use crate::clock::{VirtualClock, VirtualNanos};
use crate::drive::{DriveCounters, SimDrive};
use crate::queue::EventQueue;
use crate::replay::config::{Acknowledge, ReplayConfig};
use crate::replay::error::{Failure, ReplayError};
use crate::replay::measure::Measures;
use crate::replay::virtual_time::{Backend, Counted, Free};
use crate::ssd::SsdCounters;

/// An event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A client is free.
    Free(u32),
    /// The log flush that waiting clients share begins.
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

/// A store with background work.
pub(super) trait Hosted: Counted {
    /// The most urgent task that is due now.
    fn due(&self) -> Result<Option<Task>, Failure>;

    /// Does one bounded step of a task.
    fn pump(&self, task: Task) -> Result<(), Failure>;

    /// Takes a checkpoint that leaves no change in memory.
    fn drain(&self) -> Result<(), Failure>;

    /// What the ring of mini-pages holds, if the store has one and is there.
    fn ring_use(&self) -> Option<RingUse>;
}

impl Hosted for Store {
    fn due(&self) -> Result<Option<Task>, Failure> {
        Ok(Store::due(self))
    }

    fn pump(&self, task: Task) -> Result<(), Failure> {
        Store::pump(self, task)?;
        Ok(())
    }

    fn drain(&self) -> Result<(), Failure> {
        Kv::checkpoint(self)?;
        Ok(())
    }

    fn ring_use(&self) -> Option<RingUse> {
        Store::ring_use(self)
    }
}

/// A store, its drive and its clients.
pub(super) struct DriveBackend<S> {
    drive: Arc<dyn SimDrive>,
    store: S,
    clock: Arc<VirtualClock>,
    /// Whether writes wait for a flush.
    commits: bool,
    events: EventQueue<Event>,
    /// The current client skips the queue while it is the earliest.
    at_hand: Option<(VirtualNanos, u32)>,
    waiting: Vec<Waiter>,
    /// When the current log flush is done.
    flush_done: VirtualNanos,
    /// When the background client is done.
    background_done: VirtualNanos,
    /// Nothing begins before.
    not_before: VirtualNanos,
    /// When the last client was free.
    last: VirtualNanos,
}

/// A new store on a device.
pub(super) fn open(
    device: Arc<dyn BlockDevice>,
    clock: Arc<VirtualClock>,
    engine: &Options,
) -> Result<Store, Failure> {
    debug_assert_ne!(
        engine.durability,
        Durability::PerCommit,
        "clients wait here"
    );
    let store = Store::open(device, clock, engine)?;
    // Store and drive are dropped together, so data that nobody will read need not be written.
    store.abandon_on_drop();
    Ok(store)
}

impl DriveBackend<Store> {
    /// A new store on `drive`.
    pub(super) fn open(
        drive: Arc<dyn SimDrive>,
        engine: &Options,
        config: &ReplayConfig,
    ) -> Result<DriveBackend<Store>, Failure> {
        let clock = Arc::new(VirtualClock::new());
        let store = open(drive.clone(), clock.clone(), engine)?;
        Ok(DriveBackend::new(drive, store, clock, config))
    }
}

impl<S: Hosted> DriveBackend<S> {
    /// The clients of a store that was just opened on `drive`.
    pub(super) fn new(
        drive: Arc<dyn SimDrive>,
        store: S,
        clock: Arc<VirtualClock>,
        config: &ReplayConfig,
    ) -> DriveBackend<S> {
        // The creation of the store finishes before the first client starts.
        drive.serve(Nanos(0));
        let mut events = EventQueue::with_capacity(config.clients as usize + 1);
        for client in 1..config.clients {
            events.push(VirtualNanos::ZERO, Event::Free(client));
        }
        DriveBackend {
            drive,
            store,
            clock,
            commits: config.acknowledge == Acknowledge::Commit,
            events,
            at_hand: Some((VirtualNanos::ZERO, 0)),
            waiting: Vec::new(),
            flush_done: VirtualNanos::ZERO,
            background_done: VirtualNanos::ZERO,
            not_before: VirtualNanos::ZERO,
            last: VirtualNanos::ZERO,
        }
    }

    /// Adds a client to those that wait; their flush begins when the current one is done.
    fn wait_for_flush(&mut self, waiter: Waiter) {
        let begins = waiter.written.max(self.flush_done);
        if self.waiting.is_empty() {
            self.events.push(begins, Event::Flush);
        }
        self.waiting.push(waiter);
    }

    /// Flushes the log for all waiting clients.
    fn group_flush(&mut self, at: VirtualNanos, measures: &mut Measures) -> Result<(), Failure> {
        self.clock.advance_to(at);
        self.store.pump(Task::FlushLog)?;
        let served = self.drive.serve(Nanos(at.0));
        let done = VirtualNanos(served.done.0);
        self.flush_done = done;
        for waiter in std::mem::take(&mut self.waiting) {
            // Waiting for the previous flush, and for the busy drive, is queueing time.
            let queue = waiter.queue_ns + at.since(waiter.written) + served.queue_ns;
            measures.note(waiter.kind, done.since(waiter.began), queue);
            self.events.push(done, Event::Free(waiter.client));
        }
        Ok(())
    }

    /// Does due background work, as a client of its own.
    fn background(&mut self, now: VirtualNanos) -> Result<(), Failure> {
        // An interval ends at its time, not an operation later.
        self.clock.advance_to(now);
        while let Some(task) = self.store.due()? {
            let begins = self.background_done.max(now);
            self.store.pump(task)?;
            self.background_done = VirtualNanos(self.drive.serve(Nanos(begins.0)).done.0);
        }
        Ok(())
    }
}

impl<S: Hosted> Backend for DriveBackend<S> {
    type Store = S;
    type Counters = DriveCounters;

    fn store(&self) -> &S {
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
                        self.group_flush(at.max(self.not_before), measures)?;
                        continue;
                    }
                },
            };
            let at = at.max(self.not_before);
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

    fn drain(&mut self, at: Nanos) -> Result<Nanos, Failure> {
        let begins = self.background_done.max(VirtualNanos(at.0));
        self.clock.advance_to(begins);
        self.store.drain()?;
        let done = self.drive.serve(Nanos(begins.0)).done;
        self.background_done = VirtualNanos(done.0);
        self.not_before = self.background_done;
        Ok(done)
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
            None => Counted::stats(&self.store).written,
            Some(compression) => {
                let [log, page, extra] = compression.stored;
                ClassBytes { log, page, extra }
            }
        };
        (written, self.drive.counters().nand_gc)
    }

    fn ring_use(&self) -> Option<RingUse> {
        self.store.ring_use()
    }

    fn begin_measuring(&mut self) {
        self.drive.restart_mean();
    }
}

/// Checks that engine and drive have counted the same bytes of each class since the store's
/// creation.
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
