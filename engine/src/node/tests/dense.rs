//! Dense leaves: how they come into being, what they hold, and how they end.

use super::Tracked;
use super::model::{Level, Step, run};
use crate::node::{ENVELOPE_BYTES, LayoutChoice, PageLayout, Put, Refused, Remedy, places};

/// A page that gives 4 KiB to the layout alone, as the paper counts.
const PAPER: usize = 4096 + ENVELOPE_BYTES;

fn level(layout: PageLayout, keys: impl IntoIterator<Item = Vec<u8>>) -> Level {
    let mut level = Level::new(layout, PAPER);
    for key in keys {
        assert_eq!(level.put(&key, b"8 bytes."), Put::Inserted);
    }
    level
}

/// The record counts of all leaves of a layout.
fn counts(level: &Level, layout: PageLayout) -> Vec<usize> {
    let leaves = level.pages.iter().map(|page| page.view());
    let such = leaves.filter(|page| page.layout() == layout);
    such.map(|page| page.count()).collect()
}

fn shuffled(count: u32) -> Vec<u32> {
    let mut numbers: Vec<_> = (0..count).collect();
    let mut state = 1_u64;
    for i in (1..numbers.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        numbers.swap(i, (state >> 33) as usize % (i + 1));
    }
    numbers
}

/// §3.5: "around 500 records can be stored per 4 KiB node".
#[test]
fn ascending_keys_fill_fully_dense_leaves_to_the_last_place() {
    let level = level(
        PageLayout::FullyDense,
        (0..5_100_u32).map(|n| n.to_be_bytes().to_vec()),
    );
    let mut counts = counts(&level, PageLayout::FullyDense);
    assert_eq!(counts.len(), 10);
    counts.dedup();
    // The first page has an empty lower fence.
    assert_eq!(counts, [501, 500]);
    // No split has moved a record.
    assert_eq!(level.splits, 10);
}

#[test]
fn random_dense_keys_end_in_dense_leaves() {
    for layout in PageLayout::DENSE {
        let level = level(
            layout,
            shuffled(20_000).iter().map(|n| n.to_be_bytes().to_vec()),
        );
        let dense: usize = counts(&level, layout).iter().sum();
        assert!(dense >= 17_000, "{layout:?}: {dense} of 20000");
    }
}

#[test]
fn sparse_keys_never_become_dense() {
    for layout in PageLayout::DENSE {
        let keys = shuffled(5_000)
            .into_iter()
            .map(|n| n.wrapping_mul(0x9e37_79b1));
        let level = level(layout, keys.map(|n| n.to_be_bytes().to_vec()));
        assert_eq!(level.relayouts, 0);
    }
}

/// §3.5 "Partition Detection": ascending numbers in several ranges, in turns.
#[test]
fn ascending_keys_in_several_partitions_fill_fully_dense_leaves() {
    let keys = (0..2_000_u32).flat_map(|n| (0..7_u32).map(move |p| (p * 1000, n)));
    let keys = keys.map(|(p, n)| [p.to_be_bytes(), n.to_be_bytes()].concat());
    let fully = level(PageLayout::FullyDense, keys.clone());
    let counts_fully = counts(&fully, PageLayout::FullyDense);
    let full = counts_fully.iter().filter(|count| **count >= 490).count();
    assert!(full >= 7 * 3, "{counts_fully:?}");
    // §4.6: the range of a partition's last leaf is too large for a semi-dense page.
    let semi = level(PageLayout::SemiDense, keys);
    assert_eq!(counts(&semi, PageLayout::SemiDense), []);
}

