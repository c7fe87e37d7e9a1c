//! Fuzzes pages from disk: takes a valid page of any layout, changes some of its bytes, fixes the
//! checksum, and runs every reading and changing operation on the page.
//!
//! - Nothing panics, whatever `check` returns.
//! - A page that `check_deep` accepts behaves like an ordered map under reads, puts, deletes,
//!   splits and merges, and stays acceptable.

use std::collections::BTreeMap;

use treering_engine::node::{
    ChangeMap, PageLayout, PageMut, PageRef, Put, Refused, Suffix, check, check_deep,
    check_structure, records,
};
use treering_engine::{Lba, Lsn, PageId};

use super::Input;

const PAGE: PageId = PageId(5);

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// `check` rejected the bytes.
    Refused,
    /// `check` accepted the bytes, `check_deep` rejected them.
    Unsound,
    /// Both accepted the bytes.
    Sound,
}

/// Runs the target.
pub(crate) fn run(data: &[u8]) -> (PageLayout, Verdict) {
    let mut input = Input::new(data);
    let layout = input.pick(&PageLayout::ALL);
    let (lower, upper): (&[u8], Option<&[u8]>) = input.pick(&[
        (b"", None),
        (b"", Some(b"z")),
        (b"key-", Some(b"key-\xff")),
        (b"key-", None),
    ]);
    let size = input.pick(&[4096, 4096, 8192, 65536]);
    let mut bytes = vec![0xa5; size];
    valid(&mut input, layout, (lower, upper), &mut bytes);
    damage(&mut input, layout, &mut bytes);
    let checked = check(&bytes, PAGE);
    if let Err(damage) = &checked {
        let error = damage.clone().into_error(PAGE, Lba(7));
        assert!(error.to_string().contains("page 5"), "{error}");
    }
    let deep = check_deep(&bytes, PAGE);
    read_all(&bytes, &mut input);
    let verdict = match (checked, deep) {
        (Err(_), deep) => {
            assert!(deep.is_err(), "check_deep must reject what check rejects");
            Verdict::Refused
        }
        (Ok(()), Err(_)) => Verdict::Unsound,
        (Ok(()), Ok(())) => Verdict::Sound,
    };
    match verdict {
        Verdict::Sound => change_sound(&bytes, &mut input),
        Verdict::Refused | Verdict::Unsound => change_damaged(&bytes, &mut input),
    }
    (layout, verdict)
}

fn seal(bytes: &mut [u8]) {
    PageMut::new(bytes, &mut ChangeMap::new()).seal();
}

/// Returns a key inside or outside the fences. Many keys are prefixes of others.
fn key(input: &mut Input<'_>) -> Vec<u8> {
    let stem = input.pick(&[
        &b"key-"[..],
        b"key-t",
        b"key-test",
        b"key-teste",
        b"",
        b"ke",
    ]);
    let (byte, count) = (input.pick(b"\0\x01a\xff"), input.byte() % 5);
    [stem, &vec![byte; usize::from(count)]].concat()
}

fn value(input: &mut Input<'_>) -> Vec<u8> {
    let len = input.pick(&[0, 1, 7, 16, 60, 300, 1400]);
    vec![input.byte(); len]
}

fn valid(
    input: &mut Input<'_>,
    layout: PageLayout,
    (lower, upper): (&[u8], Option<&[u8]>),
    bytes: &mut [u8],
) {
    let mut changes = ChangeMap::new();
    let mut page = PageMut::new(bytes, &mut changes);
    page.init(layout, PAGE, lower, upper).expect("good fences");
    for _ in 0..input.byte() % 60 {
        let _ = match input.byte() % 5 {
            0 => Ok(page.delete(&key(input))).map(|_| Put::Replaced),
            _ => page.put(&key(input), &value(input)),
        };
    }
    page.set_lsn(Lsn(input.byte().into()));
    page.seal();
}

/// Changes bytes, most of them in the header and slots, and sometimes fixes the checksum.
fn damage(input: &mut Input<'_>, layout: PageLayout, bytes: &mut [u8]) {
    let slots = layout.header_bytes() + 64 * layout.slot_bytes();
    for _ in 0..input.byte() % 6 {
        let reach = input.pick(&[layout.header_bytes(), slots, slots, bytes.len()]);
        let at = input.word() % reach;
        let by = input.byte();
        bytes[at] = match input.byte() % 4 {
            0 => by,
            1 => bytes[at] ^ by,
            2 => bytes[at].wrapping_add(by % 3),
            _ => bytes[input.word() % reach],
        };
    }
    if input.byte() % 16 != 15 {
        seal(bytes);
    }
}

fn read_all(bytes: &[u8], input: &mut Input<'_>) {
    let page = PageRef::new(bytes);
    let key = key(input);
    let (Ok(at) | Err(at)) = page.search(&key);
    let _ = (page.get(&key), page.covers(&key), page.key(at));
    let _ = (page.value(at), page.suffix(at), page.value(input.word()));
    let _ = (page.lower_fence(), page.upper_fence(), page.prefix());
    let _ = (page.iter().count(), page.iter().rev().count());
    let _ = (page.iter_from(&key).count(), page.iter_at(at).len());
    let _ = (page.used_bytes(), page.free_bytes(), page.is_empty());
    let _ = (page.can_absorb(&page), page.absorbed_bytes(&page));
    let _ = (page.choose_separator(), page.encode_records(at));
    let _ = (page.layout(), page.page_id(), page.lsn());
    let mut whole = Vec::new();
    page.key_into(at, &mut whole);
}

