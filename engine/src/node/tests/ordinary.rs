//! Single cases, each named after the bug that it guards against.

use super::Tracked;
use crate::error::Error;
use crate::node::{ChangeMap, ENVELOPE_BYTES, PageDamage};
use crate::node::{
    MAX_PAGE_BYTES, PageLayout, PageMut, Put, Refused, SplitPlan, check, check_deep, limits,
};
use crate::types::{Lsn, PageId};

fn page_of(layout: PageLayout, records: &[(&[u8], &[u8])]) -> Tracked {
    let mut page = Tracked::new(layout, 4096, 1, b"", None);
    for (key, value) in records {
        page.change(|p| p.put(key, value)).unwrap();
    }
    page
}

fn marked(page: &mut Tracked, change: impl FnOnce(&mut PageMut<'_>)) -> Vec<usize> {
    let mut map = ChangeMap::new();
    change(&mut PageMut::new(&mut page.bytes, &mut map));
    map.segments().collect()
}

/// Bf-Tree issue 17: equal look-ahead bytes taken for equal keys.
#[test]
fn keys_that_are_prefixes_of_each_other_stay_apart() {
    for layout in PageLayout::ALL {
        let keys: [&[u8]; 9] = [
            b"",
            b"\0",
            b"\0\0\0\0\0",
            b"a",
            b"a\0",
            b"a\0\0\0",
            b"a\0\0\0\0",
            b"test",
            b"teste",
        ];
        for skip in 0..keys.len() {
            let mut page = Tracked::new(layout, 4096, 1, b"", None);
            for (i, key) in keys.iter().enumerate().rev().filter(|(i, _)| *i != skip) {
                assert_eq!(page.change(|p| p.put(key, &[i as u8])), Ok(Put::Inserted));
            }
            for (i, key) in keys.iter().enumerate() {
                let expected = (i != skip).then_some([i as u8]);
                assert_eq!(
                    page.view().get(key),
                    expected.as_ref().map(|v| &v[..]),
                    "{key:?}"
                );
            }
        }
    }
}

/// Typhon issue 297: the lower separator was not checked on an insert at slot 0.
#[test]
fn a_key_outside_the_fences_is_refused_and_never_found() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, 4096, 1, b"prefix-b", Some(b"prefix-d"));
        page.change(|p| p.put(b"prefix-c", b"1")).unwrap();
        for key in [
            &b""[..],
            b"prefix-",
            b"prefix-a",
            b"prefix-azzz",
            b"prefix-d",
            b"prefix-e",
            b"prefix",
            b"q",
            b"c",
        ] {
            assert_eq!(
                page.change(|p| p.put(key, b"x")),
                Err(Refused::NotCovered),
                "{key:?}"
            );
            assert_eq!(page.view().get(key), None, "{key:?}");
            assert!(!page.view().covers(key));
        }
        assert_eq!(page.view().search(b"a"), Err(0));
        assert_eq!(page.view().search(b"q"), Err(1));
        assert_eq!(
            page.change(|p| p.put(b"prefix-b", b"low end")),
            Ok(Put::Inserted)
        );
        let prefix: &[u8] = match layout {
            PageLayout::Baseline => b"",
            _ => b"prefix-",
        };
        assert_eq!(page.view().prefix(), prefix);
        assert_eq!(*page.view().suffix(0), b"prefix-b"[prefix.len()..]);
    }
}

#[test]
fn empty_fences_and_reversed_fences_make_no_page() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, 4096, 1, b"", None);
        let id = PageId(2);
        assert_eq!(
            page.change(|p| p.init(layout, id, b"b", Some(b"a"))),
            Err(Refused::NotCovered)
        );
        assert_eq!(
            page.change(|p| p.init(layout, id, b"b", Some(b"b"))),
            Err(Refused::NotCovered)
        );
        assert_eq!(
            page.change(|p| p.init(layout, id, b"", Some(b""))),
            Err(Refused::NotCovered)
        );
        assert_eq!(
            page.change(|p| p.init(layout, id, &[1; 513], None)),
            Err(Refused::TooLarge)
        );
        assert_eq!(
            page.change(|p| p.init(layout, id, b"", Some(b"\0"))),
            Ok(())
        );
    }
}

