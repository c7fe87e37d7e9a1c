//! Host page writes per second in steady-state garbage collection with uniform random writes.
//! Compares the FTL that only counts, the whole drive that also keeps the data, and the drive with
//! queues, with a loop that only updates a table.
//!
//! Targets per CPU-second: 5 M writes counting, 1 M with queues. At most 16 bytes per mapped page
//! (printed).

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use treering_engine::device::BlockDevice;
use treering_engine::{BLOCK_SIZE, IoClass, Lba, Nanos};
use treering_sim::ssd::{Ftl, FtlConfig, GcPolicy, SimSsd, TimingMode, builtin};

/// 4 GiB of 4 KiB pages, so the tables are far larger than the caches.
const PAGES: u64 = 1 << 20;
/// 512 MiB for the runs that keep the data.
const DRIVE_BLOCKS: u64 = 1 << 17;
const WRITES: u64 = 100_000;

fn counting(c: &mut Criterion) {
    let mut group = c.benchmark_group("ftl/counting");
    group
        .throughput(Throughput::Elements(WRITES))
        .sample_size(20);
    let mut rng = SmallRng::seed_from_u64(1);
    let mut table = vec![0_u32; PAGES as usize];
    group.bench_function("bare table", |b| {
        b.iter(|| {
            for i in 0..WRITES {
                table[rng.random_range(0..PAGES) as usize] = i as u32;
            }
            black_box(&mut table);
        });
    });
    for (policy, over_provisioning) in [
        (GcPolicy::Greedy, 0.28),
        (GcPolicy::Greedy, 0.07),
        (GcPolicy::Fifo, 0.28),
        (GcPolicy::DChoices(10), 0.28),
    ] {
        let config = FtlConfig::new(PAGES, 256, over_provisioning, policy);
        let mut ftl = Ftl::new(&config).expect("a sound geometry");
        (0..PAGES).for_each(|page| ftl.write(page as u32));
        (0..4 * PAGES).for_each(|_| ftl.write(rng.random_range(0..PAGES) as u32));
        ftl.reset_counters();
        group.bench_function(
            format!("{policy}, {:.0} %", 100.0 * over_provisioning),
            |b| {
                b.iter(|| (0..WRITES).for_each(|_| ftl.write(rng.random_range(0..PAGES) as u32)));
            },
        );
        println!(
            "{policy}, {:.0} %: WA {:.3}, {:.1} bytes a mapped page",
            100.0 * over_provisioning,
            ftl.counters().write_amplification().unwrap_or(1.0),
            ftl.memory_bytes() as f64 / PAGES as f64
        );
    }
    group.finish();
}

fn drive(c: &mut Criterion) {
    let mut group = c.benchmark_group("ftl/drive");
    group
        .throughput(Throughput::Elements(WRITES))
        .sample_size(20);
    let (_, profile) = builtin("ssd").expect("built in");
    for (name, mode) in [
        ("counting", TimingMode::Counting),
        ("queued", TimingMode::Queued),
    ] {
        let drive = SimSsd::new(&profile, DRIVE_BLOCKS, mode, 0).expect("a sound drive");
        drive.fill_until_steady(1);
        let mut rng = SmallRng::seed_from_u64(2);
        let block = vec![7; BLOCK_SIZE];
        let mut now = Nanos(0);
        group.bench_function(name, |b| {
            b.iter(|| {
                for _ in 0..WRITES {
                    let lba = Lba(rng.random_range(0..DRIVE_BLOCKS));
                    drive.write(lba, &block, IoClass::Page).expect("in range");
                    now = drive.serve(now).done;
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, counting, drive);
criterion_main!(benches);
