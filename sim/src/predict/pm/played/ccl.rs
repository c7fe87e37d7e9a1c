//! Plays CCL-BTree and the tree without buffers, write by write.
//!
//! ```text
//! write ─▶ key buffered? log, overwrite | slot free? log, fill | else trigger: batch to the leaf
//! log long ─▶ flip ─▶ 64 leaves a step: copy what is buffered and old ─▶ log floor
//! ```
//!
//! The rules are those of `engine/src/pm/trees/ccl` (CCL-BTree §3.2 to §3.4). A tree without buffers
//! is one with buffer nodes of no slots.

use treering_engine::{CclOptions, Cleaning, Logging};

use super::env::{Change, Env};
use super::leaves::{LEAF, Leaves, Stamped};
use super::log::{ENTRY, Log};
use super::tree::{Tree, scan};

/// Leaves that a step of cleaning visits.
const STEP: usize = 64;

#[derive(Clone, Copy, Default)]
struct Node {
    unflushed: u8,
    filled: u8,
    /// Epochs of the slots, one bit each.
    epochs: u8,
}

/// A cleaning in progress: the rank from which to continue.
struct Run {
    from: u32,
    floor: u64,
    epoch: bool,
}

/// The tree.
pub(super) struct Ccl {
    leaves: Leaves,
    nodes: Vec<Node>,
    /// Slots of all nodes.
    slots: Vec<Change>,
    batch: usize,
    options: Option<CclOptions>,
    log: Log,
    buffered: u64,
    run: Option<Run>,
    triggers: u64,
}

impl Ccl {
    /// A tree over this many keys; without buffers if there are no options.
    pub(super) fn new(keys: usize, options: Option<CclOptions>, env: &Env<'_>) -> Ccl {
        let batch = options.map_or(0, |options| options.batch);
        Ccl {
            leaves: Leaves::new(keys, env.space.start, Stamped::Yes),
            nodes: vec![Node::default()],
            slots: vec![Change::default(); batch],
            batch,
            options,
            log: Log::default(),
            buffered: 0,
            run: None,
            triggers: 0,
        }
    }

    fn node(&mut self, leaf: u32) -> &mut Node {
        &mut self.nodes[leaf as usize]
    }

    fn set(&mut self, leaf: u32, at: usize, change: Change, epoch: bool) {
        self.slots[leaf as usize * self.batch + at] = change;
        let node = self.node(leaf);
        node.epochs = node.epochs & !(1 << at) | u8::from(epoch) << at;
    }

    fn slots(&self, leaf: u32, count: u8) -> &[Change] {
        &self.slots[leaf as usize * self.batch..][..usize::from(count)]
    }

    /// Writes what a node buffers, and `extra`, to its leaf.
    fn flush(&mut self, leaf: u32, extra: Option<Change>, env: &mut Env<'_>) -> bool {
        let node = self.nodes[leaf as usize];
        let mut batch: Vec<Change> = self.slots(leaf, node.unflushed).to_vec();
        batch.extend(extra);
        env.tick();
        let written = self.leaves.write(leaf, &batch, self.batch, env);
        env.counts.flushes += 1;
        env.counts.flushed += batch.len() as u64;
        self.buffered -= u64::from(node.unflushed);
        self.node(leaf).unflushed = 0;
        let Some((right, _)) = written.split else {
            self.keep_cached(leaf);
            return written.is_sparse();
        };
        if self.nodes.len() < self.leaves.limit() {
            self.nodes.resize(self.leaves.limit(), Node::default());
            self.slots
                .resize(self.leaves.limit() * self.batch, Change::default());
        }
        for (leaf, copies) in [leaf, right].into_iter().zip(&written.copies) {
            *self.node(leaf) = Node {
                filled: copies.len() as u8,
                ..Node::default()
            };
            for (at, copy) in copies.iter().enumerate() {
                self.set(leaf, at, *copy, false);
            }
        }
        written.is_sparse()
    }

    /// Drops deletes with records, which are gone.
    fn keep_cached(&mut self, leaf: u32) {
        let filled = self.nodes[leaf as usize].filled;
        let mut kept = 0;
        for at in 0..usize::from(filled) {
            let change = self.slots(leaf, filled)[at];
            if change.delete && change.slot.has_key_record() {
                continue;
            }
            if kept < at {
                self.set(leaf, kept, change, false);
            }
            kept += 1;
        }
        self.node(leaf).filled = kept as u8;
    }

    /// Merges a sparse leaf with a neighbour.
    fn merge_around(&mut self, leaf: u32, env: &mut Env<'_>) {
        if self.merge_left(leaf, env) {
            return;
        }
        if let Some(low) = self.leaves.after(leaf) {
            let right = self.leaves.find(low);
            self.merge_left(right, env);
        }
    }

