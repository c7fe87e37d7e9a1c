//! Predictions for persistent memory from the order of accesses: buffer nodes, leaves, logs, records
//! and the XPBuffer are *played*, without content.
//!
//! ```text
//! accesses in order ─▶ rank of the key ─▶ tree ─▶ lines ─▶ XPBuffer ─▶ XPLines by class
//!   4 bytes each        order statistics   slots   places    dirty lines
//!                                             └▶ records: places of long keys and values
//! ```
//!
//! Independent draws ([`super::ccl`], [`super::lodge`]) lose what a trace has: when a key comes back
//! to its buffer node, which flushes follow each other in the XPBuffer, what is buffered when a log is
//! cleaned, how records share XPLines. Here all of that is in the order of the accesses. No engine
//! and no device runs, no byte of a key, a value or a leaf exists, and nothing of the run that is
//! predicted is seen: keys are ranks, slots name records by their place.
//!
//! | module | what is played | state |
//! |---|---|---|
//! | `leaves` | leaves of fourteen slots: batches, splits, merges (CCL-BTree §4.2) | 184 B a leaf |
//! | `ccl` | buffer nodes, trigger writes, cleaning (§3.2 to §3.4); none for `pmtree` | 24 B a slot |
//! | `global` | one buffer for all leaves | a map |
//! | `lodge` | buffers in inner nodes, partial flushes, logs of L entries | 352 B a leaf |
//! | `log` | entries in chunks, flips | a few numbers |
//! | `space` | places of chunks, leaves, and records by size | 24 B a record |
//! | `lines` | CPU cache as a set, XPBuffer with its replacement, classes | 2 B an XPLine |
//! | `clients` | turns of clients and of the cleaner, in virtual time | a turn per client |
//!
//! If keys are sampled, buffers and chunks shrink with the sample (Waldspurger et al., *Cache
//! Modeling and Optimization using Miniature Simulations*, USENIX ATC 2017).
//!
//! *Ignored*: the device's queues (`--timing`), which let the lines of several clients overtake each
//! other; space that runs out.

mod bars;
mod ccl;
mod clients;
mod env;
mod global;
mod leaves;
mod lines;
mod lodge;
mod log;
mod space;
#[cfg(test)]
mod tests;
mod tree;

use std::io;

use treering_engine::{LeafFormat, PmOptions, PmTreeKind};
use treering_traces::OpKind;

use self::ccl::Ccl;
use self::clients::{Clients, Who};
use self::env::{Change, Counts, Env};
use self::global::Global;
use self::lines::{Class, Lines, Written};
use self::lodge::Lodge;
use self::space::Space;
use self::tree::Tree;
use super::ccl::PmPrediction;
use super::lodge::LodgePrediction;
use super::prediction::TreePrediction;
use crate::pm::PmProfile;
use crate::predict::workload::{Step, Workload};

/// A tree with its device and its clients.
struct Play<'a> {
    tree: Box<dyn Tree>,
    env: Env<'a>,
    clients: Clients,
    /// Rank of each key.
    ranks: Vec<u32>,
    cleaning: bool,
    /// When the last operation began, until background work was asked for after it.
    submitted: Option<u64>,
}

impl Play<'_> {
    /// Does a step of background work, if it is due.
    fn clean(&mut self) {
        if self.tree.due(&self.env) {
            self.tree.pump(&mut self.env);
            self.clients.add(self.env.lines.take_ns(), Who::Cleaner);
            self.cleaning = true;
        }
    }

    /// Waits until a client is free. Returns `false` if none ever will be.
    fn next_turn(&mut self) -> bool {
        if self.submitted.take().is_some() && !self.cleaning {
            self.clean();
        }
        while let Some(who) = self.clients.next() {
            match who {
                Who::Cleaner => {
                    self.cleaning = false;
                    self.clean();
                    if !self.cleaning {
                        self.clients.unpark();
                    }
                }
                Who::Client if self.cleaning && self.tree.stops_everybody() => self.clients.park(),
                Who::Client => return true,
            }
        }
        false
    }

    /// Does the operation of the client whose turn it is.
    fn step(&mut self, step: Step) {
        let rank = self.ranks[step.key as usize];
        match step.kind {
            OpKind::Get => self.tree.get(rank, &mut self.env),
            OpKind::Scan => self.tree.scan(rank, step.len, &mut self.env),
            OpKind::Put | OpKind::Delete => {
                let delete = step.kind == OpKind::Delete;
                let slot = self.env.encode(rank, (!delete).then_some(step.len));
                self.tree.change(Change { slot, delete }, &mut self.env);
            }
        }
        self.submitted = Some(self.clients.now);
        self.clients.add(self.env.lines.take_ns(), Who::Client);
    }

    /// Ends the run: background work that is under way goes on to its end.
    fn finish(&mut self) {
        while self.next_turn() {}
    }
}