/// redb e1ed56da: a 16-bit entry count overflowed. The largest page, filled with the smallest
/// records.
#[test]
fn the_largest_page_counts_its_smallest_records() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, MAX_PAGE_BYTES, 1, b"", None);
        assert_eq!(page.change(|p| p.put(b"", b"")), Ok(Put::Inserted));
        let mut bytes = page.bytes.clone();
        let mut map = ChangeMap::new();
        let mut guard = PageMut::new(&mut bytes, &mut map);
        let mut count = 1_usize;
        while guard.put(&(count as u16).to_be_bytes(), b"") == Ok(Put::Inserted) {
            count += 1;
        }
        assert_eq!(
            count,
            (MAX_PAGE_BYTES - layout.header_bytes() - layout.slots_bytes(5000)
                + 4999 * layout.slot_bytes())
                / (layout.slot_bytes() + 2)
                + 1
        );
        assert_eq!(guard.view().count(), count);
        guard.seal();
        assert_eq!(check_deep(&bytes, PageId(1)), Ok(()));
    }
}

#[test]
fn a_value_of_the_same_size_is_overwritten_in_place() {
    for layout in PageLayout::ALL {
        let mut page = page_of(layout, &[(b"a", b"first"), (b"b", &[7; 100])]);
        let free = page.view().free_bytes();
        let marked = marked(&mut page, |p| {
            assert_eq!(p.put(b"a", b"other"), Ok(Put::Replaced))
        });
        assert_eq!(marked, [63], "only the value's own segment");
        assert_eq!(page.view().get(b"a"), Some(&b"other"[..]));
        assert_eq!(page.view().free_bytes(), free);
    }
}

#[test]
fn a_long_value_marks_only_the_segments_in_which_the_new_one_differs() {
    for layout in PageLayout::ALL {
        let old = vec![7; 1_000];
        let mut page = page_of(layout, &[(b"a", &old), (b"b", &[1; 100])]);
        // The value ends at the page's end (there are no fences), so its byte `i` lies at 4096 -
        // 1000 + i.
        let place = |i: usize| (4096 - 1_000 + i) / 64;
        let mut new = old.clone();
        (new[100], new[101], new[700]) = (8, 8, 8);
        let put = |page: &mut Tracked, value: &[u8]| {
            marked(page, |p| assert_eq!(p.put(b"a", value), Ok(Put::Replaced)))
        };
        assert_eq!(put(&mut page, &new), [place(100), place(700)]);
        assert_eq!(page.view().get(b"a"), Some(&new[..]));
        assert_eq!(put(&mut page, &new), [0; 0], "nothing differs");
        new[0] = 9;
        new[999] = 9;
        assert_eq!(put(&mut page, &new), [place(0), 63]);
        // Marks the whole value, and nothing else.
        let all: Vec<usize> = (place(0)..64).collect();
        assert_eq!(put(&mut page, &vec![3; 1_000]), all);
    }
}

#[test]
fn setting_the_lsn_or_sealing_changes_only_the_envelope_which_is_no_segment() {
    for layout in PageLayout::ALL {
        let mut page = page_of(layout, &[(b"a", b"1")]);
        let changes: [fn(&mut PageMut<'_>); 2] = [|p| p.set_lsn(Lsn(77)), |p| p.seal()];
        for change in changes {
            let (before, mut map) = (page.bytes.clone(), ChangeMap::new());
            change(&mut PageMut::new(&mut page.bytes, &mut map));
            assert!(map.count() == 0 && !map.is_clean());
            assert_eq!(before[ENVELOPE_BYTES..], page.bytes[ENVELOPE_BYTES..]);
        }
        assert_eq!(page.view().lsn(), Lsn(77));
        assert_eq!(check(&page.bytes, PageId(1)), Ok(()));
        let _ = page.change(|p| p.put(b"b", b""));
        assert!(matches!(
            check(&page.bytes, PageId(1)),
            Err(PageDamage::Checksum { .. })
        ));
    }
}

#[test]
fn free_space_counts_holes_and_compaction_finds_them() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, 4096, 1, b"", None);
        let empty = page.view().free_bytes();
        assert_eq!(empty, 4096 - layout.header_bytes());
        assert!(page.view().is_three_quarters_free());
        for round in 0..50_u8 {
            for key in [b"a", b"b", b"c"] {
                page.change(|p| p.put(key, &vec![round; 900 + usize::from(round)]))
                    .unwrap();
            }
            assert_eq!(
                page.view().used_bytes(),
                layout.header_bytes() + 3 * (layout.slot_bytes() + 901 + usize::from(round))
            );
        }
        for key in [b"a", b"b", b"c"] {
            assert_eq!(page.change(|p| Ok::<_, Refused>(p.delete(key))), Ok(true));
            assert_eq!(page.change(|p| Ok::<_, Refused>(p.delete(key))), Ok(false));
        }
        assert_eq!(page.view().free_bytes(), empty);
    }
}

