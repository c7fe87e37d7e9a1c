//! Models leaves of fourteen slots: which slot a key is in, splits, merges, and the lines of both.
//!
//! ```text
//! index: ranks at which leaves begin ─▶ leaf: bitmap, slots     no bytes, no fingerprints
//! batch   free slots' lines ─▶ fence ─▶ header line ─▶ fence
//! split   new leaf whole, lines of the old one ─▶ fence ─▶ header line ─▶ fence ─▶ the rest
//! ```
//!
//! The rules are those of `engine/src/pm/leaves` (CCL-BTree §4.2). *Ignored*: sweeps for sparse
//! leaves that no space was left to merge.

use super::env::{Change, Env, Slot, share_key, without_key};
use crate::predict::played::Marks;

/// Slots of a leaf, and what it has before them.
pub(super) const SLOTS: usize = 14;
const HEADER: usize = 32;
const SLOT: usize = 16;
/// Bytes of a leaf.
pub(super) const LEAF: u64 = 256;
/// A leaf with fewer used slots than this is merged.
const SPARSE: usize = SLOTS / 2;

/// The lines (one bit each) of these slots.
fn lines_of(slots: u16) -> u8 {
    (0..SLOTS)
        .filter(|at| slots >> at & 1 == 1)
        .fold(0, |lines, at| lines | 1 << ((HEADER + SLOT * at) / 64))
}

#[derive(Clone, Copy, Default)]
struct Leaf {
    offset: u64,
    /// Rank at which its range begins.
    low: u32,
    used: u16,
    slots: [Slot; SLOTS],
}

impl Leaf {
    fn members(&self) -> impl Iterator<Item = usize> + use<> {
        let used = self.used;
        (0..SLOTS).filter(move |at| used >> at & 1 == 1)
    }

    fn find(&self, rank: u32) -> Option<usize> {
        self.members().find(|at| self.slots[*at].rank == rank)
    }
}

/// The planned new state of a leaf.
struct Edit {
    leaf: Leaf,
    taken: u16,
    filled: u16,
    anchored: bool,
    gone: Vec<Slot>,
}

impl Edit {
    fn new(leaf: Leaf, anchored: bool) -> Edit {
        Edit {
            taken: leaf.used,
            leaf,
            filled: 0,
            anchored,
            gone: Vec::new(),
        }
    }

    /// Applies a change, or returns it if it needs a slot and none is free.
    fn apply(&mut self, change: Change, env: &mut Env<'_>) -> Option<Change> {
        let rank = change.slot.rank;
        let found = self.leaf.find(rank);
        if let Some(at) = found {
            env.compare(self.leaf.slots[at]);
        }
        if !change.delete {
            return self.put(change, found);
        }
        self.gone.push(change.slot);
        let at = found?;
        let old = self.leaf.slots[at];
        let is_smallest = || {
            self.leaf
                .members()
                .all(|at| self.leaf.slots[at].rank >= rank)
        };
        if !(self.anchored && is_smallest()) {
            self.leaf.used &= !(1 << at);
            self.gone.push(old);
            return None;
        }
        if old.is_absent() {
            return None;
        }
        let slot = env.anchor(old);
        let delete = false;
        self.put(Change { slot, delete }, found)
    }

    fn put(&mut self, change: Change, found: Option<usize>) -> Option<Change> {
        let used = self.taken | self.leaf.used;
        let free = (!used & ((1 << SLOTS) - 1)).trailing_zeros() as usize;
        if free >= SLOTS {
            return Some(change);
        }
        if let Some(at) = found {
            let old = self.leaf.slots[at];
            let kept = share_key(old, change.slot);
            self.gone.push(if kept { without_key(old) } else { old });
            self.leaf.used &= !(1 << at);
        }
        self.leaf.slots[free] = change.slot;
        self.leaf.used |= 1 << free;
        self.filled |= 1 << free;
        None
    }

    /// Stores the slots filled that are still in use.
    fn store_filled(&self, env: &mut Env<'_>) -> bool {
        let new = self.filled & self.leaf.used;
        env.lines.write_lines(self.leaf.offset, lines_of(new));
        new != 0
    }
}

/// The result of a write.
#[derive(Default)]
pub(super) struct Written {
    /// The leaf that was split off, and the rank at which it begins.
    pub(super) split: Option<(u32, u32)>,
    /// After a split: entries with which the buffer nodes of both leaves begin.
    pub(super) copies: [Vec<Change>; 2],
    used: usize,
    deletes: bool,
}

impl Written {
    /// Whether the leaf should be merged.
    pub(super) fn is_sparse(&self) -> bool {
        self.deletes && self.used < SPARSE
    }
}

