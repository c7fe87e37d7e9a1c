//! Tests a crash scenario that does not begin with a power cut:
//!
//! 1. A key is put and acknowledged: its record is durable.
//! 2. A checkpoint writes its page, and the following flush fails. The store stops, as it must. The
//!    device has lost the write, but still reads it from its cache.
//! 3. The process restarts without a power cut. Recovery reads a page that is newer than the
//!    record, so there is nothing to redo. Its own flush succeeds, because there is nothing to
//!    flush. Its checkpoint frees the log before it.
//! 4. Now the power fails. The page reverts to its old contents, and the record that could restore
//!    it is no longer read.
//!
//! So recovery must not trust what it reads. Here, every flush and every write of a small program
//! fails in turn, the store is reopened on the same device, and the power fails at some request
//! during or after that recovery, losing as many writes as possible.

mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use support::{
    BMINUS, EACH_FLUSH, IN_PLACE, IN_PLACE_LOGGED, LAZY, LAZY_LOGGED, Pages, SHADOW, TREES,
};
use treering_engine::device::{BlockDevice, CrashDevice, RequestKind};
use treering_engine::{Durability, IoClass, Kv, Options, Store, SystemClock, TreeKind, verify};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Copy, Debug)]
enum Failure {
    Flush(u64),
    Write(u64),
}

/// The version of each block that a power cut leaves.
#[derive(Clone, Copy, Debug)]
enum Keeps {
    Oldest,
    Newest,
    /// The first undecided block, a superblock if there is one, reverts to its oldest version. The
    /// others keep their newest.
    FirstOldest,
    Seeded(u64),
}

fn options(tree: TreeKind, store: Pages, page_size: usize) -> Options {
    let log_bytes = 64 * page_size as u64;
    Options {
        durability: Durability::PerCommit,
        log_bytes,
        checkpoint_log_bytes: log_bytes / 4,
        log_buffer_bytes: log_bytes / 16,
        write_batch_pages: 2,
        ..support::options(tree, store, page_size, 16, 4)
    }
}

fn new_device(page_size: usize) -> Arc<CrashDevice> {
    Arc::new(CrashDevice::new(400 * page_size as u64 / 4096))
}

/// Opens a store that ends like a killed process, unless it is closed.
fn open(device: &Arc<CrashDevice>, options: &Options) -> treering_engine::Result<Store> {
    let device: Arc<dyn BlockDevice> = device.clone();
    Store::open(device, Arc::new(SystemClock::new()), options).inspect(Store::abandon_on_drop)
}

fn lose_power(device: &CrashDevice, keeps: Keeps) -> Arc<CrashDevice> {
    let image = match keeps {
        Keeps::Oldest => device.crash(&mut |_| 0),
        Keeps::Newest => device.crash(&mut |n| n - 1),
        Keeps::FirstOldest => {
            let mut first = true;
            device.crash(&mut |n| if std::mem::take(&mut first) { 0 } else { n - 1 })
        }
        Keeps::Seeded(seed) => device.crash_seeded(seed),
    };
    Arc::new(CrashDevice::from_image(image))
}