#[test]
fn a_value_grows_into_its_own_old_place_when_nothing_else_is_free() {
    for layout in PageLayout::ALL {
        let mut page = page_of(layout, &[(b"a", &[1; 1400]), (b"b", &[2; 1400])]);
        page.change(|p| p.put(b"c", &[3; 1180])).unwrap();
        let free = page.view().free_bytes();
        assert!(free < 100);
        let larger = vec![4; 1180 + free];
        assert_eq!(page.change(|p| p.put(b"c", &larger)), Ok(Put::Replaced));
        assert_eq!(page.view().free_bytes(), 0);
        assert_eq!(
            page.change(|p| p.put(b"c", &vec![5; larger.len() + 1])),
            Err(Refused::NoSpace)
        );
        assert_eq!(page.view().get(b"c"), Some(&larger[..]));
        assert_eq!(page.change(|p| p.put(b"b", b"")), Ok(Put::Replaced));
        assert_eq!(page.view().get(b"b"), Some(&b""[..]));
    }
}

/// What a modification log would write must not grow because a page was compacted.
#[test]
fn compaction_marks_only_what_moved() {
    for layout in PageLayout::ALL {
        let mut page = page_of(
            layout,
            &[(b"a", &[1; 1400]), (b"b", &[2; 1400]), (b"c", &[3; 1000])],
        );
        let grown = [4; 1100];
        assert!(page.view().free_bytes() < grown.len());
        let marked = marked(&mut page, |p| {
            assert_eq!(p.put(b"c", &grown), Ok(Put::Replaced))
        });
        let moved_from = (4096 - 2 * 1401) / 64;
        assert_eq!(marked[0], 0);
        assert_eq!(
            marked.last(),
            Some(&moved_from),
            "payloads of a and b stay in place"
        );
    }
}

#[test]
fn records_of_one_size_split_at_the_middle() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, 4096, 1, b"", None);
        for n in 0..64_u32 {
            page.change(|p| p.put(&n.to_be_bytes(), &[0; 16])).unwrap();
        }
        let plan = page.view().choose_separator().unwrap();
        assert_eq!(
            plan.at, 31,
            "the first of keys 30..34 that differs from key 30"
        );
        assert_eq!(plan.separator, 31_u32.to_be_bytes());
    }
}

/// "First key to differ in the byte behind the common prefix": a short separator a little off the
/// middle is preferred.
#[test]
fn a_shorter_separator_near_the_middle_is_preferred() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, 4096, 1, b"", None);
        for n in 0..64_u32 {
            let word = if n < 33 { "apple" } else { "banana" };
            page.change(|p| p.put(format!("{word}{n:03}").as_bytes(), b"v"))
                .unwrap();
        }
        let plan = page.view().choose_separator().unwrap();
        assert_eq!(
            plan,
            SplitPlan {
                separator: b"b".to_vec(),
                at: 33,
                right: layout,
            }
        );
    }
}

#[test]
fn one_huge_record_among_tiny_ones_splits_by_bytes() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, 4096, 1, b"", None);
        for n in 0..50_u8 {
            page.change(|p| p.put(&[b'a', n], b"")).unwrap();
        }
        page.change(|p| p.put(b"b1", &[0; 1400])).unwrap();
        page.change(|p| p.put(b"b2", &[0; 1400])).unwrap();
        let plan = page.view().choose_separator().unwrap();
        assert!(
            plan.at >= 49,
            "{plan:?}: the median by count would leave both large records on one side"
        );
    }
}

#[test]
fn a_page_of_one_record_cannot_be_split_and_stale_plans_are_refused() {
    for layout in PageLayout::ALL {
        let mut page = page_of(layout, &[(b"a", b"1")]);
        assert_eq!(page.view().choose_separator(), None);
        page.change(|p| p.put(b"b", b"2")).unwrap();
        let plan = page.view().choose_separator().unwrap();
        assert_eq!(
            plan,
            SplitPlan {
                separator: b"b".to_vec(),
                at: 1,
                right: layout,
            }
        );
        page.change(|p| p.put(b"0", b"0")).unwrap();
        let mut right = Tracked::new(layout, 4096, 2, b"", None);
        let mut map = ChangeMap::new();
        let mut right = PageMut::new(&mut right.bytes, &mut map);
        let split = page.change(|p| p.split_into(&mut right, PageId(2), &plan));
        assert_eq!(split, Err(Refused::NotCovered));
        assert_eq!(
            page.change(|p| p.truncate_to(b"")),
            Err(Refused::NotCovered)
        );
    }
}

