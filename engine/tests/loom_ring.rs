//! Explores the ring and the mapping table under loom: the actions of the spec run concurrently, in
//! every schedule with at most three or four preemptions (12 s per program).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p treering-engine --release --test loom_ring --target-dir
//! target/loom`
//!
//! Every slice that a guard hands out is reported to loom, so two slices that race fail the test
//! even if no byte differs. Loom reports a thread that is never woken as a deadlock.
//!
//! - `LockPage`, `Read`, `Write`, `Return`; `Share`, `Lock`, `CanUpgrade`, `Unlock` of
//!   `specs/circular_buffer`: `a_writer_runs_*`, `an_upgraded_reader_runs_alone`,
//!   `a_reader_an_upgrade_and_a_writer_*`
//! - `Create`, `Allocate`, `Full` beside `Claim` .. `Finish`: `an_allocation_beside_an_eviction_*`,
//!   `an_evictor_a_reader_and_an_allocator_*`
//! - `Pad` beside `Finish`: `padding_beside_an_eviction`
//! - `Grow`, `Copy`, `Publish`, `Deallocate` beside `Read`, and beside `LockVictim`:
//!   `readers_see_*`, `an_evictor_beside_the_growth_*`
//! - `CopyToTail` beside `LockVictim`, `WriteLeaf`, `Unmap`, and beside itself:
//!   `a_copy_to_the_tail_*`, `two_readers_near_the_head_*`
//! - `FindPage` of a block that is `Allocate`d, not yet `Publish`ed: `an_evictor_waits_*`
//! - `PopFreeList`, `Reuse`, `PassOver` beside `Claim`, `Skip`, `Unlist`:
//!   `a_block_freed_while_it_is_claimed_*`
//! - `Finish` in order, `Retry`: `two_evictors_*`, `an_evictor_that_finds_all_*`,
//!   `a_failed_merge_blocks_no_thread`
//!
//! In `specs/mini_page`, the descent and the separators are covered by `loom_index`, and the page
//! locks are covered here. Records are changed only under the page's lock. Whole trees are explored
//! by `model/oracle/tests/shuttle_store.rs`.
//!
//! Mutation checks (each must fail): the same with `TREERING_MUTATION=m RUSTFLAGS='--cfg loom --cfg
//! treering_mutations'` for m of `ring-head-out-of-order`, `ring-evicted-before-unmapped`,
//! `ring-victim-unchecked`, `ring-lost-wake-up`, `ring-writer-ignores-readers`.
#![cfg(loom)]

use loom::thread;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use treering_engine::PageId;
use treering_engine::mapping::LeafAddress;
use treering_engine::ring::{AllocateError, Eviction, Full, Ring, RingOptions};

/// Payloads whose footprints are 1/8 and 3/8 of the ring.
const SMALL: usize = 504;
const LARGE: usize = 1528;

/// A ring with pages, and the contents of their leaves. A plain lock suffices, because a thread
/// that merges holds the page.
struct Tree {
    ring: Ring,
    leaves: Mutex<Vec<u8>>,
}

fn leaf(address: u64) -> LeafAddress {
    LeafAddress::new(address).expect("a small address")
}

fn page(n: u64) -> PageId {
    PageId(n)
}

impl Tree {
    fn new(pages: u64, percent: u8) -> Self {
        let ring = Ring::new(&RingOptions {
            capacity: 4096,
            copy_on_access_percent: percent,
            sizes: vec![SMALL, LARGE],
            pages,
            marks: false,
        });
        let ring = ring.expect("a ring");
        for n in 0..pages {
            assert_eq!(ring.create_page(leaf(0)), Ok(page(n)));
        }
        let leaves = Mutex::new(vec![0; pages as usize]);
        Self { ring, leaves }
    }

    fn merge(&self, page: PageId, bytes: &mut [u8]) -> Result<LeafAddress, Infallible> {
        assert!(
            bytes.iter().all(|byte| *byte == bytes[0]),
            "the evicted {page} is torn"
        );
        self.leaves.lock().expect("no panic")[page.0 as usize] = bytes[0];
        Ok(leaf(bytes[0].into()))
    }

    /// Creates a mini-page of `len` bytes, each of them `fill`.
    fn put(&self, n: u64, len: usize, fill: u8) -> Result<(), Full> {
        let guard = self.ring.exclusive(page(n)).expect("a page");
        match guard.allocate(len) {
            Ok(mut fresh) => {
                fresh.bytes_mut().fill(fill);
                drop(fresh.publish());
                Ok(())
            }
            Err(refused) => match refused.give_back() {
                AllocateError::Full(full) => Err(full),
                other => panic!("{other}"),
            },
        }
    }

