//! Clients whose operations are requests to the drive.

use std::sync::Arc;

use treering_engine::{ClassBytes, Kv, Lsn, Nanos};
use treering_traces::OpKind;

use super::places::Places;
use super::store::Direct;
use crate::clock::VirtualNanos;
use crate::drive::{DriveCounters, SimDrive};
use crate::queue::EventQueue;
use crate::replay::error::Failure;
use crate::replay::measure::Measures;
use crate::replay::virtual_time::{Backend, Free};

/// A drive and its clients.
pub(super) struct DirectBackend {
    drive: Arc<dyn SimDrive>,
    store: Direct,
    /// Clients by the time at which they are free.
    free: EventQueue<u32>,
    last: VirtualNanos,
}

impl DirectBackend {
    pub(super) fn new(drive: Arc<dyn SimDrive>, places: Arc<Places>, clients: u32) -> Self {
        let mut free = EventQueue::with_capacity(clients as usize);
        for client in 0..clients {
            free.push(VirtualNanos::ZERO, client);
        }
        DirectBackend {
            store: Direct::new(Arc::clone(&drive), places),
            drive,
            free,
            last: VirtualNanos::ZERO,
        }
    }
}

impl Backend for DirectBackend {
    type Store = Direct;
    type Counters = DriveCounters;

    fn store(&self) -> &Direct {
        &self.store
    }

    fn next_free(&mut self, _: &mut Measures) -> Result<Option<Free>, Failure> {
        let Some((at, client)) = self.free.pop() else {
            return Ok(None);
        };
        self.last = self.last.max(at);
        let at = Nanos(at.0);
        Ok(Some(Free { client, at }))
    }

    /// The drive has no clock of its own.
    fn begin(&self, _: Nanos) {}

    fn serve(
        &mut self,
        free: Free,
        (kind, _): (OpKind, Option<Lsn>),
        measures: &mut Measures,
    ) -> Result<(), Failure> {
        let served = self.drive.serve(free.at);
        measures.note(kind, served.done.0 - free.at.0, served.queue_ns);
        self.free.push(VirtualNanos(served.done.0), free.client);
        Ok(())
    }

    fn idle(&mut self, free: Free) -> Result<(), Failure> {
        self.free.push(VirtualNanos(free.at.0), free.client);
        Ok(())
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
