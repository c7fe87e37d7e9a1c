//! Simulates LodgeTree's last-level inner nodes, by recursion on key ranges.
//!
//! ```text
//! next write of a node's range    already buffered? replace it | a free slot? buffer it |
//!                                 flush to at most t_node leaves, or split a leaf
//! 28 leaves                       split the node, partition the other writes (stably), recurse
//! ```
//!
//! The rules are those of the engine (LodgeTree §III-B, §III-C; `engine/src/trees/pm/lodge/`).
//! Nodes share nothing, so each is simulated to its end alone, with the lines of its leaves.

use std::ops::Range;

use super::LodgeShape;
use super::lines::{Medium, XpLine};
use crate::predict::grown::part;

/// Slots of a leaf (LodgeTree §IV-A).
const SLOTS: usize = 27;
/// Bytes of a leaf before its slots, of a slot, of a line.
const HEADER: usize = 80;
const SLOT: usize = 16;
const LINE: usize = 64;

/// A write: the rank of its key, and its time in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Write(u64);

impl Write {
    pub(super) fn new(rank: u32, time: u32) -> Write {
        Write(u64::from(rank) << 32 | u64::from(time))
    }

    fn rank(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn time(self) -> u32 {
        self.0 as u32
    }
}

/// Counts of the measured part, and the state at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Flushes of nodes.
    pub(super) flushes: f64,
    /// Visits to leaves by flushes.
    pub(super) visits: f64,
    /// Changes that these visits brought.
    pub(super) flushed: f64,
    /// Splits of leaves.
    pub(super) splits: f64,
    pub(super) nodes: f64,
    pub(super) leaves: f64,
    pub(super) buffered: f64,
}

struct Leaf {
    low: u32,
    /// Slots in use.
    bits: u32,
    keys: [u32; SLOTS],
    xplines: [XpLine; 2],
}

impl Leaf {
    fn holding(low: u32, keys: &[u32]) -> Leaf {
        let mut leaf = Leaf {
            low,
            bits: (1 << keys.len()) - 1,
            keys: [0; SLOTS],
            xplines: Default::default(),
        };
        leaf.keys[..keys.len()].copy_from_slice(keys);
        leaf
    }

    fn members(&self) -> impl Iterator<Item = usize> + use<> {
        let bits = self.bits;
        (0..SLOTS).filter(move |at| bits >> at & 1 == 1)
    }

    /// Slots that hold keys of a group.
    fn old(&self, group: &[u32]) -> u32 {
        let of_group = self.members().filter(|at| group.contains(&self.keys[*at]));
        of_group.fold(0, |old, at| old | 1 << at)
    }

    fn count(&self) -> usize {
        self.bits.count_ones() as usize
    }

    /// The lines of a leaf (one bit each) are written in order.
    fn touch(&mut self, medium: &mut Medium<'_>, lines: u8, time: u32) {
        let [first, second] = &mut self.xplines;
        medium.touch(first, lines & 0xf, time);
        medium.touch(second, lines >> 4, time);
    }
}

/// A buffered change of a record.
#[derive(Clone, Copy)]
struct Pair {
    rank: u32,
    /// Position of its leaf.
    leaf: usize,
    time: u32,
}

struct Node {
    leaves: Vec<Leaf>,
    buffer: Vec<Pair>,
    /// Number of cleanings that it has seen.
    cleanings: usize,
    /// M of the paper, and the times of the node's last two splits (§III-C).
    parts: usize,
    split_before: u32,
    split_last: u32,
    /// The range of its writes that are still to come.
    future: Range<usize>,
}

impl Node {
    fn group(&self, leaf: usize) -> Vec<u32> {
        let of_leaf = self.buffer.iter().filter(|pair| pair.leaf == leaf);
        of_leaf.map(|pair| pair.rank).collect()
    }
}

/// A cleaning of long logs: changes written before `below` (in ticks) are flushed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cleaning {
    pub(super) at: u32,
    pub(super) below: u32,
}

/// Observes leaves, and changes that were buffered.
pub(super) trait Watch {
    /// A leaf was split off.
    fn split(&mut self, time: u32);
    /// A change left the buffer or was overwritten at this time; `None` if it never does.
    fn left(&mut self, written: u32, time: Option<u32>);
}

