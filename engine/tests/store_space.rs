//! Tests space: files are no longer than their contents require, maps are no larger than what is in
//! use, and a full file system refuses writes only.

mod support;
mod thin;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use support::{BMINUS, EACH_FLUSH, IN_PLACE, LAZY, Pages, STORES, TREES, contents, tiny};
use thin::Thin;
use treering_engine::device::{
    BlockDevice, FileAccess, FileDevice, FileDiscards, FileOptions, FileSpace, MemDevice,
};
use treering_engine::{
    Durability, Error, Kv, Lsn, Options, Store, SystemClock, TreeKind, required_blocks, verify,
};

fn open<D: BlockDevice + 'static>(device: &Arc<D>, options: &Options) -> Result<Store, Error> {
    Store::open(device.clone(), Arc::new(SystemClock::new()), options)
}

/// Returns keys in no order, each once.
fn key(i: u32) -> [u8; 4] {
    i.wrapping_mul(2_654_435_761).to_be_bytes()
}

fn value(i: u32, len: usize) -> Vec<u8> {
    [&i.to_be_bytes()[..], &vec![b'v'; len - 4]].concat()
}

fn put_one(store: &Store, i: u32, len: usize) {
    store.put(&key(i), &value(i, len)).unwrap();
}

/// Reads every key below `end` and its value, and reports missing keys.
fn check_all(store: &Store, end: u32, len: usize, story: &str) {
    let mut found = Vec::new();
    for i in 0..end {
        let there = store.get(&key(i), &mut found);
        let there = there.unwrap_or_else(|e| panic!("{story}: key {i}: {e}"));
        assert!(there && found == value(i, len), "{story}: key {i}");
    }
}

fn medium(store: Pages) -> Options {
    Options {
        cache_bytes: 64 * 4096,
        log_bytes: 1 << 20,
        checkpoint_log_bytes: 1 << 19,
        log_buffer_bytes: 1 << 15,
        ..tiny(TreeKind::BTree, store)
    }
}

/// Returns `allocated` at four moments: empty, loaded, overwritten twice, everything deleted.
fn through_its_life(path: &Path, options: &Options, choices: &FileOptions) -> [u64; 4] {
    const KEYS: u32 = 3_000;
    let blocks = required_blocks(options, 20_000);
    let device = Arc::new(FileDevice::create_with(path, blocks, choices).unwrap());
    let allocated = || device.allocated_bytes().unwrap();
    let store = open(&device, options).unwrap();
    let empty = allocated();
    let load = |generation: usize| {
        (0..KEYS).for_each(|i| put_one(&store, i, 200 + generation));
        store.checkpoint().unwrap();
    };
    load(0);
    let loaded = allocated();
    (1..3).for_each(load);
    let overwritten = allocated();
    for i in 0..KEYS {
        store.delete(&key(i)).unwrap();
    }
    store.checkpoint().unwrap();
    let deleted = allocated();
    assert_eq!(contents(&store).len(), 0);
    store.close().unwrap();
    [empty, loaded, overwritten, deleted]
}

#[test]
fn files_shrink_and_grow_with_their_stores() {
    let dir = tempfile::tempdir().unwrap();
    for (number, pages) in STORES.into_iter().enumerate() {
        let options = medium(pages);
        let path = dir.path().join(format!("{number}"));
        let life = through_its_life(&path, &options, &FileOptions::default());
        let [empty, loaded, overwritten, deleted] = life;
        let story = format!("{pages:?}: {life:?} bytes");
        // Both include the log region and the journal: once written through, they stay allocated.
        let fixed = options.log_bytes + 2 * options.write_batch_pages as u64 * 4096;
        assert!(deleted * 10 <= (empty + fixed) * 11, "{story}");
        // 0.65 MB of data in leaves that are two thirds full, with two images of some leaves and
        // log blocks of others.
        assert!(loaded < fixed + (3 << 20), "{story}");
        assert!(overwritten < fixed + (7 << 19), "{story}");
    }
}

#[test]
fn without_discards_files_do_not_shrink() {
    let dir = tempfile::tempdir().unwrap();
    let choices = FileOptions {
        discards: FileDiscards::Ignore,
        ..FileOptions::default()
    };
    let [_, _, overwritten, deleted] =
        through_its_life(&dir.path().join("store"), &medium(LAZY), &choices);
    assert!(deleted >= overwritten, "{deleted} of {overwritten} bytes");
}

#[test]
fn reserved_space_is_allocated_from_the_start_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let choices = FileOptions {
        space: FileSpace::Reserved,
        ..FileOptions::default()
    };
    let path = dir.path().join("store");
    let life = through_its_life(&path, &medium(LAZY), &choices);
    let len = std::fs::metadata(&path).unwrap().len();
    assert!(life.iter().all(|bytes| *bytes >= len), "{life:?} of {len}");
    let device = Arc::new(FileDevice::open(&path).unwrap());
    open(&device, &medium(LAZY)).unwrap().close().unwrap();
    assert!(device.allocated_bytes().unwrap() >= len, "reopened");
}

