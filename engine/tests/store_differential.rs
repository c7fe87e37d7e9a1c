//! Tests that the store behaves like an ordered map for every tree, page store, page size, cache
//! size and kind of key, also after it is closed and reopened.
//!
//! The geometry is tiny: a cache of 16 to 24 frames, a log of a few dozen pages, large values. So a
//! few thousand operations split and merge hundreds of leaves, evict most of them many times and
//! take dozens of checkpoints.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{BF, EACH_FLUSH, IN_PLACE, LEAST_RING, Map, Pages, STORES, TREES, bf};
use support::{assert_same, operate, pump_all};
use treering_engine::device::{BlockDevice, MemDevice};
use treering_engine::{Kv, MAX_VALUE_BYTES, Options, Store, SystemClock, TreeKind, verify};

fn tiny(tree: TreeKind, store: Pages, page_size: usize, frames: u64) -> Options {
    let options = support::options(tree, store, page_size, frames, 4);
    support::with_log(64 * page_size as u64, options)
}

/// Opens a store that ends like a killed process, unless it is closed.
fn open(device: &Arc<MemDevice>, options: &Options) -> Store {
    let device: Arc<dyn BlockDevice> = device.clone();
    Store::open(device, Arc::new(SystemClock::new()), options)
        .inspect(Store::abandon_on_drop)
        .expect("opens")
}

/// Keys with many common prefixes: some are empty, many are prefixes of others, some are long.
fn key(rng: &mut StdRng) -> Vec<u8> {
    let stem: &[u8] =
        [&b""[..], b"a", b"ab", b"test", b"teste", b"user:0000"][rng.random_range(0..6)];
    let mut key = stem.to_vec();
    match rng.random_range(0..4) {
        0 => {}
        1 => key.extend_from_slice(&rng.random_range(0u16..400).to_be_bytes()),
        2 => key.extend_from_slice(format!("{:03}", rng.random_range(0..200)).as_bytes()),
        _ => key.extend(std::iter::repeat_n(b'z', rng.random_range(0..120))),
    }
    key
}

fn value(rng: &mut StdRng, max: usize) -> Vec<u8> {
    let len = if rng.random_bool(0.1) {
        0
    } else {
        rng.random_range(0..=max)
    };
    let byte = rng.random();
    vec![byte; len]
}

fn run_program(options: &Options, seed: u64, operations: usize, reopen_every: usize) {
    run_program_and_reopen_as(
        options,
        std::slice::from_ref(options),
        seed,
        operations,
        reopen_every,
    );
}

/// Runs a random program on a store, which is reopened as each of `others` in turn.
fn run_program_and_reopen_as(
    options: &Options,
    others: &[Options],
    seed: u64,
    operations: usize,
    reopen_every: usize,
) {
    let story = format!(
        "{:?} on {:?}, {} B pages, seed {seed}",
        options.tree, options.store, options.page_size
    );
    let device = Arc::new(MemDevice::new(16_384));
    let mut store = open(&device, options);
    let mut map = Map::new();
    let mut rng = StdRng::seed_from_u64(seed);
    for i in 0..operations {
        let k = key(&mut rng);
        // Phases of growth and of shrinking, so that leaves split and merge.
        let growing = (i / 800) % 2 == 0;
        let value = |rng: &mut StdRng| value(rng, options.page_size / 6);
        let story = format!("{story}, step {i}");
        operate((&store, &mut map), &mut rng, k, value, growing, &story);
        if i % 3 == 0 {
            pump_all(&store);
        }
        if i % reopen_every == reopen_every - 1 {
            let options = &others[i / reopen_every % others.len()];
            assert_same(&store, &map, &story);
            store.close().expect("closes");
            let report = verify(device.clone()).expect("verifies");
            assert_eq!(report.damage, Vec::<String>::new(), "{story}");
            assert_eq!(report.records as usize, map.len(), "{story}");
            store = open(&device, options);
            assert_same(&store, &map, &format!("{story}, reopened"));
        }
    }
    let stats = store.stats();
    assert!(
        stats.cache_misses > 0,
        "{story}: the cache must be too small at times"
    );
}

#[test]
fn every_page_store_and_page_size_agrees_with_an_ordered_map() {
    for (tree, store) in support::all() {
        for page_size in [4096, 16_384, 65_536] {
            for seed in 0..2 {
                let options = tiny(tree, store, page_size, 16 + 8 * seed);
                run_program(&options, seed, 6_000, 2_000);
            }
        }
    }
}

/// The format of leaves, index and log on the device does not depend on the tree.
#[test]
fn a_store_reopened_with_another_tree_and_cache_keeps_its_contents() {
    for store in STORES {
        let btree = tiny(TreeKind::BTree, store, 4096, 20);
        let smallest = support::options(BF, store, 4096, 16, LEAST_RING);
        let others = [
            tiny(BF, store, 4096, 16),
            tiny(TreeKind::BTree, store, 4096, 16),
            Options {
                cache_bytes: smallest.cache_bytes,
                ..tiny(bf(100, 100), store, 4096, 16)
            },
            tiny(BF, store, 4096, 300),
        ];
        run_program_and_reopen_as(&btree, &others, 5, 8_000, 1_000);
        run_program_and_reopen_as(&others[0], &others[1..], 6, 8_000, 1_000);
    }
}

