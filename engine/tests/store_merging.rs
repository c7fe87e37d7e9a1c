//! Tests leaves that deletes have left sparse: they are merged, whatever happens in between, and a
//! store is not full while its leaves are sparse.
//!
//! Two bounds are promised (`engine/src/trees/notes.rs`). Once all due work has been pumped, at
//! least an eighth of the leaf bytes is live, and no leaf is empty. And in a store that reports
//! that it is full, no three neighbours fit into two pages: at least two thirds of its page space
//! is in use.
//!
//! `TREERING_SECONDS` is how long each store is churned, by default 1. The test then prints how
//! full each store was when it first refused a put.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{BF, Pages, all, contents};
use treering_engine::device::MemDevice;
use treering_engine::node;
use treering_engine::{
    Durability, Error, Kv, Options, Store, SystemClock, TreeKind, required_blocks, verify,
};

/// A store that can be closed, killed and reopened.
struct Bench {
    name: String,
    device: Arc<MemDevice>,
    options: Options,
    store: Option<Store>,
}

impl Bench {
    /// Creates a store with space for `places` leaves, and `cache` frames (and half as many pages
    /// of ring).
    fn new(tree: TreeKind, pages: Pages, places: u64, cache: u64) -> Bench {
        let options = Options {
            durability: Durability::Deferred,
            log_bytes: 64 * 4096,
            checkpoint_log_bytes: 24 * 4096,
            log_buffer_bytes: 8 * 4096,
            write_batch_pages: 4,
            ..support::options(tree, pages, 4096, cache, cache / 2)
        };
        let mut bench = Bench {
            name: format!("{tree:?} on {pages:?}, cache {cache}"),
            device: Arc::new(MemDevice::new(required_blocks(&options, places))),
            options,
            store: None,
        };
        bench.open();
        bench
    }