/// Plays the whole trace on a device of this many bytes.
///
/// # Errors
/// The list of accesses is in a file that cannot be read.
pub(super) fn play(
    workload: &Workload,
    (options, clients): (&PmOptions, u32),
    (profile, device_bytes): (&PmProfile, u64),
) -> io::Result<TreePrediction> {
    let order = workload.key_order();
    let mut ranks = vec![0; order.len()];
    for (rank, key) in (0u32..).zip(&order) {
        ranks[*key as usize] = rank;
    }
    let scale = workload.sample_weight() as u64;
    let facts = options.tree.facts();
    let leaf_bytes = facts.leaves.bytes();
    let chunk = (options.chunk_bytes / scale).max(1024) / leaf_bytes * leaf_bytes;
    let bytes = device_bytes.max(8 * chunk);
    let space = Space::new(bytes, chunk, leaf_bytes);
    let chunks = (space.start, chunk, space.chunks());
    let mut lines = Lines::new(profile, bytes, chunks, scale);
    lines.set_class(0, Class::Page);
    let keys = order.len();
    let env = Env::new(workload, order, (lines, space), facts.is_logged());
    let tree: Box<dyn Tree> = match options.tree {
        PmTreeKind::PmTree => Box::new(Ccl::new(keys, None, &env)),
        PmTreeKind::Ccl(ccl) => Box::new(Ccl::new(keys, Some(ccl), &env)),
        PmTreeKind::Global(global) => Box::new(Global::new(keys, global, &env)),
        PmTreeKind::Lodge(lodge) => Box::new(Lodge::new(keys, lodge, &env)),
    };
    let mut play = Play {
        tree,
        env,
        clients: Clients::new(clients),
        ranks,
        cleaning: false,
        submitted: None,
    };
    let warmup = workload.warmup.all_ops();
    let mut before = None;
    workload.accesses.each(|step| {
        play.next_turn();
        if before.is_none() && step.time >= warmup {
            before = Some((play.env.lines.written, play.env.counts));
        }
        play.step(step);
    })?;
    play.finish();
    let (written, counts) = before.unwrap_or((play.env.lines.written, play.env.counts));
    let written = play.env.lines.written.since(&written);
    let counts = play.env.counts.since(&counts);
    Ok(summary(workload, &play, facts.leaves, (written, counts)))
}

fn summary(
    workload: &Workload,
    play: &Play<'_>,
    format: LeafFormat,
    (written, counts): (Written, Counts),
) -> TreePrediction {
    let weight = workload.sample_weight();
    let scaled = |count: u64| count as f64 * weight;
    let lines = |class: Class| scaled(written.lines[class as usize]) * lines::LINE as f64;
    let xplines = |class: Class| scaled(written.xplines[class as usize]);
    let leaves = scaled(play.env.space.leaves);
    let lookups = counts.hits + counts.misses;
    let pm = PmPrediction {
        flushes: scaled(counts.flushes),
        splits: scaled(counts.splits),
        appended: scaled(counts.appended - counts.copied),
        copied: scaled(counts.copied),
        cleanings: counts.cleanings as f64,
        cleaned: scaled(counts.cleaned),
        leaf_xplines: xplines(Class::Page),
        log_xplines: xplines(Class::Log),
        extra_xplines: xplines(Class::Extra),
        leaf_bytes: lines(Class::Page),
        log_bytes: lines(Class::Log),
        extra_bytes: lines(Class::Extra),
        hit_ratio: (lookups > 0).then(|| counts.hits as f64 / lookups as f64),
        leaves,
        buffered: scaled(play.tree.buffered()),
        leaf_bytes_per_record: leaves * format.bytes() as f64 / workload.records().max(1.0),
        bars: Some(bars::of(&written)),
    };
    let Some((nodes, slots)) = play.tree.inner_nodes() else {
        return TreePrediction::Ccl(pm);
    };
    let of_slots = |count: f64| count / (slots as f64 * weight).max(1.0);
    TreePrediction::Lodge(LodgePrediction {
        pm,
        node_flushes: scaled(counts.node_flushes),
        pairs_per_flush: counts.flushed as f64 / counts.node_flushes.max(1) as f64,
        pairs_per_leaf: counts.flushed as f64 / counts.flushes.max(1) as f64,
        nodes: scaled(nodes),
        free_share: 1.0 - of_slots(leaves),
        buffered_share: of_slots(pm.buffered),
    })
}
