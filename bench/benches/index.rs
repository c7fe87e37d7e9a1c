//! Descent of the in-memory index with 1 k, 100 k and 1 M leaves, beside a `BTreeMap` behind a
//! reader-writer lock.
//!
//! Fences are 16 random bytes. Lookup keys are random too, so each descent takes a different path.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Bound::{Included, Unbounded};
use std::time::Duration;
use treering_engine::index::Index;
use treering_engine::{PageId, sync::RwLock};

fn descent(c: &mut Criterion) {
    let mut group = c.benchmark_group("index_descent");
    group
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_secs(1));
    for leaves in [1_000u64, 100_000, 1_000_000] {
        let mut rng = SmallRng::seed_from_u64(leaves);
        let index = Index::new(PageId(0));
        let mut map: BTreeMap<Box<[u8]>, PageId> = BTreeMap::from([(Box::default(), PageId(0))]);
        for page in 1..leaves {
            let fence: [u8; 16] = rng.random();
            index.insert(&fence, PageId(page));
            map.insert(Box::new(fence), PageId(page));
        }
        println!(
            "{leaves} leaves: {:.1} bytes a leaf",
            index.bytes() as f64 / leaves as f64
        );
        let map = RwLock::new(map);
        let keys: Vec<[u8; 16]> = (0..1 << 16).map(|_| rng.random()).collect();
        let mut next = (0..keys.len()).cycle();
        group.bench_function(BenchmarkId::new("treering", leaves), |b| {
            b.iter(|| index.find(black_box(&keys[next.next().unwrap_or(0)])));
        });
        group.bench_function(BenchmarkId::new("btreemap_rwlock", leaves), |b| {
            b.iter(|| {
                let key: &[u8] = black_box(&keys[next.next().unwrap_or(0)]);
                let map = map.read();
                map.range::<[u8], _>((Unbounded, Included(key)))
                    .next_back()
                    .map(|entry| *entry.1)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, descent);
criterion_main!(benches);
