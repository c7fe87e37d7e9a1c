//! Tests that a store in persistent memory behaves like an ordered map, for every tree, option and
//! kind of key, also after it is reopened, possibly as another tree.
//!
//! Chunks have few leaves, so that a few thousand operations use, clean and reuse dozens of chunks.

use std::sync::Arc;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use treering_engine::device::{MemPm, PmDevice, PmImage};
use treering_engine::{
    CclOptions, Cleaning, Error, GlobalOptions, Kv, Logging, MAX_VALUE_BYTES, PmOptions, PmStore,
    PmTreeKind,
};

#[path = "support/pm.rs"]
mod pm;

use pm::{Map, assert_same, contents, empty, fill, key, open, operate, pump_all, value};

fn ccl(batch: usize, logging: Logging, cleaning: Cleaning) -> PmTreeKind {
    PmTreeKind::Ccl(CclOptions {
        batch,
        logging,
        cleaning,
        ..CclOptions::default()
    })
}

const GLOBAL: PmTreeKind = PmTreeKind::Global(GlobalOptions {
    buffer_percent: 10,
    logs: 2,
});

/// The baselines, every N_batch, and every switch.
fn trees() -> Vec<PmTreeKind> {
    let batches = (1..=6).map(|n| ccl(n, Logging::WriteConservative, Cleaning::LocalityAware));
    let switches = [
        PmTreeKind::PmTree,
        GLOBAL,
        ccl(2, Logging::EveryWrite, Cleaning::LocalityAware),
        ccl(3, Logging::WriteConservative, Cleaning::Naive),
        ccl(2, Logging::EveryWrite, Cleaning::Naive),
    ];
    switches.into_iter().chain(batches).collect()
}

fn options(tree: PmTreeKind) -> PmOptions {
    PmOptions {
        tree,
        chunk_bytes: 2048,
        ..PmOptions::default()
    }
}

/// Runs a random program on a store that is opened as each of `kinds` in turn.
fn run_program(kinds: &[PmTreeKind], seed: u64, operations: usize, reopen_every: usize) {
    let device = Arc::new(MemPm::new(1 << 20));
    let mut rng = StdRng::seed_from_u64(seed);
    let mut store = open(&device, &options(kinds[0]));
    let mut map = Map::new();
    for i in 0..operations {
        let story = format!("{:?}, seed {seed}, step {i}", store.options().tree);
        let k = key(&mut rng);
        let growing = (i / 700) % 2 == 0;
        operate((&store, &mut map), &mut rng, k, value, growing, &story);
        if i % 3 == 0 {
            pump_all(&store);
        }
        if i % reopen_every == reopen_every - 1 {
            assert_same(&store, &map, &story);
            match i / reopen_every % 3 {
                0 => drop(store),
                1 => store.close().expect("closes"),
                _ => {
                    drop(store);
                    drop(open(&device, &options(kinds[0])));
                }
            }
            store = open(
                &device,
                &options(kinds[(i / reopen_every + 1) % kinds.len()]),
            );
            assert_same(&store, &map, &format!("{story}, opened again"));
        }
    }
}

#[test]
fn every_tree_agrees_with_an_ordered_map() {
    for tree in trees() {
        for seed in 0..3 {
            run_program(&[tree], seed, 4_000, 900);
        }
    }
}

#[test]
fn a_store_reopened_as_another_tree_keeps_its_contents() {
    for seed in 0..4 {
        run_program(&trees(), seed, 8_000, 350);
    }
}

