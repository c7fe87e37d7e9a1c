//! What the judge of a recording sees of a state.

use super::memory::{FIRST, Inner, chunk_of, header_of, kv_of, slot_of, stamp_of, time_of};
use super::room::{CHUNKS, ENTRIES, LEAVES, N, SLOTS, Set};
use super::state::{At, Call, PENDING, Phase, Slot, State};
use super::word::{Kv, Word};

/// What a word is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Is {
    /// The first epoch whose logs count.
    First,
    /// The header of a leaf.
    Header(u8),
    /// The timestamp of a leaf.
    Stamp(u8),
    /// A slot of a leaf.
    Slot(u8, usize),
    /// The epoch of a chunk.
    Chunk(u8),
    /// Key and value of an entry of a chunk.
    Kv(u8, usize),
    /// The time of an entry of a chunk.
    Time(u8, usize),
}

impl Is {
    /// The word's address.
    #[must_use]
    pub fn address(self) -> usize {
        match self {
            Is::First => FIRST,
            Is::Header(leaf) => header_of(leaf),
            Is::Stamp(leaf) => stamp_of(leaf),
            Is::Slot(leaf, slot) => slot_of(leaf, slot),
            Is::Chunk(chunk) => chunk_of(chunk),
            Is::Kv(chunk, place) => kv_of(chunk, place),
            Is::Time(chunk, place) => time_of(chunk, place),
        }
    }

    /// All words, by address.
    pub fn all() -> impl Iterator<Item = Is> {
        let leaf = |leaf: u8| {
            let slots = (0..SLOTS).map(move |slot| Is::Slot(leaf, slot));
            [Is::Header(leaf), Is::Stamp(leaf)].into_iter().chain(slots)
        };
        let chunk = |chunk: u8| {
            let entry = move |place| [Is::Kv(chunk, place), Is::Time(chunk, place)];
            [Is::Chunk(chunk)]
                .into_iter()
                .chain((0..ENTRIES).flat_map(entry))
        };
        [Is::First]
            .into_iter()
            .chain((1..=LEAVES as u8).flat_map(leaf))
            .chain((1..=CHUNKS as u8).flat_map(chunk))
    }
}

impl State {
    /// The number of versions of a word.
    #[must_use]
    pub fn versions(&self, address: usize) -> &[Word] {
        self.pm[address].all()
    }

    /// The bitmap and the next leaf that the header of a leaf has.
    #[must_use]
    pub fn header(&self, leaf: u8) -> (Set, u8) {
        let word = self.pm[header_of(leaf)].newest();
        (word.live(), word.next())
    }

    /// The record in a slot of a leaf.
    #[must_use]
    pub fn record(&self, leaf: u8, slot: usize) -> Kv {
        self.pm[slot_of(leaf, slot)].newest().as_kv()
    }

    /// Key and value of an entry of a log.
    #[must_use]
    pub fn logged(&self, chunk: u8, place: usize) -> Kv {
        self.pm[kv_of(chunk, place)].newest().as_kv()
    }

    /// The inner nodes.
    #[must_use]
    pub fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The progress of a writer, its leaf and the leaf that it splits off.
    #[must_use]
    pub fn job(&self, w: usize) -> (At, u8, u8) {
        let job = &self.job[w];
        (job.at, job.leaf, job.new)
    }

    /// The leaf that a writer merges into another, or 0.
    #[must_use]
    pub fn merging(&self, w: usize) -> u8 {
        self.job[w].from
    }

    /// The writers that are at work on a leaf.
    #[must_use]
    pub fn writer_of(&self, leaf: u8) -> Option<usize> {
        (self.job.iter()).position(|job| job.at != At::None && job.leaf == leaf)
    }

    /// The call of a client.
    #[must_use]
    pub fn call_of(&self, c: usize) -> Call {
        self.call[c]
    }

    /// The buffer node of a leaf: unflushed and cached slots, each a key, its value and its bit.
    #[must_use]
    pub fn node(&self, leaf: u8) -> [Vec<(u8, N, N)>; 2] {
        let buffer = self.buffer(leaf);
        let slot = |slot: &Slot| (slot.key, slot.value, slot.bit);
        let (waiting, cached) = buffer.slots.split_at(buffer.count.into());
        let cached = cached.iter().filter(|slot| slot.key != 0);
        [
            waiting.iter().map(slot).collect(),
            cached.map(slot).collect(),
        ]
    }

    /// The global epoch.
    #[must_use]
    pub fn global_epoch(&self) -> N {
        self.epoch
    }

    /// Whether clients are served.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the leaf is to be scanned by the cleaning in progress.
    #[must_use]
    pub fn is_to_scan(&self, leaf: u8) -> bool {
        self.cleaning.todo >> leaf & 1 == 1
    }

    /// The first word that has not settled.
    #[must_use]
    pub fn next_dirty(&self) -> Option<usize> {
        self.first_dirty()
    }

    /// The value that a get has read, if it has.
    #[must_use]
    pub fn got(&self, c: usize) -> Option<N> {
        match self.call[c] {
            Call::Get { got, .. } if got != PENDING => Some(got),
            _ => None,
        }
    }
}

impl Inner {
    /// The leaves and their smallest keys, in order.
    #[must_use]
    pub fn children(&self) -> Vec<(u8, u8)> {
        let children = self.all().iter();
        children.map(|child| (child.leaf, child.low)).collect()
    }

    /// The leaf whose range contains a key.
    #[must_use]
    pub fn leaf_for(&self, key: u8) -> u8 {
        self.route(key)
    }
}
