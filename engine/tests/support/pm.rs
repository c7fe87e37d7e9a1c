//! Shared by the tests of stores in persistent memory.
#![allow(dead_code)] // each test binary uses only a part

use std::sync::Arc;

use proptest::prelude::*;
use rand::RngExt;
use rand::rngs::StdRng;
use treering_engine::device::{MemPm, PmDevice};
use treering_engine::{Error, Kv, PmOptions, PmStore};

#[path = "map.rs"]
mod map;

pub(crate) use map::*;

pub(crate) fn open(device: &Arc<MemPm>, options: &PmOptions) -> PmStore {
    let device: Arc<dyn PmDevice> = device.clone();
    PmStore::open(device, options).unwrap_or_else(|e| panic!("{:?}: {e}", options.tree))
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

/// Puts keys until the store has refused 50. One in four has a record of its own.
pub(crate) fn fill(store: &PmStore) -> Map {
    let tree = store.options().tree;
    let mut map = Map::new();
    let mut refused = 0;
    for i in 0..20_000u64 {
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let value = vec![i as u8; if i % 4 == 0 { 40 } else { 8 }];
        match store.put(&key, &value) {
            Ok(_) => drop(map.insert(key.to_vec(), value)),
            Err(Error::PmFull { .. }) => refused += 1,
            Err(e) => panic!("{tree:?}: {e}"),
        }
        if let Some(task) = store.due() {
            match store.pump(task) {
                Ok(_) | Err(Error::PmFull { .. }) => {}
                Err(e) => panic!("{tree:?}: {e}"),
            }
        }
        if refused > 50 {
            return map;
        }
    }
    panic!("{tree:?}: the store never became full");
}

/// Deletes all keys of a full store. Changes that do not fit into a leaf wait for its neighbours.
pub(crate) fn empty(store: &PmStore, map: &mut Map) {
    let tree = store.options().tree;
    for _ in 0..20 {
        let keys: Vec<_> = map.keys().cloned().collect();
        for key in keys {
            match store.delete(&key) {
                Ok(_) => drop(map.remove(&key)),
                Err(Error::PmFull { .. }) => {}
                Err(e) => panic!("{tree:?}: {e}"),
            }
        }
        assert_same(store, map, &format!("{tree:?}, being emptied"));
    }
    assert_eq!(*map, Map::new(), "{tree:?}: all keys must be deletable");
}

/// One step of [`few_keys`]: the key, the operation and the value.
pub(crate) type FewStep = (u8, u8, u8);

pub(crate) fn few_steps() -> impl Strategy<Value = Vec<FewStep>> {
    prop::collection::vec((0u8..40, 0u8..9, any::<u8>()), 1..250)
}

/// Runs a program on few keys, so that each of them is overwritten in the buffer, flushed, deleted,
/// put again, moved by a split, merged, and cleaned. Reads every key at the end.
pub(crate) fn few_keys(options: &PmOptions, steps: Vec<FewStep>) -> Result<(), TestCaseError> {
    let device = Arc::new(MemPm::new(256 << 10));
    let mut store = open(&device, options);
    let mut map = Map::new();
    for (number, what, byte) in steps {
        // Every third key has another length than eight bytes, and every fifth has its top bit set.
        let mut key = vec![if number % 5 == 0 { 200 } else { 3 }; 8];
        key[7] = number;
        key.truncate(if number % 3 == 0 {
            9 - usize::from(number % 2) * 4
        } else {
            8
        });
        key.push(number);
        key.drain(..usize::from(key.len() == 9));
        match what {
            0..=3 => {
                let value = vec![byte; if byte % 4 == 0 { 11 } else { 8 }];
                store.put(&key, &value).unwrap();
                map.insert(key, value);
            }
            4..=6 => {
                store.delete(&key).unwrap();
                map.remove(&key);
            }
            7 => pump_all(&store),
            _ if byte % 2 == 0 => drop(store.checkpoint().unwrap()),
            _ => {
                drop(store);
                store = open(&device, options);
            }
        }
        prop_assert_eq!(&contents(&store), &map);
    }
    assert_same(&store, &map, "at the end");
    for (key, value) in &map {
        let got = store.get_owned(key).unwrap();
        prop_assert_eq!(got.as_ref(), Some(value));
    }
    Ok(())
}
