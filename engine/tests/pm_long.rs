//! Tests values longer than a chunk of persistent memory in all its trees. They are stored in
//! pieces, in chunks of records. `pm_crash.rs` tests power failures while they are written.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use treering_engine::device::MemPm;
use treering_engine::{
    CclOptions, Error, GlobalOptions, Kv, LodgeOptions, MAX_VALUE_BYTES, PmOptions, PmStore,
    PmTreeKind, Progress,
};

#[path = "support/pm.rs"]
mod pm;

use pm::{Map, assert_same, open};

const CHUNK: usize = 2048;
/// Maximum length of a value stored in one piece.
const ONE: usize = CHUNK - 8;
/// Bytes in each piece of a longer value.
const PIECE: usize = CHUNK - 16;

fn trees() -> [PmOptions; 4] {
    [
        PmTreeKind::PmTree,
        PmTreeKind::Ccl(CclOptions::default()),
        PmTreeKind::Global(GlobalOptions::default()),
        PmTreeKind::Lodge(LodgeOptions::default()),
    ]
    .map(|tree| PmOptions {
        tree,
        chunk_bytes: CHUNK as u64,
        ..PmOptions::default()
    })
}

/// Returns bytes in which no two pieces are equal.
fn value(salt: u64, len: usize) -> Vec<u8> {
    let mut rng = StdRng::seed_from_u64(salt);
    (0..len).map(|_| rng.random()).collect()
}

fn pump(store: &PmStore) {
    while let Some(task) = store.due() {
        while store.pump(task).unwrap() == Progress::More {}
    }
}

#[test]
fn values_of_every_length_round_trip_in_every_tree() {
    let lengths = [
        0,
        8,
        9,
        4096,
        4097,
        ONE - 1,
        ONE,
        ONE + 1,
        PIECE + 1,
        PIECE + ONE,
        PIECE + ONE + 1,
        2 * PIECE,
        2 * PIECE + 1,
        100_000,
    ];
    for options in trees() {
        let device = Arc::new(MemPm::new(4 << 20));
        let store = open(&device, &options);
        let mut map = Map::new();
        for round in 0..3u64 {
            for (at, len) in lengths.iter().enumerate() {
                // Keys of both kinds. Each has values of several lengths in turn.
                let number = (at as u64 + 5 * round) % lengths.len() as u64;
                let key = match number % 2 {
                    0 => number.to_be_bytes().to_vec(),
                    _ => format!("key {number}").into_bytes(),
                };
                let value = value(at as u64 + 100 * round, *len);
                store.put(&key, &value).unwrap();
                map.insert(key, value);
            }
            assert_same(&store, &map, "written");
            pump(&store);
        }
        drop(store);
        let store = open(&device, &options);
        assert_same(&store, &map, "recovered");
        store.close().unwrap();
        let store = open(&device, &options);
        assert_same(&store, &map, "closed and opened");
    }
}

#[test]
fn the_longest_value_is_accepted_and_one_more_byte_is_refused() {
    for options in trees() {
        let options = PmOptions {
            chunk_bytes: 64 << 10,
            ..options
        };
        let device = Arc::new(MemPm::new(40 << 20));
        let store = open(&device, &options);
        let most = value(1, MAX_VALUE_BYTES);
        store.put(b"most", &most).unwrap();
        let error = store
            .put(b"more", &[&most[..], &[1]].concat())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a value of 16777217 bytes") && error.contains("16777216"),
            "{error}"
        );
        drop(store);
        let store = open(&device, &options);
        assert_same(&store, &Map::from([(b"most".to_vec(), most)]), "recovered");
    }
}

