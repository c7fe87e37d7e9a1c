//! Tests many threads on one store, with a cache that is far too small and background threads that
//! pump. Every reader sees the versions of a key in order, scans are sorted and complete, and in
//! the end the store holds the last writes.

mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{EACH_FLUSH, IN_PLACE, LAZY, Pages, TREES};
use treering_engine::device::{BlockDevice, MemDevice};
use treering_engine::{Durability, Kv, Options, Store, SystemClock, TreeKind, verify};

const WRITERS: u64 = 3;
const KEYS_PER_WRITER: u64 = 400;
const STEPS: u64 = 6_000;

/// Keys of different writers alternate, so that every leaf has keys of all writers.
fn key_of(writer: u64, n: u64) -> Vec<u8> {
    format!("{n:05}/{writer}").into_bytes()
}

fn value_of(version: u64) -> Vec<u8> {
    let mut value = version.to_be_bytes().to_vec();
    value.resize(8 + (version % 300) as usize, b'.');
    value
}

fn version_of(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

/// The versions that writers have finished writing, by writer and key: the lowest versions that a
/// later reader may see.
type Floors = Vec<Vec<AtomicU64>>;

/// A writer with its own keys: puts increasing versions, deletes some keys, and reads back what it
/// wrote.
fn write(store: &Store, writer: u64, floors: &Floors) -> BTreeMap<Vec<u8>, u64> {
    let mut rng = StdRng::seed_from_u64(writer);
    let mut mine = BTreeMap::new();
    let mut got = Vec::new();
    for version in 1..=STEPS {
        let n = rng.random_range(0..KEYS_PER_WRITER);
        let key = key_of(writer, n);
        // Keys above the first 100 come and go, so that leaves merge.
        if n >= 100 && (version / 1500) % 2 == 1 {
            store.delete(&key).unwrap();
            mine.remove(&key);
        } else {
            store.put(&key, &value_of(version)).unwrap();
            mine.insert(key.clone(), version);
            floors[writer as usize][n as usize].store(version, Ordering::Release);
        }
        let found = store.get(&key, &mut got).unwrap().then(|| version_of(&got));
        assert_eq!(
            found,
            mine.get(&key).copied(),
            "writer {writer} must read its own {n}"
        );
    }
    mine
}

fn read(store: &Store, seed: u64, floors: &Floors, stop: &AtomicBool) {
    let mut rng = StdRng::seed_from_u64(1000 + seed);
    let mut got = Vec::new();
    while !stop.load(Ordering::Acquire) {
        let (writer, n) = (rng.random_range(0..WRITERS), rng.random_range(0..100));
        let floor = floors[writer as usize][n as usize].load(Ordering::Acquire);
        let found = store.get(&key_of(writer, n), &mut got).unwrap();
        assert!(
            found || floor == 0,
            "key {n} of writer {writer} was written but is missing"
        );
        if found {
            assert!(
                version_of(&got) >= floor,
                "key {n} of writer {writer} went back in time"
            );
        }
        let floor = floors[writer as usize][n as usize].load(Ordering::Acquire);
        let mut last: Option<Vec<u8>> = None;
        let mut seen = false;
        let wanted = key_of(writer, n);
        store
            .scan(&key_of(0, n.saturating_sub(3)), &mut |k, v| {
                assert!(
                    last.as_deref().is_none_or(|l| l < k),
                    "a scan is not sorted at {k:?}"
                );
                last = Some(k.to_vec());
                if k == wanted {
                    assert!(version_of(v) >= floor, "a scan sees an old version of {n}");
                    seen = true;
                }
                if k > wanted.as_slice() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .unwrap();
        assert!(
            seen || floor == 0,
            "a scan misses key {n} of writer {writer}"
        );
    }
}

fn run(kind: Pages, durability: Durability) {
    TREES
        .into_iter()
        .for_each(|tree| run_on(tree, kind, durability));
}

fn run_on(tree: TreeKind, kind: Pages, durability: Durability) {
    let options = Options {
        durability,
        log_bytes: 128 * 4096,
        checkpoint_log_bytes: 32 * 4096,
        log_buffer_bytes: 4 * 4096,
        write_batch_pages: 4,
        ..support::options(tree, kind, 4096, 24, 4)
    };
    let device = Arc::new(MemDevice::new(8_192));
    let blocks: Arc<dyn BlockDevice> = device.clone();
    let store = Store::open(blocks, Arc::new(SystemClock::new()), &options).unwrap();
    let floors: Floors = (0..WRITERS)
        .map(|_| (0..KEYS_PER_WRITER).map(|_| AtomicU64::new(0)).collect())
        .collect();
    let stop = AtomicBool::new(false);
    let mut expected = BTreeMap::new();
    std::thread::scope(|scope| {
        let (store, floors, stop) = (&store, &floors, &stop);
        let pumps: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| store.pump_until(stop)))
            .collect();
        let readers: Vec<_> = (0..2)
            .map(|seed| scope.spawn(move || read(store, seed, floors, stop)))
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|w| scope.spawn(move || write(store, w, floors)))
            .collect();
        // Join all writers before stopping the others. Otherwise a failed writer would leave them
        // running forever.
        let written: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
        stop.store(true, Ordering::Release);
        for of_writer in written {
            expected.extend(of_writer.expect("a writer failed"));
        }
        readers
            .into_iter()
            .for_each(|r| r.join().expect("a reader failed"));
        pumps
            .into_iter()
            .for_each(|p| p.join().unwrap().expect("a pump failed"));
    });
    let stats = store.stats();
    assert!(
        stats.splits > 20 && stats.merges > 5 && stats.checkpoints > 3,
        "{stats:?}"
    );
    store.close().unwrap();
    let report = verify(device.clone()).unwrap();
    assert_eq!(report.damage, Vec::<String>::new());
    let store = Store::open(device, Arc::new(SystemClock::new()), &options).unwrap();
    let mut left = BTreeMap::new();
    store
        .scan(b"", &mut |k, v| {
            left.insert(k.to_vec(), version_of(v));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(
        left == expected,
        "{} records left, {} expected",
        left.len(),
        expected.len()
    );
}

#[test]
fn concurrent_operations_are_consistent_in_place() {
    run(IN_PLACE, Durability::Deferred);
}

#[test]
fn concurrent_operations_are_consistent_with_copy_on_write() {
    run(EACH_FLUSH, Durability::Deferred);
}

#[test]
fn concurrent_operations_are_consistent_with_a_lazy_table_and_group_commit() {
    run(LAZY, Durability::PerCommit);
}
