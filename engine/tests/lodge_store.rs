//! Tests that a LodgeTree behaves like an ordered map for every size of nodes and leaves, also
//! after it is reopened, and that each flush touches few leaves.
//!
//! Chunks have few leaves and leaves split early, so that a few thousand operations split nodes and
//! reuse logs dozens of times.

use std::sync::Arc;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use treering_engine::device::{MemPm, PmDevice};
use treering_engine::{CclOptions, Kv, LodgeOptions, NodeSplit, PmOptions, PmStore, PmTreeKind};

#[path = "support/pm.rs"]
mod pm;

use pm::{Map, assert_same, contents, empty, fill, key, operate, pump_all, value};

/// Small nodes, so that every kind of event is frequent.
fn small() -> LodgeOptions {
    LodgeOptions {
        slots: 7,
        t_split: 5,
        logs: 2,
        log_entries: 8,
        ..LodgeOptions::default()
    }
}

fn trees() -> Vec<LodgeOptions> {
    let smallest = LodgeOptions {
        slots: 4,
        t_node: 1,
        t_split: 2,
        logs: 1,
        log_entries: 2,
        ..LodgeOptions::default()
    };
    vec![
        LodgeOptions::default(),
        small(),
        smallest,
        LodgeOptions {
            node_split: NodeSplit::Double,
            t_node: 4,
            t_split: 27,
            slots: 20,
            ..small()
        },
        // Leaves and buffers of full size, so that updates find no empty slots.
        LodgeOptions {
            t_split: 27,
            log_entries: 16,
            ..LodgeOptions::default()
        },
    ]
}

fn options(lodge: LodgeOptions) -> PmOptions {
    PmOptions {
        tree: PmTreeKind::Lodge(lodge),
        chunk_bytes: 2048,
        ..PmOptions::default()
    }
}

fn open(device: &Arc<MemPm>, lodge: LodgeOptions) -> PmStore {
    pm::open(device, &options(lodge))
}

/// Checks FlushInv (LT-04, LT-05) for one operation: each flush changes at most `t_node` leaves, or
/// one leaf that was split.
fn check_flushes(lodge: LodgeOptions, before: &mut (u64, u64, u64), store: &PmStore, story: &str) {
    let stats = store.stats();
    let pm = stats.pm.unwrap();
    let now = (pm.lodge.unwrap().flushes, pm.leaf_flushes(), stats.splits);
    let flushes = now.0 - before.0;
    let visits = now.1 - before.1;
    let splits = now.2 - before.2;
    assert!(
        splits <= flushes,
        "{story}: {splits} splits in {flushes} flushes"
    );
    // A split changes two leaves: the old one and the new one.
    let most = (flushes - splits) * lodge.t_node as u64 + 2 * splits;
    assert!(
        visits <= most,
        "{story}: {visits} leaves in {flushes} flushes"
    );
    *before = now;
}

fn run_program(lodge: LodgeOptions, seed: u64, operations: usize, reopen_every: usize) {
    let device = Arc::new(MemPm::new(2 << 20));
    let mut rng = StdRng::seed_from_u64(seed);
    let mut store = open(&device, lodge);
    let mut map = Map::new();
    let mut flushes = (0, 0, 0);
    for i in 0..operations {
        let story = format!("{lodge:?}, seed {seed}, step {i}");
        let k = key(&mut rng);
        let growing = (i / 700) % 2 == 0;
        operate((&store, &mut map), &mut rng, k, value, growing, &story);
        check_flushes(lodge, &mut flushes, &store, &story);
        if i % 3 == 0 {
            pump_all(&store);
            check_flushes(lodge, &mut flushes, &store, &story);
        }
        if i % reopen_every == reopen_every - 1 {
            assert_same(&store, &map, &story);
            match i / reopen_every % 2 {
                0 => drop(store),
                _ => store.close().expect("closes"),
            }
            store = open(&device, lodge);
            assert_same(&store, &map, &format!("{story}, opened again"));
            flushes = (0, 0, 0);
        }
    }
}

#[test]
fn every_lodge_configuration_agrees_with_an_ordered_map() {
    for lodge in trees() {
        for seed in 0..3 {
            run_program(lodge, seed, 4_000, 900);
        }
    }
}