/// The device has room for three values. A hundred are written one after the other, or deleted.
#[test]
fn space_of_long_values_is_reused() {
    for options in trees() {
        let device = Arc::new(MemPm::new(512 << 10));
        let mut store = open(&device, &options);
        let mut last = Vec::new();
        for round in 0..100u64 {
            last = value(round, 100_000 + 17 * round as usize);
            store.put(b"k", &last).unwrap();
            if round % 3 == 0 {
                store.delete(b"k").unwrap();
                store.put(b"k", &last).unwrap();
            }
            if round % 10 == 9 {
                drop(store);
                store = open(&device, &options);
            }
        }
        assert_same(&store, &Map::from([(b"k".to_vec(), last)]), "the last one");
        store.delete(b"k").unwrap();
        // The log may refer to it until it has been given up once more.
        for _ in 0..2 {
            store.put(&[1; 8], &[1; 8]).unwrap();
            store.checkpoint().unwrap();
            pump(&store);
        }
        assert_eq!(store.stats().pm.unwrap().record_bytes, 0, "{options:?}");
    }
}

#[test]
fn a_value_without_room_is_refused_and_nothing_is_lost() {
    for options in trees() {
        let device = Arc::new(MemPm::new(256 << 10));
        let store = open(&device, &options);
        let mut map = Map::new();
        let mut refused = 0;
        for n in 0..40u64 {
            let (key, value) = (n.to_be_bytes().to_vec(), value(n, 9_000 + 400 * n as usize));
            match store.put(&key, &value) {
                Ok(_) => drop(map.insert(key, value)),
                Err(Error::PmFull { .. }) => refused += 1,
                Err(e) => panic!("{e}"),
            }
        }
        assert!(refused > 0 && map.len() > 5, "{refused} of 40");
        let bytes: usize = map.values().map(Vec::len).sum();
        assert!(
            bytes > 128 << 10,
            "half of the device must be in use: {bytes}"
        );
        let used = store.stats().pm.unwrap().record_bytes;
        // Space taken before the device was full has been freed.
        assert!(used < bytes as u64 * 21 / 20 + 4096, "{used} for {bytes}");
        assert_same(&store, &map, "full");
        for key in map.keys() {
            store.delete(key).unwrap();
        }
        store.put(b"again", &value(9, 60_000)).unwrap();
        drop(store);
        let again = Map::from([(b"again".to_vec(), value(9, 60_000))]);
        assert_same(&open(&device, &options), &again, "emptied");
    }
}

