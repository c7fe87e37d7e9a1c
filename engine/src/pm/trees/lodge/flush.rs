//! The leaf count-based flush (LodgeTree §III-B), repaired
//! (`specs/surrogate_buffer/LeafCountFlush.tla`). It runs entirely under the node's write lock.
//!
//! ```text
//! choose   leaves in the order of the buffer, at most t_node, until one would split;
//!          or that one alone, if it is the first
//! merge    pairs to empty slots ─▶ fence
//!          ─▶ header word: new bits on, the keys' old bits off, stamp ─▶ fence
//!          ─▶ out of the buffer, counts of the log down
//! ```
//!
//! - t_node limits leaves, not pairs: a leaf gets **all** of its buffered pairs, because only then
//!   is its stamp correct. The paper stops at the first pair that is for one leaf too many.
//! - A leaf has to split if it would have more than t_split keys *including* its pairs. The paper
//!   considers only `leaf_count`, so more pairs may arrive than there is room for.
//! - An update takes another slot, and both bits change in one word. If updates find too few empty
//!   slots, the bits of what they replace are cleared first; the log has the replacements
//!   ([`Lodge::clear_slots`]).
//!
//! Invariants: `FlushInv`, a flush goes to at most t_node leaves, or to one that splits;
//! `StampInv`, a buffered number is greater than its leaf's stamp.

use crate::error::{Error, Result};
use crate::mutation;
use crate::pm::events::lodge::LodgeEvent;
use crate::pm::layout::{LeafId, Time};
use crate::pm::leaf::Slot;
use crate::pm::records::Records;
use crate::stats::FLUSH_BINS;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::IoClass;

use super::Lodge;
use super::leaf::{Bits, Header, Image, KINDS, SLOTS, members, slot_at};
use super::node::{Body, Pair};

/// The leaves to which a flush goes.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// These leaves, none of which splits.
    Merge(Vec<usize>),
    /// Only this leaf, which splits.
    Split(usize),
}

/// Chooses among the leaves that have pairs, in the order of the buffer.
fn choose(
    wanted: impl Iterator<Item = usize>,
    t_node: usize,
    mut would_split: impl FnMut(usize) -> Result<bool>,
) -> Result<Choice> {
    let mut chosen = Vec::new();
    for leaf in wanted {
        if chosen.contains(&leaf) {
            continue;
        }
        if would_split(leaf)? {
            if chosen.is_empty() {
                return Ok(Choice::Split(leaf));
            }
            break;
        }
        chosen.push(leaf);
        if chosen.len() == t_node {
            break;
        }
    }
    Ok(Choice::Merge(chosen))
}

/// A leaf and its buffered pairs.
pub(super) struct Visit {
    /// The position of the leaf in its node.
    pub(super) at: usize,
    pub(super) image: Image,
    pub(super) group: Vec<Pair>,
    /// The slots that hold keys of the group.
    pub(super) old: Bits,
}

impl Visit {
    pub(super) fn puts(&self) -> impl Iterator<Item = &Pair> {
        self.group.iter().filter(|pair| !pair.change.delete)
    }

    /// Returns the number of keys that the leaf would have.
    pub(super) fn keys_after(&self) -> usize {
        self.image.header().count() - self.old.count_ones() as usize + self.puts().count()
    }

    /// Returns the greatest number in the group, or the leaf's own stamp if no pair is buffered for
    /// it.
    pub(super) fn stamp(&self) -> Time {
        let numbers = self.group.iter().map(|pair| pair.number);
        numbers.max().unwrap_or(self.image.header().stamp())
    }
}

/// Returns whether two slots have the same key.
fn is_same_key(records: &Records, one: Slot, other: Slot) -> Result<bool> {
    if !one.indirect && !other.indirect {
        return Ok(one.key == other.key);
    }
    Ok(records.key(one)? == records.key(other)?)
}

impl Lodge {
    /// Loads a whole leaf.
    pub(super) fn load(&self, leaf: LeafId) -> Result<Image> {
        let mut image = Image::empty();
        self.medium
            .load(leaf.offset(), &mut image.0, IoClass::Page)?;
        Ok(image)
    }

    pub(super) fn visit(&self, body: &Body, at: usize) -> Result<Visit> {
        let image = self.load(body.leaf(at))?;
        let mut group = body.group(at);
        if mutation::on("lodge-flushes-half-a-leaf") {
            group.drain(..group.len() / 2);
        }
        let mut old = 0;
        for slot in members(image.header().bits()) {
            let there = image.slot(slot);
            for pair in &group {
                if is_same_key(&self.records, there, pair.change.slot)? {
                    old |= 1 << slot;
                }
            }
        }
        Ok(Visit {
            at,
            image,
            group,
            old,
        })
    }

