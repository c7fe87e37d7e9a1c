//! Tests a store with mini-pages in unusual situations: dropped and recovered repeatedly; opened
//! with invalid options; on a device that is full, fails to read, or fails to flush; and with
//! records of all shapes in full leaves.

mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use support::{BF, IN_PLACE, LEAST_RING, STORES, TREES, bf, contents, tiny as options};
use treering_engine::device::{BlockDevice, BlockRead, CrashDevice, DeviceError, MemDevice};
use treering_engine::{
    Error, IoClass, Kv, Lba, Options, Store, SystemClock, TreeKind, node, required_blocks, verify,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Opens a store that ends like a killed process, unless it is closed.
fn open(device: &Arc<impl BlockDevice + 'static>, options: &Options) -> Result<Store, Error> {
    Store::open(device.clone(), Arc::new(SystemClock::new()), options)
        .inspect(Store::abandon_on_drop)
}

fn put(store: &Store, map: &mut Map, key: &[u8], value: &[u8]) {
    store.put(key, value).expect("puts");
    map.insert(key.to_vec(), value.to_vec());
}

fn delete(store: &Store, map: &mut Map, key: &[u8]) {
    store.delete(key).expect("deletes");
    map.remove(key);
}

/// Returns what a descending scan finds below a key, or in the whole store.
fn backwards(store: &Store, before: Option<&[u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    store
        .scan_back(before, &mut |k, v| {
            rows.push((k.to_vec(), v.to_vec()));
            ControlFlow::Continue(())
        })
        .expect("scans");
    rows
}

/// Checks that gets agree with scans, for present and absent keys.
fn assert_same(store: &Store, map: &Map, story: &str) {
    assert!(contents(store) == *map, "{story}: a scan differs");
    let down = backwards(store, None);
    let expected = map.iter().rev().map(|(k, v)| (k.clone(), v.clone()));
    assert!(
        down.into_iter().eq(expected),
        "{story}: a descending scan differs"
    );
    assert_eq!(
        backwards(store, Some(b"")),
        [],
        "{story}: a descending scan from the empty key must find nothing"
    );
    for (key, below) in map
        .keys()
        .zip([None].into_iter().chain(map.keys().map(Some)))
        .step_by(37)
    {
        let (mut found, mut calls) = (None, 0);
        let visit = &mut |k: &[u8], _: &[u8]| {
            (found, calls) = (Some(k.to_vec()), calls + 1);
            ControlFlow::Break(())
        };
        store.scan_back(Some(key), visit).expect("scans");
        assert_eq!(
            (found.as_ref(), calls),
            (below, u32::from(below.is_some())),
            "{story}"
        );
    }
    let mut got = Vec::new();
    for (key, value) in map {
        let found = store.get(key, &mut got).expect("gets");
        assert!(found && got == *value, "{story}: get of {key:02x?}");
        let absent = [key, &b"\0absent"[..]].concat();
        assert!(!store.get(&absent, &mut got).expect("gets"), "{story}");
    }
}

/// Synced data survives, however often the store is dropped and recovered, and whichever tree
/// recovers it.
#[test]
fn synced_data_survives_repeated_drops_and_recoveries() {
    for store_kind in STORES {
        let device = Arc::new(MemDevice::new(4_096));
        let mut map = Map::new();
        for round in 0..6u32 {
            let kind = TREES[round as usize / 3 % 2];
            let store = open(&device, &options(kind, store_kind)).expect("opens");
            assert_same(&store, &map, "recovered");
            for i in 0..300u32 {
                let key = (i * 7 % 300 + 100 * round).to_be_bytes();
                if i % 5 == round % 5 {
                    delete(&store, &mut map, &key);
                } else {
                    put(&store, &mut map, &key, &[round as u8; 90]);
                }
            }
            let last = store.put(b"last", &round.to_be_bytes()).expect("puts");
            map.insert(b"last".to_vec(), round.to_be_bytes().to_vec());
            store.sync(last).expect("syncs");
            drop(store);
            for tree in [BF, TreeKind::BTree, BF, BF] {
                let store = open(&device, &options(tree, store_kind)).expect("recovers");
                assert_same(&store, &map, "recovered, and to be dropped");
            }
            let report = verify(device.clone()).expect("verifies");
            assert_eq!(report.damage, Vec::<String>::new());
            assert_eq!(report.records as usize, map.len());
        }
    }
}

#[test]
fn invalid_options_are_refused_by_name_and_leave_the_store_unchanged() {
    let device = Arc::new(MemDevice::new(4_096));
    let good = options(BF, IN_PLACE);
    let store = open(&device, &good).expect("opens");
    store.put(b"key", b"value").expect("puts");
    store.close().expect("closes");
    let less = Options {
        cache_bytes: (16 + LEAST_RING) * 4096 - 1,
        ..good.clone()
    };
    let with = |tree| Options {
        tree,
        ..good.clone()
    };
    for bad in [less, with(bf(101, 0)), with(bf(0, 101)), with(bf(255, 255))] {
        let refused = open(&device, &bad).map(drop);
        assert!(
            matches!(refused, Err(Error::BadOption { .. })),
            "{bad:?}: {refused:?}"
        );
    }
    let least = Options {
        cache_bytes: (16 + LEAST_RING) * 4096,
        ..good
    };
    let store = open(&device, &least).expect("the smallest ring");
    assert_eq!(contents(&store).len(), 1);
}

/// Keys that are prefixes of one another, empty keys, records of the largest size, and values that
/// grow, shrink and disappear where there is no room.
#[test]
fn records_of_all_shapes_fit_into_full_leaves() {
    let limits = node::limits(4096);
    let stems: [&[u8]; 6] = [b"", b"t", b"te", b"test", b"teste", b"tester"];
    for (tree, ring) in [(BF, LEAST_RING), (BF, 8), (bf(100, 100), LEAST_RING)] {
        for kind in STORES {
            let story = format!("{tree:?} on {kind:?}, {ring} pages of ring");
            let device = Arc::new(MemDevice::new(4_096));
            let options = Options {
                cache_bytes: (16 + ring) * 4096,
                ..options(tree, kind)
            };
            let store = open(&device, &options).expect("opens");
            let mut map = Map::new();
            let keys: Vec<Vec<u8>> = (0..60u8)
                .flat_map(|n| stems.map(|stem| [stem, &vec![n; usize::from(n % 4)]].concat()))
                .collect();
            for (round, len) in [30, 0, 400, 1, limits.max_record, 0, 9]
                .into_iter()
                .enumerate()
            {
                for (i, key) in keys.iter().enumerate() {
                    let most = limits.max_record - key.len();
                    let len = if i % 3 == 0 { len } else { 60 };
                    put(&store, &mut map, key, &vec![round as u8; len.min(most)]);
                    if i % 7 == round {
                        delete(&store, &mut map, key);
                    }
                }
                assert_same(&store, &map, &story);
            }
            let long = vec![b'z'; limits.max_key];
            put(
                &store,
                &mut map,
                &long,
                &vec![1; limits.max_record - limits.max_key],
            );
            put(&store, &mut map, &[], &vec![2; limits.max_record]);
            assert_same(&store, &map, &story);
            for key in keys.iter().chain([&long]) {
                delete(&store, &mut map, key);
                // A second delete has no further effect.
                delete(&store, &mut map, key);
            }
            assert!(map.is_empty() && contents(&store).is_empty(), "{story}");
            store.checkpoint().expect("checkpoints");
            for _ in 0..200 {
                store.delete(b"absent").expect("deletes");
            }
            let stats = store.stats();
            assert!(
                stats.splits > 5 && stats.leaf_pages < 3,
                "{story}: {stats:?}"
            );
            store.close().expect("closes");
            assert!(
                contents(&open(&device, &options).expect("opens")).is_empty(),
                "{story}"
            );
        }
    }
}

#[test]
fn a_full_device_refuses_only_puts() {
    for kind in STORES {
        let options = options(BF, kind);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 60)));
        let store = open(&device, &options).expect("opens");
        let mut map = Map::new();
        for round in 0..3u8 {
            let full = (0..10_000u32)
                .find_map(|i| {
                    let key = (i * 7919 % 10_000).to_be_bytes();
                    let refused = store.put(&key, &[round; 300]).err();
                    if refused.is_none() {
                        map.insert(key.to_vec(), vec![round; 300]);
                    }
                    refused
                })
                .expect("the store must become full");
            assert!(matches!(full, Error::Full { .. }), "{kind:?}: {full}");
            assert_same(&store, &map, "full");
            let doomed: Vec<_> = map.keys().step_by(2).cloned().collect();
            for key in doomed {
                delete(&store, &mut map, &key);
            }
        }
        store.close().expect("a full store can be closed");
        let store = open(&device, &options).expect("opens");
        assert_same(&store, &map, "opened again");
    }
}

