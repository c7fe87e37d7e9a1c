//! Key sets that each attack one layout, run against all layouts: equal heads, equal fingerprints,
//! dense runs broken by one string, keys at the fences, values that change their size. Compared
//! with `BTreeMap`, as in [`super::model`].

use proptest::prelude::*;

use super::model::{Step, every, run};
use crate::node::PageLayout;
use crate::node::leaves::fingerprint::fingerprint;

/// Keys of three bytes that all have the same fingerprint in a page without prefix.
fn alike() -> Vec<Vec<u8>> {
    let keys = (0..1_u32 << 17).map(|n| n.to_be_bytes()[1..].to_vec());
    keys.filter(|key| fingerprint(key) == 0x5a).collect()
}

/// A key of one of the sets.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let alike = alike();
    prop_oneof![
        // Equal heads, with keys shorter and longer than the head.
        3 => (0_u8..4, 0_usize..8).prop_map(|(last, len)| [&vec![7; len][..], &[last]].concat()),
        3 => (0_u16..300).prop_map(|n| [b"same head ".as_slice(), &n.to_be_bytes()].concat()),
        3 => prop::sample::select(alike),
        // A dense run with strings in it: longer and shorter than their neighbours.
        6 => (0_u32..900).prop_map(|n| n.to_be_bytes().to_vec()),
        1 => (0_u32..900).prop_map(|n| [&n.to_be_bytes()[..], b"!"].concat()),
        1 => (0_u32..900).prop_map(|n| n.to_be_bytes()[..3].to_vec()),
        // Runs of eight-byte keys in partitions.
        4 => (0_u32..3, 0_u32..300).prop_map(|(p, n)| [p.to_be_bytes(), n.to_be_bytes()].concat()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![6 => Just(8_usize), 2 => 0_usize..30, 1 => 100_usize..400];
    prop_oneof![
        14 => (key(), size).prop_map(|(key, size)| Step::Put(key, size)),
        4 => key().prop_map(Step::Delete),
        1 => any::<usize>().prop_map(Step::Split),
        1 => any::<usize>().prop_map(Step::Merge),
        1 => any::<usize>().prop_map(Step::Sort),
        3 => key().prop_map(Step::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn adversarial_keys_behave_as_in_an_ordered_map(
        steps in prop::collection::vec(step(), 50..1500)
    ) {
        for layout in every() {
            run(layout, 4096, &steps);
        }
    }
}

/// The keys beside the fences that splits have made, and the fences themselves.
#[test]
fn keys_at_the_fences_stay_on_their_side() {
    for layout in every() {
        let numbers = (0..400_u32).map(|n| n * 3);
        let mut steps: Vec<_> = (numbers.clone())
            .map(|n| Step::Put(n.to_be_bytes().to_vec(), 24))
            .collect();
        for n in numbers {
            for beside in [n + 1, n + 2] {
                let key = beside.to_be_bytes();
                steps.push(Step::Read(key.to_vec()));
                steps.push(Step::Put(key.to_vec(), 1));
                // A separator is a truncated key, so such a key may equal a fence.
                steps.push(Step::Put(key[..3].to_vec(), 2));
                steps.push(Step::Delete(key.to_vec()));
            }
        }
        let level = run(layout, 4096, &steps);
        assert!(level.splits >= 4, "{}", level.splits);
    }
}

/// All candidates but one are wrong.
#[test]
fn a_page_of_equal_fingerprints_finds_each_key() {
    let keys: Vec<_> = alike().into_iter().take(120).collect();
    assert_eq!(keys.len(), 120);
    let (even, odd): (Vec<_>, Vec<_>) =
        (keys.into_iter().enumerate()).partition(|(index, _)| index % 2 == 0);
    let puts = even.iter().rev().map(|(_, key)| Step::Put(key.clone(), 8));
    let reads = even
        .iter()
        .chain(&odd)
        .map(|(_, key)| Step::Read(key.clone()));
    let deletes = even
        .iter()
        .step_by(3)
        .map(|(_, key)| Step::Delete(key.clone()));
    let steps: Vec<_> = puts
        .chain(reads.clone())
        .chain(deletes)
        .chain(reads)
        .collect();
    for layout in every() {
        assert_eq!(run(layout, 4096, &steps).splits, 0);
    }
}

/// Hints are rebuilt wholly if their distance changes, and partly otherwise: tests every count up
/// and down, and every position.
#[test]
fn hints_follow_each_insertion_and_removal() {
    let key = |n: u32| n.wrapping_mul(0x9e37_79b1).to_be_bytes().to_vec();
    let puts = (0..230).map(|n| Step::Put(key(n), 0));
    let sorts = [Step::Sort(0)];
    let deletes = (0..230).map(|n| Step::Delete(key(n * 97 % 230)));
    let again = (0..60).map(|n| Step::Put(key(n * 7), 3));
    let steps: Vec<_> = puts.chain(sorts).chain(deletes).chain(again).collect();
    // `Tracked` checks the index after each step.
    assert_eq!(run(PageLayout::Hints, 4096, &steps).merges, 0);
}
