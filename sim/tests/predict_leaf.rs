//! The leaf recursion compared with real pages, and the counts of the streaming pass.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use treering_engine::PageId;
use treering_engine::node::{ChangeMap, LayoutChoice, PageLayout, PageMut, PageRef, Refused};
use treering_sim::predict::leaf::LeafLevel;
use treering_sim::predict::workload::{Span, Workload};
use treering_traces::{Op, OpKind, OpSource, TraceError};

const SLOTTED: LayoutChoice = LayoutChoice::of(PageLayout::Slotted);

/// Operations from memory.
struct Ops(std::vec::IntoIter<Op>);

impl OpSource for Ops {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let next = self.0.next();
        let more = next.is_some();
        if let Some(next) = next {
            *op = next;
        }
        Ok(more)
    }
}

fn op(kind: OpKind, key: &[u8], value_len: u32) -> Op {
    Op {
        kind,
        key: key.to_vec(),
        value_len,
        ..Op::default()
    }
}

fn analyze(ops: Vec<Op>, span: Span) -> Workload {
    Workload::analyze(&mut Ops(ops.into_iter()), span).expect("memory does not fail")
}

/// The leaves of a tree, made of real pages, without a cache, log or device.
struct Leaves {
    page_size: usize,
    pages: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Size in the log of the records that splits moved, without the two length fields in front of
    /// each.
    moved: usize,
}