/// A device whose pages cannot be read for a while.
struct Unreadable {
    inner: MemDevice,
    now: AtomicBool,
}

impl BlockDevice for Unreadable {
    fn capacity_blocks(&self) -> u64 {
        self.inner.capacity_blocks()
    }
    fn read(&self, at: Lba, into: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        if class == IoClass::Page && self.now.load(Ordering::Relaxed) {
            return Err(DeviceError::Io {
                what: "read",
                lba: at,
                source: std::io::Error::other("injected failure"),
            });
        }
        self.inner.read(at, into, class)
    }
    fn write(&self, at: Lba, from: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.inner.write(at, from, class)
    }
    fn trim(&self, at: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.inner.trim(at, blocks)
    }
    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }
}

/// A device that records how it was read.
struct Watched {
    inner: MemDevice,
    single: AtomicUsize,
    batches: AtomicUsize,
    in_batches: AtomicUsize,
}

impl BlockDevice for Watched {
    fn capacity_blocks(&self) -> u64 {
        self.inner.capacity_blocks()
    }
    fn read(&self, at: Lba, into: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.single.fetch_add(1, Ordering::Relaxed);
        self.inner.read(at, into, class)
    }
    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Result<(), DeviceError> {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.in_batches.fetch_add(reads.len(), Ordering::Relaxed);
        self.inner.read_batch(reads)
    }
    fn write(&self, at: Lba, from: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.inner.write(at, from, class)
    }
    fn trim(&self, at: Lba, blocks: u64) -> Result<(), DeviceError> {
        self.inner.trim(at, blocks)
    }
    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }
}