#[test]
fn programs_split_nodes_reuse_logs_and_flush_to_t_node_leaves() {
    for lodge in trees() {
        let device = Arc::new(MemPm::new(4 << 20));
        let store = open(&device, lodge);
        let mut map = Map::new();
        let mut flushes = (0, 0, 0);
        for i in 0..9_000u64 {
            let key = (i % 6_000)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .to_be_bytes();
            store.put(&key, &i.to_be_bytes()).unwrap();
            map.insert(key.to_vec(), i.to_be_bytes().to_vec());
            check_flushes(lodge, &mut flushes, &store, "growing");
            if i % 8 == 0 {
                pump_all(&store);
                check_flushes(lodge, &mut flushes, &store, "cleaning");
            }
        }
        assert_same(&store, &map, &format!("{lodge:?} grown"));
        let stats = store.stats();
        let pm = stats.pm.unwrap();
        let own = pm.lodge.unwrap();
        assert!(stats.splits > 200, "{lodge:?}: {stats:?}");
        assert!(own.node_splits.iter().sum::<u64>() > 5, "{own:?}");
        assert!(own.logs_opened > 20 && pm.trigger_writes > 1_000, "{pm:?}");
        assert_eq!(own.most_leaves_flushed, lodge.t_node as u64, "{own:?}");
        // LT-13: free slots serve as the buffer. LT-12: log entries are needed only for buffered
        // pairs.
        assert!(own.leaves + own.buffered < own.slots, "{own:?}");
        assert_eq!(
            (own.buffered, pm.log_bytes),
            (pm.buffered, 24 * pm.buffered)
        );
        assert_eq!(own.leaves, stats.leaf_pages);
        let keys: Vec<_> = map.keys().cloned().collect();
        for key in &keys {
            store.delete(key).unwrap();
        }
        assert_same(&store, &Map::new(), &format!("{lodge:?} emptied"));
        store.checkpoint().unwrap();
        let pm = store.stats().pm.unwrap();
        assert_eq!((pm.buffered, pm.log_bytes), (0, 0), "{pm:?}");
        let open_logs = lodge.logs as u64 * u64::from(lodge.log_entries.min(2048 / 24));
        assert!(pm.lodge.unwrap().log_room_entries <= open_logs, "{pm:?}");
        // Leaves are not merged here, so the records fit again.
        for key in &keys {
            store.put(key, b"again").unwrap();
        }
        assert_eq!(contents(&store).len(), keys.len());
    }
}

#[test]
fn updates_without_empty_slots_clear_the_slots_they_replace() {
    let device = Arc::new(MemPm::new(1 << 20));
    let lodge = LodgeOptions {
        t_split: 27,
        ..LodgeOptions::default()
    };
    let store = open(&device, lodge);
    // 27 keys in one leaf.
    for round in 0..20u64 {
        for key in 0..27u64 {
            let value = (round * 100 + key).to_be_bytes();
            store.put(&key.to_be_bytes(), &value).unwrap();
        }
        store.checkpoint().unwrap();
    }
    let stats = store.stats();
    assert_eq!(stats.leaf_pages, 1);
    assert!(stats.pm.unwrap().lodge.unwrap().clears > 5, "{stats:?}");
    let expected = (0..27u64).map(|key| {
        (
            key.to_be_bytes().to_vec(),
            (1_900 + key).to_be_bytes().to_vec(),
        )
    });
    assert_eq!(contents(&store), expected.collect::<Map>());
}

/// LT-18: the cost of one operation is bounded, however many records are buffered.
#[test]
fn a_put_costs_a_log_entry_and_at_most_one_bounded_flush_or_split() {
    let device = Arc::new(MemPm::new(4 << 20));
    let store = open(&device, LodgeOptions::default());
    let mut before = store.stats();
    let mut most = (0, 0);
    let mut seen = [0u32; 3];
    for i in 0..20_000u64 {
        let key = (i % 12_000)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_be_bytes();
        store.put(&key, &i.to_be_bytes()).unwrap();
        let after = store.stats();
        let own = |stats: &treering_engine::Stats| stats.pm.unwrap().lodge.unwrap();
        let flushes = own(&after).flushes - own(&before).flushes;
        let visits = after.pm.unwrap().leaf_flushes() - before.pm.unwrap().leaf_flushes();
        let splits = after.splits - before.splits;
        let clears = own(&after).clears - own(&before).clears;
        // One for the entry, two per merge, three per split (counted as a visit to the new leaf if
        // it received records), and sometimes one for a word of the directory.
        let fences = after.flushes - before.flushes;
        let merges = visits - splits;
        let least = 1 + 2 * merges + clears;
        assert!(
            (least..=least + 5 * splits + 2).contains(&fences),
            "{i}: {fences} fences"
        );
        if (after.written.extra, splits) == (before.written.extra, 0) {
            assert_eq!(fences, least, "{i}");
        }
        let lines = (after.written.page - before.written.page) / 64;
        most = (most.0.max(lines), most.1.max(flushes));
        seen[flushes.min(2) as usize] += 1;
        before = after;
    }
    // A flush is bounded. An operation is almost bounded: a split for a single pair uses the slot
    // that it frees, so that the next flush follows at once.
    assert!(seen[2] * 50 < 20_000 && most.1 <= 8, "{most:?}, {seen:?}");
    // All lines of `t_node` leaves; or those of a new leaf, the words that link it and switch to
    // it, and the slots and header of the old leaf.
    assert!(most.0 <= most.1 * 16, "{most:?}");
    assert!(seen[0] > seen[1] && seen[1] > seen[2], "{seen:?}");
}

