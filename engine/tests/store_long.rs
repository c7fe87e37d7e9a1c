//! Tests long values: values of every length round trip, also after reopening. Their space is freed
//! when they are deleted, and damage to them is detected.

mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{contents, tiny};
use treering_engine::device::MemDevice;
use treering_engine::{
    BLOCK_SIZE, Error, Kv, Lba, Lsn, MAX_VALUE_BYTES, Options, PageId, Progress, Store,
    SystemClock, Task, TreeKind, required_blocks, verify,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(device: &Arc<MemDevice>, options: &Options) -> Store {
    Store::open(device.clone(), Arc::new(SystemClock::new()), options).expect("opens")
}

/// Returns bytes that identify the value and differ at each position.
fn value(n: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (n.wrapping_mul(31) + i * 7 + i / 251) as u8)
        .collect()
}

fn pump(store: &Store) {
    while let Some(task) = store.due() {
        if store.pump(task).expect("pumps") == Progress::Idle {
            break;
        }
    }
}

/// Lengths around every boundary: the quarter page, the leaf, blocks, allocation units, and pieces
/// written at once.
fn lengths(options: &Options) -> Vec<usize> {
    let quarter = options.page_size / 4;
    let mut all = vec![0, 1, 39, 40, 41, quarter - 1, quarter, quarter + 1];
    for blocks in [1, 2, 3, 5, 8, 9, 17, 256, 257] {
        all.extend([4_048 * blocks - 1, 4_048 * blocks, 4_048 * blocks + 1]);
    }
    all
}

#[test]
fn values_of_every_length_round_trip_in_every_store() {
    for (tree, kind) in support::all() {
        let options = tiny(tree, kind);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 6_000)));
        let mut store = open(&device, &options);
        let mut map = Map::new();
        for round in 0..3 {
            for (n, len) in lengths(&options).into_iter().enumerate() {
                // Each round puts another value under the key, a short one where there was a long
                // one.
                let key = format!("{:03}", (n * 7 + round * 5) % 40).into_bytes();
                let bytes = value(n as u64 + 100 * round as u64, len);
                store.put(&key, &bytes).expect("puts");
                map.insert(key, bytes);
                pump(&store);
            }
            let mut got = Vec::new();
            for (key, value) in &map {
                assert!(store.get(key, &mut got).expect("gets"), "{tree:?} {kind:?}");
                assert!(
                    got == *value,
                    "{tree:?} {kind:?}: {key:?}, {} bytes",
                    value.len()
                );
            }
            assert!(contents(&store) == map, "{tree:?} {kind:?}: scan");
            store.close().expect("closes");
            store = open(&device, &options);
            assert!(contents(&store) == map, "{tree:?} {kind:?}: reopened");
        }
        drop(store);
        let report = verify(device.clone()).expect("verifies");
        assert_eq!(report.damage, Vec::<String>::new(), "{tree:?} {kind:?}");
        let bytes: usize = map.iter().map(|(k, v)| k.len() + v.len()).sum();
        assert_eq!(report.user_bytes, bytes as u64, "{tree:?} {kind:?}");
        let long = map
            .values()
            .filter(|v| v.len() > options.page_size / 4)
            .count();
        assert_eq!(report.long_values, long as u64, "{tree:?} {kind:?}");
    }
}

#[test]
fn the_longest_value_is_accepted_and_one_more_byte_is_refused() {
    let options = Options::default();
    let device = Arc::new(MemDevice::new(required_blocks(&options, 9_000)));
    let store = open(&device, &options);
    let longest = value(1, MAX_VALUE_BYTES);
    store.put(b"key", &longest).expect("puts");
    let refused = store
        .put(b"key", &value(2, MAX_VALUE_BYTES + 1))
        .unwrap_err();
    assert!(matches!(refused, Error::ValueTooLong { .. }), "{refused}");
    assert_eq!(
        refused.to_string(),
        "value of 16777217 bytes is longer than the 16777216 bytes that a value may have"
    );
    let mut got = Vec::new();
    assert!(store.get(b"key", &mut got).expect("gets") && got == longest);
}

