//! Tests how a store's life ends: dropped, closed, abandoned, or ended with its process. Also tests
//! a durability interval without pumping.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use support::{all, contents, tiny};
use treering_engine::device::{
    BlockDevice, CrashDevice, DeviceError, FileDevice, MemDevice, MemPm, PmDevice, Request,
    RequestKind,
};
use treering_engine::{
    CclOptions, Clock, Durability, Error, GlobalOptions, Kv, Lba, LodgeOptions, Lsn, Nanos,
    Options, PmOptions, PmStore, PmTreeKind, Store, SystemClock, Task, required_blocks,
};

const ROWS: u32 = 1_000;

/// For a child process: what to do with the store, and where it is.
const ROLE: &str = "TREERING_LIFE_ROLE";
const PLACE: &str = "TREERING_LIFE_PLACE";

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn value(n: u32) -> Vec<u8> {
    format!("value {n}").into_bytes()
}

fn open(device: &Arc<impl BlockDevice + 'static>, options: &Options) -> Store {
    Store::open(device.clone(), Arc::new(SystemClock::new()), options).expect("opens")
}

/// The code that a user would write: only defaults, an ending, and no `sync`.
fn as_a_user_would(path: &Path, end: &str) {
    let options = Options::default();
    let blocks = required_blocks(&options, 10_000);
    let device = Arc::new(FileDevice::create(path, blocks).expect("creates"));
    let store = open(&device, &options);
    for n in 0..ROWS {
        store.put(&key(n), &value(n)).expect("puts");
    }
    store.delete(&key(7)).expect("deletes");
    match end {
        "drop" => drop(store),
        "leak" => std::process::exit(0),
        _ => store.close().expect("closes"),
    }
}

fn assert_all_rows(device: &Arc<impl BlockDevice + 'static>, options: &Options, story: &str) {
    let found = contents(&open(device, options));
    assert_eq!(
        found.len() as u32,
        ROWS - 1,
        "{story}: number of rows found"
    );
    for n in (0..ROWS).filter(|n| *n != 7) {
        assert_eq!(found.get(&key(n)[..]), Some(&value(n)), "{story}: row {n}");
    }
}

/// The child process of the test below. On its own it does nothing.
#[test]
fn child_process_that_uses_a_store() {
    if let (Ok(role), Ok(place)) = (std::env::var(ROLE), std::env::var(PLACE)) {
        as_a_user_would(&PathBuf::from(place), &role);
    }
}

/// 1,000 puts with default options. Then the store is dropped or closed, or its process ends.
#[test]
fn default_options_lose_nothing_however_the_store_ends() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    for end in ["drop", "leak", "close"] {
        let path = folder.path().join(end);
        let ran = Command::new(std::env::current_exe().expect("this program"))
            .args(["child_process_that_uses_a_store", "--exact", "--nocapture"])
            .env(ROLE, end)
            .env(PLACE, &path)
            .output()
            .expect("runs");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{end}: {}: {said}", ran.status);
        let device = Arc::new(FileDevice::open(&path).expect("opens"));
        assert_all_rows(&device, &Options::default(), end);
    }
}

fn fill(store: &Store) {
    for n in 0..ROWS {
        store.put(&key(n), &value(n)).expect("puts");
    }
    store.delete(&key(7)).expect("deletes");
}

/// Nothing is synced or pumped, and the log buffer has room for everything.
#[test]
fn dropping_a_store_saves_unsynced_writes_and_abandoning_it_does_not() {
    for (tree, pages) in all() {
        for durability in [Durability::Deferred, Durability::PER_MINUTE] {
            let options = Options {
                durability,
                log_bytes: 4 << 20,
                checkpoint_log_bytes: 2 << 20,
                log_buffer_bytes: 1 << 20,
                ..tiny(tree, pages)
            };
            let story = format!("{tree:?} on {pages:?}, {durability:?}");
            let device = Arc::new(CrashDevice::new(required_blocks(&options, 400)));
            let store = open(&device, &options);
            fill(&store);
            drop(store);
            // The log is not only written but flushed, so that the power may fail.
            let device = Arc::new(CrashDevice::from_image(device.crash(&mut |_| 0)));
            assert_all_rows(&device, &options, &story);

            let store = open(&device, &options);
            store.put(b"later", b"lost").expect("puts");
            store.abandon();
            assert_all_rows(&device, &options, &format!("{story}, abandoned"));
        }
    }
}

/// A failure during drop cannot be reported, and after a failure nothing is written: no panic, and
/// no acknowledged row is lost.
#[test]
fn dropping_a_failing_or_failed_store_does_not_panic() {
    for (tree, pages) in all() {
        for failed_before in [false, true] {
            let options = tiny(tree, pages);
            let device = Arc::new(CrashDevice::new(required_blocks(&options, 400)));
            let store = open(&device, &options);
            let lsn = store.put(b"synced", b"stays").expect("puts");
            store.sync(lsn).expect("syncs");
            let lsn = store.put(b"later", b"in doubt").expect("puts");
            device.fail_flush_in(0);
            if failed_before {
                store.sync(lsn).expect_err("the flush fails");
            }
            drop(store);
            let found = contents(&open(&device, &options));
            assert_eq!(found.get(&b"synced"[..]), Some(&b"stays".to_vec()));
        }
    }
}