/// A scan that ends early, in either direction, loads only the values of the rows that it reached.
#[test]
fn a_scan_loads_only_the_values_it_reaches() {
    const LEN: usize = 50_000;
    for options in trees() {
        let device = Arc::new(MemPm::new(4 << 20));
        let store = open(&device, &options);
        let mut map = Map::new();
        for n in 0..20u64 {
            let len = if n % 4 == 3 { LEN } else { 9 };
            store.put(&n.to_be_bytes(), &value(n, len)).unwrap();
            map.insert(n.to_be_bytes().to_vec(), value(n, len));
        }
        let read = |rows: usize, down: bool| {
            let before = store.stats().read.total();
            let mut seen = Vec::new();
            let mut visit = |key: &[u8], value: &[u8]| {
                seen.push((key.to_vec(), value.to_vec()));
                match seen.len() == rows {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            match down {
                false => store.scan(&[], &mut visit).unwrap(),
                true => store.scan_back(None, &mut visit).unwrap(),
            }
            if down {
                seen.reverse();
            }
            let skipped = if down { 20 - rows } else { 0 };
            let expected: Vec<_> = map.clone().into_iter().skip(skipped).take(rows).collect();
            assert!(seen == expected, "{rows} rows, down {down}, {options:?}");
            (store.stats().read.total() - before) as usize
        };
        // The values of rows 3, 7, 11, ... are long.
        for (rows, down, long) in [
            (1, false, 0),
            (3, false, 0),
            (4, false, 1),
            (11, false, 2),
            (20, false, 5),
            (1, true, 1),
            (4, true, 1),
            (5, true, 2),
            (20, true, 5),
        ] {
            let bytes = read(rows, down);
            let least = long * LEN;
            assert!(
                (least..least + 30_000).contains(&bytes),
                "{rows} rows, down {down}: {bytes} bytes for {long} long values, {options:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_agree_with_an_ordered_map(
        tree in 0usize..4,
        steps in prop::collection::vec((0u8..20, 0u8..12, 0usize..9_000, any::<bool>()), 1..120),
    ) {
        let options = trees()[tree];
        let device = Arc::new(MemPm::new(1 << 20));
        let mut store = open(&device, &options);
        let mut map = Map::new();
        for (n, (number, what, len, short)) in steps.into_iter().enumerate() {
            let mut key = vec![3; if number % 3 == 0 { 11 } else { 8 }];
            key[7] = number;
            match what {
                0..=7 => {
                    let value = value(n as u64, if short { len / 500 } else { len });
                    store.put(&key, &value).unwrap();
                    map.insert(key, value);
                }
                8..=9 => {
                    store.delete(&key).unwrap();
                    map.remove(&key);
                }
                10 => pump(&store),
                _ => {
                    drop(store);
                    store = open(&device, &options);
                }
            }
        }
        assert_same(&store, &map, "at the end");
        drop(store);
        assert_same(&open(&device, &options), &map, "recovered");
    }
}

/// Writers replace long values while readers get and scan. Each value read is complete, and one of
/// those written.
#[test]
fn readers_find_whole_values_while_their_space_is_reused() {
    for options in trees() {
        let device = Arc::new(MemPm::new(2 << 20));
        let store = open(&device, &options);
        let whole = |value: &[u8]| {
            let len = 3_000 + usize::from(value[0]) * 40;
            assert_eq!(value.len(), len);
            assert!(value.iter().all(|byte| *byte == value[0]));
        };
        let write = |n: u8, key: u8| {
            let len = 3_000 + usize::from(n) * 40;
            store.put(&[key; 8], &vec![n; len]).unwrap();
        };
        for key in 0..6 {
            write(0, key);
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..2_000u32 {
                    write(n as u8, (n % 6) as u8);
                    if n % 64 == 0 {
                        pump(&store);
                    }
                }
                done.store(true, Ordering::Release);
            });
            scope.spawn(|| {
                let mut value = Vec::new();
                let mut n = 0;
                while !done.load(Ordering::Acquire) {
                    n += 1;
                    assert!(store.get(&[n % 6; 8], &mut value).unwrap());
                    whole(&value);
                    let mut rows = 0;
                    let mut visit = |_: &[u8], value: &[u8]| {
                        whole(value);
                        rows += 1;
                        ControlFlow::Continue(())
                    };
                    if n % 2 == 0 {
                        store.scan(&[], &mut visit).unwrap();
                    } else {
                        store.scan_back(None, &mut visit).unwrap();
                    }
                    assert_eq!(rows, 6);
                    n %= 200;
                }
            });
        });
    }
}

/// Any changed byte in any piece is detected, and no other value is returned.
#[test]
fn damage_to_any_piece_of_a_long_value_is_reported() {
    use treering_engine::device::PmDevice;
    let options = trees()[0];
    let device = Arc::new(MemPm::new(256 << 10));
    let store = open(&device, &options);
    let good = value(5, 3 * CHUNK);
    store.put(b"k", &good).unwrap();
    let mut hits = 0;
    for at in (0..device.len()).step_by(97) {
        let mut byte = [0];
        device.load(at, &mut byte).unwrap();
        device.store(at, &[byte[0] ^ 0x10]).unwrap();
        let mut found = Vec::new();
        match store.get(b"k", &mut found) {
            // The byte belongs to something else.
            Ok(true) => assert!(found == good, "offset {at}"),
            Ok(false) => assert!(at < 8 << 10, "offset {at}: the key must still be found"),
            Err(Error::PmDamaged { .. }) => hits += 1,
            Err(e) => panic!("offset {at}: {e}"),
        }
        device.store(at, &byte).unwrap();
    }
    assert!(
        hits > 3 * CHUNK / 97 - 4,
        "only {hits} bytes of the value were hit"
    );
}
