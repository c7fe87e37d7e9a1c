//! Contention split under a seeded scheduler: counts how often writers wait for the same leaf, with
//! and without it (B-Trees Are Back §7.3, Figure 22).
//!
//! ```text
//! RUSTFLAGS="--cfg shuttle" cargo test --release -p treering-oracle \
//!     --test shuttle_contention --target-dir target/shuttle -- --nocapture
//! ```
//!
//! Two writers overwrite URL-like keys in stores with pages of 4 to 32 KiB. The distribution is
//! Zipf 1, with ranks in key order. The scheduler's seed decides which thread runs at each lock and
//! atomic operation, so the counts are the same on every machine.
#![cfg(shuttle)]

use std::sync::{Arc, Mutex};

use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};
use treering_engine::device::MemDevice;
use treering_engine::node::LayoutChoice;
use treering_engine::{ContentionSplit, Durability, Kv, Options, Stats, Store, SystemClock};
use treering_oracle::random::Random;

const KEYS: u64 = 1_000;
const WRITERS: u64 = 2;
const WRITES: u64 = 3_000;
const SCHEDULES: usize = 3;
const PAGES_KIB: [usize; 4] = [4, 8, 16, 32];

fn key(n: u64) -> Vec<u8> {
    format!("http://en.wikipedia.org/wiki/{:05}_of_the_made_up", n * 97).into_bytes()
}

/// A rank, counted from 0, with probability proportional to 1 / (rank + 1).
fn rank(random: &mut Random, sums: &[f64]) -> u64 {
    let at = random.below(1 << 40) as f64 / (1_u64 << 40) as f64 * sums[sums.len() - 1];
    sums.partition_point(|sum| *sum < at) as u64
}

/// The statistics of the store in one schedule, after all writes.
fn play(page_kib: usize, contention_split: Option<ContentionSplit>, seed: u64) -> Stats {
    let options = Options {
        layout: LayoutChoice::named("fingerprint"),
        contention_split,
        page_size: page_kib << 10,
        cache_bytes: 1 << 20,
        durability: Durability::Deferred,
        log_bytes: 2 << 20,
        checkpoint_log_bytes: 1 << 20,
        log_buffer_bytes: 64 << 10,
        ..Options::default()
    };
    let device = Arc::new(MemDevice::new(2_048));
    let store = Store::open(device, Arc::new(SystemClock::new()), &options).expect("opens");
    let store = Arc::new(store);
    for n in 0..KEYS {
        store.put(&key(n), &[0; 8]).expect("loads");
    }
    let mut sum = 0.0;
    let sums = (1..=KEYS).map(|rank| {
        sum += 1.0 / rank as f64;
        sum
    });
    let sums: Arc<Vec<f64>> = Arc::new(sums.collect());
    let threads: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, sums) = (Arc::clone(&store), Arc::clone(&sums));
            thread::spawn(move || {
                let mut random = Random::part(seed, writer);
                for n in 0..WRITES {
                    let value = (n << 8 | writer).to_be_bytes();
                    store
                        .put(&key(rank(&mut random, &sums)), &value)
                        .expect("puts");
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("a writer"));
    let (mut found, mut stats) = (0, store.stats());
    store
        .scan(b"", &mut |_, _| {
            found += 1;
            std::ops::ControlFlow::Continue(())
        })
        .expect("scans");
    assert_eq!(found, KEYS, "an overwrite adds and loses nothing");
    // Irrelevant, and dependent on memory addresses.
    stats.index_bytes = 0;
    stats
}

/// One row of the table: all schedules of a page size, with or without contention split.
fn row(page_kib: usize, contention_split: Option<ContentionSplit>) -> Vec<Stats> {
    let seen: Arc<Mutex<Vec<Stats>>> = Arc::default();
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = MaxSteps::FailAfter(50_000_000);
    config.silence_warnings = true;
    config.failure_persistence = FailurePersistence::None;
    let into = Arc::clone(&seen);
    let scheduler = RandomScheduler::new_from_seed(7, SCHEDULES);
    Runner::new(scheduler, config).run(move || {
        let schedule = into.lock().expect("no schedule panics here").len() as u64;
        let stats = play(page_kib, contention_split, schedule);
        into.lock().expect("no schedule panics here").push(stats);
    });
    let mut seen = seen.lock().expect("no schedule panics here");
    std::mem::take(&mut *seen)
}

fn share(stats: &[Stats]) -> f64 {
    let waited: u64 = stats.iter().map(|stats| stats.contended_writes).sum();
    waited as f64 / (stats.len() as u64 * WRITERS * WRITES) as f64
}

#[test]
fn contention_splits_reduce_waiting_writes() {
    // Every write is counted, since a schedule is short.
    let rule = ContentionSplit {
        sample_one_in: 1,
        period: 60,
    };
    let mut shares = Vec::new();
    for page_kib in PAGES_KIB {
        let (without, with) = (row(page_kib, None), row(page_kib, Some(rule)));
        let leaves =
            |stats: &[Stats]| stats.iter().map(|s| s.leaf_pages).sum::<u64>() / stats.len() as u64;
        let splits: u64 = with.iter().map(|stats| stats.contention_splits).sum();
        println!(
            "{page_kib:2} KiB: {:5.2} % of the writes wait, of {} leaves; split where they do: {:5.2} %, of {}",
            100.0 * share(&without),
            leaves(&without),
            100.0 * share(&with),
            leaves(&with)
        );
        assert!(splits > 0 && without.iter().all(|stats| stats.contention_splits == 0));
        shares.push((share(&without), share(&with)));
    }
    for (kib, (without, with)) in PAGES_KIB.into_iter().zip(&shares) {
        assert!(
            with * 1.5 < *without,
            "{kib} KiB: {with} with, {without} without"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_counts() {
    let rule = Some(ContentionSplit::default());
    assert_eq!(row(4, rule), row(4, rule));
}