#[test]
fn opening_an_untouched_terabyte_reads_and_allocates_little() {
    let dir = tempfile::tempdir().unwrap();
    for pages in STORES {
        let options = Options {
            cache_bytes: 1 << 20,
            ..medium(pages)
        };
        let path = dir.path().join("store");
        let device = Arc::new(FileDevice::create(&path, 1 << 28).unwrap());
        open(&device, &options).unwrap().close().unwrap();
        drop(device);
        let device = Arc::new(FileDevice::open(&path).unwrap());
        let store = open(&device, &options).unwrap();
        let stats = store.stats();
        assert!(stats.read.total() < 2 << 20, "{pages:?}: {stats:?}");
        assert!(stats.memory.map_bytes < 2 << 20, "{pages:?}: {stats:?}");
        store.close().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn pages_allocated_before_and_after_the_last_checkpoint_are_found() {
    for pages in [EACH_FLUSH, LAZY] {
        let options = Options {
            log_bytes: 16 << 20,
            checkpoint_log_bytes: 12 << 20,
            ..medium(pages)
        };
        let device = Arc::new(MemDevice::new(required_blocks(&options, 6_000)));
        let store = open(&device, &options).unwrap();
        let put = |store: &Store, i: u32| put_one(store, i, 900);
        // More than two blocks of the table, then as much again that only the log has, and no
        // close.
        (0..4_500).for_each(|i| put(&store, i));
        store.checkpoint().unwrap();
        assert!(store.stats().leaf_pages > 1_100, "{:?}", store.stats());
        (4_500..9_000).for_each(|i| put(&store, i));
        store.sync(Lsn(u64::MAX)).unwrap();
        drop(store);
        let store = open(&device, &options).unwrap();
        check_all(&store, 9_000, 900, &format!("{pages:?}, killed"));
        store.close().unwrap();
        let store = open(&device, &options).unwrap();
        check_all(&store, 9_000, 900, &format!("{pages:?}, closed"));
    }
}

/// Puts until a put is refused, syncing now and then. Returns how many were put, and how many of
/// them were acknowledged.
fn fill(store: &Store) -> (u32, u32) {
    let (mut put, mut acknowledged) = (0, 0);
    let refused = loop {
        match store.put(&key(put), &value(put, 300)) {
            Err(e) => break e,
            Ok(_) => put += 1,
        }
        if put % 50 == 0 {
            match store.sync(Lsn(u64::MAX)) {
                Err(e) => break e,
                Ok(()) => acknowledged = put,
            }
        }
    };
    assert!(refused.is_no_space(), "{refused:?}");
    (put, acknowledged)
}

#[test]
fn a_full_file_system_refuses_only_writes() {
    for (tree, pages) in support::all() {
        // Limits at which the refused write is that of a page, of a checkpoint, or of the log.
        for limit in [150, 151, 152, 155, 160, 170, 190] {
            let options = tiny(tree, pages);
            let story = format!("{tree:?} on {pages:?}, {limit} blocks");
            let device = Arc::new(Thin::new(required_blocks(&options, 600), limit));
            let store = open(&device, &options).unwrap();
            let (put, acknowledged) = fill(&store);
            assert!(acknowledged > 0, "{story}");
            check_all(&store, put, 300, &story);
            // Blocks trimmed in the meantime may suffice.
            for _ in 0..3 {
                if let Err(refused) = store.put(b"x", b"y") {
                    assert!(refused.is_no_space(), "{story}: {refused:?}");
                }
            }
            check_all(&store, put, 300, &story);
            // Now there is room again.
            device.set_limit(usize::MAX);
            store
                .put(b"x", b"y")
                .unwrap_or_else(|e| panic!("{story}: {e}"));
            (put..put + 200).for_each(|i| put_one(&store, i, 300));
            store.sync(Lsn(u64::MAX)).unwrap();
            check_all(&store, put + 200, 300, &story);
            store.close().unwrap();
            let report = verify(device.clone()).unwrap();
            assert_eq!(report.damage, Vec::<String>::new(), "{story}");
            let store = open(&device, &options).unwrap();
            check_all(&store, put + 200, 300, &story);
        }
    }
}

#[test]
fn a_store_killed_on_a_full_file_system_is_readable_and_opens_once_there_is_room() {
    for (tree, pages) in support::all() {
        for limit in [150, 153, 165, 190] {
            let options = tiny(tree, pages);
            let story = format!("{tree:?} on {pages:?}, {limit} blocks");
            let device = Arc::new(Thin::new(required_blocks(&options, 600), limit));
            let store = open(&device, &options).unwrap();
            let (_, acknowledged) = fill(&store);
            drop(store);
            let reading = Options {
                read_only: true,
                ..options.clone()
            };
            let writes = device.writes();
            let store = open(&device, &reading).unwrap_or_else(|e| panic!("{story}: {e}"));
            check_all(&store, acknowledged, 300, &story);
            assert!(matches!(store.put(b"x", b"y"), Err(Error::ReadOnly)));
            assert!(matches!(store.delete(b"x"), Err(Error::ReadOnly)));
            store.close().unwrap();
            assert_eq!(
                device.writes(),
                writes,
                "{story}: opening read-only must not write"
            );
            // If recovery needs no new block, the store opens; otherwise it reports the lack of
            // space.
            match open(&device, &options) {
                Ok(store) => check_all(&store, acknowledged, 300, &story),
                Err(e) => assert!(e.is_no_space(), "{story}: {e:?}"),
            }
            device.set_limit(usize::MAX);
            let store = open(&device, &options).unwrap_or_else(|e| panic!("{story}: {e}"));
            check_all(&store, acknowledged, 300, &story);
            store.put(b"x", b"y").unwrap();
            store.close().unwrap();
        }
    }
}

#[test]
fn background_work_waits_for_space_and_resumes() {
    let options = tiny(TreeKind::BTree, LAZY);
    let device = Arc::new(Thin::new(required_blocks(&options, 600), 160));
    let store = open(&device, &options).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pump = scope.spawn(|| store.pump_until(&stop));
        let (put, _) = fill(&store);
        std::thread::sleep(Duration::from_millis(50));
        assert!(!pump.is_finished(), "the pump must keep waiting");
        device.set_limit(usize::MAX);
        (put..put + 500).for_each(|i| put_one(&store, i, 300));
        stop.store(true, std::sync::atomic::Ordering::Release);
        pump.join().expect("no panic").unwrap();
    });
}

