//! Runs our engines under a seeded scheduler: three clients and a pump on a small store, on blocks
//! or in persistent memory. Every history is judged.
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" cargo test --release -p treering-oracle \
//!     --test shuttle_store --target-dir target/shuttle
//! ```
//!
//! The same seed gives the same schedules and so the same histories: a failure is reproduced by its
//! seed. `TREERING_SCHEDULES` is the number of schedules for each store and scheduler, and
//! `TREERING_SEED` the first seed.
//!
//! To check that the test can fail, run it with `RUSTFLAGS="--cfg shuttle --cfg treering_mutations"
//! TREERING_MUTATION=trust-index`; in persistent memory use `pm-trust-index`, `pm-read-unvalidated`
//! and `lodge-trust-index`. It must fail.
//!
//! Limits: shuttle runs all atomics as if they were sequentially consistent (loom and real threads
//! cover more), and a device call is as atomic as its locks.
#![cfg(shuttle)]

use std::sync::{Arc, Mutex};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};
use treering_engine::device::{MemDevice, MemPm};
use treering_engine::{Kv, PmStats, Stats};
use treering_oracle::concurrent::{Client, Session, Workload};
use treering_oracle::engines::{BTree, Geometry, PmTree};
use treering_oracle::history::{History, Key};
use treering_oracle::linear;
use treering_oracle::{Disk, DiskKind, Engine};

/// Without buffers, with one global buffer, with one for each leaf, and with buffers in inner
/// nodes, which are small so that they fill up.
const PM_NAMES: [&str; 4] = ["pmtree", "pmtree:global", "ccl:1", "lodge:smallest"];

const CLIENTS: u32 = 3;
/// The number of keys. Every third one exists from the beginning. These need about as many pages as
/// the smallest cache has, and the pages split while clients run.
const KEYS: u32 = 180;
const FILLED: usize = 3;
const CALLS: u32 = 36;
/// The number of calls of a client in a phase of growth or of shrinkage.
const PHASE: u64 = 18;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

fn named(name: &str) -> Arc<dyn Engine> {
    match BTree::named(name, Geometry::Tiny) {
        Some(engine) => Arc::new(engine),
        None => Arc::new(PmTree::named(name, Geometry::Tiny).expect("one of ours")),
    }
}

/// The history of one schedule, and the statistics of the store.
fn play(engine: &dyn Engine, seed: u64) -> (History, Stats) {
    // On blocks, four of the largest records fit in a page, and some values are out of line. In
    // persistent memory, some do not fit in their leaf's pairs.
    let (disk, longest) = match engine.disk() {
        DiskKind::Blocks(blocks) => (Disk::Blocks(Arc::new(MemDevice::new(blocks))), 1_300),
        DiskKind::Pm(bytes) => (Disk::Pm(Arc::new(MemPm::new(bytes))), 40),
        DiskKind::Folder => unreachable!("our engines ask for none"),
    };
    let kv = engine.open(&disk).expect("an empty store opens");
    let keys = (0..KEYS).map(|n| Key::from(format!("key{n:03}").into_bytes()));
    let work = Workload::on(keys.collect(), longest, PHASE);
    let session = Arc::new(Session::new(work, CLIENTS + 1));
    let mut auditor = Client::new(Arc::clone(&session), CLIENTS, seed);
    auditor.fill(&*kv, FILLED).expect("filling");
    let mut threads: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (kv, session) = (Arc::clone(&kv), Arc::clone(&session));
            thread::spawn(move || {
                let mut client = Client::new(session, number, seed);
                (0..CALLS).for_each(|_| client.step(&*kv).expect("a call"));
            })
        })
        .collect();
    let pumped = Arc::clone(&kv);
    threads.push(thread::spawn(move || pump(&*pumped)));
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("a thread"));
    auditor.audit(&*kv).expect("reading everything");
    let stats = kv.stats();
    drop(kv);
    assert_eq!(engine.damage(&disk).expect("a look"), Vec::<String>::new());
    let kv = engine.open(&disk).expect("the store opens again");
    drop(kv);
    (History::merge(session.recorded()), stats)
}

fn pump(kv: &dyn Kv) {
    for step in 0..20 {
        if !kv.pump_due().expect("background work") {
            thread::yield_now();
        }
        if step == 10 {
            kv.checkpoint().expect("a checkpoint");
        }
    }
}