impl Leaves {
    fn new(page_size: usize, layout: PageLayout) -> Self {
        let mut first = vec![0; page_size];
        let mut changes = ChangeMap::default();
        PageMut::new(&mut first, &mut changes)
            .init(layout, PageId(0), b"", None)
            .expect("an empty page");
        Leaves {
            page_size,
            pages: BTreeMap::from([(Vec::new(), first)]),
            moved: 0,
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let mut changes = ChangeMap::default();
        loop {
            let id = PageId(self.pages.len() as u64);
            let (_, bytes) = self
                .pages
                .range_mut(..=key.to_vec())
                .next_back()
                .expect("a leaf");
            let mut page = PageMut::new(bytes, &mut changes);
            match page.put(key, value) {
                Ok(_) => return,
                Err(Refused::NoSpace) => {
                    let plan = page.view().choose_separator().expect("a full page");
                    let moved = page.view().count() - plan.at;
                    let lengths = if moved < 128 { 2 } else { 3 };
                    self.moved += page.view().encode_records(plan.at).len() - lengths;
                    let mut right = vec![0; self.page_size];
                    let mut right_changes = ChangeMap::default();
                    page.split_into(&mut PageMut::new(&mut right, &mut right_changes), id, &plan)
                        .expect("the plan fits");
                    self.pages.insert(plan.separator, right);
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    fn shape(&self) -> Vec<(u32, u32, u32)> {
        (self.pages.values())
            .map(|bytes| {
                let page = PageRef::new(bytes);
                let fence = page.lower_fence().len() as u32;
                (page.count() as u32, page.used_bytes() as u32, fence)
            })
            .collect()
    }
}

/// Puts the records into real pages of every layout and into the model, and compares them leaf by
/// leaf.
fn compare(records: &[(Vec<u8>, usize)], page_size: usize) {
    for layout in PageLayout::ALL {
        compare_in(layout, records, page_size);
    }
}

fn compare_in(layout: PageLayout, records: &[(Vec<u8>, usize)], page_size: usize) {
    let mut leaves = Leaves::new(page_size, layout);
    for (key, len) in records {
        leaves.put(key, &vec![7; *len]);
    }
    let ops = records
        .iter()
        .map(|(key, len)| op(OpKind::Put, key, *len as u32))
        .collect();
    let workload = analyze(ops, Span::after(records.len() as u64));
    let level = LeafLevel::grow(&workload, page_size, LayoutChoice::of(layout));
    let predicted: Vec<_> = level
        .leaves
        .iter()
        .map(|l| (l.records, l.used_bytes, l.fence_len))
        .collect();
    assert_eq!(
        predicted,
        leaves.shape(),
        "records, used bytes and fence length of each leaf"
    );
    assert_eq!(level.splits.len() + 1, level.leaves.len());
    let moved = level.splits.iter().map(|s| s.moved_bytes as usize);
    assert_eq!(
        moved.sum::<usize>(),
        leaves.moved,
        "bytes that splits append to the log"
    );
}

fn shuffled(mut records: Vec<(Vec<u8>, usize)>) -> Vec<(Vec<u8>, usize)> {
    records.shuffle(&mut SmallRng::seed_from_u64(3));
    records
}

fn numbered(count: u64, value: usize) -> Vec<(Vec<u8>, usize)> {
    (0..count)
        .map(|i| (format!("user{:012}", i * 7919).into_bytes(), value))
        .collect()
}

#[test]
fn random_loads_give_the_leaves_of_real_pages() {
    compare(&shuffled(numbered(20_000, 16)), 4096);
    compare(&shuffled(numbered(6000, 120)), 4096);
    compare(&shuffled(numbered(20_000, 16)), 16384);
}

#[test]
fn leaves_loaded_in_sorted_order_are_half_full() {
    let records = numbered(10_000, 16);
    compare(&records, 4096);
    let ops = records
        .iter()
        .map(|(k, len)| op(OpKind::Put, k, *len as u32))
        .collect();
    let level = LeafLevel::grow(&analyze(ops, Span::after(0)), 4096, SLOTTED);
    // The rightmost page has no upper fence, so it has no prefix: 42 bytes per record until it
    // splits in the middle.
    let half = (4096.0 - 48.0) / 42.0 / 2.0;
    let records = level.records_per_leaf();
    assert!(
        (records / half - 1.0).abs() < 0.05,
        "{records} records per leaf, expected {half}"
    );
}

#[test]
fn leaf_fill_of_random_loads_swings_around_ln_2() {
    let mut rng = SmallRng::seed_from_u64(5);
    let fills: Vec<f64> = (0..4)
        .map(|quarter| {
            let count = (100_000.0 * 2f64.powf(f64::from(quarter) / 4.0)) as u64;
            let ops = (0..count)
                .map(|_| op(OpKind::Put, &rng.random::<u64>().to_be_bytes(), 40))
                .collect();
            let level = LeafLevel::grow(&analyze(ops, Span::after(0)), 4096, SLOTTED);
            let used: f64 = level
                .leaves
                .iter()
                .map(|l| f64::from(l.used_bytes) - 60.0)
                .sum();
            used / level.leaves.len() as f64 / 4036.0
        })
        .collect();
    let mean = fills.iter().sum::<f64>() / 4.0;
    assert!(
        (mean - std::f64::consts::LN_2).abs() < 0.02,
        "fills {fills:?}"
    );
}

#[test]
fn a_sample_has_the_leaf_fill_of_the_full_set() {
    let mut rng = SmallRng::seed_from_u64(9);
    let ops: Vec<Op> = (0..400_000)
        .map(|_| op(OpKind::Put, &rng.random::<u128>().to_be_bytes(), 16))
        .collect();
    let whole = analyze(ops.clone(), Span::after(0));
    let small = Span {
        memory_bytes: 4_000_000,
        ..Span::after(0)
    };
    let sample = analyze(ops, small);
    assert_eq!(whole.sample_shift, 0);
    assert!(
        sample.sample_shift >= 2,
        "not sampled: {}",
        sample.sample_shift
    );
    let (whole, sample) = (
        LeafLevel::grow(&whole, 4096, SLOTTED),
        LeafLevel::grow(&sample, 4096, SLOTTED),
    );
    let off = sample.count() / whole.count() - 1.0;
    assert!(
        off.abs() < 0.02,
        "{} leaves, the sample predicts {}",
        whole.count(),
        sample.count()
    );
}

/// A sample with every eighth of consecutive numbers, or fewer, has no dense leaves, and the layout
/// of the numbers between is unknown.
#[test]
fn samples_have_no_dense_leaves() {
    let ops: Vec<Op> = (0..200_000_u64)
        .map(|i| op(OpKind::Put, &(i * 7_919 % 200_003).to_be_bytes(), 8))
        .collect();
    let small = Span {
        memory_bytes: 3_000_000,
        ..Span::after(0)
    };
    let dense = |ops, span| {
        let level = LeafLevel::grow(&analyze(ops, span), 4096, LayoutChoice::ADAPTIVE);
        let dense = level.leaves.iter().filter(|leaf| leaf.layout.is_dense());
        (dense.count(), level.leaves.len(), level.weight)
    };
    let (some, leaves, weight) = dense(ops.clone(), Span::after(0));
    assert!(some > leaves / 2 && weight == 1.0, "{some} of {leaves}");
    let (none, _, weight) = dense(ops, small);
    assert!(none == 0 && weight > 1.0, "{none}, {weight}");
}

#[test]
fn accesses_are_counted_in_the_leaves_they_hit() {
    let mut ops: Vec<Op> = numbered(1000, 16)
        .iter()
        .map(|(k, _)| op(OpKind::Put, k, 16))
        .collect();
    let warmup = ops.len() as u64;
    let hot = ops[500].key.clone();
    for i in 0..3000 {
        let kind = if i % 3 == 0 { OpKind::Put } else { OpKind::Get };
        ops.push(op(kind, &hot, if kind == OpKind::Put { 16 } else { 0 }));
    }
    let workload = analyze(ops, Span::after(warmup));
    assert_eq!(workload.warmup.writes(), 1000);
    assert_eq!(workload.measured.ops, [2000, 1000, 0, 0]);
    assert_eq!(workload.measured.user_bytes, 32_000);
    let level = LeafLevel::grow(&workload, 4096, SLOTTED);
    let busy: Vec<_> = level
        .leaves
        .iter()
        .filter(|l| l.reads + l.writes > 0.0)
        .collect();
    assert_eq!(busy.len(), 1);
    assert_eq!((busy[0].reads, busy[0].writes), (2000.0, 1000.0));
}

#[test]
fn scans_count_every_leaf_they_cross() {
    let mut ops: Vec<Op> = numbered(5000, 16)
        .iter()
        .map(|(k, _)| op(OpKind::Put, k, 16))
        .collect();
    let keys: Vec<Vec<u8>> = ops.iter().map(|o| o.key.clone()).collect();
    for key in keys.iter().step_by(5).take(800) {
        ops.push(Op {
            kind: OpKind::Scan,
            key: key.clone(),
            scan_len: 100,
            ..Op::default()
        });
    }
    let level = LeafLevel::grow(&analyze(ops, Span::after(5000)), 4096, SLOTTED);
    let touched: f64 = level.leaves.iter().map(|l| l.reads).sum();
    let expected = 800.0 * (1.0 + 99.0 / level.records_per_leaf());
    assert!(
        (touched / expected - 1.0).abs() < 0.02,
        "{touched} leaf reads, expected {expected}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn leaves_match_real_pages_for_any_keys_and_sizes(
        seeds in prop::collection::vec((prop::collection::vec(b'a'..=b'd', 0..12), 0usize..300), 1..800),
    ) {
        let mut records: Vec<(Vec<u8>, usize)> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for (key, len) in seeds {
            if seen.insert(key.clone()) {
                records.push((key, len));
            }
        }
        compare(&records, 4096);
    }
}
