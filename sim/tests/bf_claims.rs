//! Countable claims of the Bf-Tree paper (CLAIMS, rows BF) at small scale: 40,000 records of 16+16
//! bytes, and a cache with the paper's share of the data unless a test states another.
//! `examples/bf_figures` runs the same at a larger scale and draws charts.

use treering_engine::{BfOptions, Durability, Kv, Options, Promote, TreeKind};
use treering_sim::replay::{Part, Rig};
use treering_traces::generate::{GenParams, ValueSize, Workload, build};
use treering_traces::{Op, OpKind, OpSource, TraceError};

const RECORDS: u64 = 40_000;

/// 2 GB over 200 M records of 32 bytes (§6.1).
const CACHE: f64 = 0.3125;

const BTREE: TreeKind = TreeKind::BTree;

fn bf(copy_on_access_percent: u8, promotion_percent: u8) -> TreeKind {
    TreeKind::Bf(BfOptions {
        copy_on_access_percent,
        promote: Promote::Percent(promotion_percent),
        ..BfOptions::PUBLISHED
    })
}

fn default_bf() -> TreeKind {
    TreeKind::Bf(BfOptions::PUBLISHED)
}

fn rig(tree: TreeKind, cache: f64) -> Rig {
    let (_, profile) = treering_sim::ssd::builtin("ssd").expect("built in");
    let options = Options {
        tree,
        cache_bytes: ((RECORDS * 32) as f64 * cache) as u64,
        durability: Durability::Deferred,
        // Large enough that no checkpoint is taken: the paper measures without checkpoints.
        log_bytes: 256 << 20,
        checkpoint_log_bytes: 128 << 20,
        ..Options::default()
    };
    Rig::new(&profile, &options, RECORDS / 30, 0).expect("a store on a drive")
}

fn params(workload: Workload, writes: f64, scans: f64) -> GenParams {
    GenParams {
        ops: Some(1 << 32),
        theta: Some(0.9),
        writes: Some(writes),
        scans: (scans > 0.0).then_some(scans),
        key_size: Some(16),
        value_size: Some(ValueSize::fixed(16)),
        ..GenParams::new(workload, RECORDS)
    }
}

/// A loaded store and a source of operations.
fn loaded(tree: TreeKind, cache: f64, writes: f64, scans: f64) -> (Rig, Box<dyn OpSource + Send>) {
    let mut rig = rig(tree, cache);
    let (_, mut source) = build(&params(Workload::Zipf, writes, scans)).expect("parameters");
    rig.run(&mut *source, RECORDS).expect("loads");
    rig.checkpoint().expect("checkpoints");
    (rig, source)
}

/// Warms up the store, then measures.
fn steady(tree: TreeKind, writes: f64) -> Part {
    let (mut rig, mut source) = loaded(tree, CACHE, writes, 0.0);
    rig.run(&mut *source, 5 * RECORDS).expect("warms up");
    let part = rig.run(&mut *source, 2 * RECORDS).expect("runs");
    assert_eq!((part.ops, part.checkpoints()), (2 * RECORDS, 0));
    part
}

/// The share of lookups that no mini-page answered.
fn miss_ratio(part: &Part) -> f64 {
    let bf = part.bf().expect("mini-pages");
    bf.misses as f64 / (bf.misses + bf.hits.total()) as f64
}

/// BF-11: with the inner nodes in memory, a lookup that misses reads one page.
#[test]
fn a_lookup_reads_one_page_on_a_miss_and_none_on_a_hit() {
    for tree in [BTREE, bf(10, 0), bf(10, 100)] {
        let (mut rig, mut source) = loaded(tree, 0.1, 0.0, 0.0);
        let (mut missed, mut hit) = (0, 0);
        for _ in 0..5_000 {
            let part = rig.run(&mut *source, 1).expect("runs");
            let (before, after) = (&part.before, &part.after);
            let misses = after.cache_misses - before.cache_misses;
            assert!(misses <= 1, "{tree:?}: {misses} pages for one lookup");
            assert_eq!(after.read.page - before.read.page, 4096 * misses);
            assert_eq!(part.found, 1, "{tree:?}");
            match misses {
                0 => hit += 1,
                _ => missed += 1,
            }
        }
        // The test shows nothing unless both cases occur.
        assert!(missed > 1_000 && hit > 100, "{tree:?}: {missed}, {hit}");
    }
}

