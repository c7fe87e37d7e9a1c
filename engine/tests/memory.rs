//! Tests that the process takes no more memory than the options promise, with a counting allocator
//! beside the store's own figures.
//!
//! One test function at a time, because others in the process would be counted, too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use treering_engine::device::{FileDevice, FileIo, MemPm, PmDevice as _, PmImage};
use treering_engine::{
    BfOptions, Durability, Error, Kv, Options, PageStoreKind, PmOptions, PmStore, PmTreeKind,
    Store, SystemClock, TablePersist, TreeKind, required_blocks, verify,
};

static ALONE: Mutex<()> = Mutex::new(());

struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// The maximum of memory in use since this was last reset.
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = TAKEN.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(taken, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn taken() -> u64 {
    TAKEN.load(Ordering::Relaxed) as u64
}

fn stores() -> Vec<(&'static str, Options)> {
    let small = Options {
        // The promises about memory do not depend on it, and the test takes a minute less.
        durability: Durability::Deferred,
        cache_bytes: 2 << 20,
        log_bytes: 4 << 20,
        checkpoint_log_bytes: 2 << 20,
        log_buffer_bytes: 64 << 10,
        ..Options::default()
    };
    let bf = TreeKind::Bf(BfOptions::default());
    let cow = PageStoreKind::CopyOnWrite {
        table: TablePersist::Checkpoint,
    };
    vec![
        ("btree in place", small.clone()),
        (
            "btree copy-on-write",
            Options {
                store: cow,
                ..small.clone()
            },
        ),
        (
            "btree shadowed",
            Options {
                store: PageStoreKind::Shadow,
                ..small.clone()
            },
        ),
        (
            "bminus",
            Options {
                cache_bytes: small.cache_bytes,
                log_bytes: small.log_bytes,
                checkpoint_log_bytes: small.checkpoint_log_bytes,
                log_buffer_bytes: small.log_buffer_bytes,
                durability: small.durability,
                ..Options::bminus()
            },
        ),
        ("bf in place", Options { tree: bf, ..small }),
    ]
}

#[test]
fn a_store_uses_the_memory_it_reports() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir().unwrap();
    for (name, options) in stores() {
        let path = dir.path().join(name);
        let open = |blocks: u64| {
            let device = if path.exists() {
                FileDevice::open_for(&path, FileIo::Buffered)
            } else {
                FileDevice::create_for(&path, blocks, FileIo::Buffered)
            };
            let device = Arc::new(device.unwrap());
            Store::open(device, Arc::new(SystemClock::new()), &options).unwrap()
        };
        let before = taken();
        let store = open(required_blocks(&options, 8_000));
        for round in 0..2u32 {
            for i in 0..30_000u32 {
                let key = i.wrapping_mul(2_654_435_761).to_be_bytes();
                store.put(&key, &[round as u8; 200]).unwrap();
            }
        }
        let (measured, told) = (taken() - before, store.stats().memory);
        let story = format!("{name}: {measured} bytes measured; {told:?}");
        eprintln!("{story}");
        // The ring is mapped, not allocated. Memory that is not reported is small.
        let told_here = told.total() - told.ring_bytes;
        assert!(
            measured < told_here + told_here / 10 + (512 << 10),
            "{story}"
        );
        assert!(
            told_here < measured + measured / 10 + (128 << 10),
            "{story}"
        );
        assert!(told.cache_bytes + told.ring_bytes < options.cache_bytes * 11 / 10 + (64 << 10));
        assert!(
            told.log_buffer_bytes < 4 * options.log_buffer_bytes + (64 << 10),
            "{story}"
        );
        assert!(told.map_bytes < 1 << 20, "{story}");
        store.close().unwrap();
        std::fs::remove_file(&path).unwrap();

        // The same over an untouched terabyte.
        open(1 << 28).close().unwrap();
        let before = taken();
        let store = open(1 << 28);
        let measured = taken() - before;
        assert!(
            measured < options.cache_bytes + (8 << 20),
            "{name}: {measured} bytes for a terabyte"
        );
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }
}

/// Fields of the superblock (`engine/src/layout.rs`) that hold a size or a number: offset and
/// length in bytes.
const AMOUNTS: [(&str, usize, usize); 11] = [
    ("page size", 24, 4),
    ("journal", 30, 2),
    ("capacity", 32, 8),
    ("log blocks", 40, 8),
    ("epoch", 48, 4),
    ("redo start", 56, 8),
    ("snapshot head", 64, 8),
    ("snapshot entries", 72, 8),
    ("high water", 96, 8),
    ("flush blocks", 104, 4),
    ("snapshot number", 112, 8),
];