fn contents(store: &Store) -> treering_engine::Result<Map> {
    let mut map = Map::new();
    store.scan(b"", &mut |k, v| {
        map.insert(k.to_vec(), v.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(map)
}

/// An acknowledged key, a checkpoint whose `n`-th flush fails, a restart, a power cut.
fn an_acknowledged_key_outlives(kind: Pages) {
    for (tree, n) in TREES.into_iter().flat_map(|t| (0..4).map(move |n| (t, n))) {
        for keeps in [Keeps::Oldest, Keeps::Newest] {
            let options = options(tree, kind, 4096);
            let device = new_device(4096);
            let store = open(&device, &options).expect("formats");
            store.put(b"key", b"value").expect("is acknowledged");
            device.fail_flush_in(n);
            let failed = store.checkpoint().is_err();
            drop(store);
            if !failed {
                continue;
            }
            let story = format!("{tree:?} on {kind:?}, flush {n} of a checkpoint failed");
            let store = open(&device, &options).unwrap_or_else(|e| panic!("{story}: {e}"));
            let mut value = Vec::new();
            assert!(store.get(b"key", &mut value).unwrap(), "{story}");
            drop(store);
            let device = lose_power(&device, keeps);
            let store = open(&device, &options)
                .unwrap_or_else(|e| panic!("{story}, the power cut left the {keeps:?}: {e}"));
            assert!(
                store.get(b"key", &mut value).unwrap() && value == b"value",
                "{story}, the power cut left the {keeps:?}: the key is lost"
            );
        }
    }
}

#[test]
fn acknowledged_keys_outlive_failed_flush_restart_and_power_cut_in_place() {
    an_acknowledged_key_outlives(IN_PLACE);
}

#[test]
fn acknowledged_keys_outlive_failed_flush_restart_and_power_cut_with_copy_on_write() {
    an_acknowledged_key_outlives(EACH_FLUSH);
}

#[test]
fn acknowledged_keys_outlive_failed_flush_restart_and_power_cut_with_a_lazy_table() {
    an_acknowledged_key_outlives(LAZY);
}

#[test]
fn acknowledged_keys_outlive_failed_flush_restart_and_power_cut_on_shadowed_pages() {
    [SHADOW, BMINUS]
        .into_iter()
        .for_each(an_acknowledged_key_outlives);
}

#[test]
fn acknowledged_keys_outlive_failed_flush_restart_and_power_cut_with_modification_logs() {
    [IN_PLACE_LOGGED, LAZY_LOGGED]
        .into_iter()
        .for_each(an_acknowledged_key_outlives);
}

/// Takes good checkpoints, then one whose `n`-th flush fails, and restarts with a power cut
/// anywhere in the restart. The last good checkpoint is taken while opening the store, so that its
/// snapshot occupies the place that the restart will use for its own.
#[test]
fn a_restart_after_a_failed_checkpoint_survives_a_power_cut_anywhere() {
    for (tree, kind) in support::all() {
        let mut reached = 0;
        for (n, cut) in (0..8).flat_map(|n| (0..90).map(move |cut| (n, cut))) {
            let options = options(tree, kind, 4096);
            let device = new_device(4096);
            let mut store = open(&device, &options).expect("formats");
            let mut expected = Map::new();
            for round in 0..3u8 {
                for i in 0..12u8 {
                    let (key, value) = (vec![round, i], vec![i; 400]);
                    store.put(&key, &value).expect("is acknowledged");
                    expected.insert(key, value);
                }
                if round < 2 {
                    store.checkpoint().expect("nothing fails yet");
                    drop(store);
                    store = open(&device, &options).expect("nothing fails yet");
                }
            }
            device.fail_flush_in(n);
            let failed = store.checkpoint().is_err();
            drop(store);
            device.cut_power_in(cut);
            drop(open(&device, &options));
            if !failed || !device.power_is_cut() {
                continue;
            }
            reached += 1;
            let story =
                format!("{tree:?} on {kind:?}, flush {n} failed, cut after {cut} more requests");
            let device = lose_power(&device, Keeps::FirstOldest);
            let store = open(&device, &options).unwrap_or_else(|e| panic!("{story}: {e}"));
            assert!(contents(&store).unwrap() == expected, "{story}");
        }
        assert!(
            reached > 40,
            "{tree:?} on {kind:?}: only {reached} cuts met a restart"
        );
    }
}

/// Operation `i` of the program: growth, shrinking, then growth again, so that leaves split and
/// merge and their blocks are reused.
fn operate(store: &Store, i: u64, page_size: usize, map: &mut Map) -> treering_engine::Result<()> {
    let key = format!("{:03}", i * 7 % 30).into_bytes();
    if i % 60 < 30 {
        let mut value = i.to_be_bytes().to_vec();
        value.resize(page_size / 9, b'v');
        map.insert(key.clone(), value.clone());
        store.put(&key, &value)?;
    } else {
        map.remove(&key);
        store.delete(&key)?;
    }
    if i % 16 == 11 {
        store.checkpoint()?;
    }
    Ok(())
}

const PROGRAM: u64 = 100;

/// Runs the program until something fails. Returns the allowed contents, with and without the last
/// operation, or `None` if nothing failed.
fn run(
    device: &Arc<CrashDevice>,
    options: &Options,
    failure: Failure,
) -> Option<(Arc<CrashDevice>, [Map; 2])> {
    let store = open(device, options).expect("formats");
    match failure {
        Failure::Flush(n) => device.fail_flush_in(n),
        Failure::Write(n) => device.fail_write_in(n),
    }
    let mut before = Map::new();
    for i in 0..PROGRAM {
        let mut after = before.clone();
        if operate(&store, i, options.page_size, &mut after).is_err() {
            return Some((device.clone(), [before, after]));
        }
        before = after;
    }
    None
}

/// Runs the failure, then a restart that a power cut interrupts after `cut` requests (more
/// operations follow if it is not reached), then recovery. Returns whether there was a failure.
fn fail_restart_and_lose_power(
    options: &Options,
    failure: Failure,
    cut: u64,
    keeps: Keeps,
) -> bool {
    let story = format!(
        "{:?} on {:?}, {} B pages, {failure:?} failed, power cut after {cut} more \
         requests left {keeps:?}",
        options.tree, options.store, options.page_size
    );
    let Some((device, mut allowed)) = run(&new_device(options.page_size), options, failure) else {
        return false;
    };
    device.cut_power_in(cut);
    match open(&device, options).and_then(|store| Ok((contents(&store)?, store))) {
        Ok((mut found, store)) => {
            assert!(allowed.contains(&found), "{story}: after the restart");
            for i in PROGRAM..PROGRAM + 12 {
                let mut after = found.clone();
                let done = operate(&store, i, options.page_size, &mut after);
                allowed = [found, after.clone()];
                if done.is_err() {
                    break;
                }
                found = after;
            }
        }
        Err(e) => assert!(device.power_is_cut(), "{story}: the restart: {e}"),
    }
    let device = lose_power(&device, keeps);
    let store = open(&device, options).unwrap_or_else(|e| panic!("{story}: {e}"));
    let found = contents(&store).unwrap_or_else(|e| panic!("{story}: {e}"));
    assert!(allowed.contains(&found), "{story}");
    let report = verify(device).expect("verifies");
    assert_eq!(report.damage, Vec::<String>::new(), "{story}");
    true
}

/// For both trees and two page sizes, tries one power cut per seed for each failure: half of them
/// during the restart or soon after it.
fn every_failure(kind: Pages) {
    for tree in TREES {
        for page_size in [4096, 8192] {
            every_failure_of(&options(tree, kind, page_size));
        }
    }
}

fn every_failure_of(options: &Options) {
    let seeds: u64 = std::env::var("TREERING_CRASH_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(2);
    let mut round = 0;
    for failure in [Failure::Flush as fn(u64) -> Failure, Failure::Write] {
        let mut n = 0;
        'next: loop {
            for seed in 0..seeds {
                round += 1;
                let keeps = [Keeps::Oldest, Keeps::Newest, Keeps::Seeded(round)];
                let cut = if seed % 2 == 0 {
                    round * 37 % 120
                } else {
                    100_000
                };
                let keeps = keeps[(round / 2 % 3) as usize];
                if !fail_restart_and_lose_power(options, failure(n), cut, keeps) {
                    break 'next;
                }
            }
            n += 1;
        }
    }
}

#[test]
fn in_place_survives_every_failure_a_restart_and_a_power_cut() {
    every_failure(IN_PLACE);
}

#[test]
fn copy_on_write_survives_every_failure_a_restart_and_a_power_cut() {
    every_failure(EACH_FLUSH);
}

#[test]
fn copy_on_write_with_a_lazy_table_survives_every_failure_a_restart_and_a_power_cut() {
    every_failure(LAZY);
}

#[test]
fn shadowed_pages_survive_every_failure_a_restart_and_a_power_cut() {
    [SHADOW, BMINUS].into_iter().for_each(every_failure);
}

#[test]
fn modification_logs_survive_every_failure_a_restart_and_a_power_cut() {
    [IN_PLACE_LOGGED, LAZY_LOGGED]
        .into_iter()
        .for_each(every_failure);
}

/// The content of the device is in doubt then, and what may be left of the failed write must be all
/// that the next opening has to reckon with.
#[test]
fn a_store_that_has_failed_writes_nothing_when_it_is_dropped() {
    let device = new_device(4096);
    let options = options(TreeKind::BTree, IN_PLACE, 4096);
    let store = Store::open(device.clone(), Arc::new(SystemClock::new()), &options).unwrap();
    store.put(b"key", b"value").unwrap();
    device.fail_in(RequestKind::WriteOf(IoClass::Page), 0);
    assert!(store.checkpoint().is_err());
    let writes = device.writes();
    drop(store);
    assert_eq!(device.writes(), writes, "a witness was written");
}
