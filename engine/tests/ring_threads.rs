//! Tests the ring under real threads. It is small enough to wrap thousands of times, merges fail
//! now and then, and every access to a page must find what was last put.
#![cfg(not(any(loom, shuttle)))]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use treering_engine::PageId;
use treering_engine::mapping::LeafAddress;
use treering_engine::ring::{AllocateError, Exclusive, Full, Ring, RingOptions, Shared};

const PAGES: u64 = 96;

/// Plain numbers guarded by the page's lock. They are atomics, so that the test needs no unsafe
/// code.
struct Page {
    /// The version in the leaf.
    leaf: AtomicU64,
    /// The version last put.
    put: AtomicU64,
    /// The id of the page, which changes when the page is renewed. While it is renewed, no valid
    /// id.
    id: AtomicU64,
}

struct Tree {
    ring: Ring,
    pages: Vec<Page>,
}

/// Returns the version in a mini-page, which repeats it throughout.
fn version(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    assert!(
        rest.is_empty() && words.iter().all(|word| *word == words[0]),
        "torn: {bytes:?}"
    );
    u64::from_le_bytes(words[0])
}

fn fill(bytes: &mut [u8], version: u64) {
    let (words, _) = bytes.as_chunks_mut::<8>();
    words.fill(version.to_le_bytes());
}

/// A version identifies its page, so that bytes of another page are detected.
fn first(n: u64) -> u64 {
    n << 40
}

/// Leaves are named by the number of the page.
fn leaf(n: u64) -> LeafAddress {
    LeafAddress::new(n).expect("a small number")
}

impl Tree {
    fn new(options: &RingOptions) -> Self {
        let ring = Ring::new(options).expect("a ring");
        let page = |n| Page {
            leaf: AtomicU64::new(first(n)),
            put: AtomicU64::new(first(n)),
            id: AtomicU64::new(ring.create_page(leaf(n)).expect("an id").0),
        };
        let pages = (0..PAGES).map(page).collect();
        Self { ring, pages }
    }