/// When the header is stored though no slot changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamped {
    /// Always, because the leaf's timestamp changes.
    Yes,
    /// Never.
    No,
}

/// All leaves, by number, under their index.
pub(super) struct Leaves {
    leaves: Vec<Leaf>,
    free: Vec<u32>,
    index: Marks,
    /// The leaf that begins at a rank.
    at: Vec<u32>,
    stamped: Stamped,
}

impl Leaves {
    /// One empty leaf for this many keys.
    pub(super) fn new(keys: usize, offset: u64, stamped: Stamped) -> Leaves {
        let mut index = Marks::new(keys.max(1));
        index.insert(0);
        Leaves {
            leaves: vec![Leaf {
                offset,
                ..Leaf::default()
            }],
            free: Vec::new(),
            index,
            at: vec![0; keys.max(1)],
            stamped,
        }
    }

    /// The leaf of a key.
    pub(super) fn find(&self, rank: u32) -> u32 {
        let low = self.index.at_or_below(rank as usize).unwrap_or(0);
        self.at[low]
    }

    /// The leaf that begins at or behind a rank.
    pub(super) fn from(&self, rank: u32) -> Option<(u32, u32)> {
        let low = self.index.at_or_above(rank as usize)?;
        Some((low as u32, self.at[low]))
    }

    /// Where the leaf behind begins.
    pub(super) fn after(&self, leaf: u32) -> Option<u32> {
        let low = self.leaves[leaf as usize].low;
        self.from(low + 1).map(|(low, _)| low)
    }

    /// Leaves that there have been.
    pub(super) fn limit(&self) -> usize {
        self.leaves.len()
    }

    /// Records of a leaf that a scan would find.
    pub(super) fn records(&self, leaf: u32) -> usize {
        let leaf = &self.leaves[leaf as usize];
        let there = leaf.members().filter(|at| !leaf.slots[*at].is_absent());
        there.count()
    }

    /// Loads a whole leaf.
    pub(super) fn load(&self, leaf: u32, env: &mut Env<'_>) {
        env.lines.load(self.leaves[leaf as usize].offset, LEAF);
    }

    /// Looks for a key.
    pub(super) fn look(&self, leaf: u32, rank: u32, env: &mut Env<'_>) {
        let leaf = &self.leaves[leaf as usize];
        env.lines.load(leaf.offset, 64);
        if let Some(at) = leaf.find(rank) {
            env.lines
                .load(leaf.offset + (HEADER + SLOT * at) as u64, SLOT as u64);
            env.compare(leaf.slots[at]);
            env.load_value(leaf.slots[at]);
        }
    }

    /// Applies changes to different keys of a leaf, splitting it if necessary. After a split both
    /// halves are to be copied to buffer nodes of `copies` slots.
    pub(super) fn write(
        &mut self,
        number: u32,
        changes: &[Change],
        copies: usize,
        env: &mut Env<'_>,
    ) -> Written {
        self.write_stamped(number, changes, (copies, self.stamped), env)
    }

    fn write_stamped(
        &mut self,
        number: u32,
        changes: &[Change],
        (copies, stamped): (usize, Stamped),
        env: &mut Env<'_>,
    ) -> Written {
        self.load(number, env);
        let before = self.leaves[number as usize];
        let mut edit = Edit::new(before, before.low > 0);
        let mut rest = Vec::new();
        for change in changes {
            rest.extend(edit.apply(*change, env));
        }
        let deletes = changes.iter().any(|change| change.delete);
        if !rest.is_empty() {
            let written = self.split(number, edit, &rest, copies, env);
            return Written { deletes, ..written };
        }
        if edit.leaf.used != before.used || stamped == Stamped::Yes {
            if edit.store_filled(env) {
                env.lines.fence();
            }
            env.lines.write_lines(before.offset, 1);
            env.lines.fence();
        }
        self.leaves[number as usize] = edit.leaf;
        edit.gone.iter().for_each(|slot| env.retire(*slot));
        Written {
            used: edit.leaf.used.count_ones() as usize,
            deletes,
            ..Written::default()
        }
    }