#[test]
fn programs_cause_structure_changes_flushes_and_cleanings() {
    for tree in trees() {
        let device = Arc::new(MemPm::new(1 << 20));
        let store = open(&device, &options(tree));
        let mut map = Map::new();
        for i in 0..3_000u64 {
            let key = (i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes();
            store.put(&key, &i.to_be_bytes()).unwrap();
            map.insert(key.to_vec(), i.to_be_bytes().to_vec());
            pump_all(&store);
        }
        assert_same(&store, &map, &format!("{tree:?} grown"));
        let grown = store.stats();
        let keys: Vec<_> = map.keys().cloned().collect();
        for key in &keys {
            store.delete(key).unwrap();
            map.remove(key);
            pump_all(&store);
        }
        assert_same(&store, &map, &format!("{tree:?} emptied"));
        store.checkpoint().unwrap();
        let stats = store.stats();
        let pm = stats.pm.unwrap();
        assert!(grown.splits > 200, "{tree:?}: {grown:?}");
        assert!(stats.merges > 100, "{tree:?}: {stats:?}");
        assert!(
            stats.leaf_pages < grown.leaf_pages / 4,
            "{tree:?}: {stats:?}"
        );
        assert!(pm.leaf_flushes() > 900, "{tree:?}: {pm:?}");
        let ccl = match tree {
            PmTreeKind::Ccl(ccl) => ccl,
            PmTreeKind::PmTree => {
                assert_eq!((pm.log_appends, pm.buffered), (0, 0));
                continue;
            }
            PmTreeKind::Global(_) => {
                assert_eq!((pm.log_appends, pm.buffered, pm.log_bytes), (6_000, 0, 0));
                assert!(pm.cleanings > 10, "{pm:?}");
                continue;
            }
            _ => unreachable!("`trees` has no other"),
        };
        assert!(pm.cleanings > 5, "{tree:?}: {pm:?}");
        assert!(pm.trigger_writes > 500, "{tree:?}: {pm:?}");
        assert_eq!((pm.buffered, pm.log_bytes), (0, 0), "{tree:?}: {pm:?}");
        assert!(pm.flushes[ccl.batch + 1] > 400, "{tree:?}: {pm:?}");
        match ccl.cleaning {
            Cleaning::Naive => {
                assert!(pm.cleaning_copies == 0 && pm.cleaning_flushes > 0, "{pm:?}");
            }
            Cleaning::LocalityAware => {
                // Despite the last checkpoint.
                assert!(pm.cleaning_copies > 1_000, "{tree:?}: {pm:?}");
            }
        }
    }
}

#[test]
fn a_full_store_refuses_puts_keeps_its_data_and_reopens() {
    for tree in trees() {
        let device = Arc::new(MemPm::new(96 << 10));
        let mut store = open(&device, &options(tree));
        let mut map = fill(&store);
        assert!(map.len() > 1_000, "{tree:?}: {} records fit", map.len());
        for round in 0..2 {
            assert_same(&store, &map, &format!("{tree:?}, full, round {round}"));
            drop(store);
            store = open(&device, &options(tree));
        }
        assert_same(&store, &map, &format!("{tree:?}, opened again"));
        if let PmTreeKind::Global(_) = tree {
            // Its deletes wait in the buffer, whose merge waits for a free leaf.
            continue;
        }
        empty(&store, &mut map);
        for i in 0..500u64 {
            let done = store.put(&i.to_be_bytes(), &[1; 8]);
            done.unwrap_or_else(|e| panic!("{tree:?}: {e} at {i}: {:?}", store.stats()));
        }
    }
}

/// Returns the leaves and their offsets, from the first one on. In `engine/src/pm/leaf.rs`, the
/// upper bits of the header refer to the next leaf.
fn leaves_of(image: &[u8], first: usize) -> Vec<usize> {
    let word = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().unwrap());
    let next = |at: &usize| Some((word(*at) >> 28) as usize * 256).filter(|next| *next != 0);
    std::iter::successors(Some(first), next).collect()
}

