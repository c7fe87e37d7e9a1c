//! Runs the engine's unsafe code, and multi-threaded trees on top of it, in scenarios small enough
//! for Miri.
//!
//! ```text
//! MIRIFLAGS=-Zmiri-permissive-provenance cargo +nightly miri test -p treering-engine --test miri
//! ```
//!
//! For more schedules: `-Zmiri-many-seeds=0..16`. parking_lot turns numbers into pointers where
//! threads wait; without it, add `-Zmiri-strict-provenance`, and `one_thread` after `--test miri
//! --`.
//!
//! Unsafe code, its files, and the tests that run it:
//!
//! - Headers and marks as atomics in the region (`ring/region.rs`: `word`, `marks`): all tests.
//! - Payloads as slices: shared, exclusive, new beside old (`ring/region.rs`: `payload`, `bytes`,
//!   `bytes_mut`; `ring/guard.rs`): all tests.
//! - Blocks from the tail, the head, a page's word (`ring/space.rs`, `ring/evict.rs`,
//!   `ring/mod.rs`, `ring/guard.rs`): all tests.
//! - Links in free blocks, from either end and out of the middle (`ring/free_list.rs`;
//!   `ring/region.rs`: `links`, `set_links`): `one_thread_*`.
//! - The region sent to other threads, and shared (`ring/region.rs`: `Send`, `Sync`): `threads_*`.
//! - Memory of the allocator (`ring/region.rs`: `Memory`, as elsewhere than on Linux): all tests.
//! - `mmap`, `madvise`, `munmap`; io_uring (`ring/region.rs`, `device/uring.rs`): none, Miri has no
//!   such calls.
//!
//! Mutation check: run it with `TREERING_MUTATION=ring-listed-block-passed RUSTFLAGS='--cfg
//! treering_mutations'`, forward the variable by `-Zmiri-env-forward=TREERING_MUTATION`, and use
//! another `--target-dir`. It must fail.
#![cfg(not(any(loom, shuttle)))]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use treering_engine::device::MemDevice;
use treering_engine::mapping::LeafAddress;
use treering_engine::ring::{AllocateError, Eviction, Exclusive, Ring, RingOptions};
use treering_engine::{
    BfOptions, CacheOnly, Durability, Kv, Options, PageId, Promote, Store, SystemClock, TreeKind,
};

fn ring(sizes: &[usize], percent: u8, marks: bool) -> Ring {
    let options = RingOptions {
        capacity: 4096,
        copy_on_access_percent: percent,
        sizes: sizes.to_vec(),
        pages: 64,
        marks,
    };
    Ring::new(&options).expect("a ring")
}

fn leaf(address: u64) -> LeafAddress {
    LeafAddress::new(address).expect("a small address")
}

fn evict(ring: &Ring) -> Eviction {
    let merge = |_, bytes: &mut [u8]| {
        // The evictor may also write.
        bytes[0] ^= 1;
        Ok::<_, Infallible>(leaf(0))
    };
    let Ok(eviction) = ring.evict(merge);
    eviction
}

/// Puts a new mini-page of `len` bytes, each `fill`, on the page. Returns `None` if there is no
/// room.
fn put(ring: &Ring, page: PageId, len: usize, fill: u8) -> Option<Exclusive<'_>> {
    let guard = ring.exclusive(page).expect("a page");
    let mut fresh = guard.allocate(len).ok()?;
    fresh.bytes_mut().fill(fill);
    Some(fresh.publish())
}

/// Compares whole slices, because a loop over bytes is slow in Miri.
fn assert_all(bytes: &[u8], fill: u8) {
    assert!(bytes == vec![fill; bytes.len()], "torn: {bytes:?}");
}

// One thread.

