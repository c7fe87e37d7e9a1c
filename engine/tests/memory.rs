//! What the options promise about memory is what the process takes: an allocator that counts stands
//! beside the store's own figures.
//!
//! One test function: others in the process would count, too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use treering_engine::device::FileDevice;
use treering_engine::{
    BfOptions, Kv, Options, PageStoreKind, Store, SystemClock, TablePersist, TreeKind,
    required_blocks,
};

struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every request is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(layout.size(), Ordering::Relaxed);
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
                ..Options::bminus()
            },
        ),
        ("bf in place", Options { tree: bf, ..small }),
    ]
}

#[test]
fn a_store_takes_the_memory_that_it_says() {
    let dir = tempfile::tempdir().unwrap();
    for (name, options) in stores() {
        let path = dir.path().join(name);
        let open = |blocks: u64| {
            let device = if path.exists() {
                FileDevice::open(&path)
            } else {
                FileDevice::create(&path, blocks)
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
        // The ring is mapped, not allocated. What is not told is small.
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