    /// Does one flush of a node, to leaves of wanted pairs. If it fails for lack of space, the
    /// leaves already written are complete.
    pub(super) fn flush(&self, body: &mut Body, wanted: impl Fn(&Pair) -> bool) -> Result<()> {
        let order = body.pairs();
        let order = order.filter(|at| wanted(&body.pair(*at)));
        let order: Vec<usize> = order.map(|at| body.leaf_of_pair(at)).collect();
        let mut visits = Vec::new();
        let choice = choose(order.iter().copied(), self.options.t_node, |leaf| {
            let visit = self.visit(body, leaf)?;
            let splits = visit.keys_after() > self.options.t_split;
            visits.push(visit);
            Ok(splits)
        })?;
        debug_assert!(!visits.is_empty(), "a flush has something to do");
        self.counters.flushes.fetch_add(1, Relaxed);
        let Choice::Merge(chosen) = choice else {
            let visit = visits.pop().expect("the first leaf was visited");
            self.tell_flush(body, &[visit.at]);
            return match self.split_leaf(body, visit) {
                Err(Error::PmFull { .. }) => self.flush_without_split(body, &order),
                done => done,
            };
        };
        // The last leaf may have been examined in vain.
        visits.truncate(chosen.len());
        self.count_leaves(chosen.len());
        self.tell_flush(body, &chosen);
        for visit in visits {
            self.merge(body, visit)?;
        }
        Ok(())
    }

    /// Flushes, when no leaf is free to split into, to leaves that have room, even if they then
    /// have more than t_split keys.
    fn flush_without_split(&self, body: &mut Body, order: &[usize]) -> Result<()> {
        let mut visits = Vec::new();
        for leaf in order {
            if visits.len() == self.options.t_node {
                break;
            }
            if visits.iter().any(|visit: &Visit| visit.at == *leaf) {
                continue;
            }
            let visit = self.visit(body, *leaf)?;
            if visit.keys_after() <= SLOTS {
                visits.push(visit);
            }
        }
        if visits.is_empty() {
            return Err(self.space.full("another leaf"));
        }
        self.count_leaves(visits.len());
        let leaves: Vec<usize> = visits.iter().map(|visit| visit.at).collect();
        self.tell_flush(body, &leaves);
        for visit in visits {
            self.merge(body, visit)?;
        }
        Ok(())
    }

    /// Checks FlushInv.
    fn count_leaves(&self, leaves: usize) {
        debug_assert!(leaves <= self.options.t_node, "FlushInv");
        let most = &self.counters.most_leaves_flushed;
        most.fetch_max(leaves as u64, Relaxed);
    }

    /// Merges a leaf's buffered pairs into it. The leaf must have room.
    pub(super) fn merge(&self, body: &mut Body, mut visit: Visit) -> Result<()> {
        debug_assert!(visit.keys_after() <= SLOTS, "RoomInv");
        let leaf = body.leaf(visit.at).offset();
        let used = visit.image.header().bits();
        if visit.puts().count() > SLOTS - used.count_ones() as usize {
            self.clear_slots(body.leaf(visit.at), &mut visit)?;
        }
        let taken = visit.image.header().bits();
        let mut empty = (0..SLOTS).filter(|at| taken >> at & 1 == 0);
        let kinds = visit.image.kinds();
        let mut filled: Bits = 0;
        let mut image = visit.image.clone();
        for pair in visit.puts() {
            let at = empty.next().expect("RoomInv: there is an empty slot");
            image.fill(at, pair.change.slot);
            filled |= 1 << at;
        }
        let gone = visit.old & !mutation_bits("lodge-only-sets-bits");
        let header = Header::new(
            taken & !gone | filled,
            image.header().use_n(),
            visit.stamp(),
        );
        if mutation::on("lodge-bitmap-before-pairs") {
            self.store_header(leaf, header)?;
        }
        self.tell(|| LodgeEvent::WritesPairs {
            leaf: body.leaf(visit.at).0,
            slots: image.words_of(filled),
        });
        if filled != 0 {
            self.store_slots(leaf, &image, filled, kinds != image.kinds())?;
            self.medium.fence();
        }
        self.tell(|| LodgeEvent::SetsBitmap {
            leaf: body.leaf(visit.at).0,
            header: header.0,
        });
        self.store_header(leaf, header)?;
        image.set_word(0, header.0);

        let old: Vec<Slot> = members(visit.old).map(|at| visit.image.slot(at)).collect();
        body.set_count(visit.at, header.count());
        if visit.group.iter().any(|pair| pair.change.delete) {
            self.note_sparse(header.count());
        }
        take_out(body, &visit, |_| true);
        self.tell(|| LodgeEvent::Flushed {
            leaf: body.leaf(visit.at).0,
            node: body.image(),
        });
        self.release(&visit, |_| true)?;
        self.retire_all(&old)?;
        self.count_visit(visit.group.len());
        Ok(())
    }