/// Simulates all writes, which are in order of time.
pub(super) fn play(
    shape: &LodgeShape,
    writes: &mut [Write],
    cleanings: &[Cleaning],
    medium: &mut Medium<'_>,
    watch: &mut impl Watch,
) -> Counts {
    let mut play = Play {
        shape,
        cleanings,
        from: medium.from(),
        medium,
        watch,
        counts: Counts::default(),
        scratch: Vec::new(),
    };
    let mut nodes = vec![Node {
        leaves: vec![Leaf::holding(0, &[])],
        buffer: Vec::new(),
        cleanings: 0,
        parts: 2,
        split_before: 0,
        split_last: 0,
        future: 0..writes.len(),
    }];
    while let Some(mut node) = nodes.pop() {
        match play.fill(&mut node, writes) {
            Some(time) => nodes.extend(play.split_node(node, writes, time)),
            None => play.close(node),
        }
    }
    play.counts
}

struct Play<'a, 'b, W> {
    shape: &'a LodgeShape,
    cleanings: &'a [Cleaning],
    from: u32,
    medium: &'a mut Medium<'b>,
    watch: &'a mut W,
    counts: Counts,
    scratch: Vec<Write>,
}

impl<W: Watch> Play<'_, '_, W> {
    /// 1 in the measured part.
    fn measured(&self, time: u32) -> f64 {
        f64::from(u8::from(time >= self.from))
    }

    /// Processes writes until the node must be split, and returns when. Returns `None` if it never
    /// must.
    fn fill(&mut self, node: &mut Node, writes: &[Write]) -> Option<u32> {
        loop {
            let write = writes[node.future.clone()].first().copied();
            if let Some(cleaning) = self.cleanings.get(node.cleanings)
                && write.is_none_or(|write| write.time() >= cleaning.at)
            {
                node.cleanings += 1;
                while node.buffer.iter().any(|pair| pair.time < cleaning.below) {
                    self.flush(node, cleaning.below, cleaning.at);
                }
                if node.leaves.len() + 1 >= self.shape.slots {
                    return Some(cleaning.at);
                }
                continue;
            }
            let write = write?;
            let (rank, time) = (write.rank(), write.time());
            if let Some(there) = node.buffer.iter_mut().find(|pair| pair.rank == rank) {
                self.watch.left(there.time, Some(time));
                there.time = time;
                node.future.start += 1;
                continue;
            }
            // One slot is kept for a separator.
            if node.leaves.len() + node.buffer.len() + 1 < self.shape.slots {
                let leaf = node.leaves.partition_point(|leaf| leaf.low <= rank);
                let leaf = leaf.saturating_sub(1);
                node.buffer.push(Pair { rank, leaf, time });
                node.future.start += 1;
                continue;
            }
            if !node.buffer.is_empty() {
                self.flush(node, u32::MAX, time);
            }
            if node.leaves.len() + 1 >= self.shape.slots {
                return Some(time);
            }
        }
    }

    /// Flushes to the first t_node leaves in buffer order, until one would be split; splits that
    /// leaf if it is the first (§III-B). Only changes written before `below` choose leaves.
    fn flush(&mut self, node: &mut Node, below: u32, time: u32) {
        self.counts.flushes += self.measured(time);
        let mut chosen: Vec<usize> = Vec::with_capacity(self.shape.t_node);
        for at in 0..node.buffer.len() {
            let Pair {
                leaf,
                time: written,
                ..
            } = node.buffer[at];
            if written >= below || chosen.contains(&leaf) {
                continue;
            }
            let group = node.group(leaf);
            let there = &node.leaves[leaf];
            let keys = there.count() - there.old(&group).count_ones() as usize + group.len();
            if keys > self.shape.t_split {
                if chosen.is_empty() {
                    self.split_leaf(node, leaf, time);
                    return;
                }
                break;
            }
            chosen.push(leaf);
            if chosen.len() == self.shape.t_node {
                break;
            }
        }
        for leaf in chosen {
            self.merge(node, leaf, time);
        }
    }

    /// Counts a visit to a leaf that brings this many changes.
    fn count_visit(&mut self, changes: usize, time: u32) {
        self.counts.visits += self.measured(time);
        self.counts.flushed += self.measured(time) * changes as f64;
    }

    fn take_out(&mut self, node: &mut Node, time: u32, gone: impl Fn(&Pair) -> bool) {
        node.buffer.retain(|pair| {
            let gone = gone(pair);
            if gone {
                self.watch.left(pair.time, Some(time));
            }
            !gone
        });
    }

