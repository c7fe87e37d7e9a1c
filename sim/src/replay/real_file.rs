//! A replay on a real file: real threads, the real clock, O_DIRECT where the file system has it.
//!
//! N client threads take operations from the trace in small batches; one more thread pumps the store's background work. Warm-up
//! runs to its end first, so that nothing of it leaks into what is measured. What the engine counted stands beside what the
//! kernel says this process caused to be written, with what is known of the difference ([`super::kernel`]).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use treering_engine::device::{BlockDevice, FileDevice, FileOptions};
use treering_engine::{Kv, Stats, Store, SystemClock};
use treering_traces::{Op, OpKind, OpSource};

use super::kernel::Place;
use super::measure::{Latencies, Series};
use super::outcome::{Outcome, Phase};
use super::plan::{Fit, Plan, Takes, fit};
use super::preload::Input;
use super::values::Values;
use super::{Progress, ReplayConfig, ReplayError};

/// Operations a client takes at a time.
const BATCH: usize = 64;

/// The trace, dealt out.
struct Dealer {
    reader: Input,
    number: u64,
    until: u64,
}

/// What one client thread did.
#[derive(Default)]
struct ClientResult {
    phase: Phase,
    latencies: Latencies,
}

/// Makes the file, replays the trace on it, and closes the store.
pub(super) fn run(
    config: &ReplayConfig,
    plan: &Plan,
    (path, choices): (&Path, FileOptions),
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, ReplayError> {
    let engine = |source| ReplayError::Engine {
        device: path.display().to_string(),
        source,
    };
    let file = FileDevice::create_with(path, plan.device_blocks, &choices);
    let file = Arc::new(file.map_err(|e| engine(e.into()))?);
    let device: Arc<dyn BlockDevice> = file.clone();
    let store = Store::open(device, Arc::new(SystemClock::new()), &plan.engine).map_err(engine)?;
    let reader = Input::open(&config.trace, &plan.loads)?;
    let dealer = Mutex::new(Dealer {
        reader,
        number: 0,
        until: plan.warmup_ops,
    });
    let stop = AtomicBool::new(false);
    let run = Run {
        config,
        plan,
        store: &store,
        dealer: &dealer,
        engine: &engine,
    };
    let (outcome, pumped) = std::thread::scope(|scope| {
        let pump = scope.spawn(|| store.pump_until(&stop));
        let outcome = run.both_phases(progress, (path, &file));
        stop.store(true, Ordering::Release);
        (outcome, pump.join().expect("the pump does not panic"))
    });
    let mut outcome = outcome?;
    pumped.map_err(engine)?;
    outcome.leaves = store.leaf_fill().map_err(engine)?;
    store.close().map_err(engine)?;
    Ok(outcome)
}

struct Run<'a, E: Fn(treering_engine::Error) -> ReplayError + Sync> {
    config: &'a ReplayConfig,
    plan: &'a Plan,
    store: &'a Store,
    dealer: &'a Mutex<Dealer>,
    engine: &'a E,
}

