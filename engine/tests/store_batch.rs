//! Tests write batches: a batch takes effect as a whole, for readers and across crashes, however
//! large it is and for whatever reason it is refused. `store_crash` cuts random programs with
//! batches; the cases here are too rare in those.

#[path = "store_batch/cut.rs"]
mod cut;
mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{BF, IN_PLACE, LAZY, TREES, all, contents, tiny};
use treering_engine::device::{BlockDevice, CrashDevice, MemDevice};
use treering_engine::{
    Batch, Durability, Error, Kv, Options, Store, SystemClock, TreeKind, required_blocks, verify,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(device: &Arc<impl BlockDevice + 'static>, options: &Options) -> Store {
    let device: Arc<dyn BlockDevice> = device.clone();
    Store::open(device, Arc::new(SystemClock::new()), options).expect("opens")
}

fn key(n: u64) -> Vec<u8> {
    format!("key-{n:05}").into_bytes()
}

fn value(n: u64, len: usize) -> Vec<u8> {
    let mut value = n.to_be_bytes().to_vec();
    value.resize(len.max(8), b'v');
    value
}

/// Adds puts: the number of each key, the number that its value begins with, and the length of the
/// value.
fn fill(batch: &mut Batch, puts: impl Iterator<Item = (u64, u64, usize)>) {
    for (number, first, len) in puts {
        batch.put(key(number), value(first, len));
    }
}

fn apply(map: &mut Map, batch: &Batch) {
    for (key, value) in batch.iter() {
        match value {
            Some(value) => drop(map.insert(key.to_vec(), value.to_vec())),
            None => drop(map.remove(key)),
        }
    }
}

fn random_batch(rng: &mut StdRng, i: u64) -> Batch {
    let mut batch = Batch::new();
    for n in 0..rng.random_range(0..60) {
        let key = key(rng.random_range(0..900));
        if rng.random_bool(0.3) {
            batch.delete(key);
        } else {
            let len = match rng.random_range(0..12) {
                0 => rng.random_range(2_000..20_000),
                _ => rng.random_range(8..200),
            };
            batch.put(key, value(i * 100 + n, len));
        }
    }
    batch
}

#[test]
fn batches_have_the_effect_of_their_changes() {
    for (tree, pages) in all() {
        let options = tiny(tree, pages);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 1_500)));
        let mut store = open(&device, &options);
        let mut rng = StdRng::seed_from_u64(7);
        let mut map = Map::new();
        for i in 0..300 {
            let batch = random_batch(&mut rng, i);
            store.write(&batch).expect("writes");
            apply(&mut map, &batch);
            let single = key(rng.random_range(0..900));
            store.put(&single, &value(i, 30)).expect("puts");
            map.insert(single, value(i, 30));
            while store.pump_due().expect("pumps") {}
            if i % 100 == 99 {
                assert_eq!(contents(&store), map, "{tree:?} on {pages:?}");
                store.close().expect("closes");
                let damage = verify(device.clone()).expect("verifies").damage;
                assert_eq!(damage, Vec::<String>::new(), "{tree:?} on {pages:?}");
                store = open(&device, &options);
                assert_eq!(store.recovery().batches_completed, 0);
            }
        }
        assert_eq!(contents(&store), map, "{tree:?} on {pages:?}");
    }
}

#[test]
fn refused_batches_change_nothing_and_leak_no_space() {
    for (tree, pages) in all() {
        let options = tiny(tree, pages);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 150)));
        let store = open(&device, &options);
        let mut map = Map::new();
        store.put(b"there", b"before").expect("puts");
        map.insert(b"there".to_vec(), b"before".to_vec());
        let mut batch = Batch::new();

        batch.put(b"there", b"after").put(vec![b'k'; 5_000], b"");
        let refused = store.write(&batch).expect_err("the key is too long");
        assert!(matches!(refused, Error::KeyTooLong { .. }), "{refused}");
        // No store can hold such a key, so deleting it is allowed.
        batch.put(b"there", b"now").delete(vec![b'k'; 5_000]);
        store.write(&batch).expect("writes");
        map.insert(b"there".to_vec(), b"now".to_vec());

        let mut batch = Batch::new();
        fill(&mut batch, (0..600).map(|n| (n, n, 60)));
        let refused = store.write(&batch).expect_err("it is too large");
        assert!(matches!(refused, Error::BatchTooLarge { .. }), "{refused}");

        // Each of these batches runs out of space. If refused batches leaked blocks, none would be
        // free in the end.
        for i in 0..40 {
            let mut batch = Batch::new();
            batch.put(key(i), value(i, 8)).put(b"there", b"after");
            fill(&mut batch, (0..60).map(|n| (1_000 + n, n, 120_000)));
            let refused = store.write(&batch).expect_err("there is no room");
            assert!(matches!(refused, Error::Full { .. }), "{refused}");
        }
        assert_eq!(contents(&store), map, "{tree:?} on {pages:?}");
        let mut batch = Batch::new();
        batch.put(key(1), value(1, 100_000)).delete(b"there");
        store.write(&batch).expect("there is room for one");
        apply(&mut map, &batch);
        assert_eq!(contents(&store), map, "{tree:?} on {pages:?}");
    }
}

