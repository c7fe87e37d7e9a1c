//! Plays LodgeTree: writes collect in the free slots of last-level inner nodes, which are flushed to
//! a few leaves at a time, over logs of L entries (LodgeTree §III; `engine/src/pm/trees/lodge`).
//!
//! ```text
//! write ─▶ room in a log ─▶ node full? flush t_node leaves, or split one ─▶ entry ─▶ pair
//! logs long, or records wait ─▶ flush what is numbered below ─▶ log floor
//! ```

mod flush;
mod logs;
mod merge;
mod node;
mod upper;

use treering_engine::{LodgeOptions, NodeSplit};

use self::logs::Logs;
use self::node::{LEAF, Leaf, Node, Pair};
use self::upper::Upper;
use super::env::{Change, Env, Slot};
use super::log::ENTRY;
use super::tree::Tree;
use crate::predict::played::Marks;

/// Nodes that a step of cleaning visits.
const STEP: usize = 16;
/// Fewer bytes of retired records than this are not worth a cleaning.
const LEAST_RETIRED: u64 = 16 << 10;

/// The tree.
pub(super) struct Lodge {
    options: LodgeOptions,
    leaves: Vec<Leaf>,
    free_leaves: Vec<u32>,
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    /// Ranks at which nodes begin, and the node that begins at each.
    index: Marks,
    at: Vec<u32>,
    upper: Upper,
    logs: Logs,
    buffered: u64,
    /// Nodes.
    count: u64,
    /// The log floor, and a cleaning in progress: its floor, and the rank from which to continue.
    floor: u64,
    run: Option<(u64, u32)>,
    in_vain: bool,
    /// Leaves found sparse since the last sweep began, and the sweep in progress.
    sparse: u64,
    sweep: Option<u32>,
}

impl Lodge {
    /// A tree over this many keys.
    pub(super) fn new(keys: usize, options: LodgeOptions, env: &Env<'_>) -> Lodge {
        let mut index = Marks::new(keys.max(1));
        index.insert(0);
        Lodge {
            options,
            leaves: vec![Leaf::at(env.space.start)],
            free_leaves: Vec::new(),
            nodes: vec![Node {
                leaves: vec![(0, 0)],
                parts: 2,
                ..Node::default()
            }],
            free_nodes: Vec::new(),
            index,
            at: vec![0; keys.max(1)],
            upper: Upper::new(),
            logs: Logs::new(u64::from(options.log_entries), env),
            buffered: 0,
            count: 1,
            floor: 0,
            run: None,
            in_vain: false,
            sparse: 0,
            sweep: None,
        }
    }

    /// The node of a key.
    fn find(&self, rank: u32) -> u32 {
        let low = self.index.at_or_below(rank as usize).unwrap_or(0);
        self.at[low]
    }

