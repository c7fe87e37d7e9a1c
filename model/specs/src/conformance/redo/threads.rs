//! Episodes with threads: a thread for each client and one for background work, on one store.
//!
//! The seed decides what each thread chooses, but not the order of the threads. Nothing fails while
//! the threads run. Then the store is dropped in order, or the process ends, or the power fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use treering_engine::device::CrashDevice;
use treering_engine::{Kv, Result, Store, Task};

use super::episode::CLIENTS;
use super::judge::{Entry, Heard, Judge, Refusal};
use super::setup::{KEYS, Setup};
use crate::conformance::led::Leads as _;
use crate::conformance::record::{self, LogUse, Recorder, on_behalf_of};
use crate::conformance::refused::Tally;
use crate::conformance::threads::at_once;
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;

/// The number of operations of each client in a life.
const OPERATIONS: u64 = 60;
const LIVES: u64 = 3;

/// Runs the episode of a seed and judges it.
///
/// # Errors
/// The engine's own. None is expected.
pub(super) fn run(
    setup: &Setup,
    seed: u64,
    until: &Deadline,
) -> Result<(Tally, Option<Box<Refusal>>)> {
    let mut rng = Random::new(seed);
    let mut device = setup.device();
    let recorder = Arc::new(setup.recorder());
    let packing = setup.packing(rng.word());
    let mut judge = Judge::new(CLIENTS.into(), setup, packing);
    let mut store = setup.begin(&device, packing, &recorder)?;
    drop(recorder.take());
    recorder.dawdle(rng.word());
    for _ in 0..LIVES {
        at_once(
            &mut rng,
            CLIENTS,
            |rng, done| pump(&store, rng, done),
            |c, rng| client(setup, &store, &recorder, c, (rng, until)),
        )?;
        let power = end(store, &recorder, &mut rng);
        if power {
            let image = recorder.cut_power(&device, rng.word());
            device = Arc::new(CrashDevice::from_image(image));
        }
        let found = Arc::new(setup.look(&device)?);
        let mut entries: Vec<Entry> = recorder.take().into_iter().map(said).collect();
        entries.push(Entry {
            client: None,
            heard: match power {
                true => Heard::Crashed(found),
                false => Heard::Restarted(found),
            },
        });
        let refusal = judge.hear(entries).err();
        if refusal.is_some() || until.is_over() {
            return Ok((judge.tally().clone(), refusal));
        }
        let packing = setup.packing(rng.word());
        recorder.hear(None, record::Heard::Log(LogUse::Opens(packing)));
        store = setup.open(&device, packing, &recorder)?;
    }
    store.abandon();
    let refusal = judge.hear(recorder.take().into_iter().map(said).collect());
    Ok((judge.tally().clone(), refusal.err()))
}

fn said(entry: record::Entry) -> Entry {
    Entry {
        client: entry.client,
        heard: Heard::Said(entry.heard),
    }
}

/// Ends the process, at once or in order. Returns whether the power fails then.
fn end(store: Store, recorder: &Recorder, rng: &mut Random) -> bool {
    match rng.below(3) {
        0 => {
            drop(store);
            recorder.hear(None, record::Heard::Log(LogUse::Dropped));
        }
        _ => store.abandon(),
    }
    rng.one_in(2)
}

fn pump(store: &Store, mut rng: Random, done: &AtomicBool) -> Result<()> {
    while !done.load(Ordering::Acquire) {
        match rng.below(8) {
            0 => drop(store.pump(Task::FlushLog)?),
            1 | 2 => drop(store.pump(Task::Checkpoint)?),
            _ => std::thread::yield_now(),
        }
    }
    Ok(())
}

fn client(
    setup: &Setup,
    store: &Store,
    recorder: &Recorder,
    c: u8,
    (mut rng, until): (Random, &Deadline),
) -> Result<()> {
    for _ in 0..OPERATIONS {
        if until.is_over() {
            break;
        }
        let len = 1 + rng.below(u64::from(setup.longest())) as u32;
        let key = Setup::key(rng.below(KEYS));
        let record = recorder.call_append(c, len);
        let lsn = on_behalf_of(c, || store.put(&key, &Setup::value(record, len)))?;
        match rng.one_in(4) {
            true => recorder.hear(Some(c), record::Heard::Log(LogUse::Leaves)),
            false => on_behalf_of(c, || store.sync(lsn))?,
        }
    }
    Ok(())
}
