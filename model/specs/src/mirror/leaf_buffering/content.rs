//! Buffer nodes, and how a batch changes a leaf (`LeafState.tla`).

use super::constants::{Bug, LeafBuffering};
use super::memory::{ABSENT, FIRST, Words, chunk_of, header_of, members, one};
use super::state::{Batch, Buffer, Job, N, Set, Slot, State};
use super::word::{Kv, Time};

/// The keys of a batch in ascending order, each with its slot: the smallest key goes to the first
/// slot.
pub(super) fn placed(content: &Batch, slots: Set) -> impl Iterator<Item = (usize, Kv)> + use<> {
    let content = *content;
    members(slots)
        .zip(members(content.keys))
        .map(move |(slot, key)| {
            let kv = Kv {
                key: key as u8,
                value: content.value(key),
            };
            (slot, kv)
        })
}

/// `SlotsFor`: as many of the free slots as there are keys, from the first.
pub(super) fn slots_for(free: Set, keys: Set) -> Set {
    let slots = members(free).take(keys.count_ones() as usize);
    slots.fold(0, |set, slot| set | one(slot))
}

/// `IsKept`: the part of a batch that takes a slot in a leaf with this separator.
pub(super) fn kept_above(low: u8, batch: &Batch) -> Batch {
    let keys = members(batch.keys);
    let kept = keys.filter(|key| *key == usize::from(low) || batch.value(*key) != ABSENT);
    batch.only(kept.fold(0, |set, key| set | one(key)))
}

/// The keys to flush from a buffer node, with their values (`UnflushedKvs`).
pub(super) fn unflushed(buffer: &Buffer) -> Batch {
    let mut batch = Batch::default();
    for slot in buffer.waiting() {
        batch.put(slot.key, slot.value);
    }
    batch
}

impl LeafBuffering {
    /// `PlaceFor`, counted from 0.
    fn place_for(&self, buffer: &Buffer, key: u8) -> usize {
        let same = buffer.waiting().iter().position(|slot| slot.key == key);
        let same = same.filter(|_| self.bug != Bug::AppendsDuplicates);
        same.unwrap_or(usize::from(buffer.count))
    }

    /// Whether a write of this key finds the buffer full, and so triggers a flush (`IsTrigger`).
    pub(super) fn is_trigger(&self, buffer: &Buffer, key: u8) -> bool {
        self.place_for(buffer, key) >= self.batch
    }

    /// Inserts a record into a buffer node (`Buffered`).
    pub(super) fn insert(&self, buffer: &mut Buffer, slot: Slot) {
        let place = self.place_for(buffer, slot.key);
        buffer.slots[place] = slot;
        buffer.count = buffer.count.max(place as u8 + 1);
    }

    /// The value that a get of the key finds (`Lookup`).
    pub(super) fn lookup(&self, s: &State, m: &Words, key: u8) -> N {
        let leaf = s.inner.route(key);
        let hit = s.buffer(leaf).slots.iter().find(|slot| slot.key == key);
        hit.map_or_else(|| self.in_leaf(m, leaf, key), |slot| slot.value)
    }

    /// `Kept`, with its values.
    pub(super) fn kept(&self, s: &State, leaf: u8, batch: &Batch) -> Batch {
        let child = s.inner.all()[s.inner.position(leaf)];
        let clears = self.bug == Bug::ClearsSmallest;
        kept_above(if clears { 0 } else { child.low }, batch)
    }

    /// Whether a batch fits the leaf (`Fits`).
    pub(super) fn fits(&self, s: &State, m: &Words, leaf: u8, batch: &Batch) -> bool {
        let kept = self.kept(s, leaf, batch).keys.count_ones();
        kept <= self.free(m, leaf).count_ones()
    }

    /// The live slots of the leaf that a batch of these keys leaves as they are (`LiveAfter`).
    pub(super) fn live_after(&self, m: &Words, leaf: u8, keys: Set) -> Set {
        let stay = self.records_in(m, leaf);
        let stay = stay.filter(|(_, kv)| keys >> kv.key & 1 == 0);
        stay.fold(0, |set, (slot, _)| set | one(slot))
    }

