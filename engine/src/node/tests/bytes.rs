//! The bytes on the device. Existing stores must stay readable, so these bytes may not change.

use super::Tracked;
use crate::node::{ChangeMap, PageLayout, PageMut, check_deep};
use crate::types::{Lsn, PageId};

const GOLDEN_SLOTTED: [u64; 4] = [
    0xa018_f332_b9a3_e05b,
    0xee89_e091_ca3e_8437,
    0xe9be_046a_8bb1_c411,
    0x324e_ba43_c2db_bb95,
];
const GOLDEN_COMPACT: [u64; 4] = [
    0xf75c_e7c9_7d01_53a7,
    0xdfda_7c82_273b_2ecd,
    0xe462_7d09_8c1a_cd7b,
    0xb9f8_a0c2_1fdb_483c,
];
const GOLDEN_BASELINE: [u64; 4] = [
    0x10cc_3983_fbd9_7dfb,
    0x5b33_0435_96de_d624,
    0x3445_b6e4_0edd_39d7,
    0xab21_30a1_1296_714b,
];
const GOLDEN_PREFIX: [u64; 4] = [
    0xf02f_ff7d_0663_109c,
    0xe614_6336_db55_ed91,
    0x6579_0215_3b94_0472,
    0x2486_24a0_cc63_4362,
];
const GOLDEN_HINTS: [u64; 4] = [
    0x1b9d_1dfb_1e67_2b42,
    0x7a2e_27f9_235a_4c3e,
    0x9d64_7132_5787_abdf,
    0xc4b5_6297_fd18_fb8b,
];
const GOLDEN_FINGERPRINT: [u64; 4] = [
    0x9022_969c_1d96_64da,
    0xa130_c2e9_b983_8b6f,
    0xde57_4a8c_fb36_5d84,
    0xb929_356a_352c_541d,
];

/// Two records between two fences, drawn byte by byte.
#[test]
fn a_page_lies_on_the_device_as_it_is_drawn() {
    for layout in PageLayout::ALL {
        let mut page = Tracked::new(layout, 4096, 0x0102, b"key-a", Some(b"key-t"));
        page.change(|p| p.put(b"key-test", b"12")).unwrap_err();
        page.change(|p| p.put(b"key-set", b"12")).unwrap();
        page.change(|p| p.put(b"key-c", b"")).unwrap();
        PageMut::new(&mut page.bytes, &mut ChangeMap::new()).set_lsn(Lsn(0x77));

        let zeros = |n| vec![0; n];
        let envelope = |kind| {
            let id_and_lsn = [0x02, 0x01, 0, 0, 0, 0, 0, 0, 0x77, 0, 0, 0, 0, 0, 0, 0];
            [&id_and_lsn[..], b"TR", &[kind, 12]].concat()
        };
        // 10 bytes of fences, 5 of the record that came first, 1 of the other; where keys are
        // stored whole, 4 more for each.
        let whole = if layout == PageLayout::Baseline { 4 } else { 0 };
        let (set, c) = (4096 - 15 - whole, 4096 - 16 - 2 * whole);
        let low = |n: usize| n as u8;
        let numbers = [2, 0, 4, 0, 5, 0, 5, 0, 1, 0, 0, 0];
        let head = match layout {
            PageLayout::Slotted | PageLayout::Hints => [
                &envelope(layout.number())[..],
                &numbers,
                &[low(c), 0x0f, 0, 0, 16, 0, 0, 0],
                &[low(c), 0x0f, 1, 0, 0, 0, 0, 0, 0, b'c'],
                &[low(set), 0x0f, 3, 0, 2, 0, 0, b't', b'e', b's'],
            ]
            .concat(),
            PageLayout::Compact => [
                &envelope(2)[..],
                &[2, 0, 4, 0, 5, 0, 5, 0x80, 16, 0, 16, 0],
                &[low(c), 0x0f, 1, 0, 0, 0, 0, b'c'],
                &[low(set), 0x0f, 3, 0, 2, 0, b'e', b's'],
            ]
            .concat(),
            PageLayout::Baseline => [
                &envelope(3)[..],
                &[2, 0, 0, 0, 5, 0, 5, 0, 1, 0, 0, 0],
                &[low(c), 0x0f, 0, 0, 24, 0, 0, 0],
                &[low(c), 0x0f, 5, 0, 0, 0],
                &[low(set), 0x0f, 7, 0, 2, 0],
            ]
            .concat(),
            PageLayout::Prefix => [
                &envelope(4)[..],
                &numbers,
                &[low(c), 0x0f, 0, 0, 16, 0, 0, 0],
                &[low(c), 0x0f, 1, 0, 0, 0],
                &[low(set), 0x0f, 3, 0, 2, 0],
            ]
            .concat(),
            // In order of arrival, so that only the first is in order; fingerprints follow.
            PageLayout::Fingerprint => [
                &envelope(6)[..],
                &[2, 0, 4, 0, 5, 0, 5, 0, 1, 0, 1, 0],
                &[low(c), 0x0f, 0, 0, 16, 0, 0, 0],
                &[low(set), 0x0f, 3, 0, 2, 0],
                &[low(c), 0x0f, 1, 0, 0, 0],
                &[0xac, 0x1b],
            ]
            .concat(),
            PageLayout::SemiDense | PageLayout::FullyDense => unreachable!("takes numbers only"),
        };
        let tail: &[u8] = match layout {
            PageLayout::Baseline => b"key-ckey-set12key-tkey-a",
            _ => b"cset12key-tkey-a",
        };
        let gap = zeros(4096 - 8 - head.len() - tail.len());
        let drawn = [&head[..], &gap, tail].concat();
        // A page that was never compacted may hold leftovers in its gap; this one has none.
        let (begin, end) = (&page.bytes[8..80], &page.bytes[4072..]);
        assert!(
            page.bytes[8..] == drawn,
            "{layout:?}: {begin:02x?} {end:02x?}"
        );
    }
}

