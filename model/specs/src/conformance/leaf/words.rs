//! Where the words of the mirror are on the medium.

use crate::conformance::persistent::words::{ENTRY, FLOOR, Layout, Spot};
use crate::mirror::wide::leaf_buffering::State;
use crate::mirror::wide::leaf_buffering::look::Is;

/// Bytes of a leaf.
pub(super) const LEAF: u64 = 256;
/// Bytes of a leaf before its slots, and of a slot.
const HEAD: u64 = 32;
const SLOT: u64 = 16;

impl Spot for Is {
    type State = State;

    fn address(self) -> usize {
        Is::address(self)
    }

    fn all() -> impl Iterator<Item = Is> {
        Is::all()
    }

    fn count(self, state: &State) -> usize {
        state.versions(self.address()).len()
    }

    fn is_same(self, one: &State, other: &State) -> bool {
        one.versions(self.address()) == other.versions(self.address())
    }
}

/// Where the halves of a word are, if it is on the medium. `leaf` names a leaf.
pub(super) fn offset(
    layout: &Layout,
    is: Is,
    leaf: impl Fn(u8) -> Option<u64>,
) -> Option<[Option<u64>; 2]> {
    let leaf = |l: u8| leaf(l).map(Layout::leaf);
    let entry = |chunk: u8, place: usize| {
        let known = chunk <= layout.chunks;
        known.then(|| layout.chunk(u64::from(chunk) - 1) + place as u64 * ENTRY)
    };
    let one = |offset: u64| Some([Some(offset), None]);
    let two = |offset: u64| Some([Some(offset), Some(offset + 8)]);
    match is {
        Is::First => one(FLOOR),
        Is::Header(l) => one(leaf(l)?),
        Is::Stamp(l) => one(leaf(l)? + 8),
        Is::Slot(l, slot) => two(leaf(l)? + HEAD + slot as u64 * SLOT),
        Is::Chunk(chunk) => {
            let known = chunk <= layout.chunks;
            known.then(|| [Some(Layout::directory(u64::from(chunk) - 1)), None])
        }
        Is::Kv(chunk, place) => two(entry(chunk, place)?),
        Is::Time(chunk, place) => one(entry(chunk, place)? + 16),
    }
}
