//! Damaged bytes: every damage is noticed, and none causes a panic.

use proptest::prelude::*;

use super::Tracked;
use super::model::every;
use crate::node::{
    ChangeMap, LayoutChoice, PageDamage, PageLayout, PageMut, PageRef, check, check_deep,
    check_structure,
};
use crate::types::{Lba, Lsn, PageId};

fn sealed(layout: PageLayout, log2: u32) -> Vec<u8> {
    if layout.is_dense() {
        return sealed_dense(layout, log2);
    }
    let mut page = Tracked::new(layout, 1 << log2, 5, b"key-1", Some(b"key-9"));
    for n in 0..60_u8 {
        let key = [&b"key-2"[..], &[n % 7, n]].concat();
        page.change(|p| p.put(&key, &vec![n; usize::from(n % 11)]))
            .unwrap();
    }
    for n in 0..10_u8 {
        page.change(|p| Ok::<_, ()>(p.delete(&[&b"key-2"[..], &[n % 7, n]].concat())))
            .unwrap();
    }
    PageMut::new(&mut page.bytes, &mut ChangeMap::new()).seal();
    page.bytes
}

fn sealed_dense(layout: PageLayout, log2: u32) -> Vec<u8> {
    // The fence's length is such that the last byte of the bitmap is partly used.
    let (lower, upper) = (b"key-2\0\x01 and more", b"key-2\x01\x40");
    let mut page = Tracked::new(PageLayout::Hints, 1 << log2, 5, lower, Some(upper));
    let key = |n: u16| [&b"key-2"[..], &(n * 3 + 2).to_be_bytes()].concat();
    for n in 0..70 {
        page.change(|p| p.put(&key(n), &[n as u8; 8])).unwrap();
    }
    page.change(|p| p.relayout(layout)).unwrap();
    for n in (0..70).step_by(7) {
        page.change(|p| Ok::<_, ()>(p.delete(&key(n)))).unwrap();
        if layout == PageLayout::SemiDense {
            page.change(|p| p.put(&key(n + 1), &[1; 11])).unwrap();
        }
    }
    PageMut::new(&mut page.bytes, &mut ChangeMap::new()).seal();
    page.bytes
}

/// Calls everything that reads or changes a page, and ignores the results.
fn exercise(bytes: &[u8], key: &[u8]) {
    let page = PageRef::new(bytes);
    let (Ok(at) | Err(at)) = page.search(key);
    let _ = (
        page.get(key),
        page.value(at),
        page.key(at),
        page.covers(key),
    );
    let _ = (page.iter().count(), page.iter_from(key).rev().count());
    let _ = (page.floor(key), page.get_covered(key));
    page.visit_from(key, |_, _| true);
    let _ = (
        page.used_bytes(),
        page.free_bytes(),
        page.is_three_quarters_free(),
    );
    let _ = (page.can_absorb(&page), page.encode_records(at));
    let _ = page.choose_share(&page, &page);
    let _ = (
        check_structure(bytes),
        check(bytes, PageId(5)).map_err(|d| d.to_string()),
    );
    let plan = page.choose_separator();
    let relayouts = every().map(|layout| {
        move |p: &mut PageMut<'_>| {
            _ = (p.relayout(layout), p.sort());
        }
    });
    let relayouts: Vec<_> = relayouts.collect();
    for edit in &relayouts {
        let (mut copy, mut map) = (bytes.to_vec(), ChangeMap::new());
        edit(&mut PageMut::new(&mut copy, &mut map));
        exercise_reads(&copy, key);
    }
    for layout in every() {
        let _ = LayoutChoice::of(layout).remedy(&page, key, 8);
    }
    let edits: [&dyn Fn(&mut PageMut<'_>); 7] = [
        &|p| {
            _ = (p.put(b"key-2\0\x05", b"8 bytes."), p.delete(b"key-2\0\x08"));
        },
        &|p| {
            _ = p.put(key, b"");
        },
        &|p| {
            _ = p.put(key, &[1; 900]);
        },
        &|p| {
            _ = (p.put(key, b"12"), p.put(key, b"1"), p.put(key, b"1234567"));
        },
        &|p| {
            _ = (p.delete(key), p.delete(b"key-2\0\x0e"));
        },
        &|p| {
            _ = (p.truncate_to(key), p.truncate_to(b"key-3"));
        },
        &|p| {
            _ = (p.absorb(None, [(b"key-95", b"x")]), p.put(key, key));
        },
    ];
    for edit in edits {
        let (mut copy, mut map) = (bytes.to_vec(), ChangeMap::new());
        edit(&mut PageMut::new(&mut copy, &mut map));
        exercise_reads(&copy, key);
    }
    if let Some(plan) = plan {
        let (mut left, mut right) = (bytes.to_vec(), bytes.to_vec());
        let (mut map, mut other) = (ChangeMap::new(), ChangeMap::new());
        let mut right = PageMut::new(&mut right, &mut other);
        let _ = PageMut::new(&mut left, &mut map).split_into(&mut right, PageId(6), &plan);
    }
}