impl<E: Fn(treering_engine::Error) -> ReplayError + Sync> Run<'_, E> {
    fn both_phases(
        &self,
        progress: &mut dyn FnMut(Progress),
        (path, file): (&Path, &FileDevice),
    ) -> Result<Outcome, ReplayError> {
        progress(Progress::Replay(0, self.plan.ops));
        self.phase(progress)?;
        let before = self.store.stats();
        let place = Place::of(path, file);
        let engine = self.engine;
        let kernel_before = place.counters(file).map_err(engine)?;
        let began = Instant::now();
        self.dealer.lock().until = self.plan.ops;
        let result = self.phase(progress)?;
        let elapsed_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let after = self.store.stats();
        let kernel_after = place.counters(file).map_err(engine)?;
        let mut series = Series::new(0, result.phase.ops(), before.written, 0);
        series.note(elapsed_ns, &result.phase, after.written, 0);
        Ok(Outcome {
            phase: result.phase,
            done_ops: self.dealer.lock().number,
            kernel: Some(place.report(kernel_before, kernel_after, engine_bytes(&before, &after))),
            before,
            after,
            elapsed_ns,
            latencies: result.latencies,
            series: series.points,
            drive: None,
            compression: None,
            leaves: Vec::new(),
        })
    }

    /// All clients until the dealer has no more; the first error of any of them.
    fn phase(&self, progress: &mut dyn FnMut(Progress)) -> Result<ClientResult, ReplayError> {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.config.clients)
                .map(|client| scope.spawn(move || self.client(u64::from(client))))
                .collect();
            while clients.iter().any(|c| !c.is_finished()) {
                std::thread::sleep(std::time::Duration::from_millis(20));
                progress(Progress::Replay(self.dealer.lock().number, self.plan.ops));
            }
            let mut all = ClientResult::default();
            for client in clients {
                let one = client.join().expect("a client does not panic")?;
                all.phase.add(&one.phase);
                all.latencies.merge(one.latencies);
            }
            Ok(all)
        })
    }

    fn client(&self, client: u64) -> Result<ClientResult, ReplayError> {
        let mut result = ClientResult::default();
        let mut values = Values::new(self.config.seed ^ client, self.plan.zeros);
        let mut batch: Vec<Op> = (0..BATCH).map(|_| Op::default()).collect();
        let mut buffer = Vec::new();
        loop {
            let (first, taken) = self.deal(&mut batch)?;
            if taken == 0 {
                return Ok(result);
            }
            for (i, op) in batch[..taken].iter().enumerate() {
                self.operate(op, first + i as u64, &mut values, &mut buffer, &mut result)?;
            }
        }
    }

    /// Takes the next few operations; the number of the first of them counts from 1.
    fn deal(&self, batch: &mut [Op]) -> Result<(u64, usize), ReplayError> {
        let mut dealer = self.dealer.lock();
        let first = dealer.number + 1;
        let mut taken = 0;
        if self.config.stop.is_set() {
            return Ok((first, 0));
        }
        while taken < batch.len() && dealer.number < dealer.until {
            if !dealer.reader.next_op(&mut batch[taken])? {
                break;
            }
            dealer.number += 1;
            taken += 1;
        }
        Ok((first, taken))
    }

    fn operate(
        &self,
        op: &Op,
        number: u64,
        values: &mut Values,
        buffer: &mut Vec<u8>,
        result: &mut ClientResult,
    ) -> Result<(), ReplayError> {
        let began = Instant::now();
        let mut user_bytes = 0;
        match op.kind {
            OpKind::Get => drop(self.store.get(&op.key, buffer).map_err(self.engine)?),
            OpKind::Put => {
                let trace = self.config.trace.display().to_string();
                let limits = result.phase.limits(self.plan.engine.page_size);
                let len = match fit(
                    op,
                    (number, self.plan.loads.len()),
                    Takes::of_pages(&limits),
                    self.config.oversize,
                    &trace,
                )? {
                    Fit::Yes(len) => len,
                    Fit::Skip => {
                        result.phase.skipped += 1;
                        return Ok(());
                    }
                };
                let value = values.make(number, len as usize);
                self.store.put(&op.key, value).map_err(self.engine)?;
                user_bytes = op.key.len() as u64 + u64::from(len);
            }
            OpKind::Delete => {
                self.store.delete(&op.key).map_err(self.engine)?;
                user_bytes = op.key.len() as u64;
            }
            OpKind::Scan => super::scan(self.store, op).map_err(self.engine)?,
        }
        result.phase.count(op.kind, user_bytes);
        let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        result.latencies.note(op.kind, ns, 0);
        Ok(())
    }
}

fn engine_bytes(before: &Stats, after: &Stats) -> u64 {
    after.written.since(&before.written).total()
}