/// In a full store, a leaf lacks a change that is in the log, but has newer ones. Recovery must put
/// the change back into the leaf's buffer without replacing the newer ones. A replay that is cut
/// off between two batches of a leaf may cause this; here the test changes the leaf's header
/// instead.
#[test]
fn recovery_does_not_rebuffer_newer_changes_of_a_full_leaf() {
    const BYTES: usize = 96 << 10;
    let tree = ccl(6, Logging::EveryWrite, Cleaning::LocalityAware);
    let device = Arc::new(MemPm::new(BYTES as u64));
    let map = fill(&open(&device, &options(tree)));
    let image = device.crash(&mut |n| n - 1).to_vec();
    // The superblock, a directory entry for each chunk, then the first leaf.
    let chunks = (BYTES - 512) / (2048 + 8);
    let leaves = leaves_of(&image, (256 + 8 * chunks).next_multiple_of(256));
    let mut opened = 0;
    for (leaf, slot) in leaves
        .iter()
        .step_by(6)
        .flat_map(|leaf| (0..14).map(|slot| (*leaf, slot)))
    {
        let mut image = image.clone();
        let mut change = |at: usize, to: &dyn Fn(u64) -> u64| {
            let word = u64::from_le_bytes(image[at..at + 8].try_into().unwrap());
            image[at..at + 8].copy_from_slice(&to(word).to_le_bytes());
        };
        change(leaf, &|header| header & !(1 << slot | 1 << (slot + 14)));
        change(leaf + 8, &|timestamp| timestamp.saturating_sub(400));
        let device = Arc::new(MemPm::from_image(PmImage::from(image)));
        let shared: Arc<dyn PmDevice> = device.clone();
        let store = match PmStore::open(shared, &options(tree)) {
            Ok(store) => store,
            // More than a buffer holds.
            Err(Error::PmFull { .. }) => continue,
            Err(e) => panic!("slot {slot} of the leaf at {leaf}: {e}"),
        };
        if store.recovery().restored == 0 || contents(&store) != map {
            // That change is no longer in the log.
            continue;
        }
        opened += 1;
        let mut map = map.clone();
        let keys: Vec<_> = map.keys().cloned().collect();
        for round in 0..2 {
            for key in &keys {
                let value = vec![key[1].wrapping_add(round); 40];
                if store.put(key, &value).is_ok() {
                    map.insert(key.clone(), value);
                }
            }
        }
        let story = format!("slot {slot} of the leaf at {leaf}");
        assert_same(&store, &map, &story);
        drop(store);
        assert_same(&open(&device, &options(tree)), &map, &story);
    }
    assert!(opened > 10, "{opened}");
}

/// Regression: the log had taken every chunk, although nearly all of its entries were in leaves or
/// overwritten, and a leaf that had to be split was refused.
#[test]
fn a_log_that_has_taken_every_chunk_frees_chunks_for_leaves() {
    for tree in trees()
        .into_iter()
        .filter(|tree| *tree != PmTreeKind::PmTree)
    {
        // Of 31 chunks, one is for leaves, one is reserved for cleaning the log, and one is for
        // records of deletes.
        let device = Arc::new(MemPm::new(64 << 10));
        let store = open(&device, &options(tree));
        let mut map = Map::new();
        let mut put = |i: u64, version: u64| {
            let (key, value) = (i.to_be_bytes().to_vec(), version.to_be_bytes().to_vec());
            let done = store.put(&key, &value);
            done.unwrap_or_else(|e| panic!("{tree:?}, {i}: {e}"));
            map.insert(key, value);
        };
        let mut version = 0;
        while store.stats().pm.unwrap().log_chunk_bytes < 28 * 2048 {
            put(0, version);
            version += 1;
        }
        let cleanings = || store.stats().pm.unwrap().cleanings;
        assert_eq!((cleanings(), version), (0, 27 * 85 + 1), "{tree:?}");
        for i in 0..400 {
            put(i, version);
        }
        assert!(cleanings() > 0, "{tree:?}");
        assert_same(&store, &map, &format!("{tree:?}"));
        drop(store);
        assert_same(&open(&device, &options(tree)), &map, "opened again");
    }
}

/// Returns the bytes of the chunk in which the log began last.
fn newest_log_chunk(device: &MemPm) -> Vec<u8> {
    let bytes = device.crash(&mut |n| n - 1).to_vec();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (chunk_bytes, chunks) = (word(24) as usize, word(32) as usize);
    let start = (256 + 8 * chunks).next_multiple_of(256);
    // Of two chunks of one kind, the later one has the larger word.
    let newest = (0..chunks)
        .filter(|chunk| word(256 + 8 * chunk) >> 61 == 3)
        .max_by_key(|chunk| word(256 + 8 * chunk))
        .expect("there is a log");
    bytes[start + newest * chunk_bytes..][..chunk_bytes].to_vec()
}