    fn open(&mut self) {
        let clock = Arc::new(SystemClock::new());
        let store = Store::open(self.device.clone(), clock, &self.options);
        self.store = Some(store.unwrap_or_else(|e| panic!("{}: {e}", self.name)));
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    fn reopen(&mut self) {
        self.store
            .take()
            .expect("it is open")
            .close()
            .expect("closes");
        self.open();
    }

    /// Kills the store: the log is durable, and everything in memory is lost.
    fn kill(&mut self) {
        let store = self.store.take().expect("it is open");
        store.sync(treering_engine::Lsn(u64::MAX)).expect("syncs");
        drop(store);
        self.open();
    }

    fn pump(&self) {
        let mut steps = 0;
        while self.store().pump_due().expect("pumps") {
            steps += 1;
            assert!(
                steps < 1_000_000,
                "{}: the background work must end",
                self.name
            );
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        let put = self.store().put(key, value);
        put.unwrap_or_else(|e| panic!("{}: put of {key:02x?}: {e}", self.name));
    }

    fn delete(&self, key: &[u8]) {
        let deleted = self.store().delete(key);
        deleted.unwrap_or_else(|e| panic!("{}: delete of {key:02x?}: {e}", self.name));
    }

    /// Returns the number of leaves, the number of empty ones, and the share of leaf bytes that
    /// keys and values use.
    fn fill(&self) -> (usize, usize, f64) {
        let live: usize = contents(self.store())
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let leaves = self.store().leaf_fill().expect("reads all leaves");
        let empty = leaves.iter().filter(|leaf| leaf.records == 0).count();
        let bytes = leaves.len() * self.options.page_size;
        (leaves.len(), empty, live as f64 / bytes as f64)
    }

    /// Checks the bound for a store without due work.
    fn assert_bound(&self, when: &str) {
        let (leaves, empty, live) = self.fill();
        let at_most_one = leaves == 1;
        assert!(
            at_most_one || (empty == 0 && live >= 0.125),
            "{}, {when}: {leaves} leaves, {empty} of them empty, {live:.3} of their bytes live",
            self.name
        );
    }

    fn finish(mut self) {
        self.store
            .take()
            .expect("it is open")
            .close()
            .expect("closes");
        let report = verify(self.device.clone()).expect("verifies");
        assert_eq!(report.damage, Vec::<String>::new(), "{}", self.name);
    }
}

fn generation_key(generation: u32, n: u32) -> Vec<u8> {
    let scattered = n.wrapping_mul(2_654_435_761);
    [generation.to_be_bytes(), scattered.to_be_bytes()].concat()
}

/// What happens to a store between two generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Open,
    Reopened,
    Killed,
}

/// Each generation is put like a day of a log. Then the previous one is deleted, in another order.
/// At most two generations are live, and there is room for fewer than four.
fn generations(between: Between) {
    const KEYS: u32 = 1_500;
    for (tree, pages) in all() {
        let mut bench = Bench::new(tree, pages, 230, 24);
        for generation in 0..9 {
            for n in 0..KEYS {
                bench.put(&generation_key(generation, n), &[3; 100]);
                if n % 16 == 0 {
                    bench.pump();
                }
            }
            for n in (0..KEYS).filter(|_| generation > 0) {
                bench.delete(&generation_key(generation - 1, n * 31 % KEYS));
                if n % 16 == 0 && between != Between::Killed {
                    bench.pump();
                }
            }
            match between {
                Between::Open => {
                    bench.store().checkpoint().expect("checkpoints");
                    bench.pump();
                }
                Between::Reopened => bench.reopen(),
                Between::Killed => bench.kill(),
            }
            bench.assert_bound(&format!("{between:?}, generation {generation}"));
        }
        assert_eq!(contents(bench.store()).len(), KEYS as usize);
        bench.finish();
    }
}

#[test]
fn deleted_generations_leave_no_leaves_behind() {
    generations(Between::Open);
}

#[test]
fn deleted_generations_leave_no_leaves_behind_when_the_store_is_closed() {
    generations(Between::Reopened);
}

#[test]
fn deleted_generations_leave_no_leaves_behind_when_the_store_is_killed() {
    generations(Between::Killed);
}

#[test]
fn a_queue_needs_leaves_only_for_its_live_records() {
    const LIVE: u32 = 500;
    for (tree, pages) in all() {
        for (batch, cache) in [(1, 16), (16, 16), (100, 16), (16, 512)] {
            let bench = Bench::new(tree, pages, 600, cache);
            for n in 0..4_000_u32 {
                bench.put(&n.to_be_bytes(), &[3; 100]);
                if n >= LIVE && (n + 1) % batch == 0 {
                    for old in n + 1 - batch..=n {
                        bench.delete(&(old - LIVE.min(old)).to_be_bytes());
                    }
                }
                bench.pump();
            }
            bench.store().checkpoint().expect("checkpoints");
            bench.pump();
            bench.assert_bound(&format!("a queue in batches of {batch}"));
            bench.finish();
        }
    }
}

#[test]
fn deleting_all_overwritten_records_leaves_few_leaves() {
    const KEYS: u32 = 6_000;
    for (tree, pages) in all() {
        let mut bench = Bench::new(tree, pages, 1_500, 16);
        let mut rng = StdRng::seed_from_u64(5);
        let mut order: Vec<u32> = (0..KEYS).collect();
        for value in [[1; 60], [2; 60]] {
            for n in 0..KEYS as usize {
                order.swap(n, rng.random_range(n..KEYS as usize));
            }
            for n in &order {
                bench.put(&n.to_be_bytes(), &value);
            }
        }
        let before = bench.fill().0;
        for n in &order {
            bench.delete(&n.to_be_bytes());
        }
        // Nothing has been pumped, so closing does the work.
        bench.reopen();
        let (leaves, ..) = bench.fill();
        assert!(
            leaves <= 2,
            "{}: {leaves} of {before} leaves stay",
            bench.name
        );
        bench.finish();
    }
}

/// In a `bf` tree, deletes reach the leaves at a checkpoint, which then frees the log that names
/// the leaves.
#[test]
fn leaves_emptied_by_a_checkpoint_are_merged_after_a_kill() {
    const KEYS: u32 = 1_200;
    for (tree, pages) in all() {
        // A ring so large that nothing is evicted.
        let mut bench = Bench::new(tree, pages, 600, 1_024);
        (0..KEYS).for_each(|n| bench.put(&n.to_be_bytes(), &[1; 100]));
        bench.reopen();
        (0..KEYS).for_each(|n| bench.delete(&n.to_be_bytes()));
        bench.store().checkpoint().expect("checkpoints");
        bench.kill();
        let (leaves, ..) = bench.fill();
        assert!(leaves <= 2, "{}: {leaves} leaves stay", bench.name);
        bench.finish();
    }
}

/// Puts keys until the store is full. Returns how many it took.
fn fill_up(bench: &Bench, keys: &mut impl Iterator<Item = Vec<u8>>) -> u32 {
    let mut taken = 0;
    for key in keys {
        match bench.store().put(&key, &[7; 90]) {
            Ok(_) => taken += 1,
            Err(Error::Full { .. }) => return taken,
            Err(e) => panic!("{}: {e}", bench.name),
        }
    }
    panic!("{}: still not full after {taken} records", bench.name);
}

#[test]
fn a_full_store_has_full_leaves_and_can_be_refilled_after_deletes() {
    for (tree, pages) in all() {
        let bench = Bench::new(tree, pages, 180, 16);
        let first: Vec<_> = (0..40_000).map(|n| generation_key(1, n)).collect();
        let taken = fill_up(&bench, &mut first.iter().cloned());
        let (leaves, _, live) = bench.fill();
        assert!(
            live >= 0.6,
            "{}: full with {taken} records in {leaves} leaves, {live:.3} of their bytes live",
            bench.name
        );
        // Every third key stays, so that no leaf is three quarters empty. Nothing is pumped.
        let stay = |n: &usize| n.is_multiple_of(3);
        for (_, key) in first
            .iter()
            .take(taken as usize)
            .enumerate()
            .filter(|(n, _)| !stay(n))
        {
            bench.delete(key);
        }
        // Greater than all other keys, so that the free space in their leaves is useless.
        let mut second = (0..40_000).map(|n| generation_key(2, n));
        let again = fill_up(&bench, &mut second);
        assert!(
            again * 2 >= taken,
            "{}: took {taken} records, two thirds were deleted, and it took {again} more",
            bench.name
        );
        let left = contents(bench.store()).len() as u32;
        assert_eq!(left, taken.div_ceil(3) + again, "{}", bench.name);
        bench.finish();
    }
}

/// Two of the largest records fill a page with hardly any room for a third, so putting one may need
/// two splits. If the only free page for it comes from merging what that split has just separated,
/// the put is refused, and not retried forever.
#[test]
fn a_put_that_needs_two_free_pages_is_refused_if_there_is_one() {
    let trees = all().filter(|(tree, _)| *tree == TreeKind::BTree);
    for (tree, pages) in trees {
        let (mut taken, mut refused) = (0, 0);
        for seed in 0..16 {
            let bench = Bench::new(tree, pages, 0, 24);
            let most = node::limits(4096).max_record;
            let mut rng = StdRng::seed_from_u64(seed);
            for _ in 0..1_000 {
                let number = rng.random_range(0..220_u64);
                let mut key = number.to_be_bytes().to_vec();
                // So long that the values of the largest records are not long values.
                key.resize(480 + number as usize % 11 * 3, b'z');
                if rng.random_bool(0.2) {
                    bench.delete(&key);
                    continue;
                }
                let large = rng.random_bool(0.88);
                let len = if large {
                    most - key.len() - rng.random_range(0..370)
                } else {
                    rng.random_range(0..9)
                };
                match bench.store().put(&key, &vec![7; len]) {
                    Ok(_) => taken += 1,
                    Err(Error::Full { .. }) => refused += 1,
                    Err(e) => panic!("{}: {e}", bench.name),
                }
            }
            bench.finish();
        }
        assert!(
            taken > refused && refused > 100,
            "{}: {taken} taken, {refused} refused",
            format_args!("{tree:?} on {pages:?}")
        );
    }
}

/// A moving window of keys: records of all sizes are put at its end, overwritten inside, and
/// deleted at random until a given number are live. Tests how full the leaves can become before the
/// store refuses a put.
#[test]
fn churn_with_a_drifting_range_of_keys_is_never_full_below_70_percent() {
    let seconds = std::env::var("TREERING_SECONDS").map_or(1, |s| s.parse().expect("seconds"));
    for (tree, pages) in all() {
        let mut bench = Bench::new(tree, pages, 400, 24);
        let mut rng = StdRng::seed_from_u64(11);
        let (mut live, mut bytes, mut next) = (Vec::<(u64, usize)>::new(), 0, 0_u64);
        // Half of the capacity at first, then more and more.
        let places = 400.0 * 4096.0;
        let (mut target, mut least_full): (f64, f64) = (0.5, 1.0);
        let (mut ops, started) = (0_u64, Instant::now());
        while started.elapsed() < Duration::from_secs(seconds) {
            ops += 1;
            let size = rng.random_range(20..180_usize);
            let step = rng.random_range(1..50);
            if (bytes as f64) < target * places {
                next += step;
                let key = (next << 8).to_be_bytes();
                match bench.store().put(&key, &vec![1; size]) {
                    Ok(_) => {
                        live.push((next, size + 8));
                        bytes += size + 8;
                    }
                    Err(Error::Full { .. }) => {
                        least_full = least_full.min(bytes as f64 / places);
                        target = 0.5;
                    }
                    Err(e) => panic!("{}: {e}", bench.name),
                }
            } else {
                // Older keys are likelier to be deleted, but some stay long.
                let among = live.len().min(200 + live.len() / 4);
                let (n, freed) = live.swap_remove(rng.random_range(0..among));
                bench.delete(&(n << 8).to_be_bytes());
                bytes -= freed;
                target = (target + 0.000_5).min(0.98);
            }
            if ops.is_multiple_of(8) {
                bench.pump();
            }
            if ops.is_multiple_of(20_000) {
                bench.reopen();
            }
        }
        println!(
            "{}: {ops} operations, {} merges; full at {least_full:.3} live at the least",
            bench.name,
            bench.store().stats().merges
        );
        assert!(
            least_full >= 0.7,
            "{}: full with {least_full:.3} of all places live",
            bench.name
        );
        assert_eq!(contents(bench.store()).len(), live.len(), "{}", bench.name);
        bench.reopen();
        bench.assert_bound("after churning");
        bench.finish();
    }
}

/// One leaf of a `bf` tree is empty and its left neighbour is full: the left neighbour takes it
/// over.
#[test]
fn an_empty_leaf_at_the_end_goes_to_its_left_neighbour() {
    for (tree, pages) in all().filter(|(tree, _)| *tree == BF || *tree == TreeKind::BTree) {
        let mut bench = Bench::new(tree, pages, 200, 16);
        (0..400_u32).for_each(|n| bench.put(&n.to_be_bytes(), &[1; 100]));
        bench.reopen();
        let (before, empty, _) = bench.fill();
        assert!(before > 4 && empty == 0);
        // The last leaf has no right neighbour.
        (300..400_u32).for_each(|n| bench.delete(&n.to_be_bytes()));
        bench.reopen();
        bench.assert_bound("after the last keys were deleted");
        bench.finish();
    }
}
