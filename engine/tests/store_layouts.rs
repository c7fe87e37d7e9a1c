//! Tests each leaf layout in a store: it behaves like an ordered map through splits, merges, layout
//! changes, checkpoints and recovery from the log, on every page store.
//!
//! The keys make dense leaves come and go: runs of numbers in random and in ascending order, in
//! partitions, interrupted by strings; most values have eight bytes.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{BF, BMINUS, IN_PLACE, LAZY_LOGGED, Pages, STORES, contents, layouts, pump_all};
use treering_engine::device::{BlockDevice, MemDevice};
use treering_engine::node::{LayoutChoice, PageLayout, places};
use treering_engine::{Kv, Lsn, Options, Store, SystemClock, TreeKind, verify};

const BLOCKS: u64 = 8_192;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(tree: TreeKind, store: Pages, layouts: LayoutChoice) -> Options {
    Options {
        layout: Some(layouts),
        ..support::tiny(tree, store)
    }
}

/// Opens a store that ends like a killed process, unless it is closed.
fn open(device: &Arc<MemDevice>, options: &Options) -> Store {
    let device: Arc<dyn BlockDevice> = device.clone();
    Store::open(device, Arc::new(SystemClock::new()), options)
        .inspect(Store::abandon_on_drop)
        .expect("opens")
}

/// Returns the next key of a program. `step` is the next ascending key.
fn key(rng: &mut StdRng, step: u32) -> Vec<u8> {
    let numbers = |a: u32, b: u32| [a.to_be_bytes(), b.to_be_bytes()].concat();
    match rng.random_range(0..100) {
        0..50 => rng.random_range(0_u32..4_000).to_be_bytes().to_vec(),
        50..80 => numbers(rng.random_range(1..4) << 20, step / 8),
        80..96 => numbers(9, rng.random_range(0..1_500)),
        96 => [&rng.random_range(0_u32..100).to_be_bytes()[..], b"!"].concat(),
        97 => rng.random_range(1_u16..200).to_be_bytes().to_vec(),
        _ => format!("https://www.example.org/{}", rng.random_range(0..300)).into_bytes(),
    }
}

/// What a test checks at the end of a program.
struct Seen {
    layouts: BTreeSet<&'static str>,
    splits: u64,
    merges: u64,
}

fn run(rounds: &[Options], seed: u64) -> Seen {
    let story = format!(
        "{} on {:?}, seed {seed}",
        rounds[0].leaf_layouts().name(),
        rounds[0].store
    );
    let device = Arc::new(MemDevice::new(BLOCKS));
    let (mut map, mut rng) = (Map::new(), StdRng::seed_from_u64(seed));
    let mut seen = Seen {
        layouts: BTreeSet::new(),
        splits: 0,
        merges: 0,
    };
    let (mut got, mut last) = (Vec::new(), Lsn(0));
    for (round, options) in rounds.iter().enumerate() {
        let store = open(&device, options);
        assert!(contents(&store) == map, "{story}: round {round}");
        for i in 0..4_000_u32 {
            let step = round as u32 * 4_000 + i;
            let k = key(&mut rng, step);
            // Every fourth round ends with fewer keys than it began with.
            let (puts, deletes) = if round % 4 == 3 && i > 2_000 {
                (2, 40)
            } else {
                (7, 2)
            };
            match rng.random_range(0..10) {
                0 => {
                    let found = store.get(&k, &mut got).expect("gets");
                    assert_eq!(
                        found.then_some(&got),
                        map.get(&k),
                        "{story}: get {k:?} at {step}"
                    );
                }
                1 => scan(&store, &map, &k, &format!("{story} at {step}")),
                n if n < puts + 2 => {
                    // Most numbers always have values of one length.
                    let odd = k.len() > 8 || k.len() == 4 && k[2] < 4;
                    let len = if odd && rng.random_bool(0.05) {
                        rng.random_range(0..200)
                    } else {
                        8
                    };
                    let value = vec![rng.random(); len];
                    last = store.put(&k, &value).expect("puts");
                    map.insert(k, value);
                }
                _ => {
                    // Delete a range of them, so that leaves become sparse.
                    let gone: Vec<_> = map
                        .range(k..)
                        .take(deletes)
                        .map(|(k, _)| k.clone())
                        .collect();
                    for k in gone {
                        last = store.delete(&k).expect("deletes");
                        map.remove(&k);
                    }
                }
            }
            pump_all(&store);
        }
        assert!(contents(&store) == map, "{story}: end of round {round}");
        let stats = store.stats();
        seen.splits += stats.splits;
        seen.merges += stats.merges;
        if round % 2 == 0 {
            // The last changes are only in the log.
            store.sync(last).expect("syncs");
            drop(store);
        } else {
            store.close().expect("closes");
        }
        let report = verify(device.clone()).expect("verifies");
        assert_eq!(report.damage, Vec::<String>::new(), "{story}");
        assert_eq!(report.records as usize, map.len(), "{story}");
        seen.layouts.extend(layouts(&device));
    }
    seen
}