#[test]
fn a_full_lodge_refuses_puts_keeps_its_data_and_reopens() {
    for lodge in trees() {
        let device = Arc::new(MemPm::new(96 << 10));
        let mut store = open(&device, lodge);
        let mut map = fill(&store);
        assert!(map.len() > 200, "{lodge:?}: {} records fit", map.len());
        for round in 0..2 {
            assert_same(&store, &map, &format!("{lodge:?}, full, round {round}"));
            drop(store);
            store = open(&device, lodge);
        }
        assert_same(&store, &map, &format!("{lodge:?}, opened again"));
        empty(&store, &mut map);
        // Its leaves stay, so there is room for keys similar to the previous ones.
        for i in 0..100u64 {
            let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            let done = store.put(&key, &[1; 8]);
            done.unwrap_or_else(|e| panic!("{lodge:?}: {e} at {i}: {:?}", store.stats()));
        }
    }
}

#[test]
fn stores_reopen_with_fewer_slots_per_node() {
    let device = Arc::new(MemPm::new(1 << 20));
    let store = open(&device, LodgeOptions::default());
    let mut map = Map::new();
    let mut rng = StdRng::seed_from_u64(4);
    for i in 0..3_000u64 {
        let (k, v) = (
            rng.random::<u64>().to_be_bytes().to_vec(),
            vec![i as u8; 8 + (i % 3) as usize * 9],
        );
        store.put(&k, &v).unwrap();
        map.insert(k, v);
    }
    assert!(store.stats().pm.unwrap().buffered > 20);
    drop(store);
    for lodge in trees().into_iter().rev().chain(trees()) {
        let store = open(&device, lodge);
        assert_same(&store, &map, &format!("{lodge:?}"));
        for i in 0..300u64 {
            let (k, v) = (
                rng.random::<u64>().to_be_bytes().to_vec(),
                vec![i as u8; 8 + (i % 3) as usize * 9],
            );
            store.put(&k, &v).unwrap();
            map.insert(k, v);
        }
        assert_same(&store, &map, &format!("{lodge:?}, and more"));
    }
}

#[test]
fn bad_options_and_stores_of_other_trees_are_refused_by_name() {
    let device: Arc<dyn PmDevice> = Arc::new(MemPm::new(1 << 20));
    let refused = |options: PmOptions, name: &str| {
        let error = PmStore::open(Arc::clone(&device), &options).err().unwrap();
        assert!(error.to_string().contains(name), "{error}");
    };
    let lodge = LodgeOptions::default();
    for slots in [3, 30] {
        refused(options(LodgeOptions { slots, ..lodge }), "slots");
    }
    refused(options(LodgeOptions { t_node: 0, ..lodge }), "t-node");
    for t_split in [1, 28] {
        refused(options(LodgeOptions { t_split, ..lodge }), "t-split");
    }
    refused(
        options(LodgeOptions {
            burst_factor: 0,
            ..lodge
        }),
        "burst-factor",
    );
    refused(
        options(LodgeOptions {
            log_entries: 1,
            ..lodge
        }),
        "log-entries",
    );
    refused(
        options(LodgeOptions {
            log_percent: 0,
            ..lodge
        }),
        "log-share",
    );
    refused(options(LodgeOptions { logs: 0, ..lodge }), "logs");
    refused(
        PmOptions {
            chunk_bytes: 2304,
            ..options(lodge)
        },
        "chunk",
    );
    drop(PmStore::open(Arc::clone(&device), &options(lodge)).unwrap());
    refused(
        PmOptions {
            tree: PmTreeKind::Ccl(CclOptions::default()),
            ..options(lodge)
        },
        "leaves of 512 bytes",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn few_keys_in_any_order_agree_with_a_map(
        tree in 0usize..5,
        steps in pm::few_steps(),
    ) {
        pm::few_keys(&options(trees()[tree]), steps)?;
    }
}
