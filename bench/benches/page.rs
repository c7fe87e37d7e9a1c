//! One page in each layout, beside two alternatives: a sorted `Vec` of pairs and `std`'s
//! `BTreeMap`.
//!
//! The page holds about 90 records with 16-byte keys, as many as fit in 4 KiB; the alternatives
//! hold the same records. Everything is in the first-level cache, so the benchmark measures
//! instructions, not memory.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use treering_engine::PageId;
use treering_engine::node::{
    ChangeMap, PageLayout, PageMut, PageRef, Suffix, check, check_deep, records,
};

type Record = (Vec<u8>, Vec<u8>);

/// Keys such as `user000000012345`, of which a real page holds a narrow range.
fn text_records(count: usize) -> Vec<Record> {
    let mut rng = SmallRng::seed_from_u64(1);
    let record = |n: usize| {
        let n = n * 37 + rng.random_range(0..37);
        (format!("user{n:012}").into_bytes(), vec![7; 16])
    };
    (0..count).map(record).collect()
}

/// Random keys: no shared prefix, and all heads differ.
fn random_records(count: usize) -> Vec<Record> {
    let mut rng = SmallRng::seed_from_u64(2);
    let mut keys = BTreeMap::new();
    while keys.len() < count {
        let mut key = vec![0; 16];
        rng.fill(&mut key[..]);
        keys.insert(key, vec![7; 16]);
    }
    keys.into_iter().collect()
}

/// A sealed page whose fences enclose just the records.
fn page_of(layout: PageLayout, records: &[Record], page_size: usize) -> Vec<u8> {
    let mut bytes = vec![0; page_size];
    let mut changes = ChangeMap::new();
    let mut page = PageMut::new(&mut bytes, &mut changes);
    let (first, last) = (&records[0].0, &records[records.len() - 1].0);
    let above = [last, &[0_u8][..]].concat();
    page.init(layout, PageId(1), first, Some(&above)).unwrap();
    for (key, value) in records {
        page.put(key, value).unwrap();
    }
    page.seal();
    bytes
}

/// Like [`page_of`], without a record.
fn empty_of(layout: PageLayout, records: &[Record]) -> Vec<u8> {
    let mut bytes = page_of(layout, records, 4096);
    let page = PageRef::new(&bytes);
    let (lower, upper) = (
        page.lower_fence().to_vec(),
        page.upper_fence().map(<[u8]>::to_vec),
    );
    let mut changes = ChangeMap::new();
    PageMut::new(&mut bytes, &mut changes)
        .init(layout, PageId(1), &lower, upper.as_deref())
        .unwrap();
    bytes
}

/// Returns the records in an order that no branch predictor learns.
fn shuffled(records: &[Record]) -> Vec<Record> {
    let mut order: Vec<Record> = (0..64).flat_map(|_| records.to_vec()).collect();
    order.shuffle(&mut SmallRng::seed_from_u64(3));
    order
}

fn search(c: &mut Criterion) {
    for (name, records) in [("text", text_records(90)), ("random", random_records(90))] {
        let mut group = c.benchmark_group(format!("page/search/{name}"));
        let order = shuffled(&records);
        let mut next = order.iter().map(|(key, _)| key.as_slice()).cycle();
        for layout in PageLayout::ALL {
            let bytes = page_of(layout, &records, 4096);
            group.bench_function(layout.name(), |b| {
                b.iter(|| {
                    let page = PageRef::new(black_box(&bytes));
                    page.get(next.next().unwrap_or_default()).map(<[u8]>::len)
                });
            });
        }
        group.bench_function("sorted vec of pairs", |b| {
            b.iter(|| {
                let key = next.next().unwrap_or_default();
                let found = black_box(&records).binary_search_by(|(k, _)| k.as_slice().cmp(key));
                found.ok().map(|i| records[i].1.len())
            });
        });
        let map: BTreeMap<_, _> = records.iter().cloned().collect();
        group.bench_function("BTreeMap", |b| {
            b.iter(|| {
                black_box(&map)
                    .get(next.next().unwrap_or_default())
                    .map(Vec::len)
            });
        });
        group.finish();
    }
}

