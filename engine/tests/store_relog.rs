//! Checkpoints that log the dirty records of mini-pages again, instead of merging them: nothing is
//! lost by a power cut after one, and mini-pages go on gathering. The oracle cuts at every request.

mod support;

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{BF, Map, STORES, assert_same, contents, tiny, with_log};
use treering_engine::device::CrashDevice;
use treering_engine::{
    Batch, BfOptions, Kv, Options, Progress, Store, SystemClock, Task, TreeKind, verify,
};

const BLOCKS: u64 = 4_096;

fn relogging(percent: u8, options: Options) -> Options {
    let TreeKind::Bf(bf) = options.tree else {
        panic!("a Bf-Tree");
    };
    Options {
        tree: TreeKind::Bf(BfOptions {
            relog_percent: percent,
            ..bf
        }),
        ..options
    }
}

fn open(device: &Arc<CrashDevice>, options: &Options) -> Store {
    let clock = Arc::new(SystemClock::new());
    Store::open(device.clone(), clock, options).expect("opens")
}

/// Puts, deletes and batches beside checkpoints, a step of which is taken now and then.
fn change(store: &Store, map: &mut Map, rng: &mut StdRng) {
    for i in 0..400 {
        let key = format!("key-{:04}", rng.random_range(0..1_000)).into_bytes();
        let value = vec![b'v'; rng.random_range(0..80)];
        match rng.random_range(0..20) {
            0 => {
                let mut batch = Batch::new();
                for n in 0..4 {
                    let key = format!("key-{:04}", n * 250).into_bytes();
                    batch.put(key.clone(), value.clone());
                    map.insert(key, value.clone());
                }
                store.write(&batch).map(drop)
            }
            1..=6 => {
                map.remove(&key);
                store.delete(&key).map(drop)
            }
            _ => {
                map.insert(key.clone(), value.clone());
                store.put(&key, &value).map(drop)
            }
        }
        .expect("changes");
        if i % 3 == 0 {
            store.pump(Task::Checkpoint).expect("works");
        }
    }
}

#[test]
fn what_was_logged_again_survives_power_cuts() {
    for (kind, seed) in STORES.into_iter().flat_map(|kind| [(kind, 0), (kind, 1)]) {
        let options = relogging(50, with_log(256 * 4_096, tiny(BF, kind)));
        let mut device = Arc::new(CrashDevice::new(BLOCKS));
        let (mut map, mut rng) = (Map::new(), StdRng::seed_from_u64(seed));
        let mut relogged = 0;
        for round in 0..8 {
            let story = format!("{kind:?}, seed {seed}, round {round}");
            let store = open(&device, &options);
            assert_same(&store, &map, &story);
            change(&store, &mut map, &mut rng);
            while store.pump(Task::Checkpoint).expect("works") == Progress::More {}
            relogged += store.stats().bf.expect("a Bf-Tree").relogged;
            store.abandon_on_drop();
            // The checkpoint has flushed the log to its end.
            drop(store);
            let image = device.crash(&mut |_| 0);
            device = Arc::new(CrashDevice::from_image(image));
            let store = open(&device, &options);
            let left = contents(&store);
            assert_eq!(left, map, "{story}");
            store.close().expect("closes");
        }
        assert!(relogged > 100, "{kind:?}: {relogged}");
        let report = verify(device).expect("verifies");
        assert_eq!(report.damage, Vec::<String>::new(), "{kind:?}");
    }
}

/// The same program with and without. In so small a store, many pages are changed while a checkpoint
/// runs, and those are merged.
#[test]
fn a_checkpoint_merges_less() {
    let counts = |percent| {
        let options = relogging(percent, with_log(256 * 4_096, tiny(BF, STORES[0])));
        let device = Arc::new(CrashDevice::new(BLOCKS));
        let store = open(&device, &options);
        let (mut map, mut rng) = (Map::new(), StdRng::seed_from_u64(7));
        (0..4).for_each(|_| change(&store, &mut map, &mut rng));
        assert_same(&store, &map, "in the end");
        let bf = store.stats().bf.expect("a Bf-Tree");
        store.close().expect("closes");
        // Closing leaves nothing to redo.
        let store = open(&device, &options);
        assert_eq!(store.recovery().records_read, 0);
        (bf.relogged, bf.merges.checkpoint)
    };
    let (never, merged) = counts(0);
    let (relogged, still) = counts(50);
    assert_eq!(never, 0);
    assert!(
        relogged > 100 && still < merged / 4 * 3,
        "{relogged}, {still} of {merged}"
    );
}