/// Writes `value` into a field of both superblocks, and corrects their checksums.
fn craft(path: &Path, (at, len): (usize, usize), value: u64) {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    for place in [0, 4096] {
        let mut block = vec![0; 4096];
        file.read_exact_at(&mut block, place).unwrap();
        block[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
        let crc = crc32fast::hash(&block[12..]);
        block[8..12].copy_from_slice(&crc.to_le_bytes());
        file.write_all_at(&block, place).unwrap();
    }
}

/// Verifies a store and opens it read-only. Returns the maximum of memory that this took.
fn peak_of_reading(path: &Path, options: &Options, story: &str) -> u64 {
    let before = TAKEN.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let device = || Arc::new(FileDevice::open_for(path, FileIo::Buffered).unwrap());
    let verified = verify(device()).map(drop);
    let options = Options {
        read_only: true,
        ..options.clone()
    };
    let opened = Store::open(device(), Arc::new(SystemClock::new()), &options).map(drop);
    for what in [verified, opened] {
        assert!(!matches!(what, Err(Error::Device(_))), "{story}: {what:?}");
    }
    (PEAK.load(Ordering::Relaxed) - before) as u64
}

/// A superblock with a valid checksum can claim anything. Neither opening nor verifying takes
/// memory for a claim without checking it, and both end.
#[test]
fn no_superblock_makes_opening_or_verifying_allocate_excess_memory() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir().unwrap();
    for (name, options) in stores() {
        let path = dir.path().join(name);
        // The file itself is as large as a claim may be, so that nothing can be refused for its
        // size.
        let device = Arc::new(FileDevice::create_for(&path, 1 << 25, FileIo::Buffered).unwrap());
        let store = Store::open(device, Arc::new(SystemClock::new()), &options).unwrap();
        for i in 0..200u32 {
            store.put(&i.to_be_bytes(), b"a value").unwrap();
        }
        store.close().unwrap();
        let good: Vec<u8> = {
            let file = std::fs::File::open(&path).unwrap();
            let mut both = vec![0; 2 * 4096];
            file.read_exact_at(&mut both, 0).unwrap();
            both
        };
        let usual = peak_of_reading(&path, &options, "as it is");
        for (field, at, len) in AMOUNTS {
            let most = u64::MAX >> (64 - 8 * len);
            for value in [0, 1, 65_536, 1 << 24, 1 << 25, most / 2, most - 1, most] {
                craft(&path, (at, len), value & most);
                let story = format!("{name}, {field} {}", value & most);
                let peak = peak_of_reading(&path, &options, &story);
                assert!(
                    peak < usual + (8 << 20),
                    "{story}: {peak} bytes; {usual} without"
                );
                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&good, 0).unwrap();
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}

/// The amounts in the superblock of a persistent memory: word of `engine/src/pm/layout.rs`.
const PM_AMOUNTS: [(&str, usize); 3] = [("device bytes", 16), ("chunk bytes", 24), ("chunks", 32)];

#[test]
fn no_superblock_in_persistent_memory_makes_opening_allocate_excess_memory() {
    const BYTES: u64 = 64 << 20;
    let _alone = ALONE.lock();
    let trees = [
        PmTreeKind::PmTree,
        PmTreeKind::Global(Default::default()),
        PmTreeKind::Ccl(Default::default()),
        PmTreeKind::Lodge(Default::default()),
    ];
    for tree in trees {
        let options = PmOptions {
            tree,
            ..PmOptions::default()
        };
        let device = Arc::new(MemPm::new(BYTES));
        let store = PmStore::open(device.clone(), &options).unwrap();
        for i in 0..200u64 {
            store.put(&i.to_be_bytes(), b"a value").unwrap();
        }
        drop(store);
        let good = device.crash_seeded(0);
        // Returns the maximum of memory that an opening took, and whether there was a store.
        let peak_of_opening = |image: PmImage| {
            let device = Arc::new(MemPm::from_image(image));
            let before = TAKEN.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            let opened = PmStore::open(device, &options)
                .map(|store| store.get(&0u64.to_be_bytes(), &mut Vec::new()));
            ((PEAK.load(Ordering::Relaxed) - before) as u64, opened)
        };
        let (usual, opened) = peak_of_opening(good.clone());
        assert!(opened.unwrap().unwrap(), "{tree:?}");
        for (field, at) in PM_AMOUNTS {
            for value in [
                0,
                1,
                3,
                1024,
                65_536,
                BYTES / 2,
                1 << 31,
                1 << 48,
                u64::MAX - 1,
                u64::MAX,
            ] {
                let mut words = [0u8; 40];
                good.read(0, &mut words);
                words[at..at + 8].copy_from_slice(&value.to_le_bytes());
                let crc = crc32fast::hash(&words[16..]);
                words[12..16].copy_from_slice(&crc.to_le_bytes());
                let crafted = MemPm::from_image(good.clone());
                crafted.ntstore(0, &words).unwrap();
                crafted.fence();
                let story = format!("{tree:?}, {field} {value}");
                let (peak, opened) = peak_of_opening(crafted.crash_seeded(0));
                assert!(
                    peak < usual + (8 << 20),
                    "{story}: {peak} bytes; {usual} without"
                );
                if words[at..at + 8] != good_word(&good, at) {
                    assert!(opened.is_err(), "{story}: opened");
                }
            }
        }
    }
}

fn good_word(image: &PmImage, at: usize) -> [u8; 8] {
    let mut word = [0; 8];
    image.read(at as u64, &mut word);
    word
}
