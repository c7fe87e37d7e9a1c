//! Shared by the tests of stores in persistent memory.
#![allow(dead_code)] // each test binary uses only a part

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;
use treering_engine::device::{MemPm, PmDevice};
use treering_engine::{Kv, PmOptions, PmStore};

pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn open(device: &Arc<MemPm>, options: &PmOptions) -> PmStore {
    let device: Arc<dyn PmDevice> = device.clone();
    PmStore::open(device, options).unwrap_or_else(|e| panic!("{:?}: {e}", options.tree))
}

/// Returns the contents found by a scan.
pub(crate) fn contents(store: &PmStore) -> Map {
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
pub(crate) fn downwards(store: &PmStore, before: Option<&[u8]>) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    store
        .scan_back(before, &mut |k, _| {
            keys.push(k.to_vec());
            ControlFlow::Continue(())
        })
        .expect("scans back");
    keys
}

/// Returns keys of eight bytes, with and without the top bit, and others: prefixes of each other,
/// and the empty key.
pub(crate) fn key(rng: &mut StdRng) -> Vec<u8> {
    match rng.random_range(0..8) {
        0..=2 => rng.random_range(0u64..300).to_be_bytes().to_vec(),
        3 => (!rng.random_range(0u64..100)).to_be_bytes().to_vec(),
        4 => format!("{:03}", rng.random_range(0..200)).into_bytes(),
        5 => vec![b'z'; rng.random_range(0..20)],
        6 => vec![255; rng.random_range(7..10)],
        _ => format!("user:{:06}", rng.random_range(0..100)).into_bytes(),
    }
}

pub(crate) fn value(rng: &mut StdRng) -> Vec<u8> {
    let len = match rng.random_range(0..4) {
        0 | 1 => 8,
        2 => rng.random_range(0..40),
        _ => rng.random_range(0..300),
    };
    vec![rng.random(); len]
}

pub(crate) fn assert_same(store: &PmStore, map: &Map, story: &str) {
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