    /// Creates a mini-page, with as many evictions as needed.
    fn put_for_sure(&self, n: u64, len: usize, fill: u8) {
        while let Err(full) = self.put(n, len, fill) {
            let merge = |page, bytes: &mut [u8]| self.merge(page, bytes);
            let Ok(_) = self.ring.make_room(full.short, merge);
        }
    }

    /// Fills the ring with small mini-pages of value 1.
    fn fill(&self, pages: std::ops::Range<u64>) {
        for n in pages {
            self.put(n, SMALL, 1).expect("there is room");
        }
    }

    fn get(&self, n: u64) -> u8 {
        let guard = self.ring.shared(page(n)).expect("a page");
        self.seen(n, guard.bytes(), guard.leaf())
    }

    fn seen(&self, n: u64, bytes: Option<&[u8]>, at: Option<LeafAddress>) -> u8 {
        match bytes {
            Some(bytes) => {
                assert!(
                    bytes.iter().all(|byte| *byte == bytes[0]),
                    "page {n} is torn"
                );
                bytes[0]
            }
            None => {
                let said = self.leaves.lock().expect("no panic")[n as usize];
                assert_eq!(at, Some(leaf(said.into())), "page {n} has an old leaf");
                said
            }
        }
    }

    /// Reads a page. Copies it to the tail if it is near the head, there is no other reader, and
    /// there is room.
    fn get_and_copy(&self, n: u64) -> u8 {
        let guard = self.ring.shared(page(n)).expect("a page");
        let seen = self.seen(n, guard.bytes(), guard.leaf());
        if guard.in_copy_on_access_region()
            && let Ok(alone) = guard.try_upgrade()
            && let Ok(mut fresh) = alone.allocate(SMALL)
        {
            let (old, new) = fresh.both();
            new.copy_from_slice(old.expect("it is near the head"));
            drop(fresh.publish());
        }
        seen
    }

    fn evict(&self) -> Eviction {
        let merge = |page, bytes: &mut [u8]| self.merge(page, bytes);
        let Ok(eviction) = self.ring.evict(merge);
        eviction
    }

    fn audit(&self) {
        let census = self
            .ring
            .audit()
            .unwrap_or_else(|broken| panic!("{broken}"));
        assert_eq!(census.total(), 4096);
        assert_eq!((census.allocated, census.evicted), (0, 0));
    }
}

fn explore(least: usize, preemptions: usize, set_up: fn() -> Tree, program: fn(Arc<Tree>)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 20_000;
    model.max_duration = Some(std::time::Duration::from_secs(12));
    let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = runs.clone();
    model.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        program(Arc::new(set_up()));
    });
    let runs = runs.load(std::sync::atomic::Ordering::Relaxed);
    let name = std::thread::current().name().map(str::to_owned);
    println!("{}: {runs} executions", name.unwrap_or_default());
    assert!(
        runs >= least,
        "only {runs} executions: the program was not explored"
    );
}

/// Runs `act` in another thread, concurrently with this one.
fn beside<T: Send + 'static>(tree: &Arc<Tree>, act: fn(&Tree) -> T) -> thread::JoinHandle<T> {
    let tree = tree.clone();
    thread::spawn(move || act(&tree))
}

#[test]
fn an_allocation_beside_an_eviction_loses_nothing() {
    let full = || {
        let tree = Tree::new(9, 10);
        tree.fill(0..8);
        tree
    };
    explore(10, 4, full, |tree| {
        let other = beside(&tree, Tree::evict);
        tree.put_for_sure(8, SMALL, 2);
        other.join().expect("the evictor ended");
        tree.audit();
        assert_eq!((tree.get(0), tree.get(1), tree.get(8)), (1, 1, 2));
    });
}

#[test]
fn two_evictors_release_their_blocks_in_order() {
    let two = || {
        let tree = Tree::new(3, 10);
        tree.fill(0..3);
        tree
    };
    explore(10, 4, two, |tree| {
        let other = beside(&tree, Tree::evict);
        assert_eq!(tree.evict(), Eviction::Block(512));
        assert_eq!(other.join().expect("it ended"), Eviction::Block(512));
        let census = tree.ring.audit().expect("sound");
        assert!(census.pages.iter().eq([&page(2)]));
        assert_eq!(tree.leaves.lock().expect("no panic")[..], [1, 1, 0]);
    });
}

#[test]
fn an_evictor_that_finds_all_blocks_claimed_wakes_when_the_head_moves() {
    let one = || {
        let tree = Tree::new(1, 10);
        tree.fill(0..1);
        tree
    };
    explore(10, 4, one, |tree| {
        let others = [beside(&tree, Tree::evict), beside(&tree, Tree::evict)];
        let mut all = vec![tree.evict()];
        all.extend(others.map(|other| other.join().expect("it ended")));
        let blocks = all.iter().filter(|e| **e == Eviction::Block(512)).count();
        assert_eq!(blocks, 1, "{all:?}");
        tree.audit();
    });
}

