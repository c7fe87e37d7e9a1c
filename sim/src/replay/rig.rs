//! A store on a simulated drive of its own, fed by hand: for experiments that change the workload on the way, or look in between.
//!
//! One client in closed loop, on a drive that counts ([`TimingMode::Counting`]). Background work that is due is done after each operation.

use std::ops::ControlFlow;
use std::sync::Arc;

use treering_engine::device::BlockDevice;
use treering_engine::{BfStats, Kv, LeafFill, Nanos, Options, Stats, Store, required_blocks};
use treering_traces::{Op, OpKind, OpSource};

use super::ReplayError;
use super::values::Values;
use crate::clock::{VirtualClock, VirtualNanos};
use crate::ssd::{SimSsd, SsdProfile, TimingMode};

/// A store, its drive, and the time it is there.
pub struct Rig {
    drive: Arc<SimSsd>,
    clock: Arc<VirtualClock>,
    now: VirtualNanos,
    store: Store,
    page_bytes: u64,
    values: Values,
    /// Operations so far.
    number: u64,
    op: Op,
    value: Vec<u8>,
}

/// What the store did between two moments.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Operations.
    pub ops: u64,
    /// Gets that found their key.
    pub found: u64,
    /// Counters at its beginning.
    pub before: Stats,
    /// Counters at its end.
    pub after: Stats,
    page_bytes: u64,
}

impl Rig {
    /// A new store with room for `pages` pages, on a new drive.
    ///
    /// # Errors
    /// [`ReplayError`] if there cannot be such a drive, or such a store on it.
    pub fn new(
        profile: &SsdProfile,
        engine: &Options,
        pages: u64,
        seed: u64,
    ) -> Result<Rig, ReplayError> {
        let blocks = required_blocks(engine, pages);
        let drive = Arc::new(SimSsd::new(profile, blocks, TimingMode::Counting, seed)?);
        let clock = Arc::new(VirtualClock::new());
        let device: Arc<dyn BlockDevice> = drive.clone();
        let store = Store::open(device, clock.clone(), engine).map_err(failed)?;
        Ok(Rig {
            drive,
            clock,
            now: VirtualNanos::ZERO,
            store,
            page_bytes: engine.page_size as u64,
            values: Values::new(seed, 0.5),
            number: 0,
            op: Op::default(),
            value: Vec::new(),
        })
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Writes all that is dirty.
    ///
    /// # Errors
    /// [`ReplayError::Engine`].
    pub fn checkpoint(&mut self) -> Result<(), ReplayError> {
        self.store.checkpoint().map_err(failed)?;
        self.serve();
        Ok(())
    }

    /// How full the leaves are.
    ///
    /// # Errors
    /// [`ReplayError::Engine`].
    pub fn leaf_fill(&self) -> Result<Vec<LeafFill>, ReplayError> {
        self.store.leaf_fill().map_err(failed)
    }

    /// Does the next `ops` operations of a source, or what it has left.
    ///
    /// # Errors
    /// [`ReplayError`] if the source or the store fails.
    pub fn run(&mut self, source: &mut dyn OpSource, ops: u64) -> Result<Part, ReplayError> {
        let before = self.store.stats();
        let mut op = std::mem::take(&mut self.op);
        let (mut done, mut found) = (0, 0);
        while done < ops && source.next_op(&mut op)? {
            found += u64::from(self.operate(&op).map_err(failed)?);
            done += 1;
        }
        self.op = op;
        Ok(Part {
            ops: done,
            found,
            before,
            after: self.store.stats(),
            page_bytes: self.page_bytes,
        })
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
            OpKind::Scan => {
                let mut left = op.scan_len;
                self.store.scan(&op.key, &mut |_, _| {
                    left = left.saturating_sub(1);
                    match left {
                        0 => ControlFlow::Break(()),
                        _ => ControlFlow::Continue(()),
                    }
                })?;
            }
        }
        self.serve();
        while let Some(task) = self.store.due() {
            self.store.pump(task)?;
            self.serve();
        }
        Ok(found)
    }

    fn serve(&mut self) {
        self.now = VirtualNanos(self.drive.serve(Nanos(self.now.0)).done.0);
        self.clock.advance_to(self.now);
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

    /// Pages read, an operation.
    #[must_use]
    pub fn page_reads(&self) -> f64 {
        self.per_op((self.after.read.page - self.before.read.page) as f64 / self.page_bytes as f64)
    }

    /// Pages written at their home, an operation.
    #[must_use]
    pub fn page_writes(&self) -> f64 {
        let bytes = self.after.written.page - self.before.written.page;
        self.per_op(bytes as f64 / self.page_bytes as f64)
    }

    /// Pages read and written, an operation.
    #[must_use]
    pub fn page_ios(&self) -> f64 {
        self.page_reads() + self.page_writes()
    }

    /// Share of the operations, all of them gets, for which no page was read.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        1.0 - self.page_reads()
    }

    /// Checkpoints completed.
    #[must_use]
    pub fn checkpoints(&self) -> u64 {
        self.after.checkpoints - self.before.checkpoints
    }

    /// What the mini-pages did, if there are any.
    #[must_use]
    pub fn bf(&self) -> Option<BfStats> {
        let (after, before) = self.after.bf.zip(self.before.bf)?;
        Some(after.since(&before))
    }
}