/// The checksums of pages after a hundred changes, a split and a merge.
#[test]
fn the_same_changes_give_the_same_bytes_for_ever() {
    let mut changed = Vec::new();
    for (layout, expected) in [
        (PageLayout::Slotted, GOLDEN_SLOTTED),
        (PageLayout::Compact, GOLDEN_COMPACT),
        (PageLayout::Baseline, GOLDEN_BASELINE),
        (PageLayout::Prefix, GOLDEN_PREFIX),
        (PageLayout::Hints, GOLDEN_HINTS),
        (PageLayout::Fingerprint, GOLDEN_FINGERPRINT),
    ] {
        let mut changes = ChangeMap::new();
        let (mut left, mut right) = (vec![0; 4096], vec![0; 4096]);
        let mut page = PageMut::new(&mut left, &mut changes);
        page.init(layout, PageId(3), b"key-", Some(b"key-z"))
            .unwrap();
        for n in 0..100_u8 {
            let key = [&b"key-"[..], &[b'a' + n % 23, n]].concat();
            page.put(&key, &vec![n; usize::from(n % 31)]).unwrap();
            if n % 5 == 0 {
                page.put(&key, &vec![n; usize::from(n % 43)]).unwrap();
                page.delete(&[&b"key-"[..], &[b'a' + n / 2 % 23, n / 2]].concat());
            }
        }
        let mut sums = Vec::new();
        let mut sum = |page: &mut PageMut<'_>, id| {
            page.seal();
            let bytes = page.view().bytes();
            assert_eq!(check_deep(bytes, PageId(id)), Ok(()));
            sums.push(u64::from_le_bytes(bytes[..8].try_into().unwrap()));
        };
        sum(&mut page, 3);
        let plan = page.view().choose_separator().unwrap();
        let mut others = ChangeMap::new();
        let mut half = PageMut::new(&mut right, &mut others);
        page.split_into(&mut half, PageId(4), &plan).unwrap();
        sum(&mut page, 3);
        sum(&mut half, 4);
        let moved: Vec<_> = (0..half.view().count())
            .map(|index| (half.view().key(index), half.view().value(index).to_vec()))
            .collect();
        page.absorb(Some(b"key-z"), moved).unwrap();
        sum(&mut page, 3);
        if sums != expected {
            changed.push(format!("{layout:?}: {sums:#x?}"));
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}