    fn split(
        &mut self,
        number: u32,
        mut edit: Edit,
        rest: &[Change],
        copies: usize,
        env: &mut Env<'_>,
    ) -> Written {
        let mut all: Vec<usize> = edit.leaf.members().collect();
        all.iter().for_each(|at| env.compare(edit.leaf.slots[*at]));
        all.sort_unstable_by_key(|at| edit.leaf.slots[*at].rank);
        let upper = all.split_off(all.len() / 2);
        let fence = edit.leaf.slots[upper[0]].rank;
        let (above, below): (Vec<Change>, Vec<Change>) =
            rest.iter().partition(|change| change.slot.rank >= fence);
        let offset = env.space.allocate_leaf(&mut env.lines);
        let mut right = Leaf {
            offset,
            low: fence,
            ..Leaf::default()
        };
        for (place, at) in upper.into_iter().enumerate() {
            right.slots[place] = edit.leaf.slots[at];
            right.used |= 1 << place;
            edit.leaf.used &= !(1 << at);
        }
        let mut new = Edit::new(right, true);
        // Half a leaf and a batch fit in a leaf.
        for change in &above {
            new.apply(*change, env);
        }
        env.lines.write(offset, LEAF);
        edit.store_filled(env);
        env.lines.fence();
        env.lines.write_lines(edit.leaf.offset, 1);
        env.lines.fence();
        env.counts.splits += 1;
        let copies_right = first_of(&new.leaf, &[], copies);
        let right = self.add(new.leaf);
        self.index.insert(fence as usize);
        self.at[fence as usize] = right;
        let gone = edit.gone.iter().chain(&new.gone);
        gone.for_each(|slot| env.retire(*slot));
        let copies_left = first_of(&edit.leaf, &below, copies);
        self.leaves[number as usize] = edit.leaf;
        // The header has the new timestamp already.
        let lower = self.write_stamped(number, &below, (0, Stamped::No), env);
        Written {
            split: Some((right, fence)),
            copies: [copies_left, copies_right],
            ..lower
        }
    }

    fn add(&mut self, leaf: Leaf) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.leaves[number as usize] = leaf;
                number
            }
            None => {
                self.leaves.push(leaf);
                self.leaves.len() as u32 - 1
            }
        }
    }

    /// The left neighbour of a leaf, if both may fit in one leaf with so many buffered changes each.
    pub(super) fn mergeable(&self, leaf: u32, unflushed: impl Fn(u32) -> usize) -> Option<u32> {
        let right = &self.leaves[leaf as usize];
        let before = right.low.checked_sub(1)?;
        let left = self.find(before);
        let used = |leaf: u32| self.leaves[leaf as usize].used.count_ones() as usize;
        let all = used(left) + used(leaf) + unflushed(left) + unflushed(leaf);
        (all <= SLOTS + 1).then_some(left)
    }

    /// Whether the contents of two neighbours fit in one leaf.
    pub(super) fn fit(&self, left: u32, right: u32) -> bool {
        let used = self.leaves[left as usize].used.count_ones() as usize;
        used + self.records(right) <= SLOTS
    }

    /// Moves the right leaf's slots into its left neighbour. Their number is free.
    pub(super) fn merge(&mut self, left: u32, right: u32, env: &mut Env<'_>) {
        let from = self.leaves[right as usize];
        let mut into = self.leaves[left as usize];
        let mut filled = 0u16;
        let mut gone = Vec::new();
        for at in from.members() {
            let slot = from.slots[at];
            if slot.is_absent() {
                gone.push(slot);
                continue;
            }
            let free = (!into.used & ((1 << SLOTS) - 1)).trailing_zeros() as usize;
            into.slots[free] = slot;
            into.used |= 1 << free;
            filled |= 1 << free;
        }
        env.lines.write_lines(into.offset, lines_of(filled) | 1);
        env.lines.fence();
        env.lines.write_lines(into.offset, 1);
        env.lines.fence();
        self.leaves[left as usize] = into;
        self.index.remove(from.low as usize);
        gone.into_iter().for_each(|slot| env.retire(slot));
        env.space.free_leaf(from.offset);
        self.free.push(right);
    }
}

/// The first entries of a leaf in key order, as they will be after these changes.
fn first_of(leaf: &Leaf, puts: &[Change], most: usize) -> Vec<Change> {
    if most == 0 {
        return Vec::new();
    }
    let delete = false;
    let there = leaf.members().map(|at| leaf.slots[at]);
    let there = there.filter(|slot| puts.iter().all(|put| put.slot.rank != slot.rank));
    let there = there.map(|slot| Change { slot, delete });
    let mut entries: Vec<Change> = there.chain(puts.iter().copied()).collect();
    entries.retain(|entry| !entry.slot.is_absent());
    entries.sort_unstable_by_key(|entry| entry.slot.rank);
    entries.truncate(most);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_slots_are_those_of_the_layout() {
        assert_eq!(lines_of(0b1), 1);
        assert_eq!(lines_of(0b100), 0b10);
        assert_eq!(lines_of(1 << 13 | 1), 0b1001);
        assert_eq!(lines_of((1 << 14) - 1), 0b1111);
    }
}
