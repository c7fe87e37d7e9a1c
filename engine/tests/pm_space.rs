//! Tests that space in persistent memory is reclaimed: leaves that become empty are reused, whether
//! the store keeps running, is closed, or is dropped and recovered. A store reports that it is full
//! only when it is, and can still delete then.
//!
//! [`Shape::bound`] gives the bounds: the share of the device that keys and values of live rows
//! take when a put is first refused. Three reasons keep it below one. A leaf slot takes 16 bytes
//! for a key and a value of any length. A record begins with eight bytes and takes a multiple of
//! 16. And a store is full when no three neighbours fit into two leaves, so leaves are at least two
//! thirds full.
//!
//! `TREERING_PM_CHURN_SECS` makes the churn of each tree run for that many seconds (a campaign:
//! 600).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use treering_engine::device::{MemPm, PmImage};
use treering_engine::{
    CclOptions, Error, GlobalOptions, Kv, LodgeOptions, PmOptions, PmStore, PmTask, PmTreeKind,
    Progress,
};

#[path = "support/pm.rs"]
mod pm;

use pm::{Map, assert_same, open, pump_all};

const CHUNK: u64 = 4096;

fn trees() -> [PmOptions; 4] {
    [
        PmTreeKind::PmTree,
        PmTreeKind::Ccl(CclOptions::default()),
        PmTreeKind::Global(GlobalOptions::default()),
        PmTreeKind::Lodge(LodgeOptions::default()),
    ]
    .map(options_of)
}

fn options_of(tree: PmTreeKind) -> PmOptions {
    PmOptions {
        tree,
        chunk_bytes: CHUNK,
        ..PmOptions::default()
    }
}

/// What happens to a store between generations.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Between {
    GoesOn,
    Closed,
    Dropped,
}

impl Between {
    const ALL: [Between; 3] = [Between::GoesOn, Between::Closed, Between::Dropped];

    fn reopen(self, store: PmStore, device: &Arc<MemPm>) -> PmStore {
        let options = *store.options();
        match self {
            Between::GoesOn => return store,
            Between::Closed => store.close().expect("closes"),
            Between::Dropped => drop(store),
        }
        open(device, &options)
    }
}

fn rows(store: &PmStore) -> usize {
    pm::contents(store).len()
}

/// Each generation is put in one order, and the one before it is deleted in another. The device
/// holds two and a third generations, including log and leaves.
#[test]
fn space_of_deleted_generations_is_reused() {
    let n = 1_009u64;
    let key = |generation: u32, i: u64| {
        let mut key = generation.to_be_bytes().to_vec();
        key.extend((((i * 7919) % n) as u32).to_be_bytes());
        key.extend([0; 4]);
        key
    };
    for options in trees() {
        for between in Between::ALL {
            // 2 · 1,009 rows of 12 and 180 bytes are 378 KiB.
            let device = Arc::new(MemPm::new(GENERATIONS_BYTES));
            let mut store = open(&device, &options);
            let story = |what: &str, e: Error, store: &PmStore, generation: u32| -> ! {
                let name = options.tree.name();
                panic!(
                    "{name}, {between:?}, generation {generation}, {what}: {e}; {:?}",
                    store.stats()
                )
            };
            for generation in 0..24u32 {
                let value = vec![3; 100 + (generation as usize % 3) * 40];
                for i in 0..n {
                    if let Err(e) = store.put(&key(generation, i), &value) {
                        story("put", e, &store, generation);
                    }
                    if i % 16 == 0 {
                        pump_all(&store);
                    }
                }
                for i in (0..n).filter(|_| generation > 0) {
                    if let Err(e) = store.delete(&key(generation - 1, i * 31 % n)) {
                        story("delete", e, &store, generation);
                    }
                }
                store = between.reopen(store, &device);
            }
            pump_all(&store);
            assert_eq!(rows(&store), n as usize);
            let leaves = store.stats().leaf_pages;
            // A leaf that is less than half full has no neighbour that would fit into the same
            // leaf.
            let most = match options.tree {
                PmTreeKind::Lodge(_) => n / 9,
                _ => n / 6,
            };
            assert!(
                leaves < most,
                "{:?}, {between:?}: {leaves} leaves",
                options.tree
            );
        }
    }
}

