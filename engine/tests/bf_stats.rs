//! Tests the statistics of a store with mini-pages. The programs are small, so every count is
//! known.

use std::sync::Arc;

use treering_engine::device::{BlockDevice, MemDevice};
use treering_engine::{
    BfOptions, BfStats, Durability, KindCounts, Kv, MergeCauses, Options, Promote, Store,
    SystemClock, TreeKind,
};

fn open(promotion_percent: u8) -> Store {
    open_with(BfOptions {
        promote: Promote::Percent(promotion_percent),
        ..BfOptions::PUBLISHED
    })
}

fn open_with(bf: BfOptions) -> Store {
    let device: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(4096));
    open_on(&device, bf)
}

fn open_on(device: &Arc<dyn BlockDevice>, bf: BfOptions) -> Store {
    let options = Options {
        tree: TreeKind::Bf(bf),
        cache_bytes: 32 * 4096,
        durability: Durability::Deferred,
        log_bytes: 1 << 20,
        checkpoint_log_bytes: 1 << 19,
        log_buffer_bytes: 1 << 16,
        ..Options::default()
    };
    let clock = Arc::new(SystemClock::new());
    Store::open(device.clone(), clock, &options).expect("opens")
}

fn get(store: &Store, key: &str) -> bool {
    let mut value = Vec::new();
    store.get(key.as_bytes(), &mut value).expect("reads")
}

fn bf(store: &Store) -> BfStats {
    store.stats().bf.expect("a tree with mini-pages")
}

#[test]
fn lookups_are_counted_by_the_kind_of_the_answering_record() {
    let store = open(100);
    for key in ["a", "b", "c"] {
        store.put(key.as_bytes(), b"value").expect("writes");
    }
    store.delete(b"b").expect("deletes");
    assert!(get(&store, "a") && !get(&store, "b") && get(&store, "c"));
    let before = bf(&store);
    let hits = KindCounts {
        insert: 2,
        tombstone: 1,
        ..KindCounts::default()
    };
    assert_eq!((before.hits, before.misses), (hits, 0));
    assert_eq!(before.merges.total(), 0);

    store.checkpoint().expect("checkpoints");
    // After the merge, the mini-page keeps its records. A missing record is looked up in the leaf
    // once and promoted.
    assert!(get(&store, "a") && !get(&store, "b"));
    assert!(!get(&store, "z") && !get(&store, "z"));
    let since = bf(&store).since(&before);
    let hits = KindCounts {
        cache: 1,
        phantom: 2,
        ..KindCounts::default()
    };
    assert_eq!((since.hits, since.misses, since.promotions), (hits, 1, 1));
    let merges = MergeCauses {
        checkpoint: 1,
        ..MergeCauses::default()
    };
    assert_eq!((since.merges, since.merged_records), (merges, 3));
    assert_eq!(since.batches[..3], [0, 1, 0], "one merge of 2 to 3 records");
}

#[test]
fn without_promotion_every_leaf_lookup_is_a_miss() {
    let store = open(0);
    for _ in 0..3 {
        assert!(!get(&store, "absent"));
    }
    let stats = bf(&store);
    assert_eq!(
        (stats.misses, stats.leaf_reads, stats.promotions),
        (3, 3, 0)
    );
    assert_eq!(stats.live_bytes, 0);
}

/// What is promoted has to pay. It does if few keys are read again and again, and not if many are
/// read and changes need the room; and it adapts when that changes.
#[test]
fn promotion_adapts_to_what_it_answers() {
    let store = open_with(BfOptions::default());
    let name = |key: u32| format!("key{key:05}");
    for n in 0..8_000_u32 {
        let key = n * 7_919 % 8_000;
        store.put(name(key).as_bytes(), &[7; 30]).expect("writes");
    }
    let share = |keys: u32, writes: u32| {
        let mut before = bf(&store);
        for n in 0..60_000_u32 {
            if n == 40_000 {
                before = bf(&store);
            }
            let key = n.wrapping_mul(2_654_435_761) >> 8;
            match n % 20 < writes {
                true => drop(store.put(name(key % 8_000).as_bytes(), &[8; 30])),
                false => drop(get(&store, &name(key % keys))),
            }
        }
        let stats = bf(&store).since(&before);
        stats.promotions as f64 / stats.misses as f64
    };
    for round in 0..2 {
        let cold = share(8_000, 10);
        assert!(cold < 0.01, "round {round}: {cold:.3} of many keys");
        let hot = share(1_000, 1);
        assert!(hot > 0.1, "round {round}: {hot:.3} of few keys");
    }
}

