//! Plays the tree with one buffer for all leaves: every write is logged and buffered; a full buffer
//! is merged into the leaves, some leaves a step, while another takes writes
//! (`engine/src/pm/trees/global.rs`).

use std::collections::BTreeMap;

use treering_engine::GlobalOptions;

use super::env::{Change, Env};
use super::leaves::{LEAF, Leaves, SLOTS, Stamped};
use super::log::{ENTRY, Log};
use super::tree::{Tree, scan};

/// Leaves that a step of a merge writes.
const STEP: usize = 64;
/// The smallest number of changes that make the buffer full.
const LEAST: u64 = 16;
/// Bytes that a buffered change counts as.
const SLOT_BYTES: u64 = 16;

/// The tree.
pub(super) struct Global {
    leaves: Leaves,
    log: Log,
    percent: u64,
    active: BTreeMap<u32, Change>,
    merging: BTreeMap<u32, Change>,
    /// A merge in progress: its floor, and the rank from which to continue.
    run: Option<(u64, u32)>,
}

impl Global {
    /// A tree over this many keys.
    pub(super) fn new(keys: usize, options: GlobalOptions, env: &Env<'_>) -> Global {
        Global {
            leaves: Leaves::new(keys, env.space.start, Stamped::No),
            log: Log::default(),
            percent: u64::from(options.buffer_percent),
            active: BTreeMap::new(),
            merging: BTreeMap::new(),
            run: None,
        }
    }

    fn is_full(&self, env: &Env<'_>) -> bool {
        let share = env.space.leaves * LEAF * self.percent / 100;
        let left = env.space.chunk_bytes / ENTRY / 2;
        let splits = env.space.free().saturating_sub(2) * (env.space.chunk_bytes / LEAF) * 9 / 10;
        let most = (share / SLOT_BYTES).min(left + splits).max(LEAST);
        self.active.len() as u64 >= most
    }

    /// Writes changes from a rank on to one leaf; returns the rank behind them.
    fn merge_leaf(&mut self, first: u32, env: &mut Env<'_>) -> u32 {
        let leaf = self.leaves.find(first);
        let fence = self.leaves.after(leaf).unwrap_or(u32::MAX);
        let of_leaf = self.merging.range(first..fence).take(SLOTS / 2);
        let batch: Vec<Change> = of_leaf.map(|(_, change)| *change).collect();
        let last = batch.last().map_or(first, |change| change.slot.rank);
        let written = self.leaves.write(leaf, &batch, 0, env);
        env.counts.flushes += 1;
        env.counts.flushed += batch.len() as u64;
        if written.is_sparse() && !self.merge_left(leaf, env) {
            let right = self.leaves.after(leaf).map(|low| self.leaves.find(low));
            right.map(|right| self.merge_left(right, env));
        }
        last + 1
    }

    fn merge_left(&mut self, right: u32, env: &mut Env<'_>) -> bool {
        let left = self.leaves.mergeable(right, |_| 0);
        let left = left.filter(|left| self.leaves.fit(*left, right));
        if let Some(left) = left {
            self.leaves.merge(left, right, env);
        }
        left.is_some()
    }
}

impl Tree for Global {
    fn change(&mut self, change: Change, env: &mut Env<'_>) {
        while self.is_full(env) {
            self.pump(env);
        }
        self.log.append(env);
        if let Some(old) = self.active.insert(change.slot.rank, change) {
            env.retire(old.slot);
        }
    }

    fn get(&mut self, rank: u32, env: &mut Env<'_>) {
        let found = self.active.get(&rank).or_else(|| self.merging.get(&rank));
        if let Some(change) = found {
            env.counts.hits += 1;
            if !change.delete {
                env.load_value(change.slot);
            }
            return;
        }
        env.counts.misses += 1;
        let leaf = self.leaves.find(rank);
        self.leaves.look(leaf, rank, env);
    }

    fn scan(&mut self, rank: u32, records: u32, env: &mut Env<'_>) {
        scan(&self.leaves, rank, records, env);
    }

    fn due(&self, env: &Env<'_>) -> bool {
        self.run.is_some() || self.is_full(env)
    }

    fn pump(&mut self, env: &mut Env<'_>) {
        let (floor, mut next) = self.run.take().unwrap_or_else(|| {
            self.merging = std::mem::take(&mut self.active);
            (self.log.flip(env), 0)
        });
        for _ in 0..STEP {
            let first = self.merging.range(next..).next().map(|(rank, _)| *rank);
            let Some(first) = first else {
                self.merging.clear();
                self.log.give_up(floor, env);
                return;
            };
            next = self.merge_leaf(first, env);
        }
        self.run = Some((floor, next));
    }

    fn stops_everybody(&self) -> bool {
        true
    }

    fn buffered(&self) -> u64 {
        (self.active.len() + self.merging.len()) as u64
    }
}
