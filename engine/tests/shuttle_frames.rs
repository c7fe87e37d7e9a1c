//! Runs more threads than frames under a seeded scheduler: a cache of two frames, and three threads
//! that split and merge leaves.
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" cargo test --release -p treering-engine --test shuttle_frames \
//!   --target-dir target/shuttle
//! ```
//!
//! If two threads each waited for a frame with their leaves latched, both would wait forever.
//! Shuttle reports that as a deadlock, or as too many steps where they spin. `TREERING_SCHEDULES`
//! is the number of schedules for each store and scheduler, `TREERING_SEED` the seed.
//!
//! Mutation check: with `RUSTFLAGS="--cfg shuttle --cfg treering_mutations"
//! TREERING_MUTATION=frame-awaited-under-latch` this must fail.
#![cfg(shuttle)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};
use treering_engine::device::MemDevice;
use treering_engine::{
    BfOptions, Durability, Kv, MIN_CACHE_PAGES, Options, PageStoreKind, Store, SystemClock,
    TablePersist, TreeKind,
};

const THREADS: u32 = 3;
/// Four keys fit into a leaf. Each thread splits a few times, and merges what it has split.
const KEYS: u32 = 14;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

fn stores() -> [Options; 3] {
    let frames = MIN_CACHE_PAGES;
    let base = Options {
        cache_bytes: frames * 4096,
        durability: Durability::Deferred,
        log_bytes: 64 * 4096,
        checkpoint_log_bytes: 16 * 4096,
        log_buffer_bytes: 4 * 4096,
        write_batch_pages: 4,
        ..Options::default()
    };
    let table = TablePersist::Checkpoint;
    [
        base.clone(),
        Options {
            store: PageStoreKind::CopyOnWrite { table },
            ..base.clone()
        },
        Options {
            tree: TreeKind::Bf(BfOptions::PUBLISHED),
            cache_bytes: (frames + 2) * 4096,
            ..base
        },
    ]
}

fn key(thread: u32, n: u32) -> Vec<u8> {
    [thread.to_be_bytes(), n.to_be_bytes()].concat()
}

/// Puts all keys of a thread and deletes most of them.
fn work(store: &Store, thread: u32) {
    for n in 0..KEYS {
        store
            .put(&key(thread, n), &[thread as u8; 900])
            .expect("puts");
    }
    for n in 1..KEYS {
        store.delete(&key(thread, n)).expect("deletes");
    }
}

/// Runs one schedule, and returns the number of splits and merges.
fn play(options: &Options) -> (u64, u64) {
    let device = Arc::new(MemDevice::new(1_024));
    let store = Store::open(device, Arc::new(SystemClock::new()), options).expect("opens");
    let store = Arc::new(store);
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let store = Arc::clone(&store);
            thread::spawn(move || work(&store, number))
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("a thread"));
    let mut left = BTreeMap::new();
    store
        .scan(b"", &mut |key, value| {
            left.insert(key.to_vec(), value.len());
            ControlFlow::Continue(())
        })
        .expect("scans");
    let expected: BTreeMap<_, _> = (0..THREADS).map(|thread| (key(thread, 0), 900)).collect();
    assert_eq!(left, expected);
    let stats = store.stats();
    (stats.splits, stats.merges)
}

fn explore(scheduler: impl Fn(u64, usize) -> Box<dyn Scheduler + Send>) {
    let schedules = number("TREERING_SCHEDULES", 60) as usize;
    for (options, seed) in stores().into_iter().zip(number("TREERING_SEED", 0)..) {
        let did: Arc<Mutex<(u64, u64)>> = Arc::default();
        let mut config = Config::new();
        config.stack_size = 1 << 20;
        config.max_steps = MaxSteps::FailAfter(5_000_000);
        config.silence_warnings = true;
        config.failure_persistence = FailurePersistence::None;
        let (into, store) = (Arc::clone(&did), options.clone());
        Runner::new(scheduler(seed, schedules), config).run(move || {
            let (splits, merges) = play(&store);
            let mut did = into.lock().expect("no schedule panics here");
            did.0 += splits;
            did.1 += merges;
        });
        let (splits, merges) = *did.lock().expect("no schedule panics here");
        println!(
            "{} on {:?}, seed {seed}: {schedules} schedules, {splits} splits, {merges} merges",
            options.tree.name(),
            options.store
        );
        assert!(splits > 0 && merges > 0);
    }
}

#[test]
fn every_random_schedule_over_two_frames_ends() {
    explore(|seed, schedules| Box::new(RandomScheduler::new_from_seed(seed, schedules)));
}

#[test]
fn every_schedule_with_few_preemptions_over_two_frames_ends() {
    explore(|seed, schedules| Box::new(PctScheduler::new_from_seed(seed, 4, schedules)));
}
