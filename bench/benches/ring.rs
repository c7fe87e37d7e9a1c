//! The circular buffer: mini-pages are created at the tail and evicted at the head, by one thread
//! and by two, beside the buffer of the crate `bf-tree`. That buffer has no page locks and no
//! mapping table; its tree adds those. Also reads a mini-page, beside a reader-writer lock around a
//! box.
//!
//! A round creates a mini-page of 256 B for a page that has none. The ring is full, so each round
//! also evicts.

use bf_tree::circular_buffer::CircularBuffer;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};
use treering_engine::PageId;
use treering_engine::mapping::LeafAddress;
use treering_engine::ring::{AllocateError, Ring, RingOptions};
use treering_engine::sync::RwLock;

const CAPACITY: usize = 1 << 20;
const SIZE: usize = 256;
/// Bytes freed at a time, in either buffer.
const AHEAD: u64 = 4096;
/// More pages than the ring has room for, so that a page has been evicted when its turn comes
/// again.
const PAGES: u64 = 16_384;

fn ring(capacity: usize) -> Ring {
    let options = RingOptions {
        capacity,
        pages: PAGES,
        ..RingOptions::default()
    };
    let ring = Ring::new(&options).expect("a ring");
    for n in 0..PAGES {
        ring.create_page(leaf(n)).expect("an id");
    }
    ring
}

fn leaf(n: u64) -> LeafAddress {
    LeafAddress::new(n).expect("a small number")
}

fn merge(page: PageId, bytes: &mut [u8]) -> Result<LeafAddress, Infallible> {
    black_box(bytes);
    Ok(leaf(page.0))
}

fn put(ring: &Ring, page: PageId) {
    loop {
        let guard = ring.exclusive(page).expect("a page");
        match guard.allocate(SIZE) {
            Ok(mut fresh) => {
                fresh.bytes_mut()[..8].copy_from_slice(&page.0.to_le_bytes());
                return drop(fresh.publish());
            }
            Err(refused) => {
                if let AllocateError::Full(full) = refused.give_back() {
                    let Ok(_) = ring.make_room(full.short.max(AHEAD), merge);
                }
            }
        }
    }
}

struct Bf(CircularBuffer);

// SAFETY: the crate's tree shares it among threads in the same way. The cell in it is only accessed
// under its mutex.
unsafe impl Sync for Bf {}

fn put_bf(Bf(buffer): &Bf, n: u64) {
    loop {
        match buffer.alloc(SIZE) {
            // SAFETY: the block has `SIZE` bytes and belongs to this thread until it is dropped.
            Ok(block) => return unsafe { block.as_ptr().cast::<u64>().write_unaligned(n) },
            Err(_) => _ = buffer.evict_n(AHEAD as usize / SIZE, |victim| Ok(black_box(victim))),
        }
    }
}

/// Returns the time in which `threads` threads do `rounds` rounds together. Each thread has pages
/// of its own.
fn timed(threads: u64, rounds: u64, round: impl Fn(u64) + Sync) -> Duration {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let round = &round;
            scope.spawn(move || {
                let share = PAGES / threads;
                for n in 0..rounds / threads {
                    round(thread * share + n % share);
                }
            });
        }
    });
    began.elapsed()
}

fn churn(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring_churn");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(1))
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    for threads in [1, 2] {
        group.bench_function(BenchmarkId::new("treering", threads), |b| {
            let ring = ring(CAPACITY);
            (0..PAGES).for_each(|n| put(&ring, PageId(n)));
            b.iter_custom(|rounds| timed(threads, rounds, |n| put(&ring, PageId(n))));
        });
        group.bench_function(BenchmarkId::new("bf-tree", threads), |b| {
            let buffer = CircularBuffer::new(CAPACITY, 0.1, 64, 1952, 4096, 32, None, false);
            let buffer = Bf(buffer);
            (0..PAGES).for_each(|n| put_bf(&buffer, n));
            b.iter_custom(|rounds| timed(threads, rounds, |n| put_bf(&buffer, n)));
            buffer.0.drain(Ok);
        });
    }
    group.finish();
}

fn read(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring_read");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(1))
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    // The default size, because then the ring has huge pages. The pages read take a quarter of it.
    let ring = ring(32 << 20);
    let pages = PAGES / 2;
    (0..pages).for_each(|n| put(&ring, PageId(n)));
    let boxes: Vec<RwLock<Box<[u8]>>> = (0..pages)
        .map(|_| RwLock::new(vec![0; SIZE].into()))
        .collect();
    let mut rng = SmallRng::seed_from_u64(1);
    let order: Vec<u64> = (0..1 << 12).map(|_| rng.random_range(0..pages)).collect();
    let at = |n: u64| order[n as usize % order.len()];
    for threads in [1, 2] {
        group.bench_function(BenchmarkId::new("treering", threads), |b| {
            b.iter_custom(|rounds| {
                timed(threads, rounds, |n| {
                    let guard = ring.shared(PageId(at(n))).expect("a page");
                    black_box(guard.in_copy_on_access_region());
                    black_box(guard.bytes().map(|bytes| bytes[0]));
                })
            });
        });
        group.bench_function(BenchmarkId::new("rwlock_box", threads), |b| {
            b.iter_custom(|rounds| {
                timed(threads, rounds, |n| {
                    black_box(boxes[at(n) as usize].read()[0]);
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, churn, read);
criterion_main!(benches);