/// One key of another length: the full page has no room for all records in the general layout, and
/// is split until one part has.
#[test]
fn a_string_in_a_full_dense_leaf_splits_it_until_it_fits() {
    for layout in PageLayout::DENSE {
        let mut steps: Vec<_> = (0..1_500_u32)
            .map(|n| Step::Put(n.to_be_bytes().to_vec(), 8))
            .collect();
        steps.push(Step::Put(
            [&700_u32.to_be_bytes()[..], b"string"].concat(),
            8,
        ));
        steps.push(Step::Put(b"\0\0\x03".to_vec(), 8));
        let level = run(layout, 4096, &steps);
        let with = level.pages.iter().find(|page| page.view().count() > 0);
        assert!(with.is_some());
        let mixed = level.pages.iter().filter(|page| {
            let page = page.view();
            (0..page.count()).any(|i| page.key(i).len() != 4)
        });
        for page in mixed {
            assert_eq!(page.view().layout(), PageLayout::Hints);
        }
    }
}

/// A value of another length fits a semi-dense page, but ends a fully dense one.
#[test]
fn values_of_other_lengths_change_only_fully_dense_leaves() {
    for (layout, expected) in [
        (PageLayout::SemiDense, PageLayout::SemiDense),
        (PageLayout::FullyDense, PageLayout::Hints),
    ] {
        let mut page = few(layout);
        let key = 40_u32.to_be_bytes();
        let value = [5; 20];
        if page.change(|p| p.put(&key, &value)) == Err(Refused::Unfit) {
            let choice = LayoutChoice::of(layout);
            let remedy = choice.remedy(&page.view(), &key, value.len());
            assert_eq!(remedy, Some(Remedy::Relayout(PageLayout::Hints)));
            page.change(|p| p.relayout(PageLayout::Hints)).unwrap();
            page.change(|p| p.put(&key, &value)).unwrap();
        }
        assert_eq!(page.view().layout(), expected);
        assert_eq!(page.view().get(&key), Some(&value[..]));
        assert_eq!(
            page.view().get(&41_u32.to_be_bytes()),
            Some(&b"8 bytes."[..])
        );
    }
}

/// A dense page of 50 records between 10 and 2010.
fn few(layout: PageLayout) -> Tracked {
    let (lower, upper) = (10_u32.to_be_bytes(), 2010_u32.to_be_bytes());
    let mut page = Tracked::new(PageLayout::Hints, 4096, 1, &lower, Some(&upper));
    for n in 10..60_u32 {
        page.change(|p| p.put(&n.to_be_bytes(), b"8 bytes."))
            .unwrap();
    }
    if layout == PageLayout::SemiDense {
        page.change(|p| p.truncate_to(&500_u32.to_be_bytes()))
            .unwrap();
    }
    page.change(|p| p.relayout(layout)).unwrap();
    page
}

#[test]
fn a_dense_page_answers_for_keys_of_any_length() {
    for layout in PageLayout::DENSE {
        let mut page = few(layout);
        for n in (10..60_u32).step_by(3) {
            let key = n.to_be_bytes();
            assert_eq!(page.change(|p| Ok::<_, ()>(p.delete(&key))), Ok(true));
            assert_eq!(page.change(|p| Ok::<_, ()>(p.delete(&key))), Ok(false));
        }
        let keys: Vec<_> = (0..page.view().count())
            .map(|i| page.view().key(i))
            .collect();
        assert_eq!(keys.len(), 33);
        let long = |n: u32| [&n.to_be_bytes()[..], b"x"].concat();
        let asked = (0..70_u32).flat_map(|n| [n.to_be_bytes().to_vec(), long(n)]);
        let others = [
            vec![],
            vec![0],
            vec![0, 0, 0],
            vec![0, 0, 1],
            vec![0xff; 9],
            vec![0; 9],
        ];
        for key in asked.chain(others) {
            assert_eq!(
                page.view().search(&key),
                keys.binary_search(&key),
                "{key:?}"
            );
            assert_eq!(page.view().get(&key).is_some(), keys.contains(&key));
            let rest = page.view().iter_from(&key).count();
            assert_eq!(rest, keys.iter().filter(|k| **k >= key).count());
        }
        let back: Vec<_> = (page.view().iter().rev())
            .map(|(s, _)| s.to_vec())
            .collect();
        let mut forth: Vec<_> = page.view().iter().map(|(s, _)| s.to_vec()).collect();
        forth.reverse();
        assert_eq!(back, forth);
    }
}