/// A small file system for the test, unmounted at the end. `None` if mounting is not permitted.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(mebibytes: u32) -> Option<Mounted> {
        let dir = tempfile::tempdir().ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"]);
        let mounted = mount.arg(dir.path()).status().ok()?.success();
        mounted.then_some(Mounted(dir))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn acknowledged_data_survives_on_a_real_file_system_that_fills_up() {
    for pages in [IN_PLACE, LAZY, BMINUS] {
        let Some(mounted) = Mounted::new(8) else {
            eprintln!("SKIPPED: mounting a tmpfs is not permitted here");
            return;
        };
        let ballast = mounted.0.path().join("ballast");
        std::fs::write(&ballast, vec![1; 4 << 20]).unwrap();
        let options = tiny(TreeKind::BTree, pages);
        let path = mounted.0.path().join("store");
        let story = format!("{pages:?}");
        let device = FileDevice::create(&path, required_blocks(&options, 20_000)).unwrap();
        let device = Arc::new(device);
        let store = open(&device, &options).unwrap();
        let (put, acknowledged) = fill(&store);
        check_all(&store, put, 300, &story);
        drop(store);
        drop(device);
        let reading = Options {
            read_only: true,
            ..options.clone()
        };
        let choices = FileOptions {
            access: FileAccess::ReadOnly,
            ..FileOptions::default()
        };
        let device = Arc::new(FileDevice::open_with(&path, &choices).unwrap());
        let store = open(&device, &reading).unwrap();
        check_all(&store, acknowledged, 300, &story);
        drop(store);
        drop(device);
        std::fs::remove_file(&ballast).unwrap();
        let device = Arc::new(FileDevice::open(&path).unwrap());
        let store = open(&device, &options).unwrap();
        check_all(&store, acknowledged, 300, &story);
        (put..put + 500).for_each(|i| put_one(&store, i, 300));
        store.close().unwrap();
    }
}

#[test]
fn a_device_has_at_most_one_writing_store() {
    for tree in TREES {
        let options = Options {
            durability: Durability::PerCommit,
            ..tiny(tree, IN_PLACE)
        };
        let device = Arc::new(MemDevice::new(required_blocks(&options, 200)));
        let first = open(&device, &options).unwrap();
        first.put(b"a", b"1").unwrap();
        let reading = Options {
            read_only: true,
            ..options.clone()
        };
        for refused in [open(&device, &options), open(&device, &reading)] {
            assert!(matches!(refused.err(), Some(Error::InUse)));
        }
        drop(first);
        // There may be many readers, but then no writer.
        let readers = [(); 2].map(|()| open(&device, &reading).unwrap());
        assert!(matches!(open(&device, &options).err(), Some(Error::InUse)));
        readers.iter().for_each(|store| {
            let mut found = Vec::new();
            assert!(store.get(b"a", &mut found).unwrap() && found == b"1");
        });
        drop(readers);
        open(&device, &options).unwrap().close().unwrap();
        // A failed opening releases the device.
        let other = Options {
            page_size: 8192,
            ..options.clone()
        };
        assert!(open(&device, &other).is_err());
        open(&device, &options).unwrap();
    }
}