    /// `Moved`: the upper half of the keys.
    fn moved(&self, m: &Words, leaf: u8) -> Set {
        let keys = self.keys_in(m, leaf);
        let n = keys.count_ones() as usize;
        let upper = members(keys).skip(n - n / 2);
        upper.fold(0, |set, key| set | one(key))
    }

    /// `NewContent` and `Rest`.
    pub(super) fn split(&self, m: &Words, leaf: u8, batch: &Batch) -> (Batch, Batch) {
        let moved = self.moved(m, leaf);
        let low = moved.trailing_zeros() as u8;
        let above = !(one(low.into()) - 1);
        let mut all = Batch::default();
        for (_, kv) in self.records_in(m, leaf) {
            if moved >> kv.key & 1 == 1 {
                all.put(kv.key, kv.value);
            }
        }
        for key in members(batch.keys & above) {
            all.put(key as u8, batch.value(key));
        }
        (kept_above(low, &all), batch.only(!above))
    }

    /// `Records`: the records of a leaf, without tombstones.
    pub(super) fn records(&self, m: &Words, leaf: u8) -> Batch {
        let mut batch = Batch::default();
        let records = self.records_in(m, leaf);
        for (_, kv) in records.filter(|(_, kv)| kv.value != ABSENT) {
            batch.put(kv.key, kv.value);
        }
        batch
    }

    /// A buffer node with copies of the leaf's first records, and nothing to flush (`Copies`).
    pub(super) fn copies(&self, m: &Words, leaf: u8) -> Buffer {
        let content = self.records(m, leaf);
        let mut buffer = Buffer::default();
        let keys = members(content.keys).take(self.batch);
        for (slot, key) in buffer.slots.iter_mut().zip(keys) {
            *slot = Slot {
                key: key as u8,
                value: content.value(key),
                bit: 0,
            };
        }
        buffer
    }

    /// The left sibling of a leaf (`LeftOf`).
    pub(super) fn left_of(&self, s: &State, leaf: u8) -> u8 {
        let left = s.inner.position(leaf).saturating_sub(1);
        s.inner.all()[left].leaf
    }

    /// Whether the leaf should be merged with its left sibling after a flush (`ShouldMerge`).
    pub(super) fn should_merge(&self, s: &State, m: &Words, job: &Job) -> bool {
        if !job.deletes || job.leaf == 1 {
            return false;
        }
        let left = self.left_of(s, job.leaf);
        let here = self.records(m, job.leaf).keys.count_ones() as usize;
        let room = self.free(m, left).count_ones() as usize;
        2 * here < self.slots && here + usize::from(s.buffer(left).count) <= room
    }

    /// The current time, for the stamp of a flush (`Now`).
    pub(super) fn now(&self, s: &State, writer: usize) -> Time {
        Time {
            epoch: s.job[writer].epoch,
            tick: s.tick + N::from(self.bug == Bug::StampsAhead),
        }
    }

    /// The first of `FreeChunks`.
    pub(super) fn free_chunk(&self, s: &State, m: &Words) -> Option<u8> {
        let first = match self.bug {
            Bug::ReusesEarly => m[FIRST],
            _ => s.pm[FIRST].all()[0],
        };
        let first = first.as_number();
        let mut chunks = self.chunks();
        chunks.find(|chunk| m[chunk_of(*chunk)].as_number() < first)
    }

    /// The first leaf that is not `InUse`.
    pub(super) fn free_leaf(&self, s: &State) -> Option<u8> {
        let new = s.job.iter().fold(0, |set, job| set | one(job.new.into()));
        let used = s.inner.leaves() | new;
        (1..=self.leaves as u8).find(|leaf| used >> leaf & 1 == 0)
    }

    pub(super) fn next_of(m: &Words, leaf: u8) -> u8 {
        m[header_of(leaf)].next()
    }
}