/// Iterates over all 90 records in key order.
fn iterate(c: &mut Criterion) {
    let records = text_records(90);
    let mut group = c.benchmark_group("page/iterate");
    group.throughput(Throughput::Elements(90));
    for layout in PageLayout::ALL {
        let bytes = page_of(layout, &records, 4096);
        group.bench_function(layout.name(), |b| {
            b.iter(|| {
                let page = PageRef::new(black_box(&bytes));
                let bytes = |(suffix, value): (Suffix<'_>, &[u8])| suffix.len() + value.len();
                page.iter().map(bytes).sum::<usize>()
            });
        });
    }
    let map: BTreeMap<_, _> = records.iter().cloned().collect();
    group.bench_function("BTreeMap", |b| {
        b.iter(|| {
            let records = black_box(&map).iter();
            records.map(|(k, v)| k.len() + v.len()).sum::<usize>()
        });
    });
    group.finish();
}

/// Inserts all 90 records in random order into an empty container. The time is that of 90 inserts.
fn insert(c: &mut Criterion) {
    let records = text_records(90);
    let mut order = records.clone();
    order.shuffle(&mut SmallRng::seed_from_u64(4));
    let mut changes = ChangeMap::new();
    let mut group = c.benchmark_group("page/insert");
    group.throughput(Throughput::Elements(90));
    for layout in PageLayout::ALL {
        let empty = empty_of(layout, &records);
        group.bench_function(layout.name(), |b| {
            b.iter_batched_ref(
                || empty.clone(),
                |bytes| {
                    let mut page = PageMut::new(bytes, &mut changes);
                    for (key, value) in &order {
                        black_box(page.put(key, value)).unwrap();
                    }
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.bench_function("sorted vec of pairs", |b| {
        b.iter_batched_ref(
            || Vec::with_capacity(90),
            |pairs: &mut Vec<Record>| {
                for (key, value) in &order {
                    let (Ok(at) | Err(at)) = pairs.binary_search_by(|(k, _)| k.cmp(key));
                    pairs.insert(at, (key.clone(), value.clone()));
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("BTreeMap", |b| {
        b.iter_batched_ref(
            BTreeMap::new,
            |map| {
                for (key, value) in &order {
                    map.insert(key.clone(), value.clone());
                }
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();

    let mut group = c.benchmark_group("page/overwrite");
    let order = shuffled(&records);
    let mut next = order.iter().cycle();
    let mut map: BTreeMap<_, _> = records.iter().cloned().collect();
    for layout in PageLayout::ALL {
        let mut bytes = page_of(layout, &records, 4096);
        group.bench_function(layout.name(), |b| {
            let mut page = PageMut::new(&mut bytes, &mut changes);
            b.iter(|| next.next().map(|(key, value)| page.put(key, value)));
        });
    }
    group.bench_function("BTreeMap", |b| {
        b.iter(|| {
            let (key, value) = next.next()?;
            map.get_mut(key).map(|old| old.copy_from_slice(value))
        });
    });
    group.finish();
}

fn split(c: &mut Criterion) {
    let records = text_records(90);
    let mut right = vec![0; 4096];
    let (mut changes, mut other) = (ChangeMap::new(), ChangeMap::new());
    let mut group = c.benchmark_group("page/split");
    for layout in PageLayout::ALL {
        let full = page_of(layout, &records, 4096);
        group.bench_function(layout.name(), |b| {
            b.iter_batched_ref(
                || full.clone(),
                |bytes| {
                    let mut left = PageMut::new(bytes, &mut changes);
                    let mut right = PageMut::new(&mut right, &mut other);
                    let plan = left.view().choose_separator().unwrap();
                    left.split_into(&mut right, PageId(2), &plan).unwrap();
                },
                BatchSize::SmallInput,
            );
        });
        let name = format!("{}, through the log's record list", layout.name());
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || full.clone(),
                |bytes| {
                    let mut left = PageMut::new(bytes, &mut changes);
                    let mut right = PageMut::new(&mut right, &mut other);
                    let page = left.view();
                    let plan = page.choose_separator().unwrap();
                    let list = page.encode_records(plan.at);
                    let moved = records::decode(&list).unwrap();
                    let (upper, lsn) = (page.upper_fence(), page.lsn());
                    right
                        .build(layout, PageId(2), &plan.separator, upper, lsn, moved)
                        .unwrap();
                    left.truncate_to(&plan.separator).unwrap();
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.bench_function("sorted vec of pairs", |b| {
        b.iter_batched_ref(
            || records.clone(),
            |v| v.split_off(45),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("BTreeMap", |b| {
        let map: BTreeMap<_, _> = records.iter().cloned().collect();
        let middle = records[45].0.clone();
        b.iter_batched_ref(
            || map.clone(),
            |m| m.split_off(&middle),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// The checks that every read from the device pays for, beside reading the page once.
fn checks(c: &mut Criterion) {
    for page_size in [4096, 65536] {
        let mut group = c.benchmark_group(format!("page/check/{}KiB", page_size / 1024));
        group.throughput(Throughput::Bytes(page_size as u64));
        let records = text_records(page_size / 46);
        for layout in PageLayout::ALL {
            let bytes = page_of(layout, &records, page_size);
            group.bench_function(format!("check, {}", layout.name()), |b| {
                b.iter(|| check(black_box(&bytes), PageId(1)))
            });
            group.bench_function(format!("check_deep, {}", layout.name()), |b| {
                b.iter(|| check_deep(black_box(&bytes), PageId(1)))
            });
        }
        let bytes = page_of(PageLayout::Slotted, &records, page_size);
        let mut copy = vec![0; page_size];
        group.bench_function("memcpy", |b| {
            b.iter(|| black_box(&mut copy).copy_from_slice(black_box(&bytes)))
        });
        group.finish();
    }
}

criterion_group!(benches, search, iterate, insert, split, checks);
criterion_main!(benches);
