//! Recovery: opening a store whose log holds a million records, beside only reading those records.
//!
//! `cargo bench -p treering-bench --bench recovery`
//!
//! The store's cache holds a tenth of its pages, so redo record by record would load and write back
//! a page for nearly every record.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use treering_engine::device::{BlockDevice, MemDevice, OverlayDevice};
use treering_engine::{Durability, Kv, Options, Progress, Store, SystemClock, Task};

const RECORDS: u64 = 1_000_000;

fn options() -> Options {
    Options {
        cache_bytes: 8 << 20,
        durability: Durability::Deferred,
        log_bytes: 128 << 20,
        checkpoint_log_bytes: 96 << 20,
        ..Options::default()
    }
}

/// A device after a crash: a loaded store, then a million puts in the log since the last
/// checkpoint.
fn crashed() -> Arc<dyn BlockDevice> {
    let device: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(100_000));
    let store = Store::open(device.clone(), Arc::new(SystemClock::new()), &options()).unwrap();
    let put = |key: u64, byte: u8| {
        store
            .put(&[key.to_be_bytes(), [7; 8]].concat(), &[byte; 16])
            .unwrap();
        while let Some(task) = store.due() {
            while store.pump(task).unwrap() == Progress::More {}
        }
    };
    (0..RECORDS).for_each(|key| put(key, 1));
    store.checkpoint().unwrap();
    let mut rng = StdRng::seed_from_u64(1);
    (0..RECORDS).for_each(|_| put(rng.random_range(0..RECORDS), 2));
    store.pump(Task::FlushLog).unwrap();
    store.abandon();
    device
}

fn recovery(c: &mut Criterion) {
    let device = crashed();
    let mut group = c.benchmark_group("recovery of a log of 1 M records");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(10));
    group.bench_function("open", |b| {
        b.iter_batched(
            || Arc::new(OverlayDevice::new(device.clone())),
            |overlay| {
                let store = Store::open(overlay, Arc::new(SystemClock::new()), &options()).unwrap();
                assert_eq!(store.recovery().records_read, RECORDS);
                black_box(store.recovery())
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, recovery);
criterion_main!(benches);
