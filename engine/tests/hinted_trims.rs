//! Stores on a drive that takes trims for hints: trimmed blocks keep their bytes, or lose them later,
//! across restarts and power cuts. The seeded bug `nameless-log` shows here without a power cut.

mod support;

use std::sync::Arc;

use support::{Map, STORES, TREES, assert_same, tiny};
use treering_engine::device::{BlockDevice, CrashDevice, Trims};
use treering_engine::{Kv, Store, SystemClock, verify};

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
        if i % 50 == 0 {
            store.pump_due().expect("works");
        }
    }
    store.sync(last.expect("some")).expect("syncs");
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
