//! The contents of persistent memory, and how recovery interprets them (`LeafMemory.tla`).
//!
//! Words have fixed addresses, laid out for the largest leaf and chunk that there is room for.
//! Words that a model does not use stay zero. Leaves, chunks and keys are numbered from 1; slots,
//! and places in a chunk, from 0.

use super::super::wal_recovery::Versions;
use super::constants::{Bug, LeafBuffering};
use super::room::{CHUNKS, LEAVES};
use super::room::{ENTRIES, KEYS, N, SLOTS, Set, VERSIONS};
use super::word::{Kv, Time, Word};

pub(super) type Place = Versions<Word, VERSIONS>;

pub(super) const LEAF_SIZE: usize = 2 + SLOTS;
pub(super) const CHUNK_SIZE: usize = 1 + 2 * ENTRIES;
pub(super) const WORDS: usize = 1 + LEAVES * LEAF_SIZE + CHUNKS * CHUNK_SIZE;

/// One value for each word.
pub(super) type Words = [Word; WORDS];
/// The values of all keys.
pub(super) type Map = [N; KEYS];

pub(super) const FIRST: usize = 0;
pub(super) const ABSENT: N = 0;

pub(super) fn header_of(leaf: u8) -> usize {
    1 + (usize::from(leaf) - 1) * LEAF_SIZE
}

pub(super) fn stamp_of(leaf: u8) -> usize {
    header_of(leaf) + 1
}

pub(super) fn slot_of(leaf: u8, slot: usize) -> usize {
    header_of(leaf) + 2 + slot
}

pub(super) fn chunk_of(chunk: u8) -> usize {
    1 + LEAVES * LEAF_SIZE + (usize::from(chunk) - 1) * CHUNK_SIZE
}

pub(super) fn kv_of(chunk: u8, place: usize) -> usize {
    chunk_of(chunk) + 1 + 2 * place
}

pub(super) fn time_of(chunk: u8, place: usize) -> usize {
    kv_of(chunk, place) + 1
}

/// The members of a set, in ascending order.
pub(super) fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..Set::BITS as usize).filter(move |i| set >> i & 1 == 1)
}

pub(super) fn one(i: usize) -> Set {
    1 << i
}

/// A leaf and its separator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Child {
    /// The leaf.
    pub leaf: u8,
    /// Its smallest key. 0 for the first leaf.
    pub low: u8,
}

/// The inner nodes: leaves in key order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Inner {
    // invariant: entries from `len` on are default.
    all: [Child; LEAVES],
    len: u8,
}

impl Inner {
    pub(super) fn all(&self) -> &[Child] {
        &self.all[..usize::from(self.len)]
    }

    /// `Route`: the leaf whose range contains `key`.
    pub(super) fn route(&self, key: u8) -> u8 {
        let ranges = self.all().iter().rev();
        let found = ranges.clone().find(|child| child.low <= key);
        found.map_or(1, |child| child.leaf)
    }

    /// `Position`, counted from 0. The leaf must be there.
    pub(super) fn position(&self, leaf: u8) -> usize {
        let mut all = self.all().iter();
        all.position(|child| child.leaf == leaf).unwrap_or(0)
    }

    pub(super) fn insert(&mut self, at: usize, child: Child) {
        self.all[at..].rotate_right(1);
        self.all[at] = child;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, at: usize) {
        self.all[at] = Child::default();
        self.all[at..].rotate_left(1);
        self.len -= 1;
    }

    pub(super) fn leaves(&self) -> Set {
        self.all()
            .iter()
            .fold(0, |set, child| set | one(child.leaf.into()))
    }
}

/// The chunk and place of a log entry.
pub(super) type Entry = (u8, usize);

fn time(m: &Words, (chunk, place): Entry) -> Time {
    m[time_of(chunk, place)].at()
}

fn kv(m: &Words, (chunk, place): Entry) -> Kv {
    m[kv_of(chunk, place)].as_kv()
}

impl LeafBuffering {
    pub(super) fn free(&self, m: &Words, leaf: u8) -> Set {
        (one(self.slots) - 1) & !m[header_of(leaf)].live()
    }

    /// The live records of a leaf, by slot.
    pub(super) fn records_in(
        &self,
        m: &Words,
        leaf: u8,
    ) -> impl Iterator<Item = (usize, Kv)> + use<> {
        let m = *m;
        members(m[header_of(leaf)].live()).map(move |slot| (slot, m[slot_of(leaf, slot)].as_kv()))
    }

    /// The keys in a leaf (`KeysIn`).
    pub(super) fn keys_in(&self, m: &Words, leaf: u8) -> Set {
        let keys = self.records_in(m, leaf);
        keys.fold(0, |set, (_, kv)| set | one(kv.key.into()))
    }