/// Live rows take at most 52 % of the device.
const GENERATIONS_BYTES: u64 = 720 << 10;

/// Keys are put at one end and deleted at the other.
#[test]
fn a_queue_uses_space_in_proportion_to_its_rows() {
    const LIVE: u32 = 500;
    for options in trees() {
        for between in Between::ALL {
            let device = Arc::new(MemPm::new(192 << 10));
            let mut store = open(&device, &options);
            for i in 0..24 * LIVE {
                store.put(&i.to_be_bytes(), &[3; 100]).expect("puts");
                if i >= LIVE {
                    store.delete(&(i - LIVE).to_be_bytes()).expect("deletes");
                }
                if i % 16 == 0 {
                    pump_all(&store);
                }
                if i % (2 * LIVE) == 0 {
                    store = between.reopen(store, &device);
                }
            }
            pump_all(&store);
            assert_eq!(rows(&store), LIVE as usize);
            let stats = store.stats();
            let leaves = stats.leaf_pages;
            assert!(
                leaves <= u64::from(LIVE) / 6,
                "{:?}, {between:?}: {stats:?}",
                options.tree
            );
            if let Some(lodge) = stats.pm.unwrap().lodge {
                assert!(lodge.nodes <= leaves, "nodes must be freed too: {lodge:?}");
            }
        }
    }
}

/// A kind of rows.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Keys and values of eight bytes. Half of the keys have the top bit set, so that the anchors
    /// of leaves are records.
    Words,
    /// Records of several sizes.
    Records,
}

impl Shape {
    const ALL: [Shape; 2] = [Shape::Words, Shape::Records];

    fn row(self, rng: &mut StdRng) -> (Vec<u8>, Vec<u8>) {
        let number: u64 = rng.random();
        match self {
            Shape::Words => (number.to_be_bytes().to_vec(), vec![7; 8]),
            Shape::Records => {
                let key = format!("user{number:020}").into_bytes();
                (key, vec![7; rng.random_range(20..160)])
            }
        }
    }

    /// Returns the least share of the device, in percent, that live rows take when a put is
    /// refused.
    fn bound(self, tree: PmTreeKind) -> u64 {
        match (self, tree) {
            (Shape::Words, PmTreeKind::Lodge(_)) => 60,
            (Shape::Words, _) => 65,
            (Shape::Records, _) => 58,
        }
    }
}

fn size(map: &Map) -> u64 {
    map.iter().map(|(k, v)| (k.len() + v.len()) as u64).sum()
}

/// Puts rows until a put is refused for lack of space.
fn fill(store: &PmStore, map: &mut Map, shape: Shape, rng: &mut StdRng) {
    loop {
        let (key, value) = shape.row(rng);
        match store.put(&key, &value) {
            Ok(_) => drop(map.insert(key, value)),
            Err(Error::PmFull { .. }) => return,
            Err(e) => panic!("{e}"),
        }
    }
}

/// Deletes these keys. One in ten may be refused until others are gone: changes buffered above a
/// full leaf, and deletes that need a record when there is no room for one.
fn delete_all(store: &PmStore, map: &mut Map, mut keys: Vec<Vec<u8>>, story: &str) {
    let most = keys.len() / 10;
    let mut refused = Vec::new();
    while !keys.is_empty() {
        let before = keys.len();
        for key in keys.drain(..) {
            match store.delete(&key) {
                Ok(_) => drop(map.remove(&key)),
                Err(Error::PmFull { .. }) => refused.push(key),
                Err(e) => panic!("{story}: {e}"),
            }
        }
        assert!(
            refused.len() <= most,
            "{story}: {} of {before} refused",
            refused.len()
        );
        std::mem::swap(&mut keys, &mut refused);
        assert!(
            keys.len() < before,
            "{story}: {before} deletes are refused forever"
        );
    }
}

