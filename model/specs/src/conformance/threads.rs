//! Episodes with threads: four clients and a pump at once, on one store.
//!
//! The seed decides what each thread chooses, but not the order of the threads. So such an episode
//! cannot be repeated, but its recording can. Nothing fails while the threads run, and the power
//! fails only when they are done, with page writes still in the device's cache and some writes
//! never synced. The reason is that the mirror's device and the real one may differ between the
//! time at which a leader takes the log buffer and its write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use treering_engine::device::CrashDevice;
use treering_engine::{Kv, Result, Store, Task, survey};

use super::episode::CLIENTS;
use super::record::{Entry, Heard, Recorder, on_behalf_of};
use super::setup::Setup;
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;
use treering_oracle::value;

/// The number of operations of each client in a life.
const OPERATIONS: u64 = 400;
const LIVES: u64 = 2;

/// Runs the episode of a seed and passes on the recorded entries, life by life, as long as `judge`
/// returns true and there is time.
///
/// # Errors
/// The engine's own. None is expected.
pub fn run(
    setup: &Setup,
    seed: u64,
    until: &Deadline,
    judge: &mut dyn FnMut(Vec<Entry>) -> bool,
) -> Result<()> {
    let mut rng = Random::new(seed);
    let mut device = setup.device();
    let recorder: Arc<Recorder> = Arc::default();
    let mut store = setup.begin(&device, &recorder)?;
    recorder.dawdle(rng.word());
    for _ in 0..LIVES {
        live(setup, &store, &recorder, (&mut rng, until))?;
        drop(store);
        let heard = if rng.one_in(3) {
            Heard::Restarted(Arc::new(survey(device.clone())?))
        } else {
            device = Arc::new(CrashDevice::from_image(device.crash_seeded(rng.word())));
            Heard::Crashed(Arc::new(survey(device.clone())?))
        };
        recorder.hear(None, heard);
        store = setup.open(&device, &recorder)?;
        for key in 0..setup.keys.len() as u8 {
            get(setup, &store, &recorder, 0, key)?;
        }
        if !judge(recorder.take()) || until.is_over() {
            return Ok(());
        }
    }
    Ok(())
}

fn live(
    setup: &Setup,
    store: &Store,
    recorder: &Recorder,
    (rng, until): (&mut Random, &Deadline),
) -> Result<()> {
    at_once(
        rng,
        CLIENTS,
        |rng, done| pump(store, rng, done),
        |c, rng| client(setup, store, recorder, c, (rng, until)),
    )
}

/// Runs a thread for each client, and one for background work that goes on until they are done.
///
/// # Errors
/// The first one of a client, or that of the background work.
pub(super) fn at_once(
    rng: &mut Random,
    clients: u8,
    pump: impl FnOnce(Random, &AtomicBool) -> Result<()> + Send,
    client: impl Fn(u8, Random) -> Result<()> + Sync,
) -> Result<()> {
    let (done, client) = (&AtomicBool::new(false), &client);
    std::thread::scope(|scope| {
        let pump_rng = Random::new(rng.word());
        let pump = scope.spawn(move || pump(pump_rng, done));
        let clients: Vec<_> = (0..clients)
            .map(|c| {
                let rng = Random::new(rng.word());
                scope.spawn(move || client(c, rng))
            })
            .collect();
        let clients = clients.into_iter().map(|thread| thread.join());
        let outcomes: Vec<_> = clients.collect();
        done.store(true, Ordering::Release);
        let pumped = pump.join();
        for outcome in outcomes.into_iter().chain([pumped]) {
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(())
    })
}

fn pump(store: &Store, mut rng: Random, done: &AtomicBool) -> Result<()> {
    while !done.load(Ordering::Acquire) {
        match rng.below(8) {
            0 => drop(store.pump(Task::WriteBack)?),
            1 => drop(store.pump(Task::FlushLog)?),
            2..=4 => drop(store.pump(Task::Checkpoint)?),
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
    let mut bytes = Vec::new();
    for n in 0..OPERATIONS {
        if until.is_over() {
            break;
        }
        let key = rng.below(setup.keys.len() as u64) as u8;
        if rng.one_in(3) {
            get(setup, store, recorder, c, key)?;
            continue;
        }
        let absent = rng.one_in(4);
        let version = recorder.call_write(c, key, absent);
        setup.fill(&mut bytes, if absent { 0 } else { version });
        let lsn = on_behalf_of(c, || store.put(&setup.keys[usize::from(key)], &bytes))?;
        // The last write may be left unsynced.
        if n + 1 == OPERATIONS && rng.one_in(2) {
            break;
        }
        on_behalf_of(c, || store.sync(lsn))?;
    }
    Ok(())
}

fn get(setup: &Setup, store: &Store, recorder: &Recorder, c: u8, key: u8) -> Result<()> {
    let mut found = Vec::new();
    recorder.hear(Some(c), Heard::CallGet(key));
    on_behalf_of(c, || store.get(&setup.keys[usize::from(key)], &mut found))?;
    let version = value::version(&found).unwrap_or(u64::MAX);
    recorder.hear(Some(c), Heard::Answered(version));
    Ok(())
}