/// BF-22: a phantom record marks a key as absent, so repeated lookups stay in memory. A phantom is
/// not cached only if the ring is full at that moment; the lookup then frees space for the next
/// one.
#[test]
fn a_repeated_negative_lookup_reads_nothing() {
    let (rig, _) = loaded(bf(10, 100), 0.1, 0.0, 0.0);
    let mut value = Vec::new();
    let mut lookup = |key: &[u8]| {
        let before = rig.store().stats();
        assert!(!rig.store().get(key, &mut value).expect("reads"));
        let after = rig.store().stats();
        assert_eq!(after.written, before.written, "{key:02x?}");
        let bf = after
            .bf
            .zip(before.bf)
            .map(|(after, before)| after.since(&before));
        (after.read.page - before.read.page, bf.expect("mini-pages"))
    };
    let (mut reads, mut kept) = (0, 0);
    for i in 0..2_000u64 {
        // The keys in the store have 16 bytes, so no 8-byte key is present.
        let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let (read, first) = lookup(&key);
        assert_eq!(first.misses, 1, "{key:02x?}");
        assert!(
            first.promotions == 1 || first.full_returns > 0,
            "{key:02x?}"
        );
        reads += u64::from(read > 0);
        if first.promotions == 1 {
            kept += 1;
            let (read, again) = lookup(&key);
            assert_eq!((read, again.misses, again.hits.phantom), (0, 0, 1));
        }
    }
    assert!(reads > 1_500, "only {reads} first lookups read a page");
    assert!(kept > 1_800, "only {kept} phantoms were cached");
}

/// BF-23: a tombstone answers the lookup. There is no copy-on-access region here: in it, a lookup
/// could move the mini-page and merge others.
#[test]
fn a_lookup_of_a_deleted_key_reads_nothing() {
    let (rig, mut source) = loaded(bf(0, 30), CACHE, 0.0, 0.0);
    let (mut op, mut value) = (Op::default(), Vec::new());
    for _ in 0..2_000 {
        assert!(source.next_op(&mut op).expect("operations"));
        rig.store().delete(&op.key).expect("deletes");
        let before = rig.store().stats();
        assert!(!rig.store().get(&op.key, &mut value).expect("reads"));
        let after = rig.store().stats();
        assert_eq!(after.read, before.read, "{:02x?}", op.key);
    }
}

/// BF-12 and BF-13: inner nodes are about 1 % of the tree, and after random inserts leaves are two
/// thirds full.
#[test]
fn inner_nodes_are_1_percent_of_the_tree_and_leaves_are_two_thirds_full() {
    for tree in [BTREE, default_bf()] {
        let (rig, _) = loaded(tree, CACHE, 0.0, 0.0);
        let leaves = rig.leaf_fill().expect("leaves");
        let used: u64 = leaves.iter().map(|leaf| u64::from(leaf.used_bytes)).sum();
        let bytes = 4096 * leaves.len() as u64;
        let inner = rig.store().stats().index_bytes as f64 / bytes as f64;
        assert!(inner <= 0.012, "{tree:?}: inner nodes are {inner:.4}");
        let fill = used as f64 / bytes as f64;
        assert!((0.66..=0.72).contains(&fill), "{tree:?}: {fill:.3} full");
    }
}

