use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A leaf without a prefix.
fn leaf(free: usize) -> Leaf {
    Leaf {
        free,
        beside: 10,
        has_places: false,
    }
}

/// Keys that are prefixes of one another, some equal in their first two bytes.
fn key(n: u8) -> Vec<u8> {
    let stem = [&b""[..], b"t", b"te", b"test", b"teste", b"tesu"][usize::from(n) % 6];
    let mut key = stem.to_vec();
    key.extend(std::iter::repeat_n(n / 6, usize::from(n) / 6 % 3));
    key
}

#[test]
fn the_smallest_block_holds_one_record_of_the_papers() {
    // 4 of the 64 bytes are the marks.
    let mut block = [0xaa; 60];
    let mut mini = MiniMut::init(&mut block, leaf(4000));
    assert!(mini.fits(&[1; 16], 16) && !mini.fits(&[1; 16], 17));
    let _ = mini.put(Kind::Insert, &[1; 16], &[2; 16]);
    assert!(!mini.fits(&[2; 16], 0));
    let found = mini.view().find(&[1; 16]).unwrap();
    assert_eq!((found.kind, found.value), (Kind::Insert, &[2; 16][..]));
    assert_eq!(mini.view().leaf().free, 4000 - 42);
}

#[test]
fn what_is_known_of_a_leaf_survives_its_bits() {
    let mut block = [0; 60];
    for beside in [10, 8, 0, -1, -8192] {
        for (has_places, free) in [(false, 0), (true, 0), (false, 4096), (true, 65_535)] {
            let leaf = Leaf {
                free,
                beside,
                has_places,
            };
            assert_eq!(Leaf::from_bits(leaf.to_bits()), Some(leaf));
            assert!(leaf.to_bits() < 1 << 33);
            assert_eq!(MiniMut::init(&mut block, leaf).view().leaf(), leaf);
        }
    }
}

#[test]
fn a_mini_page_grows_by_being_copied_and_keeps_its_accounts() {
    let (mut small, mut large) = ([0; 128], [0; 256]);
    let mut mini = MiniMut::init(&mut small, leaf(500));
    let _ = mini.put(Kind::Cache, b"a", b"1234");
    let _ = mini.put(Kind::Insert, b"a", b"123456");
    assert_eq!(mini.view().leaf().free, 498);
    let _ = mini.put(Kind::Tombstone, b"b", b"");
    mini.set_lsn(Lsn(77));
    let mut copy = MiniMut::init(&mut large, mini.view().leaf());
    copy.copy_from(mini.view(), |_| true);
    assert_eq!(copy.view().leaf().free, 498);
    assert_eq!(copy.view().lsn(), Lsn(77));
    assert!(copy.view().is_dirty());
    copy.merged(leaf(490));
    assert!(!copy.view().is_dirty());
    let kinds: Vec<Kind> = copy.view().entries().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Kind::Cache, Kind::Phantom]);
    assert_eq!(copy.view().leaf().free, 490);
}

#[test]
fn marks_follow_their_records() {
    let hot = |marks: Marks, index| marks.is_hot(index, false);
    let marks = Marks::default().insert(0).insert(0).insert(2);
    assert_eq!(marks, Marks(0b111));
    // Insert a record in between: the hot one behind it moves up.
    let marks = Marks(0b10).insert(1);
    assert!(!hot(marks, 0) && hot(marks, 1) && hot(marks, 2));
    let full = Marks(1 << 30).insert(3);
    assert!(hot(full, 30) && hot(full, 90) && hot(full, 3) && !hot(full, 4));
    assert!(hot(Marks(0).insert(40), 31));
    // The scan's mark belongs to no record, and stays.
    let scanned = Marks(Marks::SCANNED | 1 << 29).insert(0);
    assert!(scanned.is_scanned() && hot(scanned, 30) && !hot(scanned, 29));
    assert!(!Marks(1 << 30).insert(0).is_scanned());
}

proptest! {
    #[test]
    fn a_mini_page_is_a_sorted_map(
        steps in prop::collection::vec((any::<u8>(), 0usize..40, 0u8..4), 1..200),
        size in (0usize..4).prop_map(|n| 128 << n),
        stem in 0usize..5,
    ) {
        // All keys share a prefix, or all but a rare one without it, which sorts first.
        let key = |n: u8| [&b"stem"[..stem * usize::from(n != 7)], &key(n)].concat();
        let mut block = vec![0x5a; size];
        let mut mini = MiniMut::init(&mut block, leaf(60_000));
        let mut model = BTreeMap::new();
        for (n, len, kind) in steps {
            let (key, kind) = (key(n), Kind::from_bits(kind));
            let value = vec![n; if kind.exists() { len } else { 0 }];
            if !mini.fits(&key, value.len()) {
                continue;
            }
            let place = mini.put(kind, &key, &value);
            let was = model.insert(key.clone(), (kind, value));
            prop_assert_eq!(place.is_ok(), was.is_some());
            let (Ok(at) | Err(at)) = place;
            prop_assert_eq!(mini.view().entry(at).key, &key[..]);
            prop_assert!(mini.view().0.used_bytes() <= size);
            let found: Vec<_> = mini.view().entries()
                .map(|e| (e.key.to_vec(), (e.kind, e.value.to_vec())))
                .collect();
            prop_assert_eq!(&found, &model.clone().into_iter().collect::<Vec<_>>());
        }
        for n in 0..=255 {
            let key = key(n);
            let found = mini.view().find(&key).map(|e| (e.kind, e.value.to_vec()));
            prop_assert_eq!(found.as_ref(), model.get(&key));
        }
    }
}