/// Makes some edits, each on a copy. Only a panic is a failure.
fn change_damaged(bytes: &[u8], input: &mut Input<'_>) {
    let page = PageRef::new(bytes);
    let (key, value) = (key(input), value(input));
    let other = input.pick(&PageLayout::ALL);
    let edits: [&dyn Fn(&mut PageMut<'_>); 7] = [
        &|p| _ = (p.sort(), p.put(&key, &value)),
        &|p| _ = p.put(&key, &value),
        &|p| _ = (p.put(&key, b"1"), p.put(&key, b"1234"), p.put(&key, b"")),
        &|p| _ = (p.delete(&key), p.put(&key, &value)),
        &|p| _ = (p.truncate_to(&key), p.put(&key, &value)),
        &|p| _ = (p.absorb(None, [(&key, &value)]), p.put(&key, &value)),
        &|p| _ = p.build(other, PAGE, b"", None, Lsn(1), page.iter()),
    ];
    for edit in edits {
        let (mut copy, mut changes) = (bytes.to_vec(), ChangeMap::new());
        edit(&mut PageMut::new(&mut copy, &mut changes));
        read_all(&copy, input);
    }
    if let Some(plan) = page.choose_separator() {
        let (mut left, mut right) = (bytes.to_vec(), vec![0; bytes.len()]);
        let (mut changes, mut others) = (ChangeMap::new(), ChangeMap::new());
        let mut right = PageMut::new(&mut right, &mut others);
        let _ = PageMut::new(&mut left, &mut changes).split_into(&mut right, PageId(6), &plan);
    }
}

fn contents(bytes: &[u8]) -> Map {
    let page = PageRef::new(bytes);
    let whole =
        |(suffix, value): (Suffix<'_>, &[u8])| ([page.prefix(), &suffix].concat(), value.into());
    page.iter().map(whole).collect()
}

/// Checks that a sound page behaves like a map and stays sound.
fn change_sound(bytes: &[u8], input: &mut Input<'_>) {
    let mut bytes = bytes.to_vec();
    let mut map = contents(&bytes);
    let page = PageRef::new(&bytes);
    assert_eq!(map.len(), page.count(), "keys must ascend strictly");
    for (index, (key, value)) in map.iter().enumerate() {
        assert_eq!(page.search(key), Ok(index));
        assert_eq!(page.get(key), Some(&value[..]));
    }
    for _ in 0..input.byte() % 40 {
        let (key, value) = (key(input), value(input));
        let mut changes = ChangeMap::new();
        let mut page = PageMut::new(&mut bytes, &mut changes);
        if input.byte().is_multiple_of(3) {
            assert_eq!(page.delete(&key), map.remove(&key).is_some());
        } else {
            match page.put(&key, &value) {
                Ok(Put::Inserted) => assert_eq!(map.insert(key, value), None),
                Ok(Put::Replaced) => assert!(map.insert(key, value).is_some()),
                Err(Refused::NotCovered) => assert!(!page.view().covers(&key)),
                Err(Refused::NoSpace) => {}
                Err(e) => panic!("{e}"),
            }
        }
        assert_eq!(check_structure(&bytes), Ok(()));
        assert_eq!(contents(&bytes), map);
        if input.is_over() {
            break;
        }
    }
    split_and_merge(&bytes, &map);
}

fn split_and_merge(bytes: &[u8], map: &Map) {
    let Some(plan) = PageRef::new(bytes).choose_separator() else {
        return assert!(map.len() < 2);
    };
    let (mut left, mut right) = (bytes.to_vec(), vec![0; bytes.len()]);
    let (mut changes, mut others) = (ChangeMap::new(), ChangeMap::new());
    let mut page = PageMut::new(&mut left, &mut changes);
    page.split_into(&mut PageMut::new(&mut right, &mut others), PageId(6), &plan)
        .expect("a split must always fit");
    for (side, id) in [(&mut left, PAGE), (&mut right, PageId(6))] {
        seal(side);
        assert_eq!(check_deep(side, id), Ok(()));
    }
    let mut both = contents(&left);
    both.append(&mut contents(&right));
    assert_eq!(both, *map, "split at {:02x?}", plan.separator);

    let (l, r) = (PageRef::new(&left), PageRef::new(&right));
    assert_eq!(l.layout(), r.layout());
    let (fits, upper) = (l.can_absorb(&r), r.upper_fence().map(<[u8]>::to_vec));
    let list = r.encode_records(0);
    let moved = records::decode(&list).expect("just encoded");
    let merged = PageMut::new(&mut left, &mut changes).absorb(upper.as_deref(), moved);
    assert_eq!(merged.is_ok(), fits, "{merged:?}");
    if fits {
        assert_eq!(contents(&left), *map, "merged again");
        assert_eq!(check_structure(&left), Ok(()));
    }
}