#[test]
fn one_thread_takes_every_access_path_to_a_mini_page() {
    for marks in [false, true] {
        let ring = ring(&[64, 128, 256], 0, marks);
        let pages = [0, 1].map(|n| ring.create_page(leaf(n)).expect("an id"));
        let mut guard = put(&ring, pages[0], 60, 7).expect("room");
        assert_eq!(guard.marks().is_some(), marks);
        if let (Some(bytes), Some(marks)) = (guard.bytes(), guard.marks()) {
            // Marks are set while there is a reader.
            marks.fetch_or(5, Relaxed);
            assert_eq!((bytes[0], marks.load(Relaxed)), (7, 5));
        }
        guard.bytes_mut().expect("a mini-page")[1] = 8;
        let reader = guard.downgrade();
        let other = ring.shared(pages[0]).expect("a page");
        let seen = [&reader, &other].map(|guard| guard.bytes().map(|bytes| bytes[1]));
        assert_eq!(seen, [Some(8); 2]);
        let Err(reader) = reader.try_upgrade() else {
            panic!("no other reader")
        };
        drop(other);
        let guard = reader.try_upgrade().ok().expect("alone");
        // Old and new side by side: dropped, abandoned, published.
        drop(guard.allocate(100).expect("room"));
        let guard = ring.exclusive(pages[0]).expect("a page");
        let guard = guard.allocate(100).expect("room").abandon();
        let mut fresh = guard.allocate(100).expect("room");
        let (old, new) = fresh.both();
        let old = old.expect("a mini-page");
        new[..old.len()].copy_from_slice(old);
        assert_eq!(fresh.old().map(|old| old[1]), Some(8));
        let mut guard = fresh.publish();
        assert_eq!(guard.bytes().map(|bytes| bytes[1]), Some(8));
        guard.set_leaf(leaf(3));
        assert_eq!((guard.bytes(), guard.leaf()), (None, Some(leaf(3))));
        drop(guard);
        drop(put(&ring, pages[1], 200, 9));
        ring.exclusive(pages[1]).expect("a page").free_page();
        assert!(ring.shared(pages[1]).is_err());
        while evict(&ring) != Eviction::Empty {}
        ring.audit().expect("sound");
    }
}

#[test]
fn one_thread_takes_blocks_from_any_position_of_a_free_list() {
    let ring = ring(&[64, 128], 0, true);
    let pages = [(); 9].map(|()| ring.create_page(leaf(0)).expect("an id"));
    for page in pages {
        drop(put(&ring, page, 60, 1).expect("room"));
    }
    let discard = |n: usize| {
        let mut guard = ring.exclusive(pages[n]).expect("a page");
        guard.set_leaf(leaf(0));
    };
    // On the list: 1, 4, 0, 5, the most recent first. Evictors unlist 0 from the middle and 1 from
    // the end; an allocation takes 5, the first.
    [1, 4, 0, 5].into_iter().for_each(discard);
    assert_eq!(
        (evict(&ring), evict(&ring)),
        (Eviction::Block(72), Eviction::Block(72))
    );
    drop(put(&ring, pages[0], 60, 2).expect("room"));
    ring.audit().expect("sound");
    assert_eq!(ring.stats().classes[0].from_list, 1);
    // Only 4 is left.
    drop(put(&ring, pages[1], 60, 3).expect("room"));
    ring.audit().expect("sound");
    assert_eq!(
        (ring.stats().classes[0].from_list, ring.stats().listed_bytes),
        (2, 0)
    );
    for (n, fill) in [(0, 2), (1, 3), (2, 1), (8, 1)] {
        let guard = ring.shared(pages[n]).expect("a page");
        let bytes = guard.bytes().expect("a mini-page");
        assert_all(bytes, fill);
    }
}

#[test]
fn one_thread_wraps_around_so_that_headers_overwrite_old_payload() {
    for (percent, marks) in [(0, true), (40, false), (100, true)] {
        let ring = ring(&[24, 56, 120, 248, 504], percent, marks);
        let pages = [(); 12].map(|()| ring.create_page(leaf(0)).expect("an id"));
        let mut filled = [0; 12];
        let evict = |filled: &[u8]| {
            let merge = |page: PageId, bytes: &mut [u8]| {
                let n = pages.iter().position(|p| *p == page).expect("a page");
                assert_all(bytes, filled[n]);
                Ok::<_, Infallible>(leaf(0))
            };
            let Ok(_) = ring.evict(merge);
        };
        for step in 0..160u8 {
            let n = usize::from(step) * 7 % pages.len();
            // Free lists only sometimes have a block of the requested size.
            let len = [20, 500, 50, 110, 240][usize::from(step / 12 + step % 2) % 5];
            while put(&ring, pages[n], len, step).is_none() {
                evict(&filled);
            }
            filled[n] = step;
            if step % 2 == 0 {
                evict(&filled);
            }
        }
        let census = ring.audit().expect("sound");
        assert_eq!((census.total(), census.allocated), (4096, 0));
        let stats = ring.stats();
        assert!(stats.passed_bytes > 3 * 4096, "{stats:?}");
    }
}