    /// Clears the bits of slots that the group replaces, to make empty slots for it. The stamp
    /// stays unchanged: the group is not in the leaf yet, and recovery would replay it.
    fn clear_slots(&self, leaf: LeafId, visit: &mut Visit) -> Result<()> {
        let header = visit.image.header();
        let header = header.with_bits(header.bits() & !visit.old);
        self.tell(|| LodgeEvent::ClearsSlots {
            leaf: leaf.0,
            header: header.0,
        });
        self.store_header(leaf.offset(), header)?;
        visit.image.set_word(0, header.0);
        self.counters.clears.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Stores slots and starts the write-back of their lines.
    pub(super) fn store_slots(
        &self,
        leaf: u64,
        image: &Image,
        filled: Bits,
        kinds: bool,
    ) -> Result<()> {
        let mut lines = 0u8;
        for at in members(filled) {
            let bytes = slot_at(at);
            lines |= 1 << (bytes.start / 64);
            let offset = leaf + bytes.start as u64;
            self.medium.store(offset, &image.0[bytes])?;
        }
        if kinds {
            self.medium.store_word(leaf + KINDS, image.kinds())?;
            lines |= 1;
        }
        for line in (0..8).filter(|line| lines >> line & 1 == 1) {
            let offset = leaf + line * 64;
            self.medium.write_back(offset..offset + 64, IoClass::Page)?;
        }
        Ok(())
    }

    /// Stores the word that commits, which is durable when this returns.
    pub(super) fn store_header(&self, leaf: u64, header: Header) -> Result<()> {
        self.medium.store_word(leaf, header.0)?;
        self.medium.write_back(leaf..leaf + 8, IoClass::Page)?;
        if !mutation::on("lodge-header-not-fenced") {
            self.medium.fence();
        }
        Ok(())
    }

    /// Releases the log entries of flushed pairs.
    pub(super) fn release(&self, visit: &Visit, flushed: impl Fn(&Pair) -> bool) -> Result<()> {
        for pair in visit.group.iter().filter(|pair| flushed(pair)) {
            self.logs.release(pair.log);
            self.counters.buffered.fetch_sub(1, Relaxed);
            if pair.change.delete {
                self.retire(pair.change.slot)?;
            }
        }
        Ok(())
    }

    /// Retires the records of these slots, to which only log entries refer.
    pub(super) fn retire_all(&self, slots: &[Slot]) -> Result<()> {
        slots.iter().try_for_each(|slot| self.retire(*slot))
    }

    /// Counts a leaf that received `changes` changes.
    pub(super) fn count_visit(&self, changes: usize) {
        let bin = changes.min(FLUSH_BINS - 1);
        self.counters.visits[bin].fetch_add(1, Relaxed);
        self.counters.flushed.fetch_add(changes as u64, Relaxed);
    }
}

/// Removes flushed pairs from the buffer. They are durable in their leaf, and the log no longer
/// needs them.
pub(super) fn take_out(body: &mut Body, visit: &Visit, flushed: impl Fn(&Pair) -> bool) {
    let gone = |pair: &Pair| flushed(pair) && visit.group.contains(pair);
    body.retain(|pair, _| !gone(&pair));
}

/// Returns all bits if the mutation is on.
fn mutation_bits(name: &str) -> Bits {
    if mutation::on(name) { Bits::MAX } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::recover::recover;
    use super::*;
    use crate::device::MemPm;
    use crate::options::LeafFormat;
    use crate::options::{LodgeOptions, PmOptions};
    use crate::pm::layout::Geometry;
    use crate::pm::medium::Medium;
    use crate::pm::nodes::Change;
    use crate::sync::Arc;

    #[test]
    fn three_leaves_are_wanted_and_two_are_flushed_to() {
        // Figure 6 (1), LT-06: keys 12 and 13 for LN1, 24 for LN2, 35 for LN3; t_node 2.
        let leaf_count = [9, 13, 7];
        let buffer = [(12, 0), (24, 1), (13, 0), (35, 2)];
        let chosen = choose(buffer.iter().map(|(_, leaf)| *leaf), 2, |leaf| {
            Ok(leaf_count[leaf] + 2 > 26)
        });
        assert_eq!(chosen.unwrap(), Choice::Merge(vec![0, 1]));
    }

    #[test]
    fn a_leaf_that_is_about_to_split_is_flushed_to_alone() {
        // Figure 6 (2), LT-06: t_split 27; LN2 has 27 keys, and 25 and 27 are for it.
        let leaf_count = [9, 27, 7];
        let splits = |leaf: usize| Ok(leaf_count[leaf] + 2 > 27);
        let first = [(25, 1), (12, 0), (27, 1), (35, 2)];
        let chosen = choose(first.iter().map(|(_, leaf)| *leaf), 2, splits);
        assert_eq!(chosen.unwrap(), Choice::Split(1));
        // Behind another leaf, it waits.
        let later = [(12, 0), (25, 1), (27, 1), (35, 2)];
        let chosen = choose(later.iter().map(|(_, leaf)| *leaf), 2, splits);
        assert_eq!(chosen.unwrap(), Choice::Merge(vec![0]));
    }

    fn lodge(t_split: usize) -> Lodge {
        let medium = Arc::new(Medium::new(Arc::new(MemPm::new(1 << 20))));
        let geometry = Geometry::plan(medium.len(), 4096, LeafFormat::Lodge).unwrap();
        geometry.format(&medium).unwrap();
        let options = LodgeOptions {
            t_split,
            ..LodgeOptions::default()
        };
        recover(&medium, geometry, options, &PmOptions::default())
            .unwrap()
            .0
    }

    fn put(lodge: &Lodge, key: u64) {
        let slot = Slot {
            key,
            value: key,
            indirect: false,
        };
        let change = Change {
            slot,
            delete: false,
        };
        lodge.change(&key.to_be_bytes(), change).unwrap();
    }

    /// Returns separators, numbers of keys in leaves, and buffered keys.
    fn state(body: &Body) -> (Vec<Vec<u8>>, Vec<usize>, Vec<u64>) {
        let leaves = 0..body.leaves();
        (
            leaves.clone().map(|at| body.low(at)).collect(),
            leaves.map(|at| body.count(at)).collect(),
            body.pairs()
                .map(|at| body.pair(at).change.slot.key)
                .collect(),
        )
    }

    #[test]
    fn figure_6_on_leaves() {
        let lodge = lodge(27);
        let low = |key: u64| key.to_be_bytes().to_vec();
        // A split of 54 keys at 270, one of 40 keys at 470, and seven more keys: three leaves.
        let keys = |keys: std::ops::Range<u64>, step| keys.step_by(step);
        for keys in [
            keys(0..270, 10),
            keys(270..540, 10),
            keys(540..670, 10),
            keys(271..278, 1),
        ] {
            keys.for_each(|key| put(&lodge, key));
            lodge.flush_all().unwrap();
        }
        let mut lows = vec![vec![], low(270), low(470)];
        let found = state(&lodge.read(b""));
        assert_eq!(found, (lows.clone(), vec![27, 27, 20], vec![]));
        // (2): the first pair is for the second leaf, which has t_split keys.
        [291, 12, 281, 13]
            .into_iter()
            .for_each(|key| put(&lodge, key));
        lodge.flush(&mut lodge.write(b""), |_| true).unwrap();
        // 320 is the fifteenth of 29 keys.
        lows.insert(2, low(320));
        let found = state(&lodge.read(b""));
        assert_eq!(found, (lows, vec![27, 14, 15, 20], vec![12, 13]));
        lodge.flush(&mut lodge.write(b""), |_| true).unwrap();
        let (_, keys, buffered) = state(&lodge.read(b""));
        assert_eq!((keys, buffered), (vec![14, 15, 14, 15, 20], vec![]));
        // (1): pairs for three leaves that have room; the third waits.
        [11, 325, 14, 282]
            .into_iter()
            .for_each(|key| put(&lodge, key));
        lodge.flush(&mut lodge.write(b""), |_| true).unwrap();
        let (_, keys, buffered) = state(&lodge.read(b""));
        assert_eq!((keys, buffered), (vec![16, 15, 14, 16, 20], vec![282]));
    }
}