#[test]
fn a_block_freed_while_it_is_claimed_is_not_reused_past_the_head() {
    // Nothing is near the head, so a freed block is listed even if it is claimed. Page 0 moves to a
    // block of the other size, which frees its block. A third thread pops the freed block while an
    // evictor passes it (CircularBuffer 2).
    let three = || {
        let tree = Tree::new(3, 0);
        tree.fill(0..2);
        tree
    };
    explore(1000, 3, three, |tree| {
        let evictor = beside(&tree, Tree::evict);
        let popper = beside(&tree, |tree| tree.put_for_sure(2, SMALL, 3));
        tree.put_for_sure(0, LARGE, 2);
        popper.join().expect("the popper ended");
        evictor.join().expect("the evictor ended");
        tree.audit();
        assert_eq!((tree.get(0), tree.get(1), tree.get(2)), (2, 1, 3));
        while tree.evict() != Eviction::Empty {}
        assert_eq!(tree.leaves.lock().expect("no panic")[..], [2, 1, 3]);
    });
}

#[test]
fn a_copy_to_the_tail_beside_the_eviction_of_the_same_page() {
    let near = || {
        let tree = Tree::new(2, 50);
        tree.fill(0..1);
        // Page 1 moves until page 0 is near the head.
        for len in [LARGE, SMALL, LARGE] {
            tree.put(1, len, 1).expect("there is room");
        }
        tree
    };
    explore(10, 4, near, |tree| {
        let reader = beside(&tree, |tree| tree.get_and_copy(0));
        tree.evict();
        assert_eq!(reader.join().expect("the reader ended"), 1);
        tree.audit();
        assert_eq!((tree.get(0), tree.get(1)), (1, 1));
    });
}

#[test]
fn two_readers_near_the_head_do_not_wait_for_each_other() {
    let near = || {
        let tree = Tree::new(1, 100);
        tree.fill(0..1);
        tree
    };
    explore(10, 4, near, |tree| {
        let reader = beside(&tree, |tree| tree.get_and_copy(0));
        assert_eq!(tree.get_and_copy(0), 1);
        assert_eq!(reader.join().expect("the reader ended"), 1);
        tree.audit();
        assert_eq!(tree.get(0), 1);
    });
}

#[test]
fn readers_see_a_mini_page_before_or_after_it_grows() {
    let one = || {
        let tree = Tree::new(1, 10);
        tree.fill(0..1);
        tree
    };
    explore(10, 4, one, |tree| {
        let reader = beside(&tree, |tree| tree.get(0));
        tree.put_for_sure(0, LARGE, 2);
        // The same page reuses the old block at once.
        tree.put_for_sure(0, SMALL, 2);
        let seen = reader.join().expect("the reader ended");
        assert!(seen == 1 || seen == 2, "read {seen}");
        tree.audit();
    });
}

#[test]
fn a_writer_runs_between_readers_and_readers_run_after_it() {
    let one = || {
        let tree = Tree::new(1, 10);
        tree.fill(0..1);
        tree
    };
    explore(1000, 3, one, |tree| {
        let readers = [(); 2].map(|()| beside(&tree, |tree| tree.get(0)));
        let mut guard = tree.ring.exclusive(page(0)).expect("a page");
        guard.bytes_mut().expect("a mini-page").fill(2);
        // Waiting readers are admitted at once.
        let shared = guard.downgrade();
        assert_eq!(shared.bytes().expect("a mini-page")[0], 2);
        drop(shared);
        for reader in readers {
            let seen = reader.join().expect("a reader ended");
            assert!(seen == 1 || seen == 2, "read {seen}");
        }
    });
}

#[test]
fn an_upgraded_reader_runs_alone() {
    let one = || {
        let tree = Tree::new(1, 10);
        tree.fill(0..1);
        tree
    };
    explore(10, 4, one, |tree| {
        let change = |tree: &Tree| {
            let guard = tree.ring.shared(page(0)).expect("a page");
            let seen = guard.bytes().expect("a mini-page")[0];
            if let Ok(mut alone) = guard.try_upgrade() {
                alone.bytes_mut().expect("a mini-page").fill(seen + 1);
                return 1;
            }
            0
        };
        let other = beside(&tree, change);
        let done = change(&tree) + other.join().expect("it ended");
        assert_eq!(tree.get(0), 1 + done, "an upgraded reader's write is lost");
    });
}