#[test]
fn a_full_store_accepts_deletes_and_then_puts() {
    const BYTES: u64 = 256 << 10;
    for options in trees() {
        for shape in Shape::ALL {
            for between in [Between::GoesOn, Between::Dropped] {
                let story = format!("{}, {shape:?}, {between:?}", options.tree.name());
                let device = Arc::new(MemPm::new(BYTES));
                let mut rng = StdRng::seed_from_u64(5);
                let mut store = open(&device, &options);
                let mut map = Map::new();
                let mut filled = Vec::new();
                for _ in 0..3 {
                    fill(&store, &mut map, shape, &mut rng);
                    filled.push(size(&map) * 100 / BYTES);
                    store = between.reopen(store, &device);
                    assert_same(&store, &map, &story);
                    let mut keys: Vec<Vec<u8>> = map.keys().cloned().collect();
                    keys.shuffle(&mut rng);
                    keys.truncate(keys.len() * 9 / 10);
                    delete_all(&store, &mut map, keys, &story);
                    store = between.reopen(store, &device);
                    assert_same(&store, &map, &story);
                }
                println!("{story}: full at {filled:?} % live");
                let bound = shape.bound(options.tree);
                assert!(
                    filled.iter().all(|live| *live >= bound),
                    "{story}: {filled:?}"
                );
            }
        }
    }
}

/// A key may be longer than the space reserved for records of deletes. Its delete then goes to the
/// leaf, which already holds the key.
#[test]
fn a_full_store_of_long_keys_can_be_emptied() {
    for options in trees() {
        let options = PmOptions {
            chunk_bytes: 1 << 10,
            ..options
        };
        for between in [Between::GoesOn, Between::Dropped] {
            let story = format!("{}, {between:?}", options.tree.name());
            let device = Arc::new(MemPm::new(40 << 10));
            let mut store = open(&device, &options);
            let mut keys: Vec<Vec<u8>> =
                (0..200u8).map(|n| [&[7; 300][..], &[n]].concat()).collect();
            keys.shuffle(&mut StdRng::seed_from_u64(5));
            for round in 0..3 {
                let is_taken = |key: &&Vec<u8>| store.put(key, b"0123456789").is_ok();
                let mut taken: Vec<&Vec<u8>> = keys.iter().filter(is_taken).collect();
                assert!(
                    taken.len() > 20 && taken.len() < 150,
                    "{story}: {}",
                    taken.len()
                );
                while !taken.is_empty() {
                    let before = taken.len();
                    taken.retain(|key| store.delete(key).is_err());
                    assert!(
                        taken.len() < before,
                        "{story}, {round}: all {before} deletes are refused"
                    );
                    pump_all(&store);
                }
                store = between.reopen(store, &device);
                assert_eq!(rows(&store), 0, "{story}, {round}");
            }
        }
    }
}

/// A store that nobody pumps merges leaves before it reports that it is full.
#[test]
fn leaves_are_merged_before_a_store_is_full() {
    for options in trees() {
        let device = Arc::new(MemPm::new(128 << 10));
        let store = open(&device, &options);
        for generation in 0..20u64 {
            let keys: Vec<u64> = (0..1_000)
                .map(|i| (generation << 32) | (i * 617 % 1_000))
                .collect();
            for key in &keys {
                let put = store.put(&key.to_be_bytes(), &[9; 8]);
                put.unwrap_or_else(|e| panic!("{:?}, {generation}: {e}", options.tree));
            }
            for key in &keys {
                store.delete(&key.to_be_bytes()).expect("deletes");
            }
        }
    }
}

/// Leaves that were emptied before a crash are found after it.
#[test]
fn sparse_leaves_are_merged_after_reopening() {
    let mut merged = BTreeMap::new();
    let late = GlobalOptions {
        buffer_percent: 250,
        ..GlobalOptions::default()
    };
    for options in trees() {
        // All deletes are only in the log.
        let options = match options.tree {
            PmTreeKind::Global(_) => options_of(PmTreeKind::Global(late)),
            _ => options,
        };
        let device = Arc::new(MemPm::new(1 << 20));
        let store = open(&device, &options);
        for key in 0..4_000u64 {
            store
                .put(&(key * 7919 % 4_000).to_be_bytes(), &[9; 8])
                .expect("puts");
        }
        store.checkpoint().expect("flushes");
        for key in (0..4_000u64).filter(|key| key % 50 != 0) {
            store.delete(&key.to_be_bytes()).expect("deletes");
        }
        drop(store);
        let image: PmImage = device.crash(&mut |_| 0);
        let device = Arc::new(MemPm::from_image(image));
        let store = open(&device, &options);
        let found = store.stats().leaf_pages;
        pump_all(&store);
        store.checkpoint().expect("flushes");
        pump_all(&store);
        let stats = store.stats();
        assert_eq!(rows(&store), 80);
        assert!(stats.leaf_pages <= 20, "{:?}: {stats:?}", options.tree);
        assert_ne!(store.pump(PmTask::MergeLeaves).unwrap(), Progress::More);
        merged.insert(options.tree.name(), found - stats.leaf_pages);
    }
    // The other trees merge during deletes.
    assert!(
        merged["lodge"] > 50 && merged["pmtree-global"] > 50,
        "{merged:?}"
    );
}

