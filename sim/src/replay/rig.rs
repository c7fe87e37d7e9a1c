//! A store on a simulated drive that code drives directly. It serves experiments that change the
//! workload during a run, or inspect the store in between.
//!
//! Clients run in closed loop, on a drive in counting mode ([`TimingMode::Counting`]). As in a
//! replay, clients that wait for durability share a flush with those that arrive while the previous
//! one is in flight. Due background work is done after each operation.

use std::sync::Arc;

use treering_engine::device::BlockDevice;
use treering_engine::{BfStats, Kv, LeafFill, Nanos, Options, Stats, Store, Task, required_blocks};
use treering_traces::{Op, OpKind, OpSource};

use super::config::Acknowledge;
use super::error::ReplayError;
use super::pages::pace;
use super::virtual_time::scan;
use crate::clock::{VirtualClock, VirtualNanos};
use crate::csd::CompressionCounters;
use crate::drive::{DriveProfile, SimDrive};
use crate::predict::{DeviceParams, Pace};
use crate::queue::EventQueue;
use crate::ssd::TimingMode;
use crate::values::Values;

/// A store, its drive, and its virtual time.
///
/// ```
/// use treering_engine::Options;
/// use treering_sim::replay::Rig;
/// use treering_sim::ssd::builtin;
/// use treering_traces::generate::{GenParams, Workload, build};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (_, profile) = builtin("ssd").expect("a built-in profile");
/// let mut rig = Rig::new(&profile, &Options::default(), 2_000, 0)?;
/// let (_, mut source) = build(&GenParams::new(Workload::Zipf, 1_000))?;
/// let load = rig.run(&mut *source, 1_000)?;
/// let later = rig.run(&mut *source, 500)?;
/// assert_eq!((load.ops, later.ops), (1_000, 500));
/// assert_eq!(load.after, later.before);
/// # Ok(())
/// # }
/// ```
pub struct Rig {
    drive: Arc<dyn SimDrive>,
    clock: Arc<VirtualClock>,
    clients: Clients,
    store: Store,
    page_bytes: u64,
    values: Values,
    /// Operations so far.
    number: u64,
    op: Op,
    value: Vec<u8>,
}

/// The clients that work, and those that wait.
struct Clients {
    events: EventQueue<Event>,
    acknowledge: Acknowledge,
    count: u32,
    waiting: Vec<u32>,
    flush_done: VirtualNanos,
    background_done: VirtualNanos,
    /// The latest time that any client or device has reached.
    now: VirtualNanos,
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Event {
    Free(u32),
    Flush,
}

/// Activity of the store between two moments.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Operations.
    pub ops: u64,
    /// Number of gets that found their key.
    pub found: u64,
    /// Counters at its beginning.
    pub before: Stats,
    /// Counters at its end.
    pub after: Stats,
    /// Bytes of keys and values that puts and deletes wrote.
    pub user_bytes: u64,
    /// Bytes programmed, including garbage collection.
    pub flash: u64,
    /// Compressed bytes by class, without extent headers; all 0 on a drive without compression.
    pub stored: [u64; 3],
    page_bytes: u64,
}

impl Rig {
    /// Creates a store with room for `pages` pages, on a new drive.
    ///
    /// # Errors
    /// [`ReplayError`] if the drive or the store cannot be created.
    pub fn new(
        profile: &dyn DriveProfile,
        engine: &Options,
        pages: u64,
        seed: u64,
    ) -> Result<Rig, ReplayError> {
        let blocks = required_blocks(engine, pages);
        let drive =
            (profile.build(blocks, TimingMode::Counting, seed)).map_err(ReplayError::Drive)?;
        let clock = Arc::new(VirtualClock::new());
        let device: Arc<dyn BlockDevice> = drive.clone();
        let store = Store::open(device, clock.clone(), engine).map_err(failed)?;
        // Store and drive are dropped together, so data that nobody will read need not be written.
        store.abandon_on_drop();
        Ok(Rig {
            drive,
            clock,
            clients: Clients::new(1, Acknowledge::Deferred, VirtualNanos::ZERO),
            store,
            page_bytes: engine.page_size as u64,
            values: Values::new(seed, 0.5),
            number: 0,
            op: Op::default(),
            value: Vec::new(),
        })
    }