#[test]
fn a_reader_an_upgrade_and_a_writer_take_turns() {
    let one = || {
        let tree = Tree::new(1, 10);
        tree.fill(0..1);
        tree
    };
    explore(1000, 2, one, |tree| {
        let reader = beside(&tree, |tree| tree.get(0));
        let writer = beside(&tree, |tree| {
            let mut guard = tree.ring.exclusive(page(0)).expect("a page");
            let bytes = guard.bytes_mut().expect("a mini-page");
            let seen = bytes[0];
            bytes.fill(seen + 1);
        });
        let guard = tree.ring.shared(page(0)).expect("a page");
        let seen = guard.bytes().expect("a mini-page")[0];
        let upgraded = match guard.try_upgrade() {
            Ok(mut alone) => {
                alone.bytes_mut().expect("a mini-page").fill(seen + 1);
                1
            }
            Err(shared) => {
                let again = shared.bytes().expect("a mini-page")[0];
                assert_eq!(again, seen, "the page was locked between the two reads");
                0
            }
        };
        writer.join().expect("the writer ended");
        let read = reader.join().expect("the reader ended");
        assert!((1..=2 + upgraded).contains(&read), "read {read}");
        assert_eq!(tree.get(0), 2 + upgraded, "a write is lost");
    });
}

#[test]
fn an_evictor_a_reader_and_an_allocator_meet_at_the_head() {
    // The ring is full. The reader would copy the evictor's victim to the tail, and the allocator
    // takes the freed space.
    let full = || {
        let tree = Tree::new(9, 50);
        tree.fill(0..8);
        tree
    };
    explore(1000, 3, full, |tree| {
        let evictor = beside(&tree, Tree::evict);
        let reader = beside(&tree, |tree| tree.get_and_copy(0));
        tree.put_for_sure(8, SMALL, 2);
        assert_eq!(reader.join().expect("the reader ended"), 1);
        assert_ne!(evictor.join().expect("the evictor ended"), Eviction::Empty);
        tree.audit();
        assert_eq!((tree.get(0), tree.get(1), tree.get(8)), (1, 1, 2));
    });
}

#[test]
fn padding_beside_an_eviction() {
    // A quarter of the ring is free before its physical end, and less than a large block is free
    // before the head.
    let near_the_end = || {
        let tree = Tree::new(7, 10);
        tree.fill(0..6);
        tree.evict();
        tree.evict();
        tree
    };
    explore(10, 4, near_the_end, |tree| {
        let evictor = beside(&tree, Tree::evict);
        tree.put_for_sure(6, LARGE, 2);
        evictor.join().expect("the evictor ended");
        assert_eq!(tree.ring.stats().padding_bytes, 1024);
        tree.audit();
        assert_eq!((tree.get(2), tree.get(5), tree.get(6)), (1, 1, 2));
    });
}

#[test]
fn an_evictor_waits_for_a_block_that_is_not_published_yet() {
    let empty = || Tree::new(1, 10);
    explore(10, 4, empty, |tree| {
        let evictor = beside(&tree, Tree::evict);
        let guard = tree.ring.exclusive(page(0)).expect("a page");
        let Ok(mut fresh) = guard.allocate(SMALL) else {
            panic!("an empty ring has room")
        };
        fresh.bytes_mut().fill(5);
        drop(fresh.publish());
        let came = evictor.join().expect("the evictor ended");
        assert!(came == Eviction::Empty || came == Eviction::Block(512));
        tree.audit();
        assert_eq!(tree.get(0), 5);
    });
}

#[test]
fn a_failed_merge_blocks_no_thread() {
    let two = || {
        let tree = Tree::new(2, 10);
        tree.fill(0..2);
        tree
    };
    explore(10, 4, two, |tree| {
        let other = beside(&tree, |tree| {
            let failed = tree.ring.evict(|_, _| Err::<LeafAddress, _>("EIO"));
            failed.is_err()
        });
        assert_ne!(tree.evict(), Eviction::Empty);
        let failed = other.join().expect("it ended");
        // The page whose merge failed is the next victim, and the head moves on past it.
        while tree.evict() != Eviction::Empty {}
        tree.audit();
        let leaves = tree.leaves.lock().expect("no panic");
        assert_eq!(leaves[..], [1, 1], "failed: {failed}");
    });
}

#[test]
fn an_evictor_beside_the_growth_of_its_victim() {
    let one = || {
        let tree = Tree::new(1, 100);
        tree.fill(0..1);
        tree
    };
    explore(10, 4, one, |tree| {
        let evictor = beside(&tree, Tree::evict);
        tree.put_for_sure(0, LARGE, 2);
        evictor.join().expect("the evictor ended");
        tree.audit();
        assert_eq!(tree.get(0), 2);
        while tree.evict() != Eviction::Empty {}
        assert_eq!(tree.leaves.lock().expect("no panic")[0], 2);
    });
}