/// Regression: a log took a chunk that had held records, and reading continued in them after its
/// last entry. Words that happened to match passed for entries with keys that nobody had put, or
/// for damage. Here a record contains entries of another store's log with later times, so that all
/// of them match.
#[test]
fn old_records_are_not_read_as_log_entries_in_a_reused_chunk() {
    for tree in [PmTreeKind::Ccl(CclOptions::default()), GLOBAL] {
        let other = Arc::new(MemPm::new(1 << 20));
        let store = open(&other, &options(tree));
        for i in 0..4_000u64 {
            store.put(&i.to_be_bytes(), b"phantoms").unwrap();
        }
        let entries = newest_log_chunk(&other);
        let device = Arc::new(MemPm::new(1 << 20));
        let store = open(&device, &options(tree));
        let key = 7u64.to_be_bytes();
        // A record begins with eight bytes of its own.
        store.put(&key, &entries[8..]).unwrap();
        store.delete(&key).unwrap();
        store.close().unwrap();
        let store = open(&device, &options(tree));
        store.put(&key, b"by a log").unwrap();
        assert_eq!(store.stats().pm.unwrap().log_appends, 1);
        drop(store);
        let map = Map::from([(key.to_vec(), b"by a log".to_vec())]);
        let store = open(&device, &options(tree));
        let report = store.recovery();
        assert_eq!((report.log_chunks, report.log_entries), (1, 1), "{tree:?}");
        assert_same(&store, &map, &format!("{tree:?}"));
    }
}

#[test]
fn bad_options_are_refused_by_name() {
    let device: Arc<dyn PmDevice> = Arc::new(MemPm::new(1 << 20));
    let refused = |options: PmOptions, name: &str| {
        let error = PmStore::open(Arc::clone(&device), &options).err().unwrap();
        assert!(error.to_string().contains(name), "{error}");
    };
    let default = PmOptions::default();
    for chunk_bytes in [0, 512, 1025, 16 << 20] {
        refused(
            PmOptions {
                chunk_bytes,
                ..default
            },
            "chunk",
        );
    }
    refused(
        PmOptions {
            recovery_threads: 0,
            ..default
        },
        "recovery-threads",
    );
    let with = |ccl| PmOptions {
        tree: PmTreeKind::Ccl(ccl),
        ..default
    };
    let ccl = CclOptions::default();
    refused(with(CclOptions { batch: 0, ..ccl }), "nbatch");
    refused(with(CclOptions { batch: 7, ..ccl }), "nbatch");
    refused(
        with(CclOptions {
            log_percent: 0,
            ..ccl
        }),
        "log-share",
    );
    refused(
        with(CclOptions {
            garbage_percent: 91,
            ..ccl
        }),
        "garbage-share",
    );
    refused(with(CclOptions { logs: 0, ..ccl }), "logs");
    refused(default, "device");
    let blank = PmOptions {
        create: false,
        chunk_bytes: 4096,
        ..default
    };
    let error = PmStore::open(Arc::clone(&device), &blank).err().unwrap();
    assert!(matches!(error, Error::NotAStore { .. }), "{error}");
}

#[test]
fn oversized_keys_and_values_are_refused_and_nothing_changes() {
    let device = Arc::new(MemPm::new(1 << 20));
    let store = open(&device, &options(PmTreeKind::Ccl(CclOptions::default())));
    let most = vec![9; 2048 - 8];
    let more = vec![9; 2048 - 7];
    assert!(matches!(
        store.put(&more, b""),
        Err(Error::PmTooLong { what: "key", .. })
    ));
    assert!(matches!(
        store.put(b"", &vec![9; MAX_VALUE_BYTES + 1]),
        Err(Error::PmTooLong { what: "value", .. })
    ));
    store.delete(&more).unwrap();
    assert_same(&store, &Map::new(), "after refusals");
    store.put(&most, &most).unwrap();
    assert_same(&store, &Map::from([(most.clone(), most)]), "at the limit");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn few_keys_in_any_order_agree_with_a_map(
        batch in 0usize..4,
        steps in pm::few_steps(),
    ) {
        let tree = match batch {
            0 => PmTreeKind::PmTree,
            n => ccl(n, Logging::WriteConservative, Cleaning::LocalityAware),
        };
        pm::few_keys(&options(tree), steps)?;
    }
}