#[test]
fn unsorted_or_foreign_records_make_no_page() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, 4096, 1, b"", None);
        let mut build = |records: &[(&[u8], &[u8])]| {
            page.change(|p| {
                p.build(
                    layout,
                    PageId(1),
                    b"b",
                    Some(b"d"),
                    Lsn(9),
                    records.iter().copied(),
                )
            })
        };
        assert_eq!(
            build(&[(b"c", b""), (b"bb", b"")]),
            Err(Refused::OutOfOrder)
        );
        assert_eq!(build(&[(b"c", b""), (b"c", b"")]), Err(Refused::OutOfOrder));
        assert_eq!(build(&[(b"d", b"")]), Err(Refused::NotCovered));
        assert_eq!(build(&[(b"a", b"")]), Err(Refused::NotCovered));
        assert_eq!(
            build(&[(b"b", &[0; 1400]), (b"ba", &[0; 1400]), (b"bb", &[0; 1400])]),
            Err(Refused::NoSpace)
        );
        assert_eq!(build(&[(b"b", &[0; 1502])]), Err(Refused::TooLarge));
        assert_eq!(build(&[(b"b", b"1"), (b"c", b"2")]), Ok(()));
        assert_eq!(page.view().lsn(), Lsn(9));
        assert_eq!(page.view().key(1), b"c");
    }
}

#[test]
fn a_merge_needs_a_right_neighbour() {
    for layout in PageLayout::ALL {
        let none: [(&[u8], &[u8]); 0] = [];
        let mut rightmost = Tracked::new(layout, 4096, 1, b"m", None);
        assert_eq!(
            rightmost.change(|p| p.absorb(None, none)),
            Err(Refused::NotCovered)
        );
        let mut left = Tracked::new(layout, 4096, 1, b"a", Some(b"m"));
        assert_eq!(
            left.change(|p| p.absorb(Some(b"m"), none)),
            Err(Refused::NotCovered)
        );
        let foreign = [(b"b", b"record of the left page's own range")];
        assert_eq!(
            left.change(|p| p.absorb(None, foreign)),
            Err(Refused::NotCovered)
        );
        assert!(left.view().can_absorb(&rightmost.view()));
        assert!(!rightmost.view().can_absorb(&left.view()));
        assert_eq!(left.change(|p| p.absorb(None, none)), Ok(()));
        assert_eq!(left.view().upper_fence(), None);
    }
}

#[test]
fn the_prefix_of_long_fences_is_found_to_the_byte() {
    for layout in PageLayout::ALL {
        for shared in [0, 1, 15, 16, 17, 31, 32, 100, 500] {
            let lower = vec![b'x'; shared];
            let upper = [&lower[..], b"y"].concat();
            let mut page = Tracked::new(layout, 4096, 1, &lower, Some(&upper));
            let cut = layout.prefix_bytes(&lower, Some(&upper));
            let truncates = layout != PageLayout::Baseline;
            assert_eq!(cut, if truncates { shared } else { 0 });
            assert_eq!(page.view().prefix(), &lower[..cut]);
            let key = [&lower[..], b"x123"].concat();
            page.change(|p| p.put(&key, b"v")).unwrap();
            assert_eq!(*page.view().suffix(0), key[cut..]);
            assert_eq!(page.view().key(0), key);
        }
    }
}

#[test]
fn the_table_of_limits_says_what_is_computed() {
    let table = [
        (4 << 10, 512, 1_502),
        (8 << 10, 1_024, 3_038),
        (16 << 10, 2_048, 6_110),
        (32 << 10, 4_096, 12_254),
        (64 << 10, 8_192, 24_542),
    ];
    for (page_size, max_key, max_record) in table {
        let limits = limits(page_size);
        assert_eq!((limits.max_key, limits.max_record), (max_key, max_record));
        assert!(limits.check(max_key, max_record - max_key).is_ok());
        assert!(matches!(
            limits.check(max_key + 1, 0),
            Err(Error::KeyTooLong { .. })
        ));
        assert!(matches!(
            limits.check(0, max_record + 1),
            Err(Error::RecordTooLarge { .. })
        ));
        assert!(limits.check(usize::MAX, usize::MAX).is_err());
        assert!(limits.check(0, usize::MAX).is_err());
    }
}