#[test]
fn sizes_that_grow_less_leave_less_unused() {
    let unused = |growth_percent| {
        let store = open_with(BfOptions {
            growth_percent,
            ..BfOptions::PUBLISHED
        });
        let mut shares = 0.0;
        for n in 0..4_000_u32 {
            let key = n.wrapping_mul(2_654_435_761) % 3_000;
            store
                .put(format!("key{key:05}").as_bytes(), &[7; 30])
                .expect("writes");
            let ring = store.ring_use().expect("a ring");
            let used = ring.dirty + ring.dirty_slots + ring.clean;
            shares += ring.slack as f64 / (ring.slack + used) as f64;
        }
        shares / 4_000.0
    };
    let (doubling, by_a_quarter) = (unused(100), unused(25));
    assert!(
        by_a_quarter < 0.6 * doubling,
        "{by_a_quarter:.3} and {doubling:.3}"
    );
    assert!(by_a_quarter < 0.15, "{by_a_quarter:.3}");
}

/// With long records, half a page is full long before a leaf has changed as a whole.
#[test]
fn mini_pages_gather_what_they_may_hold() {
    let merges_for_room = |max_mini_page_percent| {
        let device: Arc<dyn BlockDevice> = Arc::new(MemDevice::new(4096));
        let options = BfOptions {
            max_mini_page_percent,
            ..BfOptions::PUBLISHED
        };
        let put = |store: &Store, key: u32| {
            let key = format!("key{key:05}");
            store.put(key.as_bytes(), &[7; 120]).expect("writes");
        };
        let store = open_on(&device, options);
        // Leaves that grow in key order would stay half full.
        (0..100).for_each(|n| put(&store, n * 77 % 100));
        store.close().expect("closes");
        let store = open_on(&device, options);
        (0..1_000).for_each(|n| put(&store, n * 77 % 100));
        let merges = bf(&store).merges;
        assert_eq!(merges.eviction, 0, "they all fit");
        merges.room
    };
    // Each leaf is merged once, and has a mirror then.
    assert!(merges_for_room(50) > 2);
    assert_eq!(merges_for_room(100), 0);
}

/// The parts of the ring, while records come, are read, are deleted and are merged.
#[test]
fn the_uses_of_the_ring_add_up() {
    let store = open(100);
    let mut dirty = 0;
    for round in 0..3_000_u32 {
        let key = round.wrapping_mul(2_654_435_761) % 2_000;
        let name = format!("key{key:05}");
        match round % 7 {
            0..4 => drop(store.put(name.as_bytes(), &[7; 30]).expect("writes")),
            4 => drop(store.delete(name.as_bytes()).expect("deletes")),
            _ => drop(get(&store, &name)),
        }
        if round % 100 == 0 {
            let (ring, stats) = (store.ring_use().expect("a ring"), bf(&store));
            let parts: u64 = ring.parts().iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(parts, stats.ring_bytes, "{ring:?}");
            assert_eq!(stats.ring_bytes - ring.free - ring.holes, stats.live_bytes);
            assert_eq!(ring.dirty_slots, 8 * ring.dirty_records);
            assert!(ring.dirty <= 38 * ring.dirty_records);
            dirty = dirty.max(ring.dirty_records);
        }
    }
    assert!(dirty > 100, "at most {dirty} records were dirty");
    store.checkpoint().expect("checkpoints");
    let ring = store.ring_use().expect("a ring");
    assert_eq!(
        (ring.dirty, ring.dirty_records, ring.dirty_slots),
        (0, 0, 0)
    );
    assert!(ring.clean > 0, "records stay after a checkpoint");
}

#[test]
fn mini_page_counts_by_size_add_up() {
    let store = open(30);
    let value = [7; 100];
    for i in 0..20_000_u32 {
        let key = (i.wrapping_mul(0x9e37_79b9)).to_be_bytes();
        store.put(&key, &value).expect("writes");
    }
    let stats = bf(&store);
    let (mut live, mut evicted) = (0, 0);
    for class in stats.classes.iter().filter(|class| class.size > 0) {
        assert_eq!(class.allocated, class.freed + class.evicted + class.live);
        live += class.live * (class.size + 8);
        evicted += class.evicted;
    }
    let sizes = stats.classes.iter().map(|class| class.size);
    let sizes: Vec<u64> = sizes.filter(|size| *size > 0).collect();
    assert_eq!(sizes, [64, 128, 256, 512, 1024, 2048, 3072, 4096]);
    assert_eq!((live, evicted), (stats.live_bytes, stats.evictions));
    assert!(stats.evictions > 100 && stats.live_bytes > 0, "{stats:?}");
    assert!(stats.live_bytes + stats.listed_bytes <= stats.span_bytes);
    assert!(stats.span_bytes <= stats.ring_bytes);
    let merges = stats.merges.total();
    assert_eq!(merges, stats.batches.iter().sum::<u64>());
    assert!(merges <= stats.merged_records, "{stats:?}");
    assert!(stats.merges.eviction <= stats.evictions, "{stats:?}");
    assert!(stats.merged_records <= 20_000, "{stats:?}");
    assert_eq!(store.stats().cache_frames, 16);
}