/// Rows of one kind are replaced by rows of another.
#[test]
fn space_moves_between_records_and_leaves() {
    for options in trees() {
        let device = Arc::new(MemPm::new(256 << 10));
        let mut rng = StdRng::seed_from_u64(3);
        let store = open(&device, &options);
        let mut held = Vec::new();
        for shape in [Shape::Words, Shape::Records, Shape::Words, Shape::Records] {
            let mut map = Map::new();
            fill(&store, &mut map, shape, &mut rng);
            held.push(size(&map));
            let keys = map.keys().cloned().collect();
            delete_all(
                &store,
                &mut map,
                keys,
                &format!("{:?}, {held:?}", options.tree),
            );
        }
        let alike = |one: u64, other: u64| 10 * one >= 9 * other;
        let alike = alike(held[2], held[0]) && alike(held[3], held[1]);
        assert!(alike, "{:?}: {held:?}", options.tree);
    }
}

fn churn_for() -> Option<Duration> {
    let asked = std::env::var("TREERING_PM_CHURN_SECS");
    Some(Duration::from_secs(asked.ok()?.parse().ok()?))
}

/// Rows in a drifting window of keys are put, changed and deleted, and the store is reopened now
/// and then, at three quarters of the capacity when first full. The store must never be full.
#[test]
fn churn_in_a_drifting_range_never_fills_a_store() {
    const BYTES: u64 = 256 << 10;
    let began = Instant::now();
    for (nth, options) in trees().into_iter().enumerate() {
        let device = Arc::new(MemPm::new(BYTES));
        let mut rng = StdRng::seed_from_u64(nth as u64);
        let mut store = open(&device, &options);
        let mut map = Map::new();
        let (mut most, mut reopened) = (0, 0);
        for i in 0u64.. {
            let done = match churn_for() {
                Some(each) => began.elapsed() > each * (nth as u32 + 1),
                None => i == 30_000,
            };
            if done {
                break;
            }
            let number = i / 8 + rng.random_range(0..900u64);
            let key = match number % 3 {
                0 => number.to_be_bytes().to_vec(),
                _ => format!("{number:016}").into_bytes(),
            };
            let live = size(&map);
            most = most.max(live);
            let oldest = map.keys().next().cloned();
            if live * 100 > BYTES * CHURN_PERCENT {
                let key = if rng.random_bool(0.5) {
                    oldest.unwrap_or(key)
                } else {
                    key
                };
                let done = store.delete(&key);
                done.unwrap_or_else(|e| panic!("{:?}, {i}: {e}", options.tree));
                map.remove(&key);
            } else {
                let value = vec![7; rng.random_range(8..200)];
                let put = store.put(&key, &value);
                let full = || format!("{:?}, {i}, {} % live", options.tree, live * 100 / BYTES);
                put.unwrap_or_else(|e| panic!("{}: {e}; {:?}", full(), store.stats()));
                map.insert(key, value);
            }
            if i % 8 == 0 {
                pump_all(&store);
            }
            if rng.random_bool(0.000_5) {
                reopened += 1;
                let between = Between::ALL[1 + reopened % 2];
                store = between.reopen(store, &device);
                assert_same(&store, &map, "reopened");
            }
        }
        assert_same(&store, &map, "at last");
        println!(
            "{}: at most {} % live, {reopened} times reopened",
            options.tree.name(),
            most * 100 / BYTES
        );
    }
}

/// Share of live rows, during churn, at which a store is never full.
const CHURN_PERCENT: u64 = 50;