    /// Closes the store and opens it again with other options, which must be compatible.
    ///
    /// # Errors
    /// [`ReplayError::Engine`].
    pub fn reopen(self, engine: &Options) -> Result<Rig, ReplayError> {
        self.store.close().map_err(failed)?;
        let device: Arc<dyn BlockDevice> = self.drive.clone();
        let store = Store::open(device, self.clock.clone(), engine).map_err(failed)?;
        store.abandon_on_drop();
        let mut rig = Rig { store, ..self };
        rig.background()?;
        Ok(rig)
    }

    /// Sets the number of clients, and when their writes are acknowledged.
    /// ([`Acknowledge::Interval`] belongs to the engine's options.)
    ///
    /// # Errors
    /// [`ReplayError::Engine`] from the flush for waiting clients.
    pub fn set_clients(&mut self, count: u32, acknowledge: Acknowledge) -> Result<(), ReplayError> {
        if !self.clients.waiting.is_empty() {
            self.group_flush(self.clients.now)?;
        }
        self.clients = Clients::new(count, acknowledge, self.clients.now);
        Ok(())
    }

    /// The drive and the clients, as parameters of a predictor.
    #[must_use]
    pub fn predicted_on(&self) -> (DeviceParams, Pace) {
        let clients = (self.clients.count, self.clients.acknowledge);
        let pace = pace(&*self.drive, self.store.options(), clients);
        (self.drive.params(), pace)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Writes all dirty pages.
    ///
    /// # Errors
    /// [`ReplayError::Engine`].
    pub fn checkpoint(&mut self) -> Result<(), ReplayError> {
        self.store.checkpoint().map_err(failed)?;
        self.background()
    }

    /// Counts leaves by fill.
    ///
    /// # Errors
    /// [`ReplayError::Engine`].
    pub fn leaf_fill(&self) -> Result<Vec<LeafFill>, ReplayError> {
        self.store.leaf_fill().map_err(failed)
    }

    /// Does the next `ops` operations of a source, or as many as it has left.
    ///
    /// # Errors
    /// [`ReplayError`] if the source or the store fails.
    pub fn run(&mut self, source: &mut dyn OpSource, ops: u64) -> Result<Part, ReplayError> {
        let before = self.store.stats();
        let (flash, stored) = (self.flash(), self.stored());
        let mut op = std::mem::take(&mut self.op);
        let (mut done, mut found, mut user_bytes) = (0, 0, 0);
        while done < ops && source.next_op(&mut op)? {
            let (at, client) = self.next_client()?;
            self.clock.advance_to(at);
            found += u64::from(self.operate(&op).map_err(failed)?);
            user_bytes += op.user_bytes();
            done += 1;
            self.serve(at, client, matches!(op.kind, OpKind::Put | OpKind::Delete));
            self.background()?;
        }
        self.op = op;
        let now = self.stored();
        Ok(Part {
            ops: done,
            found,
            before,
            after: self.store.stats(),
            user_bytes,
            flash: self.flash() - flash,
            stored: std::array::from_fn(|i| now[i] - stored[i]),
            page_bytes: self.page_bytes,
        })
    }

    fn flash(&self) -> u64 {
        let counters = self.drive.counters();
        counters.nand_host + counters.nand_gc
    }

    fn stored(&self) -> [u64; 3] {
        let counters: Option<CompressionCounters> = self.drive.compression();
        counters.unwrap_or_default().stored
    }

    /// The client that is free first. There always is one, or a flush that will free one.
    fn next_client(&mut self) -> Result<(VirtualNanos, u32), ReplayError> {
        loop {
            match self.clients.events.pop() {
                Some((at, Event::Free(client))) => return Ok((at, client)),
                Some((at, Event::Flush)) => self.group_flush(at)?,
                None => self.group_flush(self.clients.now)?,
            }
        }
    }

    /// Flushes the log for all waiting clients.
    fn group_flush(&mut self, at: VirtualNanos) -> Result<(), ReplayError> {
        self.clock.advance_to(at);
        self.store.pump(Task::FlushLog).map_err(failed)?;
        let done = VirtualNanos(self.drive.serve(Nanos(at.0)).done.0);
        let clients = &mut self.clients;
        clients.flush_done = done;
        clients.now = clients.now.max(done);
        for client in std::mem::take(&mut clients.waiting) {
            clients.events.push(done, Event::Free(client));
        }
        Ok(())
    }

    /// Serves what an operation that began at `at` requested of the drive; then its client is free,
    /// or waits for a flush.
    fn serve(&mut self, at: VirtualNanos, client: u32, wrote: bool) {
        let done = VirtualNanos(self.drive.serve(Nanos(at.0)).done.0);
        let clients = &mut self.clients;
        clients.now = clients.now.max(done);
        if !wrote || clients.acknowledge != Acknowledge::Commit {
            clients.events.push(done, Event::Free(client));
            return;
        }
        if clients.waiting.is_empty() {
            let begins = done.max(clients.flush_done);
            clients.events.push(begins, Event::Flush);
        }
        clients.waiting.push(client);
    }

    /// Does due background work, as a client of its own.
    fn background(&mut self) -> Result<(), ReplayError> {
        self.clock.advance_to(self.clients.now);
        loop {
            let begins = self.clients.background_done.max(self.clients.now);
            self.clients.background_done = VirtualNanos(self.drive.serve(Nanos(begins.0)).done.0);
            let Some(task) = self.store.due() else {
                return Ok(());
            };
            self.store.pump(task).map_err(failed)?;
        }
    }

    /// Whether a get found its key.
    fn operate(&mut self, op: &Op) -> treering_engine::Result<bool> {
        self.number += 1;
        let mut found = false;
        match op.kind {
            OpKind::Get => found = self.store.get(&op.key, &mut self.value)?,
            OpKind::Put => {
                let value = self.values.make(self.number, op.value_len as usize);
                self.store.put(&op.key, value)?;
            }
            OpKind::Delete => drop(self.store.delete(&op.key)?),
            OpKind::Scan => scan(&self.store, op)?,
        }
        Ok(found)
    }
}

impl Clients {
    fn new(count: u32, acknowledge: Acknowledge, now: VirtualNanos) -> Clients {
        let mut events = EventQueue::with_capacity(count as usize + 1);
        (0..count.max(1)).for_each(|client| events.push(now, Event::Free(client)));
        Clients {
            events,
            acknowledge,
            count: count.max(1),
            waiting: Vec::new(),
            flush_done: now,
            background_done: now,
            now,
        }
    }
}

fn failed(source: treering_engine::Error) -> ReplayError {
    ReplayError::Engine {
        device: "simulated drive".into(),
        source,
    }
}

impl Part {
    fn per_op(&self, n: f64) -> f64 {
        n / self.ops.max(1) as f64
    }

    /// Pages read per operation.
    #[must_use]
    pub fn page_reads(&self) -> f64 {
        self.per_op((self.after.read.page - self.before.read.page) as f64 / self.page_bytes as f64)
    }

    /// Pages written to their home per operation.
    #[must_use]
    pub fn page_writes(&self) -> f64 {
        let bytes = self.after.written.page - self.before.written.page;
        self.per_op(bytes as f64 / self.page_bytes as f64)
    }

    /// Pages read and written per operation.
    #[must_use]
    pub fn page_ios(&self) -> f64 {
        self.page_reads() + self.page_writes()
    }

    /// Share of operations, all of them gets, that read no page.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        1.0 - self.page_reads()
    }

    /// Checkpoints completed.
    #[must_use]
    pub fn checkpoints(&self) -> u64 {
        self.after.checkpoints - self.before.checkpoints
    }

    /// Activity of mini-pages, if there are any.
    #[must_use]
    pub fn bf(&self) -> Option<BfStats> {
        let (after, before) = self.after.bf.zip(self.before.bf)?;
        Some(after.since(&before))
    }
}
