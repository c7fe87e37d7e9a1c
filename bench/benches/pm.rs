//! Line writes per second of the simulated persistent memory. Compares the buffer alone, the device
//! that counts, and the device with queues, with a loop that only stores the bytes.
//!
//! Target: 1 M line writes per second. Also prints the memory of the simulation's tables.
//!
//! `cargo bench -p treering-bench --bench pm`

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_engine::Nanos;
use treering_engine::device::{LINE_SIZE, PmDevice};
use treering_sim::pm::buffer::{BufferConfig, MediaOps, MediaRead, MediaWrite, XpBuffer};
use treering_sim::pm::{FullLines, Replacement, SimPm, builtin};
use treering_sim::ssd::TimingMode;

const BYTES: u64 = 64 << 20;
const LINES: u64 = BYTES / LINE_SIZE as u64;
const WRITES: u64 = 100_000;

/// Counts what a buffer does.
#[derive(Default)]
struct Media(u64);

impl MediaOps for Media {
    fn read(&mut self, _: u32, _: MediaRead) {
        self.0 += 1;
    }

    fn write(&mut self, _: u32, _: MediaWrite) {
        self.0 += 1;
    }

    fn evicted(&mut self, _: bool) {}
}

fn writes(c: &mut Criterion) {
    let mut group = c.benchmark_group("pm");
    group
        .throughput(Throughput::Elements(WRITES))
        .sample_size(10);
    let mut rng = SmallRng::seed_from_u64(1);
    let mut bytes = vec![0_u8; BYTES as usize];
    group.bench_function("bare memory", |b| {
        b.iter(|| {
            for _ in 0..WRITES {
                let line = rng.random_range(0..LINES) as usize;
                bytes[line * LINE_SIZE..][..LINE_SIZE].fill(1);
            }
            black_box(&mut bytes);
        });
    });
    for replacement in [Replacement::Random, Replacement::Lru] {
        let config = BufferConfig {
            lines: 64,
            replacement,
            evict_lines: 1,
            full_lines: FullLines::AtOnce,
            read_lines: 64,
            seed: 1,
        };
        let mut buffer = XpBuffer::new(&config, (LINES / 4) as u32);
        let mut media = Media::default();
        group.bench_function(format!("buffer, {replacement}"), |b| {
            b.iter(|| {
                for _ in 0..WRITES {
                    buffer.write(rng.random_range(0..LINES) as u32, &mut media);
                }
                black_box(media.0);
            });
        });
    }
    let (_, profile) = builtin("pm").expect("built in");
    for (name, mode) in [
        ("counting", TimingMode::Counting),
        ("queued", TimingMode::Queued),
    ] {
        let pm = SimPm::new(&profile, BYTES, mode, 1).expect("a sound profile");
        let mut now = Nanos(0);
        group.bench_function(format!("{name}: store, clwb, fence, serve"), |b| {
            b.iter(|| {
                for _ in 0..WRITES {
                    let at = rng.random_range(0..LINES) * LINE_SIZE as u64;
                    pm.store(at, &[1; LINE_SIZE]).expect("in range");
                    pm.clwb(at).expect("in range");
                    pm.fence();
                    now = pm.serve(now).done;
                }
            });
        });
        println!("{name}: {} bytes of tables for 64 MiB", pm.memory_bytes());
    }
    group.finish();
}

criterion_group!(benches, writes);
criterion_main!(benches);
