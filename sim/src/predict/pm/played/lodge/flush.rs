//! Flushes of a node: to at most t_node leaves, or the split of one (LodgeTree §III-B;
//! `engine/src/pm/trees/lodge/flush.rs`, `split.rs`).

use super::super::env::{Env, Slot};
use super::Lodge;
use super::node::{HEADER, Leaf, Node, Pair, SLOT, SLOTS, lines_of};

/// A leaf and its buffered pairs.
pub(super) struct Visit {
    /// Position of the leaf in its node.
    at: usize,
    leaf: u32,
    pub(super) group: Vec<Pair>,
    /// Slots that hold keys of the group.
    old: u32,
}

impl Visit {
    fn puts(&self) -> impl Iterator<Item = &Pair> {
        self.group.iter().filter(|pair| !pair.change.delete)
    }
}

impl Lodge {
    pub(super) fn visit(&mut self, node: &Node, at: usize, env: &mut Env<'_>) -> Visit {
        let leaf = node.leaves[at].1;
        let image = &self.leaves[leaf as usize];
        env.lines.load(image.offset, super::node::LEAF);
        let group = node.group(at);
        group.iter().for_each(|pair| env.compare(pair.change.slot));
        let mut old = 0;
        for slot in image.members() {
            env.compare(image.slots[slot]);
            if group
                .iter()
                .any(|pair| pair.change.slot.rank == image.slots[slot].rank)
            {
                old |= 1 << slot;
            }
        }
        Visit {
            at,
            leaf,
            group,
            old,
        }
    }

    /// Keys that the leaf would have.
    pub(super) fn keys_after(&self, visit: &Visit) -> usize {
        let there = self.leaves[visit.leaf as usize].count();
        there - visit.old.count_ones() as usize + visit.puts().count()
    }

    /// A flush to leaves of pairs numbered below `below`.
    pub(super) fn flush(&mut self, node: &mut Node, below: u64, env: &mut Env<'_>) {
        env.counts.node_flushes += 1;
        let mut visits: Vec<Visit> = Vec::new();
        let wanted = node.pairs.iter().filter(|pair| pair.number < below);
        let wanted: Vec<usize> = wanted.map(|pair| pair.leaf).collect();
        for leaf in wanted {
            if visits.iter().any(|visit| visit.at == leaf) {
                continue;
            }
            let visit = self.visit(node, leaf, env);
            if self.keys_after(&visit) > self.options.t_split {
                if visits.is_empty() {
                    self.split_leaf(node, visit, env);
                    return;
                }
                break;
            }
            visits.push(visit);
            if visits.len() == self.options.t_node {
                break;
            }
        }
        for visit in visits {
            self.merge(node, visit, env);
        }
    }

    /// Merges a leaf's pairs into it.
    pub(super) fn merge(&mut self, node: &mut Node, visit: Visit, env: &mut Env<'_>) {
        let leaf = &mut self.leaves[visit.leaf as usize];
        let puts: Vec<Slot> = visit.puts().map(|pair| pair.change.slot).collect();
        if puts.len() > SLOTS - leaf.count() {
            leaf.used &= !visit.old;
            env.lines.write_lines(leaf.offset, 1);
            env.lines.fence();
        }
        let gone: Vec<Slot> = (0..SLOTS)
            .filter(|at| visit.old >> at & 1 == 1)
            .map(|at| leaf.slots[at])
            .collect();
        let kinds = leaf.kinds;
        let taken = leaf.used;
        let mut filled = 0u32;
        let empty = (0..SLOTS).filter(|at| taken >> at & 1 == 0);
        for (at, slot) in empty.zip(&puts) {
            leaf.fill(at, *slot);
            filled |= 1 << at;
        }
        leaf.used = taken & !visit.old | filled;
        if filled != 0 {
            let lines = lines_of(filled) | u8::from(leaf.kinds != kinds);
            env.lines.write_lines(leaf.offset, lines);
            env.lines.fence();
        }
        env.lines.write_lines(leaf.offset, 1);
        env.lines.fence();
        let keys = leaf.count();
        if visit.group.iter().any(|pair| pair.change.delete) {
            self.note_sparse(keys);
        }
        self.take_out(node, &visit.group, env);
        for slot in gone {
            self.retire(slot, env);
        }
        env.counts.flushes += 1;
        env.counts.flushed += visit.group.len() as u64;
    }

    /// Removes flushed pairs from the buffer.
    fn take_out(&mut self, node: &mut Node, group: &[Pair], env: &mut Env<'_>) {
        let is_gone = |pair: &Pair| group.iter().any(|other| other.number == pair.number);
        node.pairs.retain(|pair| !is_gone(pair));
        for pair in group {
            self.logs.release(pair.log, env);
            self.buffered -= 1;
            if pair.change.delete {
                self.retire(pair.change.slot, env);
            }
        }
    }

    fn split_leaf(&mut self, node: &mut Node, visit: Visit, env: &mut Env<'_>) {
        let image = self.leaves[visit.leaf as usize];
        let stay = image.members().filter(|at| visit.old >> at & 1 == 0);
        let mut keys: Vec<Slot> = stay.map(|at| image.slots[at]).collect();
        keys.extend(visit.puts().map(|pair| pair.change.slot));
        keys.sort_unstable_by_key(|slot| slot.rank);
        let upper = keys.split_off(keys.len() / 2);
        let separator = upper[0].rank;
        let leaving = image
            .members()
            .filter(|at| image.slots[*at].rank >= separator);
        let leaving = leaving.fold(0u32, |all, at| all | 1 << at);
        let offset = env.space.allocate_leaf(&mut env.lines);
        let mut fresh = Leaf::at(offset);
        fresh.low = env.encode(separator, None);
        for (at, slot) in upper.iter().enumerate() {
            fresh.fill(at, *slot);
            fresh.used |= 1 << at;
        }
        env.lines.write(offset, HEADER + SLOT * upper.len() as u64);
        env.lines.fence();
        // The spare pointer to the new leaf, and the word that switches to it.
        for _ in 0..2 {
            env.lines.write_lines(image.offset, 1);
            env.lines.fence();
        }
        self.leaves[visit.leaf as usize].used &= !leaving;
        let (moved, rest): (Vec<Pair>, Vec<Pair>) =
            (visit.group.iter()).partition(|pair| pair.change.slot.rank >= separator);
        self.take_out(node, &moved, env);
        let fresh = self.add(fresh);
        node.insert_leaf(visit.at, (separator, fresh));
        env.counts.splits += 1;
        let replaced = image
            .members()
            .filter(|at| leaving & visit.old >> at & 1 == 1);
        replaced.for_each(|at| self.retire(image.slots[at], env));
        if !moved.is_empty() {
            env.counts.flushes += 1;
            env.counts.flushed += moved.len() as u64;
        }
        if !rest.is_empty() {
            let lower = Visit {
                old: visit.old & !leaving,
                group: rest,
                ..visit
            };
            self.merge(node, lower, env);
        }
    }
}
