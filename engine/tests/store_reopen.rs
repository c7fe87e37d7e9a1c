//! Tests a store reopened with other options than it was created with: another geometry, or another
//! tree.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use support::{BF, IN_PLACE, LAZY, STORES, TREES, bf, contents, layouts, tiny as options};
use treering_engine::device::{BlockDevice, MemDevice};
use treering_engine::node::PageLayout;
use treering_engine::{Error, IoClass, Kv, Lba, Options, Store, SystemClock, TreeKind, verify};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const BLOCKS: u64 = 4_096;

/// Opens a store that ends like a killed process, unless it is closed.
fn open(device: &Arc<MemDevice>, options: &Options) -> Result<Store, Error> {
    Store::open(device.clone(), Arc::new(SystemClock::new()), options)
        .inspect(Store::abandon_on_drop)
}

/// Splits and merges leaves: puts and deletes around `round`, of which the last are made durable.
fn change(store: &Store, map: &mut Map, round: u32) {
    let mut last = None;
    for i in 0..1_200u32 {
        let key = format!("key-{:05}", i * 7 % 1_200 + 200 * round).into_bytes();
        last = Some(if i % 4 == round % 4 || i < 400 * (round % 3) {
            map.remove(&key);
            store.delete(&key).expect("deletes")
        } else {
            let value = vec![round as u8; (i % 120) as usize];
            map.insert(key.clone(), value.clone());
            store.put(&key, &value).expect("puts")
        });
    }
    store.sync(last.expect("some")).expect("syncs");
}

/// Each tree creates leaves of its own layout. It also changes, splits, merges and recovers leaves
/// of the other tree, which keep their layout.
#[test]
fn each_tree_opens_stores_of_the_other_and_pages_keep_their_layout() {
    for maker in TREES {
        let layout = match maker {
            TreeKind::BTree => PageLayout::Slotted,
            TreeKind::Bf(_) => PageLayout::Compact,
        };
        assert_eq!(options(maker, IN_PLACE).page_layout(), layout);
        for kind in STORES {
            let story = format!("made by {} on {kind:?}", maker.name());
            let device = Arc::new(MemDevice::new(BLOCKS));
            let mut map = Map::new();
            let mut structure_changes = 0;
            for round in 0..6 {
                let tree = if round == 0 {
                    maker
                } else {
                    TREES[round as usize % 2]
                };
                let store = open(&device, &options(tree, kind)).expect("opens");
                assert!(contents(&store) == map, "{story}: round {round}");
                change(&store, &mut map, round);
                let stats = store.stats();
                structure_changes += u64::from(stats.splits > 0 && stats.merges > 0);
                if round % 3 == 2 {
                    store.close().expect("closes");
                }
            }
            assert!(structure_changes > 1, "{story}: {structure_changes}");
            let store = open(&device, &options(maker, kind)).expect("opens");
            assert!(contents(&store) == map, "{story}");
            store.close().expect("closes");
            assert_eq!(layouts(&device), BTreeSet::from([layout.name()]), "{story}");
            let report = verify(device).expect("verifies");
            assert_eq!(report.damage, Vec::<String>::new(), "{story}");
            assert_eq!(report.records as usize, map.len(), "{story}");
        }
    }
}

/// Options that determine the format of the store are refused if they differ. Options of a single
/// run may differ.
#[test]
fn a_different_geometry_is_refused_by_name_or_has_no_effect() {
    for tree in TREES {
        let device = Arc::new(MemDevice::new(BLOCKS));
        let made = options(tree, IN_PLACE);
        let store = open(&device, &made).expect("formats");
        let mut map = Map::new();
        change(&store, &mut map, 0);
        store.close().expect("closes");

        let other_page = Options {
            page_size: 8192,
            cache_bytes: made.cache_bytes * 2,
            log_bytes: made.log_bytes * 2,
            ..made.clone()
        };
        let other_store = options(tree, LAZY);
        for (asked, what) in [(other_page, "page size"), (other_store, "page store")] {
            let refused = open(&device, &asked).map(drop);
            assert!(
                matches!(refused, Err(Error::Mismatch { name, .. }) if name == what),
                "{what}: {refused:?}"
            );
        }
        let half = Arc::new(MemDevice::new(BLOCKS / 2));
        let mut blocks = vec![0; 4096 * (BLOCKS / 2) as usize];
        device
            .read(Lba(0), &mut blocks, IoClass::Page)
            .expect("reads");
        half.write(Lba(0), &blocks, IoClass::Page).expect("writes");
        let cut = open(&half, &made).map(drop);
        assert!(matches!(cut, Err(Error::Damaged { .. })), "{cut:?}");

        let same = [
            options(bf(100, 100), IN_PLACE),
            options(bf(0, 0), IN_PLACE),
            Options {
                cache_bytes: 1 << 20,
                log_bytes: made.log_bytes * 8,
                write_batch_pages: 32,
                ..options(BF, IN_PLACE)
            },
            Options {
                cache_bytes: 1 << 20,
                log_buffer_bytes: 4096,
                ..options(TreeKind::BTree, IN_PLACE)
            },
        ];
        for (round, other) in (1..).zip(&same) {
            let store = open(&device, other).unwrap_or_else(|e| panic!("{other:?}: {e}"));
            assert!(contents(&store) == map, "{other:?}");
            change(&store, &mut map, round);
        }
        assert!(contents(&open(&device, &made).expect("opens")) == map);
    }
}
