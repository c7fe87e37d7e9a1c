//! Splits between two keys, in every layout.

use super::super::*;
use crate::types::{Lsn, PageId};

/// A page with one record for each of these keys.
fn page(layout: PageLayout, keys: impl Iterator<Item = Vec<u8>>, upper: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut changes = ChangeMap::new();
    let records = keys.map(|key| (key, *b"the same"));
    PageMut::new(&mut bytes, &mut changes)
        .build(layout, PageId(7), b"key0", upper, Lsn(3), records)
        .expect("fits");
    bytes
}

fn number(n: usize) -> Vec<u8> {
    [&b"key0"[..], &(n as u32).to_be_bytes()].concat()
}

#[test]
fn a_split_between_two_keys_parts_them_and_keeps_every_record() {
    let all = PageLayout::ALL.into_iter().chain(PageLayout::DENSE);
    for layout in all {
        let bytes = page(layout, (0..90).map(number), Some(&number(1_000)));
        let view = PageRef::new(&bytes);
        for (one, other) in [(0, 1), (1, 0), (0, 89), (88, 89), (40, 47), (10, 80)] {
            let plan = view.split_between(&number(one), &number(other));
            let plan = plan.unwrap_or_else(|| panic!("{layout:?}: {one} and {other}"));
            let (low, high) = (one.min(other), one.max(other));
            assert_eq!(plan.at, low + (high - low).div_ceil(2), "{layout:?}");
            let (mut left, mut right) = (bytes.clone(), vec![0; 4096]);
            let (mut changes, mut more) = (ChangeMap::new(), ChangeMap::new());
            PageMut::new(&mut left, &mut changes)
                .split_into(&mut PageMut::new(&mut right, &mut more), PageId(8), &plan)
                .expect("as planned");
            let (left, right) = (PageRef::new(&left), PageRef::new(&right));
            assert!(left.get(&number(low)).is_some() && left.get(&number(high)).is_none());
            assert!(right.get(&number(high)).is_some() && right.get(&number(low)).is_none());
            let keys =
                |page: &PageRef<'_>| (0..page.count()).map(|i| page.key(i)).collect::<Vec<_>>();
            let found = [keys(&left), keys(&right)].concat();
            assert_eq!(found, (0..90).map(number).collect::<Vec<_>>(), "{layout:?}");
            // The separator is as short as possible: one byte less would not be above the left
            // side.
            let shorter = &plan.separator[..plan.separator.len() - 1];
            assert!(shorter <= &number(plan.at - 1)[..], "{layout:?}");
        }
    }
}

#[test]
fn keys_without_a_record_between_are_not_parted() {
    for layout in PageLayout::ALL {
        let bytes = page(layout, (0..20).map(|n| number(2 * n)), Some(b"key1"));
        let view = PageRef::new(&bytes);
        let parted = |one: usize, other: usize| view.split_between(&number(one), &number(other));
        assert_eq!(parted(6, 6), None, "one key");
        assert_eq!(parted(5, 6), None, "one of them is gone");
        assert_eq!(parted(38, 39), None, "behind the last");
        assert!(parted(5, 8).is_some_and(|plan| plan.at == 4), "{layout:?}");
        let outside = view.split_between(&number(4), b"key1");
        assert_eq!(outside, None, "moved away by another split");
    }
    for layout in PageLayout::ALL {
        let few = page(layout, std::iter::once(number(5)), None);
        assert_eq!(
            PageRef::new(&few).split_between(&number(1), &number(9)),
            None
        );
        let none = page(layout, std::iter::empty(), None);
        assert_eq!(
            PageRef::new(&none).split_between(&number(1), &number(9)),
            None
        );
    }
}

/// Longer fences take the room of a dense page's places. If the records lie close and the page is
/// full, a side with nearly all of them may have too few places.
#[test]
fn a_dense_page_is_split_only_where_both_sides_have_their_places() {
    for layout in PageLayout::DENSE {
        // Values of one byte: every byte of a fence costs at least one place.
        let full = |n: u32| {
            let mut bytes = vec![0; 4096];
            let mut changes = ChangeMap::new();
            let records = (0..n).map(|i| ((0x0100_0000 + i).to_be_bytes(), [7_u8]));
            let mut page = PageMut::new(&mut bytes, &mut changes);
            let upper = (0x0100_0000 + n).to_be_bytes();
            let built = page.build(layout, PageId(1), b"\x01", Some(&upper), Lsn(1), records);
            built.map(|()| bytes)
        };
        let most = (1..4_000).rev().find(|n| full(*n).is_ok()).expect("some");
        let bytes = full(most).expect("fits");
        let view = PageRef::new(&bytes);
        for (one, other) in [(0, 1), (1, 2), (0, most - 1), (most - 2, most - 1)] {
            let key = |n: u32| (0x0100_0000 + n).to_be_bytes();
            let Some(plan) = view.split_between(&key(one), &key(other)) else {
                continue;
            };
            let (mut left, mut right) = (bytes.clone(), vec![0; 4096]);
            let (mut changes, mut more) = (ChangeMap::new(), ChangeMap::new());
            PageMut::new(&mut left, &mut changes)
                .split_into(&mut PageMut::new(&mut right, &mut more), PageId(8), &plan)
                .expect("as planned");
            let sum = PageRef::new(&left).count() + PageRef::new(&right).count();
            assert_eq!(sum, most as usize, "{layout:?}");
        }
        // A split at the middle always works.
        let key = |n: u32| (0x0100_0000 + n).to_be_bytes();
        assert!(view.split_between(&key(0), &key(most - 1)).is_some());
    }
}