    fn add(&mut self, leaf: Leaf) -> u32 {
        match self.free_leaves.pop() {
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

    /// Gives up records that only log entries name.
    fn retire(&mut self, slot: Slot, env: &mut Env<'_>) {
        let now = env.clock;
        env.retire_at(slot, now);
    }

    /// M for the next split of a node (§III-C).
    fn wanted_parts(&self, node: &Node, env: &Env<'_>) -> usize {
        if self.options.node_split == NodeSplit::Double {
            return 2;
        }
        let mut wanted = node.parts;
        if node.split_before != 0 {
            let interval_lp = node.split_last - node.split_before;
            let interval_nl = env.clock - node.split_last;
            let factor = u64::from(self.options.burst_factor);
            if interval_lp > factor * interval_nl {
                wanted += 1;
            } else if interval_lp * factor < interval_nl {
                wanted -= 1;
            }
        }
        let room = self.upper.room(node.low());
        match room {
            0 | 1 => 2,
            _ => wanted.max(2).min(room),
        }
    }

    /// Splits a node that has no room for a buffer.
    fn split_node(&mut self, number: u32, mut node: Node, env: &Env<'_>) {
        let leaves = node.leaves.len();
        let parts = self.wanted_parts(&node, env).min(leaves / 2).max(2);
        (node.split_before, node.split_last) = (node.split_last, env.clock);
        node.parts = parts;
        let bound = |part: usize| part * leaves / parts;
        for part in (1..parts).rev() {
            let first = bound(part);
            let of_part = |pair: &Pair| pair.leaf >= first;
            let mut pairs: Vec<Pair> = node.pairs.iter().copied().filter(of_part).collect();
            pairs.iter_mut().for_each(|pair| pair.leaf -= first);
            node.pairs.retain(|pair| !of_part(pair));
            let new = Node {
                leaves: node.leaves.split_off(first),
                pairs,
                ..node
            };
            let low = new.low();
            let added = match self.free_nodes.pop() {
                Some(free) => {
                    self.nodes[free as usize] = new;
                    free
                }
                None => {
                    self.nodes.push(new);
                    self.nodes.len() as u32 - 1
                }
            };
            self.index.insert(low as usize);
            self.at[low as usize] = added;
            self.upper.insert(low);
            self.count += 1;
        }
        self.nodes[number as usize] = node;
    }

    fn is_long(&self, env: &Env<'_>) -> bool {
        let room = self.logs.room();
        let entitled = self.options.logs as u64 * self.logs.entries;
        let share = env.space.leaves * LEAF * u64::from(self.options.log_percent);
        room > 2 * (self.buffered + entitled) && room * ENTRY * 100 > share
    }

    fn records_wait(env: &Env<'_>) -> bool {
        let (retired, all) = (env.space.retired_bytes, env.space.record_bytes);
        retired > LEAST_RETIRED && retired > all / 4
    }

    fn cleaning_due(&self, env: &Env<'_>) -> bool {
        self.run.is_some() || self.is_long(env) || Self::records_wait(env)
    }

    fn clean(&mut self, env: &mut Env<'_>) {
        let (floor, mut from) = self.run.take().unwrap_or_else(|| {
            let in_vain = std::mem::take(&mut self.in_vain);
            let median = self.logs.median_opened();
            let older_half = !in_vain && !Self::records_wait(env) && median > self.floor;
            (if older_half { median } else { env.tick() }, 0)
        });
        for _ in 0..STEP {
            self.flush_below(from, floor, env);
            match self.index.at_or_above(from as usize + 1) {
                Some(next) => from = next as u32,
                None => {
                    self.floor = floor;
                    env.space.set_floor(&mut env.lines);
                    env.space.floor_raised(floor);
                    env.counts.cleanings += 1;
                    self.in_vain = self.is_long(env);
                    return;
                }
            }
        }
        self.run = Some((floor, from));
    }

    /// Flushes the pairs of the node at a rank that are numbered below `floor`.
    fn flush_below(&mut self, low: u32, floor: u64, env: &mut Env<'_>) {
        let number = self.find(low);
        let mut node = std::mem::take(&mut self.nodes[number as usize]);
        while node.pairs.iter().any(|pair| pair.number < floor) {
            self.flush(&mut node, floor, env);
            env.counts.cleaned += 1;
        }
        if node.must_split(self.options.slots) {
            self.split_node(number, node, env);
        } else {
            self.nodes[number as usize] = node;
        }
    }
}

impl Tree for Lodge {
    fn change(&mut self, change: Change, env: &mut Env<'_>) {
        let rank = change.slot.rank;
        let (log, offset) = self.logs.reserve(env);
        let (number, there) = loop {
            let number = self.find(rank);
            let node = &self.nodes[number as usize];
            let there = node.find(rank, env);
            if there.is_some() || !node.is_full(self.options.slots) {
                break (number, there);
            }
            let mut node = std::mem::take(&mut self.nodes[number as usize]);
            if !node.pairs.is_empty() {
                self.flush(&mut node, u64::MAX, env);
            }
            if node.must_split(self.options.slots) {
                self.split_node(number, node, env);
            } else {
                self.nodes[number as usize] = node;
            }
        };
        let time = env.tick();
        env.lines.write(offset, ENTRY);
        env.lines.fence();
        env.counts.appended += 1;
        let node = &mut self.nodes[number as usize];
        let leaf = node.leaf_of(rank);
        let pair = Pair {
            change,
            leaf,
            number: time,
            log,
        };
        let Some(at) = there else {
            node.pairs.push(pair);
            self.buffered += 1;
            return;
        };
        let old = std::mem::replace(&mut node.pairs[at], pair);
        self.logs.release(old.log, env);
        self.retire(old.change.slot, env);
    }

    fn get(&mut self, rank: u32, env: &mut Env<'_>) {
        let node = &self.nodes[self.find(rank) as usize];
        if let Some(at) = node.find(rank, env) {
            let pair = &node.pairs[at];
            env.counts.hits += 1;
            if !pair.change.delete {
                env.load_value(pair.change.slot);
            }
            return;
        }
        env.counts.misses += 1;
        let leaf = node.leaves[node.leaf_of(rank)].1;
        self.leaves[leaf as usize].look(rank, env);
    }

    fn scan(&mut self, rank: u32, records: u32, env: &mut Env<'_>) {
        let mut from = rank;
        let mut left = records.max(1) as usize;
        loop {
            let node = &self.nodes[self.find(from) as usize];
            for (_, leaf) in &node.leaves[node.leaf_of(from)..] {
                let leaf = &self.leaves[*leaf as usize];
                env.lines.load(leaf.offset, LEAF);
                left = left.saturating_sub(leaf.count().max(1));
                if left == 0 {
                    return;
                }
            }
            match self.index.at_or_above(node.low() as usize + 1) {
                Some(next) => from = next as u32,
                None => return,
            }
        }
    }

    fn due(&self, env: &Env<'_>) -> bool {
        self.cleaning_due(env) || self.merging_due(env)
    }

    fn pump(&mut self, env: &mut Env<'_>) {
        if self.cleaning_due(env) {
            self.clean(env);
        } else {
            self.merge_step(env);
        }
    }

    fn buffered(&self) -> u64 {
        self.buffered
    }

    fn inner_nodes(&self) -> Option<(u64, u64)> {
        Some((self.count, self.count * self.options.slots as u64))
    }
}