impl Seen {
    /// Checks that leaves had the chosen layout, or all layouts that adaption uses, and that they
    /// were split and merged.
    #[track_caller]
    fn is_all_of(&self, chosen: LayoutChoice) {
        let expected: &[&str] = match chosen.is_adaptive() {
            true => &["hints", "fingerprint", "fully-dense"],
            false => &[chosen.name()],
        };
        assert!(
            expected.iter().all(|name| self.layouts.contains(name)),
            "{chosen:?}: {:?}",
            self.layouts
        );
        assert!(
            self.splits > 20 && self.merges > 5,
            "{chosen:?}: {} {}",
            self.splits,
            self.merges
        );
    }
}

fn scan(store: &Store, map: &Map, from: &[u8], story: &str) {
    let mut seen = Vec::new();
    let mut visit = |k: &[u8], v: &[u8]| {
        seen.push((k.to_vec(), v.to_vec()));
        if seen.len() < 30 {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    store.scan(from, &mut visit).expect("scans");
    let expected = map.range(from.to_vec()..).take(30);
    let expected: Vec<_> = expected.map(|(k, v)| (k.clone(), v.clone())).collect();
    assert_eq!(seen, expected, "{story}: scan from {from:?}");
}

#[test]
fn every_layout_on_every_page_store_agrees_with_an_ordered_map() {
    for layout in LayoutChoice::all() {
        for store in STORES {
            let seen = run(&vec![options(TreeKind::BTree, store, layout); 4], 1);
            seen.is_all_of(layout);
        }
    }
}

#[test]
fn the_bf_tree_supports_every_leaf_layout() {
    for layout in LayoutChoice::all() {
        for store in [IN_PLACE, BMINUS] {
            let seen = run(&vec![options(BF, store, layout); 4], 2);
            seen.is_all_of(layout);
        }
    }
}

/// Keys that heads cannot distinguish are in leaves with fingerprints, until there are scans in
/// either direction (§5.1).
#[test]
fn frequently_scanned_leaves_get_hints() {
    for (downwards, scans) in [(false, 0), (false, 60), (true, 60)] {
        let device = Arc::new(MemDevice::new(BLOCKS));
        let store = open(
            &device,
            &options(TreeKind::BTree, IN_PLACE, LayoutChoice::ADAPTIVE),
        );
        let mut map = Map::new();
        for n in 0..2_000_u32 {
            let key = format!("https://www.example.org/page/{}", n * 7 % 2_000).into_bytes();
            store.put(&key, &n.to_be_bytes()).expect("puts");
            map.insert(key, n.to_be_bytes().to_vec());
            pump_all(&store);
        }
        let mut seen = Vec::new();
        for _ in 0..scans {
            seen.clear();
            let mut visit = |key: &[u8], value: &[u8]| {
                seen.push((key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            };
            if downwards {
                store.scan_back(None, &mut visit).expect("scans");
                seen.reverse();
            } else {
                store.scan(b"", &mut visit).expect("scans");
            }
            assert!(seen.iter().map(|(k, v)| (k, v)).eq(&map));
        }
        store.close().expect("closes");
        let layouts = layouts(&device);
        let story = format!("{layouts:?} after {scans} scans, downwards: {downwards}");
        assert_eq!(layouts.contains("fingerprint"), scans == 0, "{story}");
    }
}

/// Pages keep their layout until they must change it, and every tree can use them as they are.
#[test]
fn a_store_may_be_opened_with_another_layout_each_time() {
    // The first page and those split off it keep the first layout. Dense pages have the layout that
    // they change into.
    let mut layouts = BTreeSet::new();
    for store in [IN_PLACE, LAZY_LOGGED] {
        for seed in 0..3 {
            let trees = [TreeKind::BTree, BF, TreeKind::BTree];
            let mut rounds: Vec<_> = (LayoutChoice::all().zip(trees.into_iter().cycle()))
                .map(|(layout, tree)| options(tree, store, layout))
                .collect();
            rounds.rotate_left(3 * seed as usize);
            rounds.extend(rounds.clone().into_iter().rev());
            layouts.extend(run(&rounds, 10 + seed).layouts);
        }
    }
    for dense in PageLayout::DENSE {
        assert!(layouts.contains(dense.name()), "{layouts:?}");
    }
}

/// A dense leaf has fewer places if its lower fence is longer. That of the right side of a split may
/// be longer than the leaf's own, and the leaf may have a record in its last place. The split was
/// logged, and then the right side refused that record; after a restart, redo refused it again, and
/// the store did not open.
#[test]
fn a_dense_leaf_with_a_record_in_its_last_place_can_be_split() {
    for value_len in 0..9 {
        let story = format!("values of {value_len} bytes");
        let device = Arc::new(MemDevice::new(BLOCKS));
        let layout = LayoutChoice::of(PageLayout::FullyDense);
        let options = options(TreeKind::BTree, IN_PLACE, layout);
        let key = |number: u32| [&[7; 508][..], &number.to_be_bytes()].concat();
        let mut map = Map::new();
        let mut put = |store: &Store, number: u32, value: Vec<u8>| {
            let put = store.put(&key(number), &value);
            map.insert(key(number), value);
            pump_all(store);
            put.unwrap_or_else(|e| panic!("{story}: put {number:x}: {e}"))
        };
        // Two leaves, of which the right one has a lower fence of 509 bytes.
        let (store, first) = (open(&device, &options), 1 << 24);
        for number in (0..3).chain(first..first + 4) {
            put(&store, number, vec![1; value_len]);
        }
        let lower = [&[7; 508][..], &[1]].concat();
        let places = places(PageLayout::FullyDense, 4096, (&lower, None), 512, value_len);
        let last = first + places.expect("a dense page").count() as u32 - 1;
        for number in [first + 4, last - 1, last] {
            put(&store, number, vec![1; value_len]);
        }
        store.close().expect("closes");
        assert!(layouts(&device).contains("fully-dense"), "{story}");
        // No dense leaf takes this, and a general one has no room for all.
        let store = open(&device, &options);
        let lsn = put(&store, first, vec![2; 300]);
        assert!(store.stats().splits > 0, "{story}");
        store.sync(lsn).expect("syncs");
        drop(store);
        assert!(contents(&open(&device, &options)) == map, "{story}");
    }
}

/// Slots of hints are longer than those of fingerprints. The separator may lie left of the middle,
/// and then the right side has nearly all bytes of the leaf. It refused its records when the split was
/// in the log already.
#[test]
fn a_leaf_whose_right_side_does_not_fit_the_better_layout_can_be_split() {
    let device = Arc::new(MemDevice::new(BLOCKS));
    let of = |layouts| options(TreeKind::BTree, IN_PLACE, layouts);
    let mut map = Map::new();
    let mut put = |store: &Store, key: [u8; 2], len: usize| {
        let put = store.put(&key, &vec![1; len]);
        map.insert(key.to_vec(), vec![1; len]);
        pump_all(store);
        put.unwrap_or_else(|e| panic!("put {key:?}: {e}"))
    };
    let store = open(&device, &of(LayoutChoice::of(PageLayout::Fingerprint)));
    for (key, len) in [(b"aa", 0), (b"ab", 0), (b"ma", 1_000), (b"mb", 1_000)] {
        put(&store, *key, len);
    }
    for n in 0..200 {
        put(&store, [b'z', n], 0);
    }
    assert_eq!(store.stats().splits, 0);
    store.close().expect("closes");
    let store = open(&device, &of(LayoutChoice::ADAPTIVE));
    let mut last = Lsn(0);
    for n in 200..=255 {
        last = put(&store, [b'z', n], 0);
    }
    assert!(store.stats().splits > 0);
    store.sync(last).expect("syncs");
    drop(store);
    assert!(contents(&open(&device, &of(LayoutChoice::ADAPTIVE))) == map);
}