/// The histories of all schedules of a scheduler, as they are saved.
fn explore(
    name: &str,
    seed: u64,
    scheduler: impl Scheduler + 'static,
) -> (Vec<String>, Vec<Stats>) {
    let engine = named(name);
    let seen: Arc<Mutex<(Vec<String>, Vec<Stats>)>> = Arc::default();
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = MaxSteps::FailAfter(5_000_000);
    config.silence_warnings = true;
    // The seed reproduces the schedule, which itself would have a hundred thousand digits.
    config.failure_persistence = FailurePersistence::None;
    let into = Arc::clone(&seen);
    Runner::new(scheduler, config).run(move || {
        // Each schedule has its own program.
        let done = into.lock().expect("no schedule panics here").0.len() as u64;
        let (history, stats) = play(&*engine, (seed << 32) + done);
        let mut saved = Vec::new();
        history.save(&mut saved).expect("memory has room");
        let saved = String::from_utf8(saved).expect("JSON is text");
        if let Err(violation) = linear::check(&history) {
            panic!("seed {seed}: {violation}\n{saved}");
        }
        let mut seen = into.lock().expect("no schedule panics here");
        seen.0.push(saved);
        seen.1.push(stats);
    });
    let mut seen = seen.lock().expect("no schedule panics here");
    std::mem::take(&mut *seen)
}

fn schedules() -> usize {
    number("TREERING_SCHEDULES", 150) as usize
}

/// Checks that every schedule is linearizable and that many differ. Returns the statistics of all.
fn explore_all(
    name: &str,
    seed: u64,
    scheduler: impl Scheduler + 'static,
) -> impl Fn(fn(&Stats) -> u64) -> u64 {
    let (histories, stats) = explore(name, seed, scheduler);
    assert_eq!(histories.len(), schedules());
    let mut distinct = histories.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > schedules() / 2, "{name}: few histories");
    println!(
        "{name}, seed {seed}: {} schedules, {} distinct histories",
        histories.len(),
        distinct.len()
    );
    move |count| stats.iter().map(count).sum()
}

/// On blocks, all schedules together must split, merge, evict and checkpoint.
fn holds_on_blocks(scheduler: impl Fn(u64, usize) -> Box<dyn Scheduler + Send>) {
    let first = number("TREERING_SEED", 0);
    let names = BTree::SMALL_PAGES.into_iter().chain(BTree::BF_SMALL_PAGES);
    for (name, seed) in names.zip(first..) {
        let sum = explore_all(name, seed, scheduler(seed, schedules()));
        let (splits, merges) = (sum(|s| s.splits), sum(|s| s.merges));
        let (evictions, checkpoints) = (sum(|s| s.evictions), sum(|s| s.checkpoints));
        println!(
            "  {splits} splits, {merges} merges, {evictions} evictions, {checkpoints} checkpoints"
        );
        assert!(splits > 0 && merges > 0 && evictions > 0 && checkpoints > 0);
    }
}

/// In persistent memory, they must split and merge, write through buffers and clean logs, as far as
/// the tree does these things.
fn holds_in_persistent_memory(scheduler: impl Fn(u64, usize) -> Box<dyn Scheduler + Send>) {
    let first = number("TREERING_SEED", 0);
    for (name, seed) in PM_NAMES.into_iter().zip(first..) {
        let sum = explore_all(name, seed, scheduler(seed, schedules()));
        let (splits, merges) = (sum(|s| s.splits), sum(|s| s.merges));
        let (triggers, cleanings) = (sum(|s| pm(s).trigger_writes), sum(|s| pm(s).cleanings));
        println!(
            "  {splits} splits, {merges} merges, {triggers} flushes of full buffers, {cleanings} cleanings"
        );
        assert!(splits > 0 && (merges > 0 || !named(name).merges_leaves()));
        assert!(name == "pmtree" || cleanings > 0, "{name}");
    }
}

fn pm(stats: &Stats) -> &PmStats {
    stats.pm.as_ref().expect("a store in persistent memory")
}

#[test]
fn every_random_schedule_is_linearizable() {
    holds_on_blocks(|seed, schedules| Box::new(RandomScheduler::new_from_seed(seed, schedules)));
}

#[test]
fn every_schedule_with_few_preemptions_is_linearizable() {
    holds_on_blocks(|seed, schedules| Box::new(PctScheduler::new_from_seed(seed, 4, schedules)));
}

#[test]
fn every_random_schedule_in_persistent_memory_is_linearizable() {
    holds_in_persistent_memory(|seed, schedules| {
        Box::new(RandomScheduler::new_from_seed(seed, schedules))
    });
}

#[test]
fn every_schedule_with_few_preemptions_in_persistent_memory_is_linearizable() {
    holds_in_persistent_memory(|seed, schedules| {
        Box::new(PctScheduler::new_from_seed(seed, 4, schedules))
    });
}

#[test]
fn the_same_seed_gives_the_same_schedules_and_histories() {
    let random = |seed| {
        explore(
            BTree::SMALL_PAGES[0],
            7,
            RandomScheduler::new_from_seed(seed, 5),
        )
        .0
    };
    assert_eq!(random(7), random(7));
    assert_ne!(random(7), random(8), "the schedule decides, too");
    for name in [
        BTree::SMALL_PAGES[1],
        BTree::BF_SMALL_PAGES[1],
        PM_NAMES[1],
        PM_NAMES[3],
    ] {
        let pct = || explore(name, 7, PctScheduler::new_from_seed(7, 4, 5)).0;
        assert_eq!(pct(), pct(), "{name}");
    }
}