    fn merge(&mut self, node: &mut Node, at: usize, time: u32) {
        let group = node.group(at);
        self.take_out(node, time, |pair| pair.leaf == at);
        let leaf = &mut node.leaves[at];
        let old = leaf.old(&group);
        if group.len() > SLOTS - leaf.count() {
            // Replaced slots are cleared first, because there is no space beside them.
            leaf.bits &= !old;
            leaf.touch(self.medium, 1, time);
        }
        let empty = (0..SLOTS).filter(|slot| leaf.bits >> slot & 1 == 0);
        let (mut filled, mut lines) = (0, 0u8);
        for (slot, rank) in empty.zip(&group) {
            leaf.keys[slot] = *rank;
            filled |= 1 << slot;
            lines |= 1 << ((HEADER + SLOT * slot) / LINE);
        }
        leaf.touch(self.medium, lines, time);
        leaf.touch(self.medium, 1, time);
        leaf.bits = leaf.bits & !old | filled;
        self.count_visit(group.len(), time);
    }

    fn split_leaf(&mut self, node: &mut Node, at: usize, time: u32) {
        let group = node.group(at);
        let leaf = &mut node.leaves[at];
        let old = leaf.old(&group);
        let stay = leaf.members().filter(|slot| old >> slot & 1 == 0);
        let mut keys: Vec<u32> = stay.map(|slot| leaf.keys[slot]).collect();
        keys.extend(&group);
        keys.sort_unstable();
        let upper = &keys[keys.len() / 2..];
        let low = upper[0];
        let mut fresh = Leaf::holding(low, upper);
        let lines = (HEADER + SLOT * upper.len()).div_ceil(LINE);
        fresh.touch(self.medium, ((1u16 << lines) - 1) as u8, time);
        // Writes the spare pointer to the new leaf, and the word that switches to it.
        leaf.touch(self.medium, 1, time);
        leaf.touch(self.medium, 1, time);
        let leaving = leaf.members().filter(|slot| leaf.keys[*slot] >= low);
        leaf.bits &= !leaving.fold(0, |leaving, slot| leaving | 1 << slot);

        self.take_out(node, time, |pair| pair.leaf == at && pair.rank >= low);
        for pair in node.buffer.iter_mut().filter(|pair| pair.leaf > at) {
            pair.leaf += 1;
        }
        node.leaves.insert(at + 1, fresh);
        self.counts.splits += self.measured(time);
        self.watch.split(time);
        let moved = group.iter().filter(|rank| **rank >= low).count();
        if moved > 0 {
            self.count_visit(moved, time);
        }
        if moved < group.len() {
            self.merge(node, at, time);
        }
    }

    /// M for the next split (§III-C).
    fn wanted_parts(&self, node: &Node, time: u32) -> usize {
        let Some(factor) = self.shape.burst_factor else {
            return 2;
        };
        if node.split_before == 0 {
            return node.parts;
        }
        let interval_lp = f64::from(node.split_last - node.split_before);
        let interval_nl = f64::from(time - node.split_last);
        if interval_lp > factor * interval_nl {
            node.parts + 1
        } else if interval_lp * factor < interval_nl {
            (node.parts - 1).max(2)
        } else {
            node.parts
        }
    }

    /// Splits a node and returns its parts, the lowest first.
    fn split_node(&mut self, node: Node, writes: &mut [Write], time: u32) -> Vec<Node> {
        let leaves = node.leaves.len();
        let parts = self.wanted_parts(&node, time).min(leaves / 2).max(2);
        let bound = |part: usize| part * leaves / parts;
        let Range { mut start, end } = node.future;
        let mut all = node.leaves.into_iter();
        let mut nodes: Vec<Node> = Vec::with_capacity(parts);
        for n in 0..parts {
            let range = bound(n)..bound(n + 1);
            let future = match all.as_slice().get(range.len()) {
                None => start..end,
                Some(next) => {
                    let next = Write::new(next.low, 0);
                    start..start + part(&mut writes[start..end], next, &mut self.scratch)
                }
            };
            start = future.end;
            let of_part = node.buffer.iter().filter(|pair| range.contains(&pair.leaf));
            let moved = |pair: &Pair| Pair {
                leaf: pair.leaf - range.start,
                ..*pair
            };
            nodes.push(Node {
                leaves: all.by_ref().take(range.len()).collect(),
                buffer: of_part.map(moved).collect(),
                cleanings: node.cleanings,
                parts,
                split_before: node.split_last,
                split_last: time,
                future,
            });
        }
        nodes
    }

    /// Ends a node that receives no more writes.
    fn close(&mut self, node: Node) {
        self.counts.nodes += 1.0;
        self.counts.leaves += node.leaves.len() as f64;
        self.counts.buffered += node.buffer.len() as f64;
        for pair in &node.buffer {
            self.watch.left(pair.time, None);
        }
        for leaf in node.leaves {
            for mut xpline in leaf.xplines {
                self.medium.leave(&mut xpline);
            }
        }
    }
}