/// A store that is overwritten repeatedly uses no more space than its values need, with or without
/// concurrent readers.
#[test]
fn space_of_long_values_is_reused() {
    for (tree, kind) in support::all() {
        let options = tiny(tree, kind);
        // Space for a few of the values at once, and for a tree.
        let device = Arc::new(MemDevice::new(required_blocks(&options, 300)));
        let store = open(&device, &options);
        for n in 0..400_u64 {
            let key = [b'a' + (n % 3) as u8];
            if n % 7 == 6 {
                store.delete(&key).expect("deletes");
            } else {
                store
                    .put(&key, &value(n, 100_000))
                    .expect("space must be freed in time");
            }
            pump(&store);
        }
        for key in [b"a", b"b", b"c"] {
            store.delete(key).expect("deletes");
        }
        store.checkpoint().expect("checkpoints");
        store.checkpoint().expect("checkpoints");
        let stats = store.stats();
        assert_eq!(stats.overflow.places, 0, "{tree:?} {kind:?}");
        assert!(stats.overflow.values_freed >= 300, "{tree:?} {kind:?}");
        assert_eq!(contents(&store), Map::new());
    }
}

#[test]
fn a_value_without_room_is_refused_and_nothing_is_lost() {
    for (tree, kind) in support::all() {
        let options = tiny(tree, kind);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 200)));
        let store = open(&device, &options);
        let (mut map, mut refused) = (Map::new(), 0);
        for n in 0..400_u64 {
            let (key, bytes) = (n.to_be_bytes().to_vec(), value(n, 20_000));
            match store.put(&key, &bytes) {
                Ok(_) => drop(map.insert(key, bytes)),
                Err(Error::Full { .. }) => refused += 1,
                Err(e) => panic!("{tree:?} {kind:?}: {e}"),
            }
        }
        assert!(
            refused > 10 && map.len() > 5,
            "{tree:?} {kind:?}: {refused}, {}",
            map.len()
        );
        assert!(contents(&store) == map, "{tree:?} {kind:?}");
        // The refused value takes no space.
        let places = store.stats().overflow.places;
        store.close().expect("a full store must close");
        let store = open(&device, &options);
        assert_eq!(store.stats().overflow.places, places, "{tree:?} {kind:?}");
        let first = map.keys().next().expect("some").clone();
        store.delete(&first).expect("deletes");
        store
            .put(&first, &value(1, 20_000))
            .expect("there must be room now");
    }
}

#[test]
fn a_scan_loads_only_the_values_it_reaches() {
    for tree in support::TREES {
        let options = tiny(tree, support::IN_PLACE);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 1_000)));
        let store = open(&device, &options);
        for n in 0..20_u64 {
            store
                .put(&n.to_be_bytes(), &value(n, 50_000))
                .expect("puts");
        }
        let before = store.stats().overflow.bytes_read;
        let mut rows = 0;
        store
            .scan(b"", &mut |_, _| {
                rows += 1;
                if rows == 3 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .expect("scans");
        let read = store.stats().overflow.bytes_read - before;
        assert_eq!(read, 3 * 13 * BLOCK_SIZE as u64, "{tree:?}");
    }
}

/// For every block of a long value: flipped bits, zeros, and the block's previous contents are
/// detected, and other keys are unaffected.
#[test]
fn damage_to_any_block_of_a_long_value_is_reported() {
    for (tree, kind) in support::all() {
        let options = tiny(tree, kind);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 500)));
        let store = open(&device, &options);
        store.put(b"other", &value(9, 30_000)).expect("puts");
        store.put(b"key", &value(1, 30_000)).expect("puts");
        store.checkpoint().expect("checkpoints");
        let before = support::read_all(&device);
        store.put(b"key", &value(2, 30_000)).expect("puts");
        store.close().expect("closes");
        let after = support::read_all(&device);
        let marked = |block: &[u8]| block[4..8] == *b"OVFL";
        let number = |block: &[u8]| u64::from_le_bytes(block[8..16].try_into().expect("eight"));
        let places: Vec<usize> = (0..after.len())
            .filter(|at| marked(&after[*at]) && number(&after[*at]) == 2)
            .collect();
        assert_eq!(places.len(), 8, "{tree:?} {kind:?}");
        for at in places {
            let mut flipped = after[at].clone();
            flipped[2_000] ^= 1;
            for bad in [
                flipped,
                vec![0; BLOCK_SIZE],
                before[at].clone(),
                after[at - 1].clone(),
            ] {
                let mut blocks = after.clone();
                blocks[at] = bad;
                let device = support::device_of(&blocks);
                let report = verify(device.clone()).expect("verifies");
                assert_eq!(
                    report.damage.len(),
                    1,
                    "{tree:?} {kind:?}: {:?}",
                    report.damage
                );
                assert!(
                    report.damage[0].contains(&Lba(at as u64).to_string()),
                    "{:?}",
                    report.damage
                );
                let store = open(&device, &options);
                let mut got = Vec::new();
                let told = store.get(b"key", &mut got).unwrap_err();
                assert!(matches!(told, Error::Damaged { .. }), "{told}");
                assert!(store.get(b"other", &mut got).expect("gets") && got == value(9, 30_000));
                // It can be replaced.
                store.put(b"key", b"new").expect("puts");
                assert!(store.get(b"key", &mut got).expect("gets") && got == b"new");
            }
        }
    }
}

