//! A tree in simulated persistent memory, in virtual time: lines of all clients interleave on the
//! device, and an additional client cleans the logs.

use std::collections::VecDeque;
use std::sync::Arc;

use treering_engine::{ClassBytes, Cleaning, Lsn, Nanos, PmOptions, PmStore};
use treering_traces::OpKind;

use crate::pm::{PmCounters, SimPm};
use crate::replay::config::ReplayConfig;
use crate::replay::error::Failure;
use crate::replay::measure::Measures;
use crate::replay::virtual_time::{Backend, Free};

/// A store, its device, and its clients.
pub(super) struct PmBackend {
    pm: Arc<SimPm>,
    store: PmStore,
    /// Whether cleaning stops all other clients, as naive cleaning does (CCL-BTree §3.4).
    stops_everybody: bool,
    /// Whether queues are modelled; then clients write while logs are cleaned.
    queued: bool,
    /// Number of the background client.
    background: u32,
    /// Idle clients.
    free: VecDeque<Free>,
    /// The current operation of each client, its start, and whether it is measured.
    under_way: Vec<Option<(OpKind, Nanos, bool)>>,
    /// When the last operation began, until cleaning has been requested after it.
    submitted: Option<Nanos>,
    /// Whether the background client is working.
    cleaning: bool,
    /// Bytes that reached the medium meanwhile.
    cleaning_bytes: u64,
    /// Clients that wait for the end of the cleaning, if cleaning stops all clients.
    parked: Vec<u32>,
    /// When the last client was done.
    last: Nanos,
}

impl PmBackend {
    /// A new store on a device.
    pub(super) fn open(
        pm: Arc<SimPm>,
        options: &PmOptions,
        config: &ReplayConfig,
    ) -> Result<PmBackend, Failure> {
        let store = PmStore::open(pm.clone(), options)?;
        // The creation of the store finishes before the first client starts.
        pm.serve(Nanos(0));
        let at = Nanos(0);
        Ok(PmBackend {
            pm,
            store,
            stops_everybody: options.tree.facts().cleaning == Some(Cleaning::Naive),
            queued: config.timing,
            background: config.clients,
            free: (0..config.clients)
                .map(|client| Free { client, at })
                .collect(),
            under_way: vec![None; config.clients as usize],
            submitted: None,
            cleaning: false,
            cleaning_bytes: 0,
            parked: Vec::new(),
            last: at,
        })
    }

    /// Bytes that cleaning wrote to the medium; `None` if other writes interleaved.
    pub(super) fn cleaning_bytes(&self) -> Option<u64> {
        (!self.queued).then_some(self.cleaning_bytes)
    }

    /// Does one step of cleaning, if it is due.
    fn clean(&mut self, now: Nanos) -> Result<(), Failure> {
        if let Some(task) = self.store.due() {
            let before = self.pm.counters();
            self.store.pump(task)?;
            let written = self.pm.counters().since(&before);
            self.cleaning_bytes += written.media_write_bytes().iter().sum::<u64>();
            self.pm.submit(self.background, now);
            self.cleaning = true;
        }
        Ok(())
    }
}

impl Backend for PmBackend {
    type Store = PmStore;
    type Counters = PmCounters;

    fn store(&self) -> &PmStore {
        &self.store
    }

    #[inline]
    fn next_free(&mut self, measures: &mut Measures) -> Result<Option<Free>, Failure> {
        // Here and not in `serve`, so that a point of the series shows what the operation wrote,
        // without the cleaning after it.
        if let Some(now) = self.submitted.take()
            && !self.cleaning
        {
            self.clean(now)?;
        }
        loop {
            if let Some(free) = self.free.pop_front() {
                return Ok(Some(free));
            }
            let Some((client, served)) = self.pm.next_done() else {
                return Ok(None);
            };
            let now = served.done;
            self.last = self.last.max(now);
            if client == self.background {
                self.cleaning = false;
                self.clean(now)?;
                if !self.cleaning {
                    let parked = self.parked.drain(..);
                    self.free
                        .extend(parked.map(|client| Free { client, at: now }));
                }
                continue;
            }
            if let Some((kind, began, true)) = self.under_way[client as usize].take() {
                measures.note(kind, now.0 - began.0, served.queue_ns);
            }
            if self.cleaning && self.stops_everybody {
                self.parked.push(client);
                continue;
            }
            return Ok(Some(Free { client, at: now }));
        }
    }

    /// The store has no clock.
    fn begin(&self, _now: Nanos) {}

    #[inline]
    fn serve(
        &mut self,
        Free { client, at }: Free,
        (kind, _): (OpKind, Option<Lsn>),
        measures: &mut Measures,
    ) -> Result<(), Failure> {
        self.under_way[client as usize] = Some((kind, at, measures.is_measuring()));
        self.pm.submit(client, at);
        self.submitted = Some(at);
        Ok(())
    }

    fn idle(&mut self, free: Free) -> Result<(), Failure> {
        self.free.push_front(free);
        Ok(())
    }

    fn settle(&mut self) -> Nanos {
        self.pm.settle();
        self.last
    }

    fn counters(&self) -> PmCounters {
        self.pm.counters()
    }

    fn reached(&self) -> (ClassBytes, u64) {
        let [log, page, extra] = self.pm.counters().media_write_bytes();
        (ClassBytes { log, page, extra }, 0)
    }

    fn begin_measuring(&mut self) {
        self.cleaning_bytes = 0;
    }
}