/// BF-27: updates need a sixth of the I/Os, and the hit ratio of lookups is 20 points higher (§6.3,
/// §6.5).
#[test]
fn updates_need_a_sixth_of_the_page_io_and_lookups_hit_20_points_more_often() {
    let [btree, bf] = [BTREE, default_bf()].map(|tree| steady(tree, 1.0));
    let ratio = btree.page_ios() / bf.page_ios();
    assert!(ratio >= 6.0, "{} / {}", btree.page_ios(), bf.page_ios());
    let [btree, bf] = [BTREE, default_bf()].map(|tree| steady(tree, 0.0));
    let more = bf.hit_ratio() - btree.hit_ratio();
    assert!(more >= 0.20, "{}, {}", btree.hit_ratio(), bf.hit_ratio());
    // BF-29: the median lookup is answered from memory in the Bf-Tree, but not in the B-tree.
    assert!(btree.hit_ratio() < 0.5 && bf.hit_ratio() > 0.5);
}

/// BF-19: without a copy-on-access region the ring is a FIFO queue. With all of it as the region,
/// it is *not* LRU; `sim/FIGURES.md` explains why.
#[test]
fn a_10_percent_copy_on_access_region_misses_least_and_a_full_one_most() {
    let [none, tenth, half, all] = [0, 10, 50, 100].map(|share| steady(bf(share, 30), 0.0));
    let misses = [&none, &tenth, &half, &all].map(miss_ratio);
    assert!((misses[0] - misses[1]).abs() < 0.05, "{misses:?}");
    assert!(
        misses[1] < misses[0] && misses[1] + 0.02 < misses[2],
        "{misses:?}"
    );
    assert!(misses[2] + 0.10 < misses[3], "{misses:?}");
    let live = [&none, &tenth, &half, &all].map(|part| {
        let bf = part.after.bf.expect("mini-pages");
        bf.live_bytes as f64 / bf.ring_bytes as f64
    });
    assert!(
        live[1] > 0.85 && live[2] < 0.75 && live[3] < 0.35,
        "{live:?}"
    );
}

/// BF-20: rare promotion adapts to a change slowly, but has fewer misses in the long run.
#[test]
fn rare_promotion_has_fewer_misses_but_adapts_more_slowly() {
    let [few, all] = [4, 100].map(|rate| {
        let (mut rig, mut source) = loaded(bf(10, rate), CACHE, 0.0, 0.0);
        let warm = RECORDS * 25;
        rig.run(&mut *source, warm).expect("warms up");
        let before = rig.run(&mut *source, 2 * RECORDS).expect("runs");
        // The same popularity distribution over differently ranked keys.
        let other = GenParams {
            no_load: true,
            ..params(Workload::Latest, 0.0, 0.0)
        };
        let (_, mut source) = build(&other).expect("parameters");
        let after = rig.run(&mut *source, RECORDS).expect("runs");
        assert_eq!(after.found, RECORDS, "every record must be found");
        [miss_ratio(&before), miss_ratio(&after)]
    });
    assert!(few[0] + 0.02 < all[0], "at steady state: {few:?}, {all:?}");
    assert!(few[1] > all[1] + 0.05, "after the change: {few:?}, {all:?}");
}

/// Sets the length of every scan to 32 records.
struct Scans(Box<dyn OpSource + Send>);

impl OpSource for Scans {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let more = self.0.next_op(op)?;
        if op.kind == OpKind::Scan {
            op.scan_len = 32;
        }
        Ok(more)
    }
}

/// BF-31: with 66 records per leaf, every other scan of 32 records continues into a second leaf,
/// and few leaves are in memory.
#[test]
fn a_scan_of_32_records_reads_at_most_two_leaves() {
    let (mut rig, source) = loaded(default_bf(), CACHE, 0.0, 1.0);
    let mut source = Scans(source);
    rig.run(&mut source, 2 * RECORDS).expect("warms up");
    let part = rig.run(&mut source, RECORDS).expect("runs");
    let reads = part.page_reads();
    assert!((0.1..1.5).contains(&reads), "{reads} pages per scan");
}