/// Runs a random program against an ordered map, in a nearly full store that is reopened now and
/// then.
#[test]
fn random_programs_agree_with_an_ordered_map() {
    for (tree, kind) in support::all() {
        for seed in 0..3 {
            let mut rng = StdRng::seed_from_u64(seed);
            let options = tiny(tree, kind);
            let device = Arc::new(MemDevice::new(required_blocks(&options, 600)));
            let mut store = open(&device, &options);
            let mut map = Map::new();
            for n in 0..1_500_u64 {
                let key = format!("{:03}", rng.random_range(0..200)).into_bytes();
                let len = match rng.random_range(0..10) {
                    0..4 => rng.random_range(0..200),
                    4..8 => rng.random_range(1_000..6_000),
                    _ => rng.random_range(6_000..60_000),
                };
                if rng.random_bool(0.4) {
                    store.delete(&key).expect("deletes");
                    map.remove(&key);
                } else {
                    let bytes = value(n, len);
                    match store.put(&key, &bytes) {
                        Ok(_) => drop(map.insert(key.clone(), bytes)),
                        Err(Error::Full { .. }) => {}
                        Err(e) => panic!("{tree:?} {kind:?}, seed {seed}: {e}"),
                    }
                }
                let mut got = Vec::new();
                let found = store.get(&key, &mut got).expect("gets");
                assert_eq!(
                    found.then_some(&got),
                    map.get(&key),
                    "{tree:?} {kind:?}, seed {seed}, step {n}"
                );
                pump(&store);
                if n % 400 == 399 {
                    assert!(
                        contents(&store) == map,
                        "{tree:?} {kind:?}, seed {seed}, step {n}"
                    );
                    drop(store);
                    store = open(&device, &options);
                }
            }
            assert!(contents(&store) == map, "{tree:?} {kind:?}, seed {seed}");
            let mut down = Vec::new();
            store
                .scan_back(None, &mut |k, v| {
                    down.push((k.to_vec(), v.to_vec()));
                    ControlFlow::Continue(())
                })
                .expect("scans");
            assert!(
                down.into_iter().rev().eq(map),
                "{tree:?} {kind:?}, seed {seed}"
            );
        }
    }
}

/// Writers replace values during reads, in a store so small that space is reused at once. Readers
/// find a complete value that the key had.
#[test]
fn readers_find_whole_values_while_their_space_is_reused() {
    for (tree, kind) in support::all() {
        let options = tiny(tree, kind);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 300)));
        let store = open(&device, &options);
        let key = |n: u64| [b'a' + (n % 6) as u8];
        let written = |key: u8, n: u64| {
            let mut bytes = value(n, 2_000 + (n % 9) as usize * 3_000);
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            bytes[8] = key;
            bytes
        };
        let check = |key: &[u8], found: &[u8]| {
            let n = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
            assert!(found == written(key[0], n), "{tree:?} {kind:?}: {key:?}");
        };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut got = Vec::new();
                    let mut n = 0;
                    while !done.load(Ordering::Relaxed) {
                        n += 1;
                        if store.get(&key(n), &mut got).expect("gets") {
                            check(&key(n), &got);
                        }
                        if n % 5 == 0 {
                            let mut see = |key: &[u8], value: &[u8]| {
                                check(key, value);
                                ControlFlow::Continue(())
                            };
                            store.scan(b"", &mut see).expect("scans");
                        }
                    }
                });
            }
            let writers: Vec<_> = (0..2_u64)
                .map(|writer| {
                    let store = &store;
                    scope.spawn(move || {
                        for n in 0..400 {
                            let key = key(n * 7 + writer);
                            let number = 2 * n + writer;
                            store.put(&key, &written(key[0], number)).expect("puts");
                            if n % 11 == 0 {
                                store.delete(&key).expect("deletes");
                            }
                            pump(store);
                        }
                    })
                })
                .collect();
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            done.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok), "{tree:?} {kind:?}");
        });
        store.close().expect("closes");
        assert_eq!(
            verify(device.clone()).expect("verifies").damage,
            Vec::<String>::new()
        );
    }
}