    fn merge(&self, bytes: &mut [u8], fails: bool) -> Result<LeafAddress, &'static str> {
        let version = version(bytes);
        let n = version >> 40;
        let page = &self.pages[n as usize];
        assert_eq!(
            version,
            page.put.load(Relaxed),
            "a stale mini-page of {n} is evicted"
        );
        if fails {
            // Let another thread run in between.
            std::thread::yield_now();
            return Err("EIO");
        }
        page.leaf.store(version, Relaxed);
        Ok(leaf(n))
    }

    fn make_room(&self, full: Full, rng: &mut SmallRng) {
        _ = self.ring.make_room(full.short, |_, bytes| {
            let fails = rng.random_range(0..16) == 0;
            self.merge(bytes, fails)
        });
    }

    /// Checks that a guard sees what was put last.
    fn check(&self, n: u64, bytes: Option<&[u8]>, at: Option<LeafAddress>) -> u64 {
        let page = &self.pages[n as usize];
        let seen = match bytes {
            Some(bytes) => version(bytes),
            None => {
                assert_eq!(at, Some(leaf(n)));
                page.leaf.load(Relaxed)
            }
        };
        assert_eq!(
            seen,
            page.put.load(Relaxed),
            "page {n} must contain what was put"
        );
        seen
    }

    /// Locks the page, unless it has been renewed meanwhile.
    fn shared(&self, n: u64) -> Option<Shared<'_>> {
        let id = self.pages[n as usize].id.load(Relaxed);
        let guard = self.ring.shared(PageId(id)).ok()?;
        (self.pages[n as usize].id.load(Relaxed) == id).then_some(guard)
    }

    fn exclusive(&self, n: u64) -> Option<Exclusive<'_>> {
        let id = self.pages[n as usize].id.load(Relaxed);
        let guard = self.ring.exclusive(PageId(id)).ok()?;
        (self.pages[n as usize].id.load(Relaxed) == id).then_some(guard)
    }

    fn read(&self, n: u64) {
        let Some(guard) = self.shared(n) else { return };
        let seen = self.check(n, guard.bytes(), guard.leaf());
        if !guard.in_copy_on_access_region() {
            return;
        }
        let Ok(alone) = guard.try_upgrade() else {
            return;
        };
        assert_eq!(self.check(n, alone.bytes(), alone.leaf()), seen);
        let len = alone.bytes().map_or(0, <[u8]>::len);
        if let Ok(mut fresh) = alone.allocate(len) {
            let (old, new) = fresh.both();
            new.copy_from_slice(old.expect("it is near the head"));
            let guard = fresh.publish().downgrade();
            assert_eq!(self.check(n, guard.bytes(), guard.leaf()), seen);
        }
    }

    fn write(&self, n: u64, rng: &mut SmallRng) {
        for _ in 0..4 {
            let Some(mut guard) = self.exclusive(n) else {
                return;
            };
            let next = self.check(n, guard.bytes(), guard.leaf()) + 1;
            let put = &self.pages[n as usize].put;
            let moves = guard.in_copy_on_access_region() || rng.random_range(0..3) == 0;
            if !moves && let Some(bytes) = guard.bytes_mut() {
                fill(bytes, next);
                put.store(next, Relaxed);
                return;
            }
            match guard.allocate(rng.random_range(1..=1600)) {
                Ok(fresh) if rng.random_range(0..8) == 0 => {
                    let guard = fresh.abandon();
                    self.check(n, guard.bytes(), guard.leaf());
                    return;
                }
                Ok(mut fresh) => {
                    fill(fresh.bytes_mut(), next);
                    put.store(next, Relaxed);
                    drop(fresh.publish());
                    return;
                }
                Err(refused) => match refused.give_back() {
                    AllocateError::Full(full) => self.make_room(full, rng),
                    other => panic!("{other}"),
                },
            }
        }
    }

    /// Does what a tree does when it merges the page itself.
    fn discard(&self, n: u64) {
        if let Some(mut guard) = self.exclusive(n) {
            let seen = self.check(n, guard.bytes(), guard.leaf());
            self.pages[n as usize].leaf.store(seen, Relaxed);
            guard.set_leaf(leaf(n));
            self.check(n, guard.bytes(), guard.leaf());
        }
    }

    /// Frees the page with all its contents, and recreates it with another id.
    fn renew(&self, n: u64) {
        let Some(guard) = self.exclusive(n) else {
            return;
        };
        let page = &self.pages[n as usize];
        page.id.store(u64::MAX, Relaxed);
        let next = page.put.load(Relaxed) + 1;
        guard.free_page();
        page.leaf.store(next, Relaxed);
        page.put.store(next, Relaxed);
        let id = self.ring.create_page(leaf(n)).expect("an id is free");
        // A thread that locks the new id sees everything that the assigning thread did before: the
        // table's mutex and the word order them.
        let guard = self.ring.exclusive(id).expect("a page");
        page.id.store(id.0, Relaxed);
        drop(guard);
    }

    fn run(&self, seed: u64, rounds: usize) {
        let mut rng = SmallRng::seed_from_u64(seed);
        for _ in 0..rounds {
            // Some pages are hot.
            let n = rng.random_range(0..PAGES).min(rng.random_range(0..PAGES));
            match rng.random_range(0..100) {
                0..45 => self.read(n),
                45..95 => self.write(n, &mut rng),
                95..97 => self.discard(n),
                97 => self.renew(n),
                _ => _ = self.ring.evict(|_, bytes| self.merge(bytes, false)),
            }
        }
    }
}

fn stress(capacity: usize, percent: u8, rounds: usize) {
    let options = RingOptions {
        capacity,
        copy_on_access_percent: percent,
        sizes: vec![64, 128, 256, 512, 1024, 1600],
        pages: PAGES + 8,
        marks: false,
    };
    let tree = Tree::new(&options);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let tree = &tree;
            scope.spawn(move || tree.run(seed, rounds));
        }
    });
    let census = tree
        .ring
        .audit()
        .unwrap_or_else(|broken| panic!("{broken}"));
    assert_eq!(census.total(), capacity as u64);
    assert_eq!((census.allocated, census.evicted), (0, 0));
    let stats = tree.ring.stats();
    assert_eq!(tree.ring.pages(), PAGES);
    let laps = stats.passed_bytes / capacity as u64;
    assert!(laps > 20, "only {laps} laps: {stats:?}");
    assert!(
        stats.failed_evictions > 0 && stats.full_returns > 0 && stats.listed_bytes == census.listed
    );
    assert!(
        stats
            .classes
            .iter()
            .all(|class| class.from_tail > 0 && class.from_list > 0)
    );
    for n in 0..PAGES {
        let guard = tree.shared(n).expect("a page");
        tree.check(n, guard.bytes(), guard.leaf());
    }
}

#[test]
fn nothing_is_lost_or_torn_in_a_wrapping_ring() {
    stress(8 << 10, 10, 60_000);
}

#[test]
fn nothing_is_lost_or_torn_if_most_of_the_ring_is_copied_on_access() {
    stress(16 << 10, 70, 60_000);
}

#[test]
fn nothing_is_lost_or_torn_without_copy_on_access() {
    stress(12 << 10, 0, 60_000);
}