#[test]
fn a_store_that_fills_up_applies_batches_completely_or_not_at_all() {
    for (tree, pages) in all() {
        let options = tiny(tree, pages);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 120)));
        let store = open(&device, &options);
        let mut rng = StdRng::seed_from_u64(3);
        let (mut map, mut refused) = (Map::new(), 0);
        for i in 0..2_000 {
            let mut batch = Batch::new();
            for n in 0..rng.random_range(2..20) {
                batch.put(key(rng.random_range(0..20_000)), value(100 * i + n, 300));
            }
            match store.write(&batch) {
                Ok(_) => apply(&mut map, &batch),
                Err(Error::Full { .. }) => refused += 1,
                Err(e) => panic!("{tree:?} on {pages:?}: {e}"),
            }
            while store.pump_due().expect("pumps") {}
        }
        assert!(refused > 10, "{tree:?} on {pages:?}: {refused} refused");
        assert_eq!(contents(&store), map, "{tree:?} on {pages:?}");
        store.close().expect("closes");
        assert_eq!(contents(&open(&device, &options)), map);
    }
}

/// A store with full leaves, so that each change of a batch splits a leaf.
fn full_leaves(device: &Arc<CrashDevice>, options: &Options) -> Map {
    let store = open(device, options);
    let mut map = Map::new();
    for n in 0..1_500 {
        let (key, value) = (key(20 * n), value(n, 120));
        store.put(&key, &value).expect("puts");
        map.insert(key, value);
        while store.pump_due().expect("pumps") {}
    }
    store.close().expect("closes");
    // Fill them up: records in key order grow as long as their leaf has room.
    let store = open(device, options);
    let leaves = store.leaf_fill().expect("reads");
    let mut records = map.clone().into_iter();
    for leaf in leaves {
        let mut free = options.page_size - leaf.used_bytes as usize - 30;
        for (key, mut value) in records.by_ref().take(leaf.records as usize) {
            let more = free.min(700);
            if more < 10 {
                continue;
            }
            free -= more;
            value.resize(value.len() + more, b'v');
            store.put(&key, &value).expect("puts");
            map.insert(key, value);
            while store.pump_due().expect("pumps") {}
        }
    }
    store.close().expect("closes");
    map
}

