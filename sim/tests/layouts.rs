//! What page layouts take, counted: B-Trees Are Back §3.5, §4.1-§4.6 in small. `layout_figures` counts as many records as the paper.

use std::collections::BTreeMap;

use treering_engine::node::{ENVELOPE_BYTES, LayoutChoice, PageLayout};
use treering_sim::layouts::keys::{self, Order};
use treering_sim::layouts::{Counts, PageTree};
use treering_sim::predict::leaf::LeafLevel;
use treering_sim::predict::{Span, Workload};
use treering_traces::{Op, OpKind, OpSource, TraceError};

const NODE: usize = 4096;

fn grow<K: AsRef<[u8]>>(layout: PageLayout, keys: &[K]) -> Counts {
    let mut tree = PageTree::new(LayoutChoice::of(layout), NODE);
    for key in keys {
        tree.put(key.as_ref(), b"8 bytes.").expect("it fits");
    }
    tree.counts()
}

fn bytes(numbers: &[u32]) -> Vec<[u8; 4]> {
    numbers.iter().map(|number| number.to_be_bytes()).collect()
}

#[test]
fn a_tree_of_pages_is_a_map_in_every_layout() {
    for choice in LayoutChoice::all() {
        let (mut tree, mut map) = (PageTree::new(choice, NODE), BTreeMap::new());
        for (n, key) in keys::dense(4_000, 0.7, Order::Random, 3)
            .into_iter()
            .enumerate()
        {
            let key = match n % 50 {
                0 => format!("key {key}").into_bytes(),
                _ => key.to_be_bytes().to_vec(),
            };
            let value = (n as u64).to_le_bytes();
            tree.put(&key, &value).expect("it fits");
            map.insert(key, value);
        }
        assert_eq!(tree.counts().records, map.len());
        for (key, value) in &map {
            assert_eq!(tree.get(key), Some(&value[..]), "{}", choice.name());
        }
        assert_eq!(tree.get(b"another"), None);
    }
}

/// What a tree of several levels finds and visits is what a map does, in every layout and while it adapts.
#[test]
fn gets_and_scans_go_through_inner_pages_to_what_was_put() {
    let urls = |n: u32| format!("https://host{}.org/some/folder/page-{:07}", n % 97, n * 7);
    let numbers = keys::dense(60_000, 0.6, Order::Random, 9);
    for choice in LayoutChoice::all() {
        let (mut tree, mut map) = (PageTree::new(choice, NODE), BTreeMap::new());
        for (n, number) in numbers.iter().enumerate() {
            let key = match n % 2 {
                0 => urls(*number).into_bytes(),
                _ => number.to_be_bytes().to_vec(),
            };
            let value = (n as u64).to_le_bytes();
            tree.put(&key, &value).expect("it fits");
            map.insert(key, value);
        }
        let counts = tree.counts();
        assert!(counts.inner > 2, "{}: {counts:?}", choice.name());
        assert_eq!(counts.records, map.len());
        let present: Vec<_> = map.iter().step_by(31).collect();
        for (n, (key, value)) in present.iter().enumerate() {
            assert_eq!(tree.get(key), Some(&value[..]), "{}", choice.name());
            // Beside it there is nothing, whatever its leaf leaves out of its keys.
            assert_eq!(tree.get(&[key, &b"?"[..]].concat()), None);
            assert_eq!(tree.get(&key[..key.len() - 1]), None);
            let most = 1 + n % 50;
            let from = match n % 3 {
                0 => [&key[..], &[0]].concat(),
                _ => key.to_vec(),
            };
            let (mut rest, mut left) = (map.range(from.clone()..).take(most), most);
            tree.scan(&from, |key, value| {
                assert_eq!(
                    rest.next(),
                    Some((&key.to_vec(), &value.try_into().unwrap()))
                );
                left -= 1;
                left > 0
            });
            assert_eq!(rest.next(), None, "{}", choice.name());
        }
    }
}

/// §5.2: leaves of strings have fingerprints after gets, and hints after scans; those of numbers far from each other have hints all the time.
#[test]
fn leaves_follow_what_is_done_with_them() {
    // Five neighbours at a time begin alike: heads do not tell them apart.
    let string = |n: u32| format!("{:08x}-page-{}", (n / 5).wrapping_mul(0x9e37_79b1), n % 5);
    let strings: Vec<_> = (0..20_000).map(|n| string(n).into_bytes()).collect();
    let mut tree = PageTree::new(LayoutChoice::ADAPTIVE, NODE);
    for key in &strings {
        tree.put(key, b"8 bytes.").expect("it fits");
    }
    let fingerprints = |tree: &PageTree| tree.counts().share_of(PageLayout::Fingerprint);
    assert!(fingerprints(&tree) > 0.9, "{:?}", tree.counts().kinds);
    for from in strings.iter().cycle().take(60_000) {
        tree.scan(from, |_, _| false);
    }
    // Full leaves have no room for heads, and stay as they are.
    assert!(fingerprints(&tree) < 0.3, "{:?}", tree.counts().kinds);
    for key in strings.iter().cycle().take(200_000) {
        assert!(tree.get(key).is_some());
    }
    assert!(fingerprints(&tree) > 0.9, "{:?}", tree.counts().kinds);

    let mut tree = PageTree::new(LayoutChoice::ADAPTIVE, NODE);
    for key in bytes(&keys::sparse(20_000, Order::Random, 1)) {
        tree.put(&key, b"8 bytes.").expect("it fits");
        assert!(tree.get(&key).is_some());
    }
    assert_eq!(tree.counts().share_of(PageLayout::Hints), 1.0);
}

