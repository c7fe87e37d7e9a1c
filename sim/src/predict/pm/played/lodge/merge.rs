//! Merges of sparse leaves, and of nodes with few of them: a sweep over all nodes
//! (`engine/src/pm/trees/lodge/merge.rs`).

use super::super::env::Env;
use super::Lodge;
use super::node::{Node, SLOTS, lines_of};

/// Nodes that a step visits.
const STEP: usize = 16;
/// A sweep is due if at least one in this many leaves is sparse.
const SHARE: u64 = 32;

impl Lodge {
    /// Counts a leaf that deletes have left with few keys.
    pub(super) fn note_sparse(&mut self, keys: usize) {
        self.sparse += u64::from(self.is_sparse(keys));
    }

    fn is_sparse(&self, keys: usize) -> bool {
        2 * keys < self.options.t_split
    }

    pub(super) fn merging_due(&self, env: &Env<'_>) -> bool {
        self.sparse > 0 && self.sparse * SHARE > env.space.leaves || self.sweep.is_some()
    }

    /// A step of the sweep.
    pub(super) fn merge_step(&mut self, env: &mut Env<'_>) {
        let mut from = match self.sweep.take() {
            Some(from) => from,
            None => {
                self.sparse = 0;
                0
            }
        };
        for _ in 0..STEP {
            let number = self.find(from);
            let mut node = std::mem::take(&mut self.nodes[number as usize]);
            self.merge_leaves(&mut node, env);
            while self.absorb_next(&mut node, env) {
                self.merge_leaves(&mut node, env);
            }
            let low = node.low();
            self.nodes[number as usize] = node;
            match self.index.at_or_above(low as usize + 1) {
                Some(next) => from = next as u32,
                None => return,
            }
        }
        self.sweep = Some(from);
    }

    fn merge_leaves(&mut self, node: &mut Node, env: &mut Env<'_>) {
        let most = self.options.t_split * 3 / 4;
        let mut at = 0;
        while at + 1 < node.leaves.len() {
            let count = |at: usize| self.leaves[node.leaves[at].1 as usize].count();
            let (left, right) = (count(at), count(at + 1));
            let wanted = self.is_sparse(left) || self.is_sparse(right);
            if !(wanted && left + right <= most && self.merge_right(node, at, most, env)) {
                at += 1;
            }
        }
    }

    fn merge_right(&mut self, node: &mut Node, at: usize, most: usize, env: &mut Env<'_>) -> bool {
        let visits = [at, at + 1].map(|at| self.visit(node, at, env));
        if visits
            .iter()
            .map(|visit| self.keys_after(visit))
            .sum::<usize>()
            > most
        {
            return false;
        }
        for visit in visits {
            if !visit.group.is_empty() {
                env.counts.node_flushes += 1;
                self.merge(node, visit, env);
            }
        }
        self.link_past(node, at, env);
        true
    }

    /// Takes over the slots of the leaf behind the one at `at`.
    fn link_past(&mut self, node: &mut Node, at: usize, env: &mut Env<'_>) {
        let (left, right) = (node.leaves[at].1, node.leaves[at + 1].1);
        let from = self.leaves[right as usize];
        let into = &mut self.leaves[left as usize];
        let taken = into.used;
        let empty = (0..SLOTS).filter(|at| taken >> at & 1 == 0);
        let mut filled = 0u32;
        for (at, slot) in empty.zip(from.members()) {
            into.fill(at, from.slots[slot]);
            filled |= 1 << at;
        }
        into.used |= filled;
        // The spare pointer first, and then the slots.
        env.lines.write_lines(into.offset, 1);
        env.lines.write_lines(into.offset, lines_of(filled));
        env.lines.fence();
        env.lines.write_lines(into.offset, 1);
        env.lines.fence();
        node.remove_leaf_behind(at);
        env.free(from.low);
        env.space.free_leaf(from.offset);
        self.free_leaves.push(right);
    }

    /// Merges the node to the right into this one, if they are small.
    fn absorb_next(&mut self, node: &mut Node, env: &mut Env<'_>) -> bool {
        let Some(next) = self.index.at_or_above(node.low() as usize + 1) else {
            return false;
        };
        let number = self.at[next];
        let few = (self.options.slots / 2).max(2);
        let mut right = std::mem::take(&mut self.nodes[number as usize]);
        let leaves = |left: &Node, right: &Node| left.leaves.len() + right.leaves.len();
        while leaves(node, &right) <= few
            && leaves(node, &right) + node.pairs.len() + right.pairs.len() + 1 >= self.options.slots
        {
            let left = node.pairs.len() > right.pairs.len();
            self.flush(if left { &mut *node } else { &mut right }, u64::MAX, env);
        }
        if leaves(node, &right) > few {
            self.nodes[number as usize] = right;
            return false;
        }
        let before = node.leaves.len();
        node.leaves.append(&mut right.leaves);
        for mut pair in right.pairs {
            pair.leaf += before;
            node.pairs.push(pair);
        }
        self.index.remove(next);
        self.upper.remove(next as u32);
        self.free_nodes.push(number);
        self.count -= 1;
        true
    }
}
