//! What all played trees share: keys, slots and their records, the device, counts.

use super::lines::Lines;
use super::space::{NONE, Space};
use crate::predict::workload::Workload;
use crate::ssd::gc::SplitMix;

/// The value of a slot that is only an anchor: the key is not in the map.
const ABSENT: u32 = u32::MAX;

/// A key's slot: its rank, and the records that it names, or [`NONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) rank: u32,
    key: u32,
    value: u32,
}

impl Slot {
    pub(super) fn is_absent(self) -> bool {
        self.value == ABSENT
    }

    pub(super) fn has_key_record(self) -> bool {
        self.key != NONE
    }

    /// Whether the slot names records.
    pub(super) fn is_indirect(self) -> bool {
        self.key != NONE || self.value != NONE
    }
}

/// A change of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) slot: Slot,
    pub(super) delete: bool,
}

/// Counts of the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Lookups that a buffer node answered, and others.
    pub(super) hits: u64,
    pub(super) misses: u64,
    /// Leaves written by flushes, and the changes that they received.
    pub(super) flushes: u64,
    pub(super) flushed: u64,
    pub(super) splits: u64,
    /// Log entries.
    pub(super) appended: u64,
    pub(super) cleanings: u64,
    /// Log entries that cleanings copied, and those or leaves that they flushed.
    pub(super) copied: u64,
    pub(super) cleaned: u64,
    /// Flushes of inner nodes.
    pub(super) node_flushes: u64,
}

impl Counts {
    pub(super) fn since(&self, before: &Counts) -> Counts {
        Counts {
            hits: self.hits - before.hits,
            misses: self.misses - before.misses,
            flushes: self.flushes - before.flushes,
            flushed: self.flushed - before.flushed,
            splits: self.splits - before.splits,
            appended: self.appended - before.appended,
            cleanings: self.cleanings - before.cleanings,
            copied: self.copied - before.copied,
            cleaned: self.cleaned - before.cleaned,
            node_flushes: self.node_flushes - before.node_flushes,
        }
    }
}

/// Keys, device and counts of a played run.
pub(super) struct Env<'a> {
    workload: &'a Workload,
    /// Key numbers by rank.
    order: Vec<u32>,
    pub(super) lines: Lines,
    pub(super) space: Space,
    /// Logical time: the last moment that was given out.
    pub(super) clock: u64,
    pub(super) counts: Counts,
    /// Whether a log keeps records alive.
    pub(super) logged: bool,
    random: SplitMix,
}

impl<'a> Env<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        order: Vec<u32>,
        (lines, space): (Lines, Space),
        logged: bool,
    ) -> Env<'a> {
        Env {
            workload,
            order,
            lines,
            space,
            clock: 1,
            counts: Counts::default(),
            logged,
            random: SplitMix(7),
        }
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Length of a key, and whether eight bytes of it would pass for a place.
    fn key(&self, rank: u32) -> (usize, bool) {
        let key = self.workload.key(self.order[rank as usize]);
        (key.len(), key.first().is_some_and(|byte| byte & 0x80 != 0))
    }

    /// The slot of a key and a value, or of a key alone, whose records are written.
    pub(super) fn encode(&mut self, rank: u32, value_len: Option<u32>) -> Slot {
        let (key_len, high) = self.key(rank);
        let (key, value) = (NONE, NONE);
        if key_len == 8 && value_len.is_none_or(|len| len == 8) {
            return Slot { rank, key, value };
        }
        let mut slot = Slot { rank, key, value };
        if key_len != 8 || high {
            slot.key = self.space.put_record(key_len as u64, &mut self.lines);
        }
        // The contents of values are not known: every second one of eight bytes passes for a place.
        if let Some(len) = value_len
            && (len != 8 || self.random.below(2) == 1)
        {
            slot.value = self.space.put_record(u64::from(len), &mut self.lines);
        }
        self.lines.fence();
        slot
    }

    /// The same key as an anchor, and whether a record was written for it.
    pub(super) fn anchor(&mut self, old: Slot) -> Slot {
        let (key_len, high) = self.key(old.rank);
        let mut key = old.key;
        // A slot with a value record is indirect, so its key has a record if it needs one.
        if key == NONE && key_len == 8 && high {
            key = self.space.put_record(8, &mut self.lines);
            self.lines.fence();
        }
        Slot {
            rank: old.rank,
            key,
            value: ABSENT,
        }
    }

    /// Loads the record of a key, if it has one, to compare it.
    pub(super) fn compare(&mut self, slot: Slot) {
        self.space.load_record(slot.key, &mut self.lines);
    }

    /// Loads the record of a value.
    pub(super) fn load_value(&mut self, slot: Slot) {
        if !slot.is_absent() {
            self.space.load_record(slot.value, &mut self.lines);
        }
    }

    /// Frees records that only this slot has ever named.
    pub(super) fn free(&mut self, slot: Slot) {
        self.space.free_record(slot.key, &mut self.lines);
    }

    /// Gives up the records of a slot: at once, or when the log no longer names them.
    pub(super) fn retire(&mut self, slot: Slot) {
        let time = if self.logged { self.tick() } else { 0 };
        self.retire_at(slot, time);
    }

    /// As `retire`, at a moment.
    pub(super) fn retire_at(&mut self, slot: Slot, time: u64) {
        let value = if slot.is_absent() { NONE } else { slot.value };
        for record in [slot.key, value] {
            if self.logged {
                self.space.retire_record(record, time, &mut self.lines);
            } else {
                self.space.free_record(record, &mut self.lines);
            }
        }
    }
}

/// The slot without its key's record, which another slot names.
pub(super) fn without_key(slot: Slot) -> Slot {
    Slot { key: NONE, ..slot }
}

/// Whether two slots of a key name the same record of it.
pub(super) fn share_key(one: Slot, other: Slot) -> bool {
    one.key == other.key && one.key != NONE
}