/// A user may store bytes that look like a pointer, even one that was valid before. They are
/// returned unchanged, and are not followed.
#[test]
fn values_that_look_like_pointers_are_not_followed() {
    for (tree, kind) in support::all() {
        let options = tiny(tree, kind);
        let device = Arc::new(MemDevice::new(required_blocks(&options, 300)));
        let store = open(&device, &options);
        store.put(b"long", &value(1, 20_000)).expect("puts");
        store.checkpoint().expect("checkpoints");
        // After the mark, any 36 bytes, including those of a real pointer in a leaf.
        let mark = [0xfd, b'O', b'V', 0x01];
        let blocks = support::read_all(&device);
        let bytes = blocks.concat();
        let places = (0..bytes.len() - 40).filter(|at| bytes[*at..].starts_with(&mark));
        let mut forged: Vec<Vec<u8>> = places.map(|at| bytes[at..at + 40].to_vec()).collect();
        assert!(
            !forged.is_empty(),
            "{tree:?} {kind:?}: the device must contain a pointer"
        );
        forged.push([&mark[..], &[0; 36]].concat());
        forged.push([&mark[..], &[0xff; 36]].concat());
        let map: Map = (0_u8..).map(|n| vec![n]).zip(forged).collect();
        for (key, value) in &map {
            store.put(key, value).expect("puts");
        }
        let mut expected = map.clone();
        expected.insert(b"long".to_vec(), value(1, 20_000));
        assert!(contents(&store) == expected, "{tree:?} {kind:?}");
        store.close().expect("closes");
        let store = open(&device, &options);
        assert!(contents(&store) == expected, "{tree:?} {kind:?}");
        drop(store);
        assert_eq!(
            verify(device.clone()).expect("verifies").damage,
            Vec::<String>::new()
        );
    }
}

/// A page is written and merged away, and its blocks are reused for a long value, all after the
/// redo start. The journal still has the page's image, which must not be restored.
#[test]
fn the_journal_never_restores_a_freed_page_over_a_long_value() {
    let options = tiny(TreeKind::BTree, support::IN_PLACE);
    let device = Arc::new(MemDevice::new(required_blocks(&options, 300)));
    let store = open(&device, &options);
    let key = |n: u32| n.to_be_bytes();
    let fill = |byte| {
        for n in 0..60 {
            store.put(&key(n), &[byte; 200]).expect("puts");
        }
    };
    fill(1);
    store.checkpoint().expect("checkpoints");
    // Another log epoch begins, and everything from now on is written after it.
    assert_eq!(
        store.pump(Task::Checkpoint).expect("begins"),
        Progress::More
    );
    fill(2);
    // The journal keeps the last two of them.
    let written = (0..12).filter(|page| store.write_back_page(PageId(*page)).expect("writes"));
    assert!(written.count() >= 4);
    for n in 3..60 {
        store.delete(&key(n)).expect("deletes");
    }
    while store.pump(Task::Merge).expect("merges") == Progress::More {}
    assert!(store.stats().merges >= 2, "{:?}", store.stats());
    store.sync(Lsn(u64::MAX)).expect("syncs");
    while store.pump(Task::Checkpoint).expect("ends") == Progress::More {}
    store.put(b"long", &value(7, 50_000)).expect("puts");
    store.sync(Lsn(u64::MAX)).expect("syncs");
    store.abandon();
    let store = open(&device, &options);
    let mut got = Vec::new();
    assert!(store.get(b"long", &mut got).expect("reads") && got == value(7, 50_000));
}