/// A batch that splits so many leaves that it fills the log several times, with a power cut at each
/// request.
#[test]
fn a_batch_may_fill_the_log_several_times() {
    for (tree, pages) in all() {
        let options = Options {
            // So small that the log records of the batch fill it more than once.
            log_bytes: 40 * 4096,
            checkpoint_log_bytes: 10 * 4096,
            log_buffer_bytes: 2 * 4096,
            ..tiny(tree, pages)
        };
        let device = Arc::new(CrashDevice::new(required_blocks(&options, 900)));
        let before = full_leaves(&device, &options);
        let image = device.crash_seeded(0);
        let mut batch = Batch::new();
        // Puts in the middle of the leaves, and some deletes.
        for n in 0..150_u64 {
            batch.put(key(200 * n + 7), value(n, 90));
            batch.delete(key(200 * n + 20));
        }
        let mut after = before.clone();
        apply(&mut after, &batch);

        // The number of requests, and how often the log was freed meanwhile.
        let whole = Arc::new(CrashDevice::from_image(image.clone()));
        let store = open(&whole, &options);
        let (began, checkpoints) = (whole.requests(), store.stats().checkpoints);
        let lsn = store.write(&batch).expect("writes");
        store.sync(lsn).expect("syncs");
        let taken = store.stats().checkpoints - checkpoints;
        assert!(taken > 1 || tree == BF, "{tree:?} on {pages:?}: {taken}");
        let requests = whole.requests() - began;
        assert_eq!(contents(&store), after);
        drop(store);

        let mut rng = StdRng::seed_from_u64(11);
        let mut completed = 0;
        for _ in 0..24 {
            let mut device = Arc::new(CrashDevice::from_image(image.clone()));
            let store = open(&device, &options);
            device.cut_power_in(rng.random_range(0..requests + 5));
            let acknowledged = store.write(&batch).and_then(|lsn| store.sync(lsn));
            store.abandon();
            // Recovery is also cut.
            for _ in 0..rng.random_range(0..3) {
                let image = device.crash_seeded(rng.random());
                device = Arc::new(CrashDevice::from_image(image));
                device.cut_power_in(rng.random_range(0..150));
                let handle: Arc<dyn BlockDevice> = device.clone();
                let clock = Arc::new(SystemClock::new());
                if let Ok(store) = Store::open(handle, clock, &options) {
                    store.abandon();
                }
            }
            let image = device.crash_seeded(rng.random());
            let device = Arc::new(CrashDevice::from_image(image));
            let store = open(&device, &options);
            completed += store.recovery().batches_completed;
            let found = contents(&store);
            assert!(
                found == after || (found == before && acknowledged.is_err()),
                "{tree:?} on {pages:?}: {} of {} changes",
                batch
                    .iter()
                    .filter(|(k, v)| found.get(*k).map(|v| &v[..]) == *v)
                    .count(),
                batch.len()
            );
            drop(store);
            let damage = verify(device).expect("verifies").damage;
            assert_eq!(damage, Vec::<String>::new(), "{tree:?} on {pages:?}");
        }
        assert!(
            completed > 0,
            "{tree:?} on {pages:?}: no cut batch was completed"
        );
    }
}

/// One flush writes all log records of the batch, and a crash keeps any prefix of its blocks.
#[test]
fn a_batch_is_atomic_whichever_prefix_of_its_log_survives() {
    for (tree, pages) in TREES
        .into_iter()
        .flat_map(|tree| [(tree, IN_PLACE), (tree, LAZY)])
    {
        let options = Options {
            log_bytes: 256 * 4096,
            checkpoint_log_bytes: 128 * 4096,
            log_buffer_bytes: 64 * 4096,
            // No page is written meanwhile, because that would need another flush.
            cache_bytes: 64 * 4096,
            ..tiny(tree, pages)
        };
        // Different lengths, so that blocks end at different positions in the records.
        for len in (700..1_000).step_by(23) {
            let device = Arc::new(CrashDevice::new(required_blocks(&options, 300)));
            let store = open(&device, &options);
            let mut before = Map::new();
            for n in 0..40 {
                store.put(&key(n), &value(n, 60)).expect("puts");
                before.insert(key(n), value(n, 60));
            }
            store.checkpoint().expect("checkpoints");
            let mut batch = Batch::new();
            fill(&mut batch, (0..30).map(|n| (n + 20, n, len)));
            let mut after = before.clone();
            apply(&mut after, &batch);
            let lsn = store.write(&batch).expect("writes");
            // The log is written but not flushed.
            device.cut_power_in(1);
            store.sync(lsn).expect_err("the flush fails");
            store.abandon();
            let blocks = device.outcomes().len();
            assert!(blocks > 4, "{tree:?}: {blocks} blocks");
            for kept in 0..=blocks {
                let mut seen = 0;
                let image = device.crash(&mut |outcomes| {
                    seen += 1;
                    if seen <= kept { outcomes - 1 } else { 0 }
                });
                let found = contents(&open(&Arc::new(CrashDevice::from_image(image)), &options));
                assert!(
                    found == after || (found == before && kept < blocks),
                    "{tree:?} on {pages:?}, {kept} of {blocks} blocks, values of {len} bytes"
                );
            }
        }
    }
}

/// The keys that the writer of a batch sets to the same number.
const TOGETHER: u64 = 40;

fn number(store: &Store, n: u64) -> u64 {
    let value = store.get_owned(&key(17 * n)).expect("reads");
    let value = value.expect("the key must exist");
    u64::from_be_bytes(value[..8].try_into().expect("eight bytes"))
}

