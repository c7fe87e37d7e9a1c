//! Stores on a drive that takes trims for hints: trimmed blocks keep their bytes, or lose them later,
//! across restarts and power cuts. The seeded bug `nameless-log` shows here without a power cut.

mod support;

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{BMINUS, Map, SHADOW, STORES, TREES, assert_same, contents, tiny};
use treering_engine::device::{BlockDevice, CrashDevice, Image, Trims};
use treering_engine::{Kv, Options, Store, SystemClock, Task, verify};

const BLOCKS: u64 = 4_096;
const ROUNDS: u64 = 8;

/// Puts and deletes, so that leaves split, merge, and take the places of others.
fn change(store: &Store, map: &mut Map, round: u64) {
    let mut last = None;
    for i in 0..900 {
        let key = format!("key-{:05}", i * 7 % 900 + 150 * (round % 3)).into_bytes();
        last = Some(if i % 4 == round % 4 || i < 300 * (round % 3) {
            map.remove(&key);
            store.delete(&key).expect("deletes")
        } else {
            // Some values are so long that they have blocks of their own.
            let len = if i % 90 == 0 { 5_000 } else { i % 120 };
            let value = vec![round as u8 + 1; len as usize];
            map.insert(key.clone(), value.clone());
            store.put(&key, &value).expect("puts")
        });
        // Some checkpoints take a step now and then, so that leaves change between.
        match round % 2 {
            0 if i % 50 == 0 => drop(store.pump_due().expect("works")),
            1 if i % 2 == 0 => drop(store.pump(Task::Checkpoint).expect("works")),
            _ => {}
        }
    }
    store.sync(last.expect("some")).expect("syncs");
}

/// Cuts the power after every request of a recovery, with all of them on the medium.
fn recover_twice(image: &Image, options: &Options, seed: u64, story: &str) {
    let open = |device: &Arc<CrashDevice>| {
        device.set_trims(Trims::Hints(seed));
        device.record();
        let clock = Arc::new(SystemClock::new());
        let store = Store::open(device.clone(), clock, options);
        store.unwrap_or_else(|e| panic!("{story}: {e}"))
    };
    let device = Arc::new(CrashDevice::from_image(image.clone()));
    let store = open(&device);
    let map = contents(&store);
    store.abandon_on_drop();
    let twin = CrashDevice::from_image(image.clone());
    for request in device.take_recording() {
        twin.apply(&request);
        let again = Arc::new(CrashDevice::from_image(twin.crash(&mut |n| n - 1)));
        let store = open(&again);
        assert_same(&store, &map, story);
        store.abandon_on_drop();
    }
}

#[test]
fn nothing_depends_on_what_becomes_of_trims() {
    for (tree, kind) in TREES
        .into_iter()
        .flat_map(|tree| STORES.map(|kind| (tree, kind)))
    {
        for seed in 0..3 {
            let options = tiny(tree, kind);
            let mut device = Arc::new(CrashDevice::new(BLOCKS));
            let mut map = Map::new();
            let mut changed = 0;
            for round in 0..ROUNDS {
                let story = format!("{} on {kind:?}, seed {seed}, round {round}", tree.name());
                device.set_trims(Trims::Hints(seed * ROUNDS + round));
                let clock = Arc::new(SystemClock::new());
                let store = Store::open(device.clone(), clock, &options).expect(&story);
                assert_same(&store, &map, &story);
                change(&store, &mut map, round);
                let stats = store.stats();
                changed += u64::from(stats.splits > 0 && stats.merges > 0);
                match round % 3 {
                    0 => store.close().expect("closes"),
                    1 => store.abandon_on_drop(),
                    _ => {
                        store.abandon_on_drop();
                        drop(store);
                        let image = device.crash_seeded(seed + round);
                        recover_twice(&image, &options, seed, &story);
                        device = Arc::new(CrashDevice::from_image(image));
                    }
                }
            }
            assert!(changed > 1, "{} on {kind:?}", tree.name());
            let report = verify(device as Arc<dyn BlockDevice>).expect("verifies");
            assert_eq!(report.damage, Vec::<String>::new(), "{tree:?} on {kind:?}");
        }
    }
}

/// A leaf may change and die while a checkpoint runs, and the snapshot take its place. Its image in
/// the other half of the place is still whole then, if the trim was forgotten.
#[test]
fn recovery_spares_the_snapshot_that_it_began_from() {
    for (kind, seed) in [(SHADOW, 0), (SHADOW, 1), (BMINUS, 0), (BMINUS, 1)] {
        let options = tiny(TREES[0], kind);
        let device = Arc::new(CrashDevice::new(BLOCKS));
        device.set_trims(Trims::Hints(seed));
        let clock = Arc::new(SystemClock::new());
        let store = Store::open(device.clone(), clock, &options).expect("opens");
        let mut snapshots = 0;
        let mut rng = StdRng::seed_from_u64(seed);
        for i in 0..3_000 {
            // Long values, so that few operations split a leaf or make it sparse.
            let key = format!("{:02}", rng.random_range(0..40));
            match rng.random_range(0..2) {
                0 => store
                    .put(key.as_bytes(), &vec![7; rng.random_range(0..2_000)])
                    .map(drop),
                _ => store.delete(key.as_bytes()).map(drop),
            }
            .expect("changes");
            let before = store.stats().checkpoints;
            if i % 4 == 0 {
                store.pump(Task::Checkpoint).expect("works");
            }
            if store.stats().checkpoints > before {
                snapshots += 1;
                let image = device.crash(&mut |n| n - 1);
                let story = format!("{kind:?}, seed {seed}, operation {i}");
                recover_twice(&image, &options, seed, &story);
            }
        }
        store.abandon_on_drop();
        assert!(snapshots > 10, "{snapshots}");
    }
}
