//! A replay on a real file: real threads, real time, and O_DIRECT where the file system supports
//! it.
//!
//! N client threads take small batches of operations from the trace; one more thread does the
//! store's background work. The warm-up finishes first, so that none of it is measured. The report
//! compares the engine's counts with the bytes that the kernel says this process caused to be
//! written, and explains the differences where possible ([`kernel`]).

mod kernel;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use treering_engine::device::{BlockDevice, FileDevice, FileOptions};
use treering_engine::{Kv, LeafFill, Nanos, Options, Store, SystemClock};
use treering_traces::Op;

use self::kernel::Place;
use super::config::ReplayConfig;
use super::error::{Failure, ReplayError};
use super::look::Looked;
use super::measure::{Measures, Moment, Outcome};
use super::progress::Progress;
use super::source::{Next, Source};
use super::virtual_time::operate;
use crate::report::KernelReport;
use crate::values::Values;

/// Operations that a client takes at a time.
const BATCH: usize = 64;

/// Creates a file of this many blocks, replays the trace on it, and closes the store.
pub(super) fn run(
    (config, looked): (&ReplayConfig, &Looked),
    (path, choices, blocks, engine): (&Path, FileOptions, u64, &Options),
    progress: &mut dyn FnMut(Progress),
) -> Result<(Outcome<()>, KernelReport, Vec<LeafFill>), ReplayError> {
    let failed = |source| Failure::Engine(source).on(&path.display().to_string());
    let file = FileDevice::create_with(path, blocks, &choices);
    let file = Arc::new(file.map_err(|e| failed(e.into()))?);
    let device: Arc<dyn BlockDevice> = file.clone();
    let store = Store::open(device, Arc::new(SystemClock::new()), engine).map_err(failed)?;
    let run = Run {
        config,
        looked,
        store: &store,
        source: &Mutex::new(Source::open(config, looked)?),
    };
    let stop = AtomicBool::new(false);
    let (ran, pumped) = std::thread::scope(|scope| {
        let pump = scope.spawn(|| store.pump_until(&stop));
        let ran = run.both_phases(progress, (path, &file));
        stop.store(true, Ordering::Release);
        (ran, pump.join().expect("the pump does not panic"))
    });
    let (outcome, kernel) = ran.map_err(|e| e.on(&path.display().to_string()))?;
    pumped.map_err(failed)?;
    let leaves = store.leaf_fill().map_err(failed)?;
    store.close().map_err(failed)?;
    Ok((outcome, kernel, leaves))
}

/// State that all threads of a run share.
struct Run<'a> {
    config: &'a ReplayConfig,
    looked: &'a Looked,
    store: &'a Store,
    source: &'a Mutex<Source<'a>>,
}

impl Run<'_> {
    fn both_phases(
        &self,
        progress: &mut dyn FnMut(Progress),
        (path, file): (&Path, &FileDevice),
    ) -> Result<(Outcome<()>, KernelReport), Failure> {
        let Looked {
            ops, warmup_ops, ..
        } = *self.looked;
        progress(Progress::Replay(0, ops));
        self.source.lock().end_after(warmup_ops);
        self.phase(false, progress)?;
        self.drain(warmup_ops)?;
        let before = self.store.stats();
        let place = Place::of(path, file);
        let kernel_before = place.counters(file)?;
        let began = Instant::now();
        self.source.lock().end_after(ops);
        let mut measures = Measures::new(true);
        measures.begin(Nanos(0), 0, (before.written, 0));
        measures.merge(self.phase(true, progress)?);
        let at = Nanos(nanos_since(began));
        self.drain(ops)?;
        let after = self.store.stats();
        let kernel_after = place.counters(file)?;
        let written = after.written.since(&before.written).total();
        measures.last_sample(at, (after.written, 0));
        let outcome = Outcome {
            before: Moment {
                at: Nanos(0),
                stats: before,
                device: (),
            },
            after: Moment {
                at,
                stats: after,
                device: (),
            },
            done_ops: self.source.lock().number(),
            measures,
        };
        Ok((outcome, place.report(kernel_before, kernel_after, written)))
    }

    /// Leaves no change in memory, if that was asked for and so many operations were done.
    fn drain(&self, ops: u64) -> Result<(), Failure> {
        if self.config.drain && self.source.lock().number() == ops {
            self.store.checkpoint()?;
        }
        Ok(())
    }

    /// Runs all clients until the source is at its end; returns the first error of any client.
    fn phase(
        &self,
        measuring: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Measures, Failure> {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.config.clients)
                .map(|client| scope.spawn(move || self.client(u64::from(client), measuring)))
                .collect();
            while clients.iter().any(|c| !c.is_finished()) {
                std::thread::sleep(std::time::Duration::from_millis(20));
                let done = self.source.lock().number();
                progress(Progress::Replay(done, self.looked.ops));
            }
            let mut all = Measures::new(true);
            for client in clients {
                all.merge(client.join().expect("a client does not panic")?);
            }
            Ok(all)
        })
    }

    fn client(&self, client: u64, measuring: bool) -> Result<Measures, Failure> {
        let mut measures = Measures::new(true);
        measures.begin_thread(measuring);
        let mut values = Values::new(self.config.seed ^ client, self.looked.header.zeros);
        let mut batch: Vec<(u64, Op)> = (0..BATCH).map(|_| (0, Op::default())).collect();
        let mut buffer = Vec::new();
        loop {
            let taken = self.deal(&mut batch, &mut measures)?;
            if taken == 0 {
                return Ok(measures);
            }
            for (number, op) in &batch[..taken] {
                let began = Instant::now();
                operate(self.store, (op, *number), &mut values, &mut buffer)?;
                measures.phase.count(op.kind, op.user_bytes());
                measures.note(op.kind, nanos_since(began), 0);
            }
        }
    }

    /// Takes the next few operations, with their numbers, and counts skipped ones.
    fn deal(&self, batch: &mut [(u64, Op)], measures: &mut Measures) -> Result<usize, ReplayError> {
        let mut source = self.source.lock();
        let mut taken = 0;
        while taken < batch.len() {
            let (number, op) = &mut batch[taken];
            match source.next(op)? {
                Next::Over => break,
                Next::Skip => measures.phase.skipped += 1,
                Next::Op => {
                    *number = source.number();
                    taken += 1;
                }
            }
        }
        Ok(taken)
    }
}

fn nanos_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