fn exercise_reads(bytes: &[u8], key: &[u8]) {
    let page = PageRef::new(bytes);
    let _ = (
        page.get(key),
        page.iter().count(),
        page.choose_separator(),
        page.free_bytes(),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_are_noticed_and_never_panic(
        log2 in prop::sample::select(vec![12_u32, 16]),
        layout in prop::sample::select(every().collect::<Vec<_>>()),
        header in any::<bool>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..12),
        key in prop::collection::vec(prop::sample::select(b"key-2\0\xff".to_vec()), 0..9),
    ) {
        let mut bytes = sealed(layout, log2);
        let good = bytes.clone();
        // Most of the interesting fields lie in the header and the slots.
        let reach = if header { 60 } else { bytes.len() };
        for (at, flip) in &flips {
            bytes[at.index(reach)] ^= flip;
        }
        exercise(&bytes, &key);
        prop_assert_eq!(check(&bytes, PageId(5)).is_ok(), bytes == good);
    }

    /// Damage under a valid checksum, as a bug would leave it. What `check` lets through must not
    /// panic, either, and what `check_deep` lets through reads consistently.
    #[test]
    fn resealed_damage_never_panics(
        layout in prop::sample::select(every().collect::<Vec<_>>()),
        flips in prop::collection::vec((8_usize..700, any::<u8>()), 1..8),
        key in prop::collection::vec(prop::sample::select(b"key-2\0\xff".to_vec()), 0..9),
    ) {
        let mut bytes = sealed(layout, 12);
        for (at, value) in &flips {
            bytes[*at] = *value;
        }
        let mut map = ChangeMap::new();
        PageMut::new(&mut bytes, &mut map).seal();
        exercise(&bytes, &key);
        if check_deep(&bytes, PageId(5)).is_ok() {
            let page = PageRef::new(&bytes);
            for index in 0..page.count() {
                prop_assert_eq!(page.search(&page.key(index)), Ok(index));
            }
        }
    }
}

#[test]
fn a_page_of_zeros_is_told_apart() {
    assert_eq!(check(&[0; 4096], PageId(5)), Err(PageDamage::Zeroed));
    assert_eq!(
        PageDamage::Zeroed.to_string(),
        "page: expected a tree page, found only zeros (never written, or trimmed)"
    );
    let mut almost = [0; 4096];
    almost[4095] = 1;
    assert!(matches!(
        check(&almost, PageId(5)),
        Err(PageDamage::Checksum { .. })
    ));
}

#[test]
fn a_misdirected_page_is_told_by_its_own_id() {
    for layout in every() {
        let bytes = sealed(layout, 12);
        assert_eq!(check_deep(&bytes, PageId(5)), Ok(()));
        let damage = check(&bytes, PageId(6)).unwrap_err();
        assert_eq!(
            damage.to_string(),
            "page id: expected page 6, found page 5 (misdirected write or read)"
        );
        let error = damage.into_error(PageId(6), Lba(40)).to_string();
        assert!(
            error.contains("page 6") && error.contains("block 40"),
            "{error}"
        );
    }
}