// Threads.

const PAGES: u64 = 6;

/// A mini-page repeats its version throughout. The page's lock guards the version last put and the
/// one in the leaf.
struct Tree {
    ring: Ring,
    put: [AtomicU32; PAGES as usize],
    leaves: [AtomicU32; PAGES as usize],
}

fn version(bytes: &[u8]) -> u32 {
    let (first, _) = bytes.split_at(4);
    assert!(bytes == first.repeat(bytes.len() / 4), "torn: {bytes:?}");
    u32::from_le_bytes(first.try_into().expect("four bytes"))
}

impl Tree {
    fn check(&self, page: PageId, bytes: Option<&[u8]>) -> u32 {
        let n = page.0 as usize;
        let seen = bytes.map_or_else(|| self.leaves[n].load(Relaxed), version);
        assert_eq!(
            seen,
            self.put[n].load(Relaxed),
            "{page} must contain what was put"
        );
        seen
    }

    fn merge(&self, page: PageId, bytes: &[u8]) -> Result<LeafAddress, Infallible> {
        let seen = self.check(page, Some(bytes));
        self.leaves[page.0 as usize].store(seen, Relaxed);
        Ok(leaf(page.0))
    }

    /// Reads a page and checks it. A mini-page near the head is copied to the tail.
    fn read(&self, page: PageId) {
        let guard = self.ring.shared(page).expect("a page");
        let seen = self.check(page, guard.bytes());
        if let Some(marks) = guard.marks() {
            marks.fetch_or(1 << (seen % 32), Relaxed);
        }
        if guard.in_copy_on_access_region()
            && let Ok(alone) = guard.try_upgrade()
            && let Some(len) = alone.bytes().map(<[u8]>::len)
            && let Ok(mut fresh) = alone.allocate(len)
        {
            let (old, new) = fresh.both();
            new.copy_from_slice(old.expect("it is near the head"));
            let guard = fresh.publish().downgrade();
            assert_eq!(self.check(page, guard.bytes()), seen);
        }
    }

    /// Writes a page in place, or to a block of another size.
    fn write(&self, page: PageId, len: usize) {
        loop {
            let mut guard = self.ring.exclusive(page).expect("a page");
            let next = self.check(page, guard.bytes()) + 1;
            let put = &self.put[page.0 as usize];
            let fill = |bytes: &mut [u8]| {
                bytes.copy_from_slice(&next.to_le_bytes().repeat(bytes.len() / 4))
            };
            if next.is_multiple_of(3)
                && let Some(bytes) = guard.bytes_mut()
            {
                fill(bytes);
                return put.store(next, Relaxed);
            }
            match guard.allocate(len) {
                Ok(mut fresh) => {
                    fill(fresh.bytes_mut());
                    put.store(next, Relaxed);
                    return drop(fresh.publish());
                }
                Err(refused) => match refused.give_back() {
                    AllocateError::Full(full) => {
                        let merge = |page, bytes: &mut [u8]| self.merge(page, bytes);
                        let Ok(_) = self.ring.make_room(full.short, merge);
                    }
                    other => panic!("{other}"),
                },
            }
        }
    }
}