/// Leaves of which one record was changed, and others of which twelve were, in turns. There is log
/// for a part of these changes.
#[test]
fn the_lightest_are_logged_again() {
    let options = Options {
        cache_bytes: 2 << 20,
        ..relogging(50, with_log(64 * 4_096, tiny(BF, STORES[0])))
    };
    let device = Arc::new(CrashDevice::new(BLOCKS));
    let store = open(&device, &options);
    let key = |n: u32| format!("key-{n:05}").into_bytes();
    let put = |n: u32| {
        store.put(&key(n), &[b'v'; 100]).expect("writes");
    };
    (0..6_000).for_each(put);
    store.checkpoint().expect("works");
    let before = store.stats().bf.expect("a Bf-Tree");
    for part in (0..6_000).step_by(100) {
        let changes = if part % 200 == 0 { 1 } else { 12 };
        (part + 40..part + 40 + changes).for_each(put);
    }
    while store.pump(Task::Checkpoint).expect("works") == Progress::More {}
    let after = store.stats().bf.expect("a Bf-Tree");
    let light = after.batches[0] - before.batches[0];
    let merged = after.merges.checkpoint - before.merges.checkpoint;
    assert!(
        merged > 5,
        "{merged} of {after:?}: all have room in the log"
    );
    assert_eq!(light, 0, "merges for one record, of {merged}");
    assert!(after.relogged > 100, "{}", after.relogged);
}

#[test]
fn more_than_half_of_the_log_is_refused() {
    let options = relogging(51, tiny(BF, STORES[0]));
    let device = Arc::new(CrashDevice::new(BLOCKS));
    let clock = Arc::new(SystemClock::new());
    let error = Store::open(device, clock, &options).err().expect("refused");
    assert_eq!(error.to_string(), "option relog: 51 %; expected 0 to 50");
}

/// Leaves are nearly full, and values grow where others shrink or go: in another order, the changes
/// would not fit when they are redone.
#[test]
fn what_was_logged_again_fits_when_it_is_redone() {
    // At once, or with changes between the beginning of a checkpoint and what it logs again.
    for (seed, at_once) in (0..12).map(|seed| (seed, seed % 2 == 0)) {
        let options = relogging(50, with_log(256 * 4_096, tiny(BF, STORES[0])));
        let device = Arc::new(CrashDevice::new(BLOCKS));
        let (mut map, mut rng) = (Map::new(), StdRng::seed_from_u64(seed));
        let store = open(&device, &options);
        for i in 0..2_000 {
            let key = format!("{:02}", rng.random_range(0..12)).into_bytes();
            let long = map.values().map(Vec::len).sum::<usize>() < 3_000;
            if rng.random_bool(0.2) {
                map.remove(&key);
                store.delete(&key).map(drop)
            } else {
                let value = vec![b'v'; rng.random_range(0..if long { 900 } else { 200 })];
                map.insert(key.clone(), value.clone());
                store.put(&key, &value).map(drop)
            }
            .expect("changes");
            let due = match at_once {
                true if i % 25 == 24 => {
                    while store.pump(Task::Checkpoint).expect("works") == Progress::More {}
                    true
                }
                true => false,
                false => store.pump(Task::Checkpoint).expect("works") == Progress::Idle,
            };
            if due {
                let left = CrashDevice::from_image(device.crash(&mut |_| 0));
                let left = open(&Arc::new(left), &options);
                assert_same(&left, &map, &format!("seed {seed}, operation {i}"));
                left.abandon_on_drop();
            }
        }
        store.abandon_on_drop();
    }
}