#[test]
fn a_page_read_with_the_wrong_size_is_no_page() {
    for layout in every() {
        let bytes = sealed(layout, 13);
        assert!(check(&bytes[..4096], PageId(5)).is_err());
        assert!(check(&bytes[..5000], PageId(5)).is_err());
        assert!(check(&[], PageId(5)).is_err());
    }
}

/// Bytes from slot to slot.
fn stride(layout: PageLayout) -> usize {
    let print = usize::from(layout == PageLayout::Fingerprint);
    layout.slot_bytes() - print
}

type Break<'a> = &'a dyn Fn(&mut Vec<u8>);

fn assert_named(layout: PageLayout, cases: &[(&str, Break<'_>)]) {
    for (what, breakage) in cases {
        let mut bytes = sealed(layout, 12);
        breakage(&mut bytes);
        let mut map = ChangeMap::new();
        PageMut::new(&mut bytes, &mut map).seal();
        let damage = check_deep(&bytes, PageId(5)).expect_err(what).to_string();
        assert!(
            damage.starts_with(&format!("{what}: expected")),
            "{layout:?}, {what}: {damage}"
        );
    }
}

/// Each structural invariant, broken one at a time beneath a good checksum.
#[test]
fn check_deep_names_the_broken_invariant() {
    let set = |bytes: &mut Vec<u8>, at: usize, value: u8| bytes[at] = value;
    for layout in PageLayout::ALL {
        let (slots, slot) = (layout.header_bytes(), stride(layout));
        let swap = move |b: &mut Vec<u8>| {
            let (first, rest) = b[slots..].split_at_mut(slot);
            first.swap_with_slice(&mut rest[..slot]);
        };
        let cases: [(&str, Break<'_>); 5] = [
            ("page magic", &|b| set(b, 24, 0)),
            ("page layout", &|b| set(b, 26, 9)),
            ("page layout", &|b| set(b, 26, 0)),
            ("log2 of the page size", &|b| set(b, 27, 13)),
            ("prefix length", &|b| set(b, 30, 3)),
        ];
        assert_named(layout, &cases);
        if slot > 6 {
            let head: [(&str, Break<'_>); 1] = [("head of record 0", &|b| b[slots + 6] ^= 1)];
            assert_named(layout, &head);
        }
        let order: [(&str, Break<'_>); 1] = [match layout {
            PageLayout::Fingerprint => ("byte 0 of the index of slots", &swap),
            _ => ("key of record 1", &swap),
        }];
        // Hints are copies of other slots' heads.
        assert_named(layout, &order);
    }
    let hints = PageLayout::Hints.header_bytes() + 50 * 10;
    let hinted: [(&str, Break<'_>); 1] = [("byte 3 of the index of slots", &|b| b[hints + 3] ^= 1)];
    assert_named(PageLayout::Hints, &hinted);
    let prints = PageLayout::Fingerprint.header_bytes() + 50 * 6;
    for layout in [PageLayout::Hints, PageLayout::Fingerprint] {
        assert_named(layout, &[("counter of scans", &|b| set(b, 37, 4))]);
    }
    let printed: [(&str, Break<'_>); 2] = [
        ("byte 7 of the index of slots", &|b| b[prints + 7] ^= 1),
        ("records in order", &|b| set(b, 38, 50)),
    ];
    assert_named(PageLayout::Fingerprint, &printed);
    let slotted: [(&str, Break<'_>); 4] = [
        ("sum of the reserved header bytes", &|b| set(b, 38, 3)),
        ("upper-fence flag", &|b| set(b, 36, 2)),
        ("heap start", &|b| set(b, 41, 0xff)),
        ("used heap bytes", &|b| b[44] ^= 1),
    ];
    assert_named(PageLayout::Slotted, &slotted);
    let compact: [(&str, Break<'_>); 6] = [
        ("heap start", &|b| set(b, 37, 0xff)),
        ("heap start", &|b| b[36..38].fill(0)),
        ("used heap bytes", &|b| b[38] ^= 1),
        ("upper-fence length", &|b| b[35] ^= 0x80),
        ("fence lengths", &|b| set(b, 35, 0xff)),
        ("kind of record 0", &|b| b[40 + 3] |= 0x40),
    ];
    assert_named(PageLayout::Compact, &compact);
    let dense: [(&str, Break<'_>); 9] = [
        ("upper-fence flag", &|b| set(b, 36, 2)),
        ("sum of the reserved header bytes", &|b| set(b, 37, 1)),
        ("fence lengths", &|b| set(b, 33, 0xff)),
        ("upper fence", &|b| set(b, 4080, b'z')),
        ("key length", &|b| b[30..32].fill(0)),
        ("reference", &|b| b[40] ^= 1),
        ("reference", &|b| set(b, 30, 6)),
        ("number of places", &|b| b[44..46].fill(0)),
        ("number of records", &|b| b[28] ^= 1),
    ];
    for layout in PageLayout::DENSE {
        assert_named(layout, &dense);
    }
    let fully: [(&str, Break<'_>); 5] = [
        ("number of places", &|b| set(b, 45, 2)),
        ("sum of the reserved header bytes", &|b| set(b, 46, 2)),
        ("bits beyond the places", &|b| {
            let places = usize::from(u16::from_le_bytes([b[44], b[45]]));
            b[48 + places / 8] |= 0x80;
        }),
        ("number of records", &|b| b[48] ^= 2),
        ("places that are vacant and hold a value", &|b| {
            let places = usize::from(u16::from_le_bytes([b[44], b[45]]));
            b[48 + places.div_ceil(8) + 8] = 1;
        }),
    ];
    assert_named(PageLayout::FullyDense, &fully);
    let semi: [(&str, Break<'_>); 6] = [
        ("key length", &|b| set(b, 31, 0xff)),
        ("used bytes", &|b| set(b, 47, 0x0f)),
        ("heap start", &|b| b[38..40].fill(0)),
        ("value of a record", &|b| set(b, 48 + 6 + 1, 0)),
        ("values", &|b| b.copy_within(48 + 6..48 + 8, 48 + 12)),
        ("used heap bytes", &|b| b[46] ^= 1),
    ];
    assert_named(PageLayout::SemiDense, &semi);
}

/// A page whose header names another layout.
#[test]
fn a_page_with_another_layouts_number_is_damage_and_never_panics() {
    for layout in every() {
        for other in every().filter(|other| *other != layout) {
            // A page with hints is one without, in whose gap they are.
            if (layout, other) == (PageLayout::Hints, PageLayout::Slotted) {
                continue;
            }
            let mut bytes = sealed(layout, 12);
            bytes[26] = other.number();
            PageMut::new(&mut bytes, &mut ChangeMap::new()).seal();
            exercise(&bytes, b"key-2\0\x01");
            assert!(check_deep(&bytes, PageId(5)).is_err(), "{layout:?}");
        }
    }
}

#[test]
fn init_starts_a_new_life() {
    for layout in PageLayout::ALL {
        let mut bytes = sealed(layout, 12);
        let mut map = ChangeMap::new();
        PageMut::new(&mut bytes, &mut map)
            .init(layout, PageId(7), b"", None)
            .unwrap();
        let page = PageRef::new(&bytes);
        assert_eq!(
            (page.page_id(), page.lsn(), page.count()),
            (PageId(7), Lsn(0), 0)
        );
        assert_eq!(map.count(), 64);
    }
}

/// Two records that share heap bytes, each well formed by itself.
#[test]
fn check_deep_sees_payloads_that_overlap() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, 4096, 5, b"", None);
        page.change(|p| p.put(b"a", b"ab")).unwrap();
        page.change(|p| p.put(b"ab", b"")).unwrap();
        let mut bytes = page.bytes;
        assert_eq!(check_structure(&bytes), Ok(()));
        // The payload of the first record is `a` + `ab`: the second could live in its value.
        let (first, second) = (
            layout.header_bytes(),
            layout.header_bytes() + stride(layout),
        );
        let inside = u16::from_le_bytes([bytes[first], bytes[first + 1]]) + 1;
        bytes[second..second + 2].copy_from_slice(&inside.to_le_bytes());
        let damage = check_structure(&bytes).unwrap_err().to_string();
        assert!(
            damage.starts_with("start of a payload: expected"),
            "{damage}"
        );
    }
}
