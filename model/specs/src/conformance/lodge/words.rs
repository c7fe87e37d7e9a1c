//! Where the words of the mirror are on the medium.

use crate::conformance::persistent::words::{ENTRY, Layout, Spot};
use crate::mirror::wide::surrogate_buffer::State;
use crate::mirror::wide::surrogate_buffer::look::Is;

/// Bytes of a leaf.
pub(super) const LEAF: u64 = 512;
/// Words of a leaf before its slots.
pub(super) const HEAD: usize = 10;
/// Slots of a leaf.
pub(super) const SLOTS: usize = 27;

impl Spot for Is {
    type State = State;

    fn address(self) -> usize {
        Is::address(self)
    }

    fn all() -> impl Iterator<Item = Is> {
        Is::all()
    }

    fn count(self, state: &State) -> usize {
        state.count(self)
    }

    fn is_same(self, one: &State, other: &State) -> bool {
        one.same(other, self)
    }
}

/// The logs of the medium. The entries of a log are numbered in the mirror in the order in which
/// they were appended; clients that share a log append in another order than they reserve places.
#[derive(Clone, Debug)]
pub(super) struct Logs {
    /// Entries of a log.
    pub(super) entries: usize,
    /// Logs in a chunk.
    pub(super) per_chunk: usize,
    /// For each log, the place of each of its entries.
    pub(super) places: Vec<Vec<u64>>,
}

impl Logs {
    pub(super) fn new(chunks: u8, entries: u8) -> Logs {
        let entries = usize::from(entries);
        let per_chunk = (super::CHUNK / ENTRY) as usize / entries;
        let all = usize::from(chunks) * per_chunk;
        Logs {
            entries,
            per_chunk,
            places: vec![(0..entries as u64).collect(); all],
        }
    }

    /// The chunk of a log.
    pub(super) fn chunk(&self, log: usize) -> usize {
        log / self.per_chunk
    }

    /// The entry at a place in a chunk: its log, and its number there. `None` if the place is
    /// behind the last log.
    pub(super) fn at(&self, chunk: u32, place: u64) -> Option<(usize, usize)> {
        let nth = place as usize / self.entries;
        let log = chunk as usize * self.per_chunk + nth;
        let at = self.place_of(log, place % self.entries as u64)?;
        (nth < self.per_chunk).then_some((log, at))
    }

    /// The number of the entry at a place in a log.
    pub(super) fn place_of(&self, log: usize, place: u64) -> Option<usize> {
        let places = self.places.get(log)?;
        places.iter().position(|known| *known == place)
    }

    /// Where an entry begins.
    fn offset(&self, layout: &Layout, log: usize, at: usize) -> Option<u64> {
        let place = *self.places.get(log)?.get(at)?;
        let before = (log % self.per_chunk * self.entries) as u64;
        Some(layout.chunk(self.chunk(log) as u64) + (before + place) * ENTRY)
    }
}

/// Where the halves of a word are, if it is on the medium. `leaf` names a leaf.
pub(super) fn offset(
    (layout, logs): (&Layout, &Logs),
    is: Is,
    leaf: impl Fn(u8) -> Option<u64>,
) -> Option<[Option<u64>; 2]> {
    let leaf = |l: u8| leaf(l).map(Layout::leaf);
    let one = |offset: u64| Some([Some(offset), None]);
    let two = |offset: u64| Some([Some(offset), Some(offset + 8)]);
    match is {
        Is::Header(l) => one(leaf(l)?),
        Is::Low(l) => one(leaf(l)? + 8),
        Is::Next(l, n) => one(leaf(l)? + 16 + 8 * n as u64),
        Is::Slot(l, i) => two(leaf(l)? + 8 * (HEAD + 2 * i) as u64),
        Is::Pair(log, at) => two(logs.offset(layout, log, at)?),
        Is::Meta(log, at) => one(logs.offset(layout, log, at)? + 16),
    }
}

/// The header word of a leaf: bitmap, use_n and stamp.
pub(super) fn header_of(word: u64) -> (u64, u8, u64) {
    let bits = word & ((1 << SLOTS) - 1);
    (bits, (word >> SLOTS & 1) as u8, word >> (SLOTS + 1))
}