/// Numbers at the very end of their range, and keys of one byte.
#[test]
fn the_last_number_has_a_place_and_nothing_is_behind_it() {
    let level = level(
        PageLayout::FullyDense,
        (0..3_000_u32).map(|n| (u32::MAX - 2_999 + n).to_be_bytes().to_vec()),
    );
    assert!(level.relayouts >= 5);
    let last = level.pages.last().unwrap().view();
    assert_eq!(last.get(&u32::MAX.to_be_bytes()), Some(&b"8 bytes."[..]));
    for layout in PageLayout::DENSE {
        let mut page = Tracked::new(PageLayout::Hints, 4096, 1, b"", Some(b"\xff\xff"));
        for n in 0..=255_u8 {
            page.change(|p| p.put(&[n], b"")).unwrap();
        }
        page.change(|p| p.relayout(layout)).unwrap();
        for n in 0..=255_u8 {
            assert_eq!(page.view().get(&[n]), Some(&b""[..]));
        }
        assert_eq!(page.change(|p| p.put(b"", b"")), Err(Refused::Unfit));
        assert_eq!(page.change(|p| p.put(b"\xff\0", b"")), Err(Refused::Unfit));
    }
}

/// A page whose records are not dense refuses the conversion and stays as it was.
#[test]
fn records_that_are_not_dense_stay_as_they_are() {
    let build = |lower: &[u8], keys: &[&[u8]]| {
        let mut page = Tracked::new(PageLayout::Hints, 4096, 1, lower, None);
        for key in keys {
            page.change(|p| p.put(key, b"v")).unwrap();
        }
        page
    };
    let cases = [
        ("no record", build(b"", &[])),
        ("two lengths", build(b"", &[b"abc", b"abcd"])),
        ("the empty key", build(b"", &[b""])),
        (
            "no fixed part in the fence",
            build(b"a", &[b"ab0001", b"ab0002"]),
        ),
        ("two fixed parts", build(b"ab", &[b"ab0001", b"ac0001"])),
        ("too far apart", build(b"ab", &[b"ab0001", b"ab9999"])),
    ];
    for (what, mut page) in cases {
        for layout in PageLayout::DENSE {
            assert_eq!(
                page.change(|p| p.relayout(layout)),
                Err(Refused::Unfit),
                "{what}"
            );
        }
    }
}

/// The places that models compute are those of real pages.
#[test]
fn places_are_those_of_a_page() {
    let key = |n: u32| n.to_be_bytes().to_vec();
    let of = |layout, lower: &[u8], upper: Option<&[u8]>, key_len| {
        places(layout, PAPER, (lower, upper), key_len, 8)
    };
    let fully = of(PageLayout::FullyDense, &key(100), None, 4).expect("such a page");
    assert_eq!((fully.count(), fully.fixed_bytes()), (500, 0));
    assert_eq!(fully.end(), Some(&key(600)[..]));
    for (n, has) in [(99, false), (100, true), (599, true), (600, false)] {
        assert_eq!(fully.has(&key(n)), has, "{n}");
    }
    assert_eq!(fully.distance(&key(700)), Some(600));
    assert_eq!(fully.distance(b"longer"), None);
    let semi = of(
        PageLayout::SemiDense,
        b"id\0\0\0\x01",
        Some(b"id\0\0\x01"),
        6,
    );
    let semi = semi.expect("such a page");
    assert_eq!((semi.count(), semi.fixed_bytes()), (255, 2));
    assert!(semi.has(b"id\0\0\0\xff") && !semi.has(b"ix\0\0\0\xff"));
    assert_eq!(semi.used_bytes(), 48 + 2 * 255 + 6 + 5);
    // Every number would need a place.
    assert_eq!(of(PageLayout::SemiDense, b"", None, 4), Err(Refused::Unfit));
    assert_eq!(of(PageLayout::Hints, b"", None, 4), Err(Refused::Unfit));
}