/// If the store is pumped, space is freed before it is needed, and the leaves involved are read in
/// batches.
#[test]
fn background_eviction_reads_leaves_in_batches_and_keeps_space_free() {
    for kind in STORES {
        let options = Options {
            cache_bytes: 2 << 20,
            log_bytes: 16 << 20,
            checkpoint_log_bytes: 8 << 20,
            ..options(BF, kind)
        };
        let device = Arc::new(Watched {
            inner: MemDevice::new(16_384),
            single: AtomicUsize::new(0),
            batches: AtomicUsize::new(0),
            in_batches: AtomicUsize::new(0),
        });
        let store = open(&device, &options).expect("opens");
        let mut map = Map::new();
        let full_returns = || store.stats().bf.expect("a bf tree").full_returns;
        let fill = |map: &mut Map, round: u32| {
            for i in 0..100_000u32 {
                let key = (i * 7_919 % 100_000).to_be_bytes();
                put(&store, map, &key, &round.to_be_bytes().repeat(8));
                while let Some(task) = store.due() {
                    store.pump(task).expect("pumps");
                }
            }
        };
        fill(&mut map, 0);
        let before = full_returns();
        let counted = || {
            [&device.single, &device.batches, &device.in_batches]
                .map(|counter| counter.load(Ordering::Relaxed))
        };
        let earlier = counted();
        fill(&mut map, 1);
        let [single, batches, in_batches] = {
            let now = counted();
            [0, 1, 2].map(|i| now[i] - earlier[i])
        };
        assert_eq!(
            full_returns(),
            before,
            "{kind:?}: an operation found no space in the ring"
        );
        assert!(
            batches > 20 && in_batches > 4 * batches,
            "{kind:?}: {in_batches} leaves in {batches} batches, {single} reads one by one"
        );
        assert_same(&store, &map, "pumped");
    }
}

