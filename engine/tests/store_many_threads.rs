//! Tests more threads than frames on a slow device: every operation ends, and every thread makes
//! progress.
//!
//! Sixty-four threads over sixteen frames split and merge their own leaves. If threads waited for
//! frames while holding latches on their leaves, sixteen such threads would wait forever and could
//! not be stopped. So a watchdog ends the test and reports what each thread has done.
//!
//! `TREERING_SECONDS` is how long each store runs after warming up, by default 3. From ten seconds
//! on, the least served thread must have done a tenth of the mean (the promise is for a minute); in
//! less time, every thread must be served eventually.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use support::{BF, BMINUS, EACH_FLUSH, IN_PLACE, LAZY, Pages, SHADOW};
use treering_engine::device::{BlockDevice, DeviceError, MemDevice};
use treering_engine::{
    Durability, IoClass, Kv, Lba, Options, Store, SystemClock, TreeKind, required_blocks, verify,
};

const THREADS: u32 = 64;
const FRAMES: u64 = 16;
/// Keys per thread, which are put one after the other, then deleted, and so on.
const KEYS: u32 = 300;
/// How long a thread may take for its current operation once all are told to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// A memory device whose calls take 50 microseconds each.
struct Slow(MemDevice);

fn pause() {
    std::thread::sleep(Duration::from_micros(50));
}

impl BlockDevice for Slow {
    fn capacity_blocks(&self) -> u64 {
        self.0.capacity_blocks()
    }
    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        pause();
        self.0.read(lba, buf, class)
    }
    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        pause();
        self.0.write(lba, bytes, class)
    }
    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.0.trim(lba, blocks)
    }
    fn flush(&self) -> Result<(), DeviceError> {
        pause();
        self.0.flush()
    }
}

fn run_time() -> Duration {
    let seconds = std::env::var("TREERING_SECONDS").map_or(3, |s| s.parse().expect("seconds"));
    Duration::from_secs(seconds)
}

/// Keys unrelated to the order of puts, so that threads split leaves everywhere.
fn key(thread: u32, n: u32) -> Vec<u8> {
    let scattered = (n % KEYS).wrapping_mul(2_654_435_761);
    [thread.to_be_bytes(), scattered.to_be_bytes()].concat()
}

/// Puts and deletes until told to stop. Counts the operations in `done`.
fn work(store: &Store, thread: u32, stop: &AtomicBool, done: &AtomicU64) {
    let value = vec![thread as u8; 700];
    for n in 0.. {
        if stop.load(Ordering::Acquire) {
            break;
        }
        let key = key(thread, n);
        let outcome = if (n / KEYS).is_multiple_of(2) {
            store.put(&key, &value)
        } else {
            store.delete(&key)
        };
        outcome.unwrap_or_else(|e| panic!("thread {thread}, operation {n}: {e}"));
        done.fetch_add(1, Ordering::Release);
    }
}

/// Checks that every thread is served and ends. `ring` is the number of pages in the ring, if the
/// tree has one.
fn all_are_served(tree: TreeKind, pages: Pages, ring: u64) {
    let options = Options {
        durability: Durability::Deferred,
        log_bytes: 128 * 4096,
        checkpoint_log_bytes: 64 * 4096,
        log_buffer_bytes: 16 * 4096,
        write_batch_pages: 4,
        ..support::options(tree, pages, 4096, FRAMES, ring)
    };
    let device = Arc::new(Slow(MemDevice::new(required_blocks(&options, 8_000))));
    let clock = Arc::new(SystemClock::new());
    let store = Arc::new(Store::open(device.clone(), clock, &options).expect("opens"));
    let stop = Arc::new(AtomicBool::new(false));
    let done: Arc<Vec<AtomicU64>> = Arc::new((0..THREADS).map(|_| AtomicU64::new(0)).collect());
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (store, stop, done) = (Arc::clone(&store), Arc::clone(&stop), Arc::clone(&done));
            std::thread::spawn(move || work(&store, thread, &stop, &done[thread as usize]))
        })
        .collect();
    let so_far = || -> Vec<u64> { done.iter().map(|n| n.load(Ordering::Acquire)).collect() };
    // Until frames and ring are full, a thread runs at the speed of memory.
    std::thread::sleep(Duration::from_secs(1));
    let warm = so_far();
    let since_warm = || -> Vec<u64> {
        let done = so_far();
        done.iter().zip(&warm).map(|(n, warm)| n - warm).collect()
    };
    std::thread::sleep(run_time());
    let counts = since_warm();
    // On a busy machine a few seconds are little, but no thread may wait forever.
    let asked = Instant::now();
    while since_warm().contains(&0) && asked.elapsed() < PATIENCE / 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let served = since_warm();
    stop.store(true, Ordering::Release);
    let told = Instant::now();
    while threads.iter().any(|thread| !thread.is_finished()) {
        let stuck = threads
            .iter()
            .filter(|thread| !thread.is_finished())
            .count();
        assert!(
            told.elapsed() < PATIENCE,
            "{tree:?} on {pages:?}: {stuck} of {THREADS} threads over {FRAMES} frames are stuck \
             in an operation; so many had each done: {counts:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    for thread in threads {
        thread.join().expect("a thread failed");
    }
    let mean = counts.iter().sum::<u64>() / u64::from(THREADS);
    let least = *counts.iter().min().expect("there are threads");
    println!("{tree:?} on {pages:?}: least {least}, mean {mean} operations per thread");
    assert!(
        !served.contains(&0),
        "{tree:?} on {pages:?}: some threads were never served: {served:?}"
    );
    assert!(
        least * 10 >= mean || run_time() < Duration::from_secs(10),
        "{tree:?} on {pages:?}: least {least}, mean {mean} operations: {counts:?}"
    );
    let stats = store.stats();
    assert!(stats.splits > 0, "nothing was split: {stats:?}");
    let store = Arc::into_inner(store).expect("all threads have ended");
    store.close().expect("closes");
    assert_eq!(
        verify(device).expect("verifies").damage,
        Vec::<String>::new()
    );
}

#[test]
fn all_threads_are_served_in_place() {
    all_are_served(TreeKind::BTree, IN_PLACE, 0);
}

#[test]
fn all_threads_are_served_with_copy_on_write() {
    all_are_served(TreeKind::BTree, EACH_FLUSH, 0);
}

#[test]
fn all_threads_are_served_with_shadowed_pages() {
    all_are_served(TreeKind::BTree, SHADOW, 0);
    all_are_served(TreeKind::BTree, BMINUS, 0);
}

#[test]
fn all_threads_are_served_with_a_small_ring() {
    all_are_served(BF, LAZY, 4);
}

/// The cache of 1 MiB: sixteen frames, and a ring fifteen times as large.
#[test]
fn all_threads_are_served_with_a_large_ring() {
    all_are_served(BF, IN_PLACE, 240);
}
