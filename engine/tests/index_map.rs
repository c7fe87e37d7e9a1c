//! Tests the index against an ordered map, in one thread, with nodes so small that they split and
//! merge all the time.
#![cfg(not(loom))]

use proptest::prelude::*;
use std::collections::BTreeMap;
use treering_engine::PageId;
use treering_engine::index::{Index, IndexOf, UnsortedEntries};

/// A few letters, including zeros: keys that are prefixes of each other, have equal heads, or
/// differ only in padding.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let short = prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', 255]), 0..4);
    prop_oneof![
        4 => short.clone(),
        3 => short.clone().prop_map(|tail| [b"samehead".to_vec(), tail].concat()),
        2 => short.clone().prop_map(|tail| [b"samehead and more".to_vec(), tail].concat()),
        1 => short.clone().prop_map(|tail| [vec![255; 8], tail].concat()),
        1 => (short, 60usize..9000).prop_map(|(tail, n)| [vec![7; n / 500 * 500], tail].concat()),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, u64),
    Remove(Vec<u8>),
    RemoveNth(usize),
    Find(Vec<u8>),
    Range(Vec<u8>, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (key(), any::<u64>()).prop_map(|(k, p)| Step::Insert(k, p)),
        1 => key().prop_map(Step::Remove),
        3 => (0usize..200).prop_map(Step::RemoveNth),
        3 => key().prop_map(Step::Find),
        1 => (key(), 0usize..20).prop_map(|(k, n)| Step::Range(k, n)),
    ]
}

fn agree<const N: usize>(steps: &[Step]) -> Result<(), TestCaseError> {
    let index = IndexOf::<N>::new(PageId(1));
    let mut map = BTreeMap::from([(vec![], PageId(1))]);
    for step in steps {
        match step {
            Step::Insert(key, page) => {
                index.insert(key, PageId(*page));
                map.insert(key.clone(), PageId(*page));
            }
            Step::Remove(key) => {
                let there = !key.is_empty() && map.remove(key).is_some();
                prop_assert_eq!(index.remove(key), there);
            }
            Step::RemoveNth(n) => {
                let key = map.keys().nth(1 + n % map.len()).cloned();
                if let Some(key) = key {
                    map.remove(&key);
                    prop_assert!(index.remove(&key), "{:?} is there", key);
                }
            }
            Step::Find(key) => {
                let expected = map.range(..=key.clone()).next_back().map(|(_, page)| *page);
                prop_assert_eq!(Some(index.find(key)), expected);
                let before = map
                    .range(..key.clone())
                    .next_back()
                    .map(|(k, p)| (k.clone(), *p));
                prop_assert_eq!(index.find_before(key), before);
            }
            Step::Range(from, max) => {
                let expected: Vec<_> = map
                    .range(from.clone()..)
                    .take(*max)
                    .map(|(k, p)| (k.clone(), *p))
                    .collect();
                prop_assert_eq!(index.range(from, *max), expected);
            }
        }
        prop_assert_eq!(index.len(), map.len());
    }
    prop_assert_eq!(
        index.range(b"", usize::MAX),
        map.clone().into_iter().collect::<Vec<_>>()
    );
    for key in map.keys().skip(1) {
        prop_assert!(index.remove(key));
    }
    prop_assert_eq!(index.range(b"", usize::MAX).len(), 1);
    // At most a leftmost path may be left.
    prop_assert!(index.nodes() <= 12, "{} nodes for one leaf", index.nodes());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn nodes_of_three_agree_with_an_ordered_map(steps in prop::collection::vec(step(), 0..300)) {
        agree::<3>(&steps)?;
    }

    #[test]
    fn nodes_of_eight_agree_with_an_ordered_map(steps in prop::collection::vec(step(), 0..300)) {
        agree::<8>(&steps)?;
    }
}

#[test]
fn a_fifo_of_leaves_does_not_leak_memory() {
    let index = IndexOf::<8>::new(PageId(0));
    let key = |i: u64| [b"a long common prefix ".as_slice(), &i.to_be_bytes()].concat();
    let mut settled = 0;
    for i in 1..20_000u64 {
        index.insert(&key(i), PageId(i));
        if i > 100 {
            assert!(index.remove(&key(i - 100)));
        }
        if i == 1000 {
            settled = index.bytes();
        }
    }
    assert_eq!(index.len(), 101);
    assert!(
        index.bytes() <= settled * 2,
        "{} bytes grew to {}",
        settled,
        index.bytes()
    );
}

#[test]
fn unsorted_entries_are_refused_by_position() {
    let load = |keys: &[&str]| {
        Index::from_sorted(keys.iter().map(|k| (*k, PageId(0))), 170).map(|i| i.len())
    };
    assert_eq!(load(&["", "a", "ab"]), Ok(3));
    assert_eq!(load(&[]), Err(UnsortedEntries { at: 0 }));
    assert_eq!(load(&["a"]), Err(UnsortedEntries { at: 0 }));
    assert_eq!(load(&["", "b", "b"]), Err(UnsortedEntries { at: 2 }));
}