    fn merge_left(&mut self, right: u32, env: &mut Env<'_>) -> bool {
        self.leaves.load(right, env);
        let unflushed = |leaf: u32| usize::from(self.nodes[leaf as usize].unflushed);
        let Some(left) = self.leaves.mergeable(right, unflushed) else {
            return false;
        };
        self.leaves.load(left, env);
        for leaf in [left, right] {
            if self.nodes[leaf as usize].unflushed > 0 {
                self.flush(leaf, None, env);
            }
            self.node(leaf).filled = 0;
        }
        if !self.leaves.fit(left, right) {
            return false;
        }
        self.leaves.merge(left, right, env);
        *self.node(right) = Node::default();
        true
    }

    fn is_long(&self, options: &CclOptions, env: &Env<'_>) -> bool {
        let leaf_bytes = env.space.leaves * LEAF;
        let live = self.log.live;
        let long = live * ENTRY * 100 > leaf_bytes * u64::from(options.log_percent);
        let garbage = live.saturating_sub(self.buffered);
        long && garbage * 100 > live * u64::from(options.garbage_percent)
    }

    fn clean_naively(&mut self, env: &mut Env<'_>) {
        let floor = self.log.flip(env);
        let mut from = 0;
        while let Some((low, leaf)) = self.leaves.from(from) {
            from = low + 1;
            if self.nodes[leaf as usize].unflushed > 0 {
                env.counts.cleaned += 1;
                if self.flush(leaf, None, env) {
                    self.merge_around(leaf, env);
                }
            }
        }
        self.log.give_up(floor, env);
    }
}

impl Tree for Ccl {
    fn change(&mut self, change: Change, env: &mut Env<'_>) {
        let rank = change.slot.rank;
        let leaf = self.leaves.find(rank);
        let node = self.nodes[leaf as usize];
        let unflushed = self.slots(leaf, node.unflushed);
        let there = unflushed.iter().position(|slot| slot.slot.rank == rank);
        let compared = there.map_or(unflushed.len(), |at| at + 1);
        (unflushed[..compared].iter()).for_each(|change| env.compare(change.slot));
        if let Some(at) = there {
            let old = unflushed[at].slot;
            let epoch = self.log.append(env);
            env.retire(old);
            self.set(leaf, at, change, epoch);
            return;
        }
        let at = usize::from(node.unflushed);
        if at < self.batch {
            let epoch = self.log.append(env);
            // The copy cached in the slot moves to that of the key's own copy.
            let filled = self.slots(leaf, node.filled);
            let copy = (at..filled.len()).find(|slot| filled[*slot].slot.rank == rank);
            if let Some(copy) = copy.filter(|copy| *copy > at) {
                self.set(leaf, copy, filled[at], false);
            }
            self.set(leaf, at, change, epoch);
            let node = self.node(leaf);
            node.unflushed += 1;
            node.filled = node.filled.max(at as u8 + 1);
            self.buffered += 1;
            return;
        }
        self.triggers += 1;
        if (self.options).is_some_and(|options| options.logging == Logging::EveryWrite) {
            self.log.append(env);
        }
        if self.flush(leaf, Some(change), env) {
            self.merge_around(leaf, env);
        }
    }

    fn get(&mut self, rank: u32, env: &mut Env<'_>) {
        let leaf = self.leaves.find(rank);
        let filled = self.slots(leaf, self.nodes[leaf as usize].filled);
        for change in filled {
            env.compare(change.slot);
            if change.slot.rank != rank {
                continue;
            }
            env.counts.hits += 1;
            if !change.delete {
                env.load_value(change.slot);
            }
            return;
        }
        env.counts.misses += 1;
        self.leaves.look(leaf, rank, env);
    }

    fn scan(&mut self, rank: u32, records: u32, env: &mut Env<'_>) {
        scan(&self.leaves, rank, records, env);
    }

    fn due(&self, env: &Env<'_>) -> bool {
        self.run.is_some() || (self.options.as_ref()).is_some_and(|o| self.is_long(o, env))
    }

    fn pump(&mut self, env: &mut Env<'_>) {
        if Tree::stops_everybody(self) {
            return self.clean_naively(env);
        }
        let Run { from, floor, epoch } = self.run.take().unwrap_or_else(|| {
            let floor = self.log.flip(env);
            Run {
                from: 0,
                floor,
                epoch: self.log.epoch,
            }
        });
        let mut next = from;
        for _ in 0..STEP {
            let Some((low, leaf)) = self.leaves.from(next) else {
                self.log.give_up(floor, env);
                return;
            };
            next = low + 1;
            let node = self.nodes[leaf as usize];
            for at in 0..usize::from(node.unflushed) {
                if (node.epochs >> at & 1 == 1) != epoch {
                    let appended = self.log.append(env);
                    env.counts.copied += 1;
                    env.counts.cleaned += 1;
                    let node = self.node(leaf);
                    node.epochs = node.epochs & !(1 << at) | u8::from(appended) << at;
                }
            }
        }
        self.run = Some(Run {
            from: next,
            floor,
            epoch,
        });
    }

    fn stops_everybody(&self) -> bool {
        (self.options).is_some_and(|options| options.cleaning == Cleaning::Naive)
    }

    fn buffered(&self) -> u64 {
        self.buffered
    }
}
