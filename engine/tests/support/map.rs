//! Compares a store with an ordered map.
#![allow(dead_code)] // each test binary uses only a part

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rand::RngExt;
use rand::rngs::StdRng;
use treering_engine::Kv;

pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns the contents found by a scan.
pub(crate) fn contents(store: &dyn Kv) -> Map {
    let mut map = Map::new();
    store
        .scan(b"", &mut |k, v| {
            assert!(map.insert(k.to_vec(), v.to_vec()).is_none(), "{k:?} twice");
            ControlFlow::Continue(())
        })
        .expect("scans");
    map
}

/// Returns keys below `before`, descending.
pub(crate) fn downwards(store: &dyn Kv, before: Option<&[u8]>) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    store
        .scan_back(before, &mut |k, _| {
            keys.push(k.to_vec());
            ControlFlow::Continue(())
        })
        .expect("scans back");
    keys
}

pub(crate) fn assert_same(store: &dyn Kv, map: &Map, story: &str) {
    let found = contents(store);
    assert!(
        found == *map,
        "{story}: {} records scanned, {} expected",
        found.len(),
        map.len()
    );
    let keys: Vec<_> = map.keys().rev().cloned().collect();
    assert_eq!(downwards(store, None), keys, "{story}: downwards");
}

/// Does all background work.
pub(crate) fn pump_all(store: &dyn Kv) {
    let mut steps = 0;
    while store.pump_due().expect("pumps") {
        steps += 1;
        assert!(
            steps < 1_000_000,
            "background work must end: {:?}",
            store.stats()
        );
    }
}

/// A random operation on a key, in the store and in the map. Puts are more frequent than deletes if
/// the store is `growing`.
pub(crate) fn operate(
    (store, map): (&dyn Kv, &mut Map),
    rng: &mut StdRng,
    k: Vec<u8>,
    value: impl FnOnce(&mut StdRng) -> Vec<u8>,
    growing: bool,
    story: &str,
) {
    match rng.random_range(0..10) {
        0..=1 => {
            let found = store.get_owned(&k).expect("gets");
            assert_eq!(found.as_ref(), map.get(&k), "{story}: get {k:?}");
        }
        2 => {
            let mut seen = Vec::new();
            store
                .scan(&k, &mut |k, v| {
                    seen.push((k.to_vec(), v.to_vec()));
                    match seen.len() < 5 {
                        true => ControlFlow::Continue(()),
                        false => ControlFlow::Break(()),
                    }
                })
                .expect("scans");
            let expected = map.range(k.clone()..).take(5);
            let expected: Vec<_> = expected.map(|(k, v)| (k.clone(), v.clone())).collect();
            assert_eq!(seen, expected, "{story}: scan from {k:?}");
            let below = map.range(..k.clone()).rev();
            let below: Vec<_> = below.map(|(k, _)| k.clone()).collect();
            let found = downwards(store, Some(&k));
            assert_eq!(found, below, "{story}: down from {k:?}");
        }
        n if (n <= 7) == growing => {
            let v = value(rng);
            store.put(&k, &v).expect("puts");
            map.insert(k, v);
        }
        _ => {
            store.delete(&k).expect("deletes");
            map.remove(&k);
        }
    }
}