#[test]
fn threads_read_write_and_evict_in_a_tiny_ring() {
    let ring = ring(&[248, 1016], 50, true);
    let pages = [(); PAGES as usize].map(|()| ring.create_page(leaf(0)).expect("an id"));
    let nothing = || [(); PAGES as usize].map(|()| AtomicU32::new(0));
    let tree = Tree {
        ring,
        put: nothing(),
        leaves: nothing(),
    };
    std::thread::scope(|scope| {
        let tree = &tree;
        for seed in 0..2 {
            scope.spawn(move || {
                for step in 0..24 {
                    let len = [200, 1000][(step + seed) % 2];
                    tree.write(pages[(step * 5 + seed) % pages.len()], len);
                }
            });
        }
        scope.spawn(move || (0..40).for_each(|step| tree.read(pages[step % pages.len()])));
        scope.spawn(move || {
            for _ in 0..12 {
                let Ok(_) = tree.ring.evict(|page, bytes| tree.merge(page, bytes));
            }
        });
    });
    let census = tree.ring.audit().expect("sound");
    assert_eq!((census.allocated, census.evicted), (0, 0));
    assert!(tree.ring.stats().passed_bytes > 4096);
    for page in pages {
        let guard = tree.ring.shared(page).expect("a page");
        tree.check(page, guard.bytes());
    }
}

/// Two threads put and delete interleaved keys of their own, and read all keys. Returns the final
/// contents.
fn two_threads(kv: &dyn Kv, steps: u64, forgets: bool) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let run = |own: u64| {
        let (mut mine, mut got) = (BTreeMap::new(), Vec::new());
        for step in 0..steps {
            let n = step * 17 % 20 * 2 + own;
            let key = n.to_be_bytes().to_vec();
            let value = vec![step as u8; 300 + (n * 31 % 7 * 150) as usize];
            if step % 6 == 5 {
                kv.delete(&key).expect("deletes");
                mine.remove(&key);
            } else {
                kv.put(&key, &value).expect("puts");
                mine.insert(key.clone(), value);
            }
            let found = kv.get(&key, &mut got).expect("gets");
            let expected = mine.get(&key);
            let right = found == expected.is_some() && expected.is_none_or(|e| *e == got);
            assert!(right || forgets && !found, "key {n} at step {step}");
            let foreign = (n ^ 1).to_be_bytes();
            if kv.get(&foreign, &mut got).expect("gets") {
                assert_all(&got, got[0]);
            }
            if step % 8 == 7 {
                scan(kv, step % 16 == 7);
            }
        }
        mine
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        let mut all = run(0);
        all.extend(other.join().expect("the other one ended"));
        all
    })
}

/// Values of one byte, keys in order.
fn scan(kv: &dyn Kv, down: bool) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let visit = &mut |k: &[u8], v: &[u8]| {
        assert_all(v, v[0]);
        rows.push((k.to_vec(), v.to_vec()));
        ControlFlow::Continue(())
    };
    if down {
        kv.scan_back(None, visit).expect("scans");
        rows.reverse();
    } else {
        kv.scan(b"", visit).expect("scans");
    }
    assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
    rows.into_iter().collect()
}

const EAGER: BfOptions = BfOptions {
    copy_on_access_percent: 30,
    promote: Promote::Percent(100),
    relog_percent: 50,
    growth_percent: 25,
    spare_percent: 50,
    max_mini_page_percent: 100,
};

#[test]
fn threads_share_a_cache_of_mini_pages() {
    let cache = CacheOnly::new(4 * 4096, EAGER).expect("a cache");
    let left = two_threads(&cache, 40, true);
    for (key, value) in scan(&cache, false) {
        assert_eq!(left.get(&key), Some(&value));
    }
    assert!(cache.stats().bf.expect("it has mini-pages").evictions > 0);
}

#[test]
fn threads_share_a_store_larger_than_its_ring() {
    let options = Options {
        tree: TreeKind::Bf(EAGER),
        cache_bytes: 20 * 4096,
        durability: Durability::Deferred,
        log_bytes: 64 * 4096,
        checkpoint_log_bytes: 16 * 4096,
        log_buffer_bytes: 4 * 4096,
        write_batch_pages: 4,
        ..Options::default()
    };
    let device = Arc::new(MemDevice::new(1024));
    let open = || Store::open(device.clone(), Arc::new(SystemClock::new()), &options);
    let store = open().expect("opens");
    let left = two_threads(&store, 24, false);
    assert!(store.stats().bf.expect("it has mini-pages").evictions > 0);
    store.close().expect("closes");
    let store = open().expect("opens again");
    assert!(
        scan(&store, false) == left,
        "the reopened store must have the same contents"
    );
}