/// BB-16: 500 records in each leaf but the first, which has no lower fence to hold, and the last.
#[test]
fn sorted_dense_keys_fill_fully_dense_leaves() {
    let counts = grow(
        PageLayout::FullyDense,
        &bytes(&keys::dense(50_001, 1.0, Order::Sorted, 1)),
    );
    let dense = counts.kinds["fully-dense"];
    assert_eq!((dense.leaves, dense.records), (100, 501 + 99 * 500));
}

/// BB-18: "compared to hints, space use is reduced by 52 % for FDLs and by 40 % for SDLs at 100 % density". What varies with the number of records is
/// the growth wave; fully dense leaves end where their places end, which saves more than the paper's do.
#[test]
fn dense_leaves_of_dense_keys_take_half_of_what_hints_do() {
    let keys = bytes(&keys::dense(100_000, 1.0, Order::Random, 1));
    let [hints, semi, fully] = [
        PageLayout::Hints,
        PageLayout::SemiDense,
        PageLayout::FullyDense,
    ]
    .map(|layout| grow(layout, &keys).bytes_per_record_with_inner());
    let (semi, fully) = (1.0 - semi / hints, 1.0 - fully / hints);
    assert!((0.36..0.45).contains(&semi), "{semi}");
    assert!((0.51..0.65).contains(&fully), "{fully}");
}

/// BB-06, BB-08, BB-10, BB-14, at a number of records where the waves of all layouts are far from their ends.
#[test]
fn layouts_with_slots_differ_by_their_slots() {
    let keys = bytes(&keys::sparse(100_000, Order::Random, 1));
    let [baseline, prefix, heads, hints, prints] = [
        PageLayout::Baseline,
        PageLayout::Prefix,
        PageLayout::Slotted,
        PageLayout::Hints,
        PageLayout::Fingerprint,
    ]
    .map(|layout| grow(layout, &keys).bytes_per_record());
    assert!(prefix < baseline);
    assert!((3.0..7.5).contains(&(heads - prefix)), "{prefix} {heads}");
    assert!(
        (0.0..0.03).contains(&(hints / heads - 1.0)),
        "{heads} {hints}"
    );
    assert!(
        (0.11..0.19).contains(&(1.0 - prints / hints)),
        "{prints} {hints}"
    );
}

#[test]
fn sparse_keys_have_no_dense_leaf_and_partitions_no_semi_dense_one() {
    let sparse = bytes(&keys::sparse(20_000, Order::Random, 1));
    let partitioned = keys::partitioned(40_000, 10, 1);
    for layout in PageLayout::DENSE {
        assert_eq!(grow(layout, &sparse).share_of(layout), 0.0);
    }
    // BB-25, and Figure 13.
    let semi = grow(PageLayout::SemiDense, &partitioned);
    assert_eq!(semi.share_of(PageLayout::SemiDense), 0.0);
    let fully = grow(PageLayout::FullyDense, &partitioned);
    assert!(
        fully.share_of(PageLayout::FullyDense) > 0.7,
        "{:?}",
        fully.kinds
    );
}

struct Puts<'a>(std::slice::Iter<'a, [u8; 4]>);

impl OpSource for Puts<'_> {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let Some(key) = self.0.next() else {
            return Ok(false);
        };
        (op.kind, op.key, op.value_len) = (OpKind::Put, key.to_vec(), 8);
        Ok(true)
    }
}

/// What the leaf model computes from keys alone is what pages have.
#[test]
fn bytes_per_record_are_predicted_for_layouts_that_take_any_records() {
    let keys = bytes(&keys::sparse(30_000, Order::Random, 5));
    for layout in PageLayout::ALL {
        let workload = Workload::analyze(&mut Puts(keys.iter()), Span::after(0)).expect("counts");
        let predicted = LeafLevel::grow(&workload, NODE + ENVELOPE_BYTES, layout).count();
        let leaves = grow(layout, &keys).leaves as f64;
        assert!(
            (predicted / leaves - 1.0).abs() < 0.03,
            "{layout:?}: {predicted} {leaves}"
        );
    }
}

#[test]
fn key_sets_are_what_they_say() {
    let numbers = keys::dense(10_000, 0.25, Order::Sorted, 7);
    assert_eq!(numbers.len(), 10_000);
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(numbers[9_999] < 40_000 && numbers[9_999] > 39_000);
    let all = keys::dense(1_000, 1.0, Order::Sorted, 7);
    assert!(all.into_iter().eq(0..1_000));
    let mut random = keys::sparse(5_000, Order::Random, 7);
    assert!(!random.is_sorted());
    random.sort_unstable();
    random.dedup();
    assert_eq!(random.len(), 5_000);
    assert_eq!(keys::lines(b"b\na\n\nb\n", 1).len(), 2);
    let mut ids = keys::partitioned(1_000, 4, 1);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 1_000);
}