#[test]
fn every_ring_size_and_promotion_and_copying_rate_agrees_with_an_ordered_map() {
    for (copying, promotion) in [(0, 0), (0, 100), (100, 0), (100, 100), (50, 1)] {
        for ring in [LEAST_RING, 3, 40] {
            for store in [IN_PLACE, EACH_FLUSH] {
                let options = Options {
                    cache_bytes: (16 + ring) * 4096,
                    ..tiny(bf(copying, promotion), store, 4096, 16)
                };
                run_program(&options, ring, 4_000, 2_000);
            }
        }
    }
}

/// Flushes buffered changes to the leaves. Then merges leaves, two at a time, because each delete
/// does a step of that work.
fn merge_leaves(store: &Store) {
    store.checkpoint().unwrap();
    for _ in 0..400 {
        store.delete(b"absent").unwrap();
    }
}

#[test]
fn programs_cause_structure_changes_and_checkpoints() {
    TREES.into_iter().for_each(structure_changes);
}

fn structure_changes(tree: TreeKind) {
    let options = tiny(tree, IN_PLACE, 4096, 24);
    let device = Arc::new(MemDevice::new(16_384));
    let store = open(&device, &options);
    for i in 0..4_000u32 {
        store.put(&i.to_be_bytes(), &[7; 100]).unwrap();
        pump_all(&store);
    }
    for i in 0..3_990u32 {
        store.delete(&i.to_be_bytes()).unwrap();
        pump_all(&store);
    }
    merge_leaves(&store);
    let stats = store.stats();
    assert!(stats.splits > 100, "{stats:?}");
    assert!(stats.merges > 100, "{stats:?}");
    assert!(stats.checkpoints > 10, "{stats:?}");
    assert!(stats.evictions > 100, "{stats:?}");
    assert!(
        stats.leaf_pages < 5,
        "empty leaves must be merged: {stats:?}"
    );
}

#[test]
fn updates_of_equal_length_and_merged_records_are_kept() {
    TREES.into_iter().for_each(updates_and_merges);
}

fn updates_and_merges(tree: TreeKind) {
    let options = tiny(tree, IN_PLACE, 4096, 24);
    let store = open(&Arc::new(MemDevice::new(16_384)), &options);
    let mut map = BTreeMap::new();
    for round in 0..2u8 {
        for i in 0..2_000u32 {
            let (key, value) = (i.to_be_bytes().to_vec(), vec![round; 100]);
            store.put(&key, &value).unwrap();
            map.insert(key, value);
            pump_all(&store);
        }
    }
    assert_same(&store, &map, "every value replaced by one of equal length");
    for i in (0..2_000u32).filter(|i| !i.is_multiple_of(17)) {
        store.delete(&i.to_be_bytes()).unwrap();
        map.remove(i.to_be_bytes().as_slice());
        pump_all(&store);
    }
    merge_leaves(&store);
    assert!(store.stats().merges > 20, "{:?}", store.stats());
    assert_same(&store, &map, "every 17th record kept, in merged leaves");
}

#[test]
fn oversized_records_are_refused_and_nothing_changes() {
    for tree in TREES {
        refuses_records_over_the_limit(&tiny(tree, IN_PLACE, 4096, 16));
    }
}

fn refuses_records_over_the_limit(options: &Options) {
    let device = Arc::new(MemDevice::new(4_096));
    let store = open(&device, options);
    let limits = treering_engine::node::limits(4096);
    let long = vec![b'k'; limits.max_key + 1];
    assert!(
        store
            .put(&long, b"")
            .unwrap_err()
            .to_string()
            .contains("longer than")
    );
    let big = vec![0; MAX_VALUE_BYTES + 1];
    assert!(
        store
            .put(b"", &big)
            .unwrap_err()
            .to_string()
            .contains("longer than")
    );
    assert_same(&store, &BTreeMap::new(), "after two refusals");
    // At the limit, everything works as usual.
    let mut map = BTreeMap::new();
    for i in 0..200u8 {
        let mut k = vec![b'k'; limits.max_key];
        k[limits.max_key - 1] = i;
        let v = vec![i; limits.max_record - limits.max_key];
        store.put(&k, &v).unwrap();
        map.insert(k, v);
        pump_all(&store);
    }
    assert_same(&store, &map, "records of the largest size");
}

#[test]
fn a_full_store_refuses_puts_and_keeps_its_data() {
    for (tree, kind) in support::all() {
        let options = tiny(tree, kind, 4096, 16);
        let device = Arc::new(MemDevice::new(400));
        let store = open(&device, &options);
        let mut kept = 0u32;
        let error = loop {
            match store.put(&kept.to_be_bytes(), &[1; 500]) {
                Ok(_) => kept += 1,
                Err(e) => break e,
            }
            pump_all(&store);
            assert!(kept < 100_000, "{kind:?}: the store never became full");
        };
        assert!(error.to_string().contains("full"), "{kind:?}: {error}");
        let mut got = Vec::new();
        for i in 0..kept {
            assert!(
                store.get(&i.to_be_bytes(), &mut got).unwrap(),
                "{kind:?}: key {i} of {kept}"
            );
        }
        store.close().expect("a full store can be closed");
        let store = open(&device, &options);
        assert!(store.get(&(kept - 1).to_be_bytes(), &mut got).unwrap());
    }
}