    /// The value of a key in a leaf (`InLeaf`).
    pub(super) fn in_leaf(&self, m: &Words, leaf: u8, key: u8) -> N {
        let found = self.records_in(m, leaf).find(|(_, kv)| kv.key == key);
        found.map_or(ABSENT, |(_, kv)| kv.value)
    }

    /// The smallest key of a leaf (`LowOf`).
    pub(super) fn low_of(&self, m: &Words, leaf: u8) -> u8 {
        match self.keys_in(m, leaf) {
            _ if leaf == 1 => 0,
            0 => self.keys as u8 + 1,
            keys => keys.trailing_zeros() as u8,
        }
    }

    /// The leaves from the first one on, along their next pointers (`ListFrom(m, 1)`).
    pub(super) fn list(&self, m: &Words) -> Inner {
        let mut inner = Inner::default();
        let mut leaf = 1;
        while leaf != 0 && inner.all().len() < LEAVES {
            let low = self.low_of(m, leaf);
            inner.insert(inner.all().len(), Child { leaf, low });
            leaf = m[header_of(leaf)].next();
        }
        inner
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = u8> + Clone + use<> {
        1..=self.chunks as u8
    }

    fn places(&self) -> impl Iterator<Item = Entry> + use<> {
        let entries = self.entries;
        self.chunks()
            .flat_map(move |chunk| (0..entries).map(move |place| (chunk, place)))
    }

    /// Whether a place of a chunk holds a log entry (`IsEntry`).
    fn is_entry(&self, m: &Words, entry: Entry) -> bool {
        let epoch = m[chunk_of(entry.0)].as_number();
        let word = m[time_of(entry.0, entry.1)];
        epoch >= m[FIRST].as_number()
            && word.at() != Time::default()
            && (word.at().epoch == epoch || self.bug == Bug::BelievesOldEntries)
            && (word.of() == kv(m, entry) || self.bug == Bug::BelievesTornEntries)
            && (kv(m, entry).value != ABSENT || self.bug != Bug::SkipsTombstones)
    }

    /// Whether log-by-log replay would ignore the entry (`PassedOver`).
    fn passed_over(&self, m: &Words, inner: &Inner, entry: Entry) -> bool {
        let leaf = inner.route(kv(m, entry).key);
        let before = self.places().take_while(|place| *place < entry);
        self.bug == Bug::StampsWhileReplaying
            && before.into_iter().any(|other| {
                let key = kv(m, other).key;
                self.is_entry(m, other)
                    && key != 0
                    && inner.route(key) == leaf
                    && time(m, entry) < time(m, other)
            })
    }

    /// `LastEntry` of `EntriesOf` without `these`, if any.
    fn last_entry(
        &self,
        m: &Words,
        inner: &Inner,
        key: u8,
        these: impl Fn(&Entry) -> bool,
    ) -> Option<Entry> {
        let of = |entry: &Entry| {
            kv(m, *entry).key == key
                && self.is_entry(m, *entry)
                && !self.passed_over(m, inner, *entry)
                && !these(entry)
        };
        let mut entries = self.places().filter(of);
        let first = entries.next()?;
        Some(entries.fold(first, |last, entry| {
            let later = self.bug == Bug::LogByLog || time(m, last) < time(m, entry);
            if later { entry } else { last }
        }))
    }

    /// The time of a key's newest entry.
    pub(super) fn last_logged(&self, m: &Words, inner: &Inner, key: u8) -> Option<Time> {
        self.last_logged_but(m, inner, key, |_| false)
    }

    /// The time of a key's newest entry that is not one of `these`.
    pub(super) fn last_logged_but(
        &self,
        m: &Words,
        inner: &Inner,
        key: u8,
        these: impl Fn(&Entry) -> bool,
    ) -> Option<Time> {
        let last = self.last_entry(m, inner, key, these)?;
        Some(time(m, last))
    }

    /// `ToReplay`: the value that a log has and the leaf does not.
    pub(super) fn to_replay(&self, m: &Words, inner: &Inner, key: u8) -> Option<N> {
        let last = self.last_entry(m, inner, key, |_| false)?;
        let stamp = m[stamp_of(inner.route(key))].as_time();
        (stamp < time(m, last)).then(|| kv(m, last).value)
    }

    /// The value of a key after recovery (`RecoveredKey`).
    pub(super) fn recovered_key(&self, m: &Words, inner: &Inner, key: u8) -> N {
        let replayed = self.to_replay(m, inner, key);
        replayed.unwrap_or_else(|| self.in_leaf(m, inner.route(key), key))
    }

    /// The map after recovery (`Recovered`).
    pub(super) fn recovered(&self, m: &Words) -> Map {
        let inner = self.list(m);
        let mut map = [ABSENT; KEYS];
        for (key, value) in (1..=self.keys as u8).zip(&mut map) {
            *value = self.recovered_key(m, &inner, key);
        }
        map
    }
}