/// After a failed request the device's content is in doubt. Nothing is sent to it any more, not even
/// a trim: neither by the call that failed nor by those after it.
#[test]
fn a_failed_store_sends_the_device_nothing_more() {
    let failed = |request: &Request| {
        matches!(
            request,
            Request::Write { failed: true, .. } | Request::Flush { failed: true }
        )
    };
    for (tree, pages) in all() {
        for kind in [RequestKind::Write, RequestKind::Flush] {
            let mut reached = 0;
            for n in (0..12).chain((12..).step_by(7)) {
                let options = tiny(tree, pages);
                let device = Arc::new(CrashDevice::new(required_blocks(&options, 400)));
                let store = open(&device, &options);
                device.record();
                device.fail_in(kind, n);
                for i in 0..240_u32 {
                    // Calls after the failure are refused.
                    let key = (i * 37 % 120).to_be_bytes();
                    let _ = match i % 5 {
                        0 => store.delete(&key),
                        _ => store.put(&key, &[1; 60]),
                    };
                    if i % 60 == 59 {
                        let _ = store.checkpoint();
                    }
                }
                drop(store);
                let sent = device.take_recording();
                let Some(at) = sent.iter().position(failed) else {
                    break;
                };
                let more = &sent[at + 1..];
                let story = format!("{tree:?} on {pages:?}, {kind:?} {n}");
                assert!(more.is_empty(), "{story}: {more:?}");
                reached += 1;
            }
            assert!(reached > 6, "{tree:?} on {pages:?}, {kind:?}: {reached}");
        }
    }
}

/// A clock that the test advances.
#[derive(Default)]
struct ByHand(AtomicU64);

impl Clock for ByHand {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::SeqCst))
    }
}

const INTERVAL: u64 = 1_000;

#[test]
fn writers_keep_the_durability_interval_without_pumping() {
    for (tree, pages) in all() {
        let options = Options {
            durability: Durability::Grouped(Nanos(INTERVAL)),
            ..tiny(tree, pages)
        };
        let device = Arc::new(CrashDevice::new(required_blocks(&options, 400)));
        let clock = Arc::new(ByHand::default());
        let store = Store::open(device.clone(), clock.clone(), &options).expect("opens");
        let survives = |key: &[u8]| {
            let image = Arc::new(CrashDevice::from_image(device.crash(&mut |_| 0)));
            contents(&open(&image, &options)).contains_key(key)
        };
        let story = format!("{tree:?} on {pages:?}");
        store.put(b"a", b"1").expect("puts");
        clock.0.store(INTERVAL - 1, Ordering::SeqCst);
        store.put(b"b", b"2").expect("puts");
        assert!(
            !survives(b"a"),
            "{story}: flushed before the interval ended"
        );
        clock.0.store(INTERVAL, Ordering::SeqCst);
        store.put(b"c", b"3").expect("puts");
        for key in [b"a", b"b", b"c"] {
            assert!(
                survives(key),
                "{story}: {key:?} must be durable after the interval"
            );
        }
        // A delete also keeps the interval, even for an absent key.
        store.put(b"d", b"4").expect("puts");
        clock.0.store(2 * INTERVAL, Ordering::SeqCst);
        store.delete(b"absent").expect("deletes");
        assert!(survives(b"d"), "{story}: the delete must flush");
        // Without writers, it takes a pump.
        store.put(b"e", b"5").expect("puts");
        assert_eq!(store.due(), None, "{story}");
        clock.0.store(3 * INTERVAL, Ordering::SeqCst);
        assert_eq!(store.due(), Some(Task::FlushLog), "{story}");
        assert!(!survives(b"e"), "{story}: no thread may flush on its own");
        store.pump(Task::FlushLog).expect("flushes");
        assert!(survives(b"e"), "{story}: pumped");
    }
}

/// Writes within an interval do not wait: the store flushes once per interval.
#[test]
fn an_interval_needs_one_flush() {
    let options = Options {
        durability: Durability::Grouped(Nanos(INTERVAL)),
        ..Options::default()
    };
    let device = Arc::new(MemDevice::new(required_blocks(&options, 1_000)));
    let clock = Arc::new(ByHand::default());
    let store = Store::open(device, clock.clone(), &options).expect("opens");
    let before = store.stats().log_flushes;
    for n in 0..10 * INTERVAL as u32 {
        clock.0.store(u64::from(n), Ordering::SeqCst);
        store.put(&key(n), b"").expect("puts");
    }
    assert_eq!(
        store.stats().log_flushes - before,
        9,
        "number of flushes in ten intervals"
    );
}