#[test]
fn readers_see_a_batch_completely_or_not_at_all() {
    for tree in TREES {
        let options = tiny(tree, LAZY);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 800)));
        let store = open(&device, &options);
        let all_to = |number: u64| {
            let mut batch = Batch::new();
            for n in 0..TOGETHER {
                // One of the values is long.
                batch.put(key(17 * n), value(number, if n == 9 { 5_000 } else { 90 }));
            }
            batch
        };
        store.write(&all_to(0)).expect("writes");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (store, done) = (&store, &done);
            for reader in 0..2 {
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(reader);
                    let mut seen = 0;
                    while !done.load(Ordering::Acquire) {
                        let now = number(store, rng.random_range(0..TOGETHER));
                        assert!(now >= seen, "{tree:?}: {now} after {seen}");
                        seen = now;
                        if !rng.random_bool(0.1) {
                            continue;
                        }
                        let mut visit = |key: &[u8], value: &[u8]| {
                            if !key.starts_with(b"other") {
                                let n = u64::from_be_bytes(value[..8].try_into().unwrap());
                                assert!(n >= seen, "{tree:?}: a scan found {n} after {seen}");
                            }
                            ControlFlow::Continue(())
                        };
                        match rng.random_bool(0.5) {
                            true => store.scan(b"", &mut visit),
                            false => store.scan_back(None, &mut visit),
                        }
                        .expect("scans");
                    }
                });
            }
            scope.spawn(move || {
                for i in 0.. {
                    if done.load(Ordering::Acquire) {
                        break;
                    }
                    let key = format!("other-{}", i % 300);
                    store.put(key.as_bytes(), &value(i, 50)).expect("puts");
                }
            });
            for i in 1..600 {
                store.write(&all_to(i)).expect("writes");
                while store.pump_due().expect("pumps") {}
            }
            done.store(true, Ordering::Release);
        });
    }
}

/// A file system fills up in the middle of a batch. Readers see the whole batch, and the next
/// writer completes it before its own change.
#[test]
fn a_batch_without_device_space_is_completed_before_the_next_write() {
    for tree in [TreeKind::BTree, BF] {
        let mut waited = 0;
        for seed in 0..12 {
            let options = Options {
                durability: Durability::PerCommit,
                ..tiny(tree, LAZY)
            };
            let device = Arc::new(CrashDevice::new(required_blocks(&options, 600)));
            let store = open(&device, &options);
            let mut map = Map::new();
            // More leaves than frames, so that changes must write pages.
            for n in 0..2_000 {
                store.put(&key(n), &value(n, 100)).expect("puts");
                map.insert(key(n), value(n, 100));
            }
            // All frames are clean, and there are fewer frames than leaves that the batch changes.
            store.checkpoint().expect("checkpoints");
            let mut rng = StdRng::seed_from_u64(seed);
            let mut batch = Batch::new();
            for n in 0..120 {
                batch.put(key(rng.random_range(0..2_000)), value(5_000 + n, 100));
            }
            batch.delete(key(3)).put(key(4), value(4, 8));
            device.set_full(true);
            let refused = store.write(&batch);
            if matches!(refused, Err(Error::NoSpace { .. })) && {
                let got = store.get_owned(&key(3)).expect("reads");
                got.is_none()
            } {
                waited += 1;
                apply(&mut map, &batch);
                // The whole batch, or an error for lack of a frame.
                for (key, value) in batch.iter() {
                    if let Ok(found) = store.get_owned(key) {
                        assert_eq!(found.as_deref(), value, "{tree:?}");
                    }
                }
            }
            assert!(store.put(&key(3), b"no room").is_err(), "{tree:?}");
            device.set_full(false);
            store.put(&key(4), b"later").expect("puts");
            map.insert(key(4), b"later".to_vec());
            assert_eq!(contents(&store), map, "{tree:?}, seed {seed}");
            let image = {
                store.abandon();
                device.crash_seeded(seed)
            };
            let device = Arc::new(CrashDevice::from_image(image));
            assert_eq!(
                contents(&open(&device, &options)),
                map,
                "{tree:?}, seed {seed}"
            );
        }
        assert!(waited > 0, "{tree:?}: no batch had to wait");
    }
}
