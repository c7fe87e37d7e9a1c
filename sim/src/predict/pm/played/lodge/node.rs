//! Last-level inner nodes, whose free slots are the buffer (LodgeTree §III-A), and leaves of 27
//! slots.

use super::super::env::{Change, Env, Slot};

/// Slots of a leaf, bytes before them, bytes of a slot.
pub(super) const SLOTS: usize = 27;
pub(super) const HEADER: u64 = 80;
pub(super) const SLOT: u64 = 16;
/// Bytes of a leaf.
pub(super) const LEAF: u64 = 512;

/// A leaf.
#[derive(Clone, Copy)]
pub(super) struct Leaf {
    pub(super) offset: u64,
    pub(super) used: u32,
    /// Slots that were last filled with records' places.
    pub(super) kinds: u32,
    pub(super) slots: [Slot; SLOTS],
    /// The key at which the leaf begins, with its record.
    pub(super) low: Slot,
}

impl Leaf {
    pub(super) fn at(offset: u64) -> Leaf {
        Leaf {
            offset,
            used: 0,
            kinds: 0,
            slots: [Slot::default(); SLOTS],
            low: Slot::default(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.used.count_ones() as usize
    }

    pub(super) fn members(&self) -> impl Iterator<Item = usize> + use<> {
        let used = self.used;
        (0..SLOTS).filter(move |at| used >> at & 1 == 1)
    }

    /// Fills a slot; the bitmap stays.
    pub(super) fn fill(&mut self, at: usize, slot: Slot) {
        self.slots[at] = slot;
        self.kinds = self.kinds & !(1 << at) | u32::from(slot.is_indirect()) << at;
    }

    /// Looks for a key from the left, half a leaf at a time.
    pub(super) fn look(&self, rank: u32, env: &mut Env<'_>) {
        env.lines.load(self.offset, LEAF / 2);
        for at in self.members() {
            let end = HEADER + SLOT * (at as u64 + 1);
            if end > LEAF / 2 {
                env.lines.load(self.offset + LEAF / 2, LEAF / 2);
            }
            env.compare(self.slots[at]);
            if self.slots[at].rank == rank {
                env.load_value(self.slots[at]);
                return;
            }
        }
    }
}

/// The lines (one bit each) of these slots.
pub(super) fn lines_of(slots: u32) -> u8 {
    (0..SLOTS as u64)
        .filter(|at| slots >> at & 1 == 1)
        .fold(0, |lines, at| lines | 1 << ((HEADER + SLOT * at) / 64))
}

/// A buffered change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) change: Change,
    /// Position of its leaf in the node.
    pub(super) leaf: usize,
    pub(super) number: u64,
    pub(super) log: u32,
}

/// A node.
#[derive(Default)]
pub(super) struct Node {
    /// Ranks at which leaves begin, and the leaves.
    pub(super) leaves: Vec<(u32, u32)>,
    pub(super) pairs: Vec<Pair>,
    /// M, and the times of the last two splits (§III-C).
    pub(super) parts: usize,
    pub(super) split_before: u64,
    pub(super) split_last: u64,
}

impl Node {
    pub(super) fn low(&self) -> u32 {
        self.leaves.first().map_or(0, |leaf| leaf.0)
    }

    /// Position of the leaf of a key.
    pub(super) fn leaf_of(&self, rank: u32) -> usize {
        let behind = self.leaves.partition_point(|leaf| leaf.0 <= rank);
        behind.saturating_sub(1)
    }

    /// Position of the pair of a key.
    pub(super) fn find(&self, rank: u32, env: &mut Env<'_>) -> Option<usize> {
        let there = self
            .pairs
            .iter()
            .position(|pair| pair.change.slot.rank == rank);
        let compared = there.map_or(self.pairs.len(), |at| at + 1);
        (self.pairs[..compared].iter()).for_each(|pair| env.compare(pair.change.slot));
        there
    }

    /// The pairs of a leaf.
    pub(super) fn group(&self, leaf: usize) -> Vec<Pair> {
        let of_leaf = self.pairs.iter().filter(|pair| pair.leaf == leaf);
        of_leaf.copied().collect()
    }

    pub(super) fn is_full(&self, slots: usize) -> bool {
        self.leaves.len() + self.pairs.len() + 1 >= slots
    }

    pub(super) fn must_split(&self, slots: usize) -> bool {
        self.leaves.len() + 1 >= slots
    }

    /// A leaf was split off the one at `after`.
    pub(super) fn insert_leaf(&mut self, after: usize, leaf: (u32, u32)) {
        self.leaves.insert(after + 1, leaf);
        for pair in self.pairs.iter_mut().filter(|pair| pair.leaf > after) {
            pair.leaf += 1;
        }
    }

    /// The leaf behind the one at `at` was merged into it.
    pub(super) fn remove_leaf_behind(&mut self, at: usize) {
        self.leaves.remove(at + 1);
        for pair in self.pairs.iter_mut().filter(|pair| pair.leaf > at) {
            pair.leaf -= 1;
        }
    }
}