#[test]
fn by_default_writes_are_durable_when_they_return() {
    let options = Options::default();
    assert_eq!(options.durability, Durability::PerCommit);
    assert_eq!(Options::bminus().durability, Durability::PerCommit);
    let device = Arc::new(CrashDevice::new(required_blocks(&options, 100)));
    let store = open(&device, &options);
    store.put(b"key", b"value").expect("puts");
    let image = Arc::new(CrashDevice::from_image(device.crash(&mut |_| 0)));
    assert!(contents(&open(&image, &options)).contains_key(&b"key"[..]));
    drop(store);
}

/// Each later write reports the first cause.
#[test]
fn a_poisoned_store_reports_the_first_cause_each_time() {
    for (tree, pages) in all() {
        let options = tiny(tree, pages);
        let device = Arc::new(CrashDevice::new(required_blocks(&options, 400)));
        let store = open(&device, &options);
        let lsn = store.put(b"key", b"value").expect("puts");
        device.fail_flush_in(0);
        let first = store.sync(lsn).expect_err("the flush fails").to_string();
        let cause = "injected failure";
        assert!(first.contains(cause), "{tree:?} on {pages:?}: {first}");
        for _ in 0..2 {
            let refused: [(&str, Result<(), Error>); 6] = [
                ("put", store.put(b"other", b"value").map(drop)),
                ("delete", store.delete(b"key").map(drop)),
                ("sync", store.sync(lsn)),
                ("checkpoint", store.checkpoint().map(drop)),
                ("pump", store.pump(Task::FlushLog).map(drop)),
                ("pump", store.pump(Task::Checkpoint).map(drop)),
            ];
            for (what, done) in refused {
                let story = format!("{tree:?} on {pages:?}: {what}");
                let Err(Error::Poisoned { why }) = done else {
                    panic!("{story}: {done:?}");
                };
                assert!(why.contains(cause), "{story}: {why}");
            }
        }
        let mut value = Vec::new();
        assert!(store.get(b"key", &mut value).expect("reads") && value == b"value");
        let closed = store.close().expect_err("is not closed").to_string();
        assert!(closed.contains(cause), "{tree:?} on {pages:?}: {closed}");
    }
}

/// A persistent memory that fails when told to, each time with another message.
struct Failing {
    memory: MemPm,
    failures: AtomicU64,
    fails: AtomicBool,
}

impl Failing {
    fn check(&self) -> Result<(), DeviceError> {
        if !self.fails.load(Ordering::SeqCst) {
            return Ok(());
        }
        let n = self.failures.fetch_add(1, Ordering::SeqCst);
        Err(DeviceError::Io {
            what: "write",
            lba: Lba(0),
            source: std::io::Error::other(format!("failure number {n}")),
        })
    }
}

impl PmDevice for Failing {
    fn len(&self) -> u64 {
        self.memory.len()
    }
    fn load(&self, offset: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        self.memory.load(offset, buf)
    }
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check()?;
        self.memory.store(offset, bytes)
    }
    fn clwb(&self, offset: u64) -> Result<(), DeviceError> {
        self.check()?;
        self.memory.clwb(offset)
    }
    fn ntstore(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check()?;
        self.memory.ntstore(offset, bytes)
    }
    fn fence(&self) {
        self.memory.fence();
    }
}

#[test]
fn a_poisoned_store_in_persistent_memory_reports_the_first_cause_each_time() {
    let trees = [
        PmTreeKind::PmTree,
        PmTreeKind::Ccl(CclOptions::default()),
        PmTreeKind::Global(GlobalOptions::default()),
        PmTreeKind::Lodge(LodgeOptions::default()),
    ];
    for tree in trees {
        let device = Arc::new(Failing {
            memory: MemPm::new(4 << 20),
            failures: AtomicU64::new(0),
            fails: AtomicBool::new(false),
        });
        let options = PmOptions {
            tree,
            chunk_bytes: 64 << 10,
            ..PmOptions::default()
        };
        let store = PmStore::open(device.clone(), &options).expect("formats");
        for n in 0..50 {
            store.put(&key(n), &value(n)).expect("puts");
        }
        device.fails.store(true, Ordering::SeqCst);
        // A write that fails while all words are durable is only refused. A failed checkpoint stops
        // the store.
        let first = store
            .checkpoint()
            .map(drop)
            .and_then(|()| store.put(&key(1), &value(2)).map(drop));
        let first = first.expect_err("the memory fails").to_string();
        let refusals = [
            ("put", store.put(&key(2), &value(3)).map(drop)),
            ("delete", store.delete(&key(3)).map(drop)),
            ("sync", store.sync(Lsn(0))),
            ("checkpoint", store.checkpoint().map(drop)),
        ];
        for (what, done) in refusals {
            let story = format!("{}: {what}", tree.name());
            let said = done.expect_err(&story);
            let Error::Poisoned { why } = &said else {
                panic!("{story}: {said}");
            };
            assert!(
                why.contains("failure number 0") && *why == first,
                "{story}: {why}, {first}"
            );
        }
        let mut got = Vec::new();
        assert!(
            store.get(&key(7), &mut got).expect("reads") && got == value(7),
            "{}",
            tree.name()
        );
    }
}