/// If a leaf cannot be read, its eviction fails, and so does the operation that needed the space.
/// The mini-page stays, and nothing is lost.
#[test]
fn read_failures_fail_operations_and_lose_nothing() {
    for kind in STORES {
        let options = options(BF, kind);
        let device = Arc::new(Unreadable {
            inner: MemDevice::new(4_096),
            now: AtomicBool::new(false),
        });
        let store = open(&device, &options).expect("opens");
        let mut map = Map::new();
        for i in 0..2_000u32 {
            put(&store, &mut map, &(i * 7 % 2_000).to_be_bytes(), &[1; 100]);
        }
        let (mut failures, mut successes) = (0, 0);
        for round in 0..4u8 {
            device.now.store(round % 2 == 0, Ordering::Relaxed);
            let mut got = Vec::new();
            for i in 0..600u32 {
                let key = (i * 331 % 2_000).to_be_bytes();
                let done = match i % 3 {
                    0 => store.delete(&key).map(|_| drop(map.remove(&key[..]))),
                    1 => store.get(&key, &mut got).map(|found| {
                        assert_eq!(found.then_some(&got), map.get(&key[..]), "{kind:?}");
                    }),
                    _ => {
                        let value = vec![round; i as usize % 200];
                        let done = store.put(&key, &value).map(drop);
                        if done.is_ok() {
                            map.insert(key.to_vec(), value);
                        }
                        done
                    }
                };
                match done {
                    Ok(()) => successes += 1,
                    Err(Error::Device(_)) if round % 2 == 0 => failures += 1,
                    Err(e) => panic!("{kind:?}, round {round}: {e}"),
                }
            }
        }
        assert!(
            failures > 100 && successes > 1_200,
            "{failures}, {successes}"
        );
        assert_same(&store, &map, "readable again");
        store.close().expect("closes");
        let store = open(&device, &options).expect("opens");
        assert_same(&store, &map, "readable again, and opened again");
    }
}

/// After a failed flush, everything that was acknowledged before is present when the store is
/// reopened.
#[test]
fn after_a_failed_flush_writes_are_refused_and_acknowledged_data_survives() {
    for kind in STORES {
        for n in 0..12 {
            let options = options(BF, kind);
            let device = Arc::new(CrashDevice::new(4_096));
            let store = open(&device, &options).expect("formats");
            let mut map = Map::new();
            for i in 0..400u32 {
                put(&store, &mut map, &i.to_be_bytes(), &[1; 100]);
            }
            let last = store.put(b"last", b"").expect("puts");
            map.insert(b"last".to_vec(), Vec::new());
            store.sync(last).expect("syncs");
            device.fail_flush_in(n);
            let mut unsure = map.clone();
            let refused = (0..20_000u32).find_map(|i| {
                let key = (i % 400).to_be_bytes();
                let done = store.put(&key, &[2; 120]).and_then(|lsn| match i % 50 {
                    0 => store.sync(lsn),
                    _ => Ok(()),
                });
                unsure.insert(key.to_vec(), vec![2; 120]);
                done.err()
            });
            let refused = refused.expect("a flush fails");
            let typed = matches!(refused, Error::Device(_) | Error::Poisoned { .. });
            assert!(typed, "{kind:?}: {refused}");
            let poisoned = store.put(b"x", b"y").map(drop);
            assert!(
                matches!(poisoned, Err(Error::Poisoned { .. })),
                "{kind:?}: {poisoned:?}"
            );
            drop(store);
            let store = open(&device, &options).expect("recovers");
            let found = contents(&store);
            assert_eq!(found.len(), map.len(), "{kind:?}, flush {n}");
            for (key, value) in &found {
                let right = map[key] == *value || unsure[key] == *value;
                assert!(right, "{kind:?}, flush {n}: {key:02x?}");
            }
        }
    }
}
