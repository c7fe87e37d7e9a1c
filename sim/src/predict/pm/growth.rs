//! Simulates leaves with a fixed number of slots, with keys in their order of insertion: which leaf
//! a key is in, what is buffered, flushed and split.
//!
//! ```text
//! keys of a range, in order of insertion   b b t b b t ...   b: buffered
//!                                                            t: flushes a batch of N + 1
//! if the batch does not fit 14 slots       split: upper half to a new leaf, partition batch and
//!                                          other keys (stably), recurse
//! ```
//!
//! Like [`crate::predict::leaf`] for pages, this is a recursion on key ranges without tree or
//! searches; it takes `O(K log K)` moves of a rank. The rules of a split are those of CCL-BTree
//! §4.2. Updates are simulated as a number of updates of random keys for each new key: they fill
//! buffers and need free slots, but add no record.

use super::slots::{SLOTS, Slots, Touched};
use crate::predict::grown::part;
use crate::predict::leaf::insertion_order;
use crate::predict::workload::{NEVER, Workload};
use crate::ssd::gc::SplitMix;

/// Number of equal steps into which each part of the trace is divided.
const STEPS: usize = 4096;

/// A leaf at the end of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PmLeaf {
    /// Records in its slots.
    pub flushed: u32,
    /// Records in its buffer only.
    pub buffered: u32,
    /// Occupied slots of its buffer.
    taken: f64,
    start: u32,
}

/// The result of the simulation.
#[derive(Debug)]
pub struct Growth {
    /// The leaves, in key order.
    pub leaves: Vec<PmLeaf>,
    /// Number of buffer slots that were occupied when the measured part began.
    taken_at_start: f64,
    /// Splits of the measured part, by step.
    pub(super) splits: Vec<f64>,
    /// When the measured part begins, in ticks.
    pub(super) measured_from: u32,
    warmup_splits: Vec<f64>,
    /// Lines touched by flushes in the measured part.
    pub(super) flushed: Touched,
    pub(super) split: Touched,
    /// All sampled keys, in key order.
    order: Vec<u32>,
}

/// A step of the trace.
pub(super) struct Step {
    pub(super) measured: bool,
    /// Its share of the warm-up, or of the measured part.
    pub(super) share: f64,
    pub(super) splits: f64,
}

/// Whether a key was first put in the measured part.
pub(super) fn is_from(first_put: u32, measured_from: u32) -> bool {
    first_put != NEVER && first_put >= measured_from
}

struct Range {
    /// First rank of the range.
    start: u32,
    /// When the range was created, in ticks.
    born: u32,
    flushed: Slots,
    /// The part of the insertion order that is still to come.
    future: std::ops::Range<usize>,
}

impl Growth {
    /// Simulates the puts of new keys with buffers of `batch` slots. Each put of the measured part
    /// comes with `updates` updates of other keys in its leaf.
    #[must_use]
    pub fn play(workload: &Workload, batch: usize, updates: f64) -> Growth {
        let ticks = |ops: u64| (ops / workload.tick) as u32;
        let all = workload.warmup.all_ops() + workload.measured.all_ops();
        let mut growth = Growth {
            leaves: Vec::new(),
            taken_at_start: 0.0,
            splits: vec![0.0; STEPS],
            warmup_splits: vec![0.0; STEPS],
            measured_from: ticks(workload.warmup.all_ops()),
            flushed: Touched::default(),
            split: Touched::default(),
            order: workload.key_order(),
        };
        let mut inserted = insertion_order(workload, &growth.order);
        let mut play = Play {
            times: (growth.order.iter())
                .map(|key| workload.keys.first_put(*key))
                .collect(),
            batch,
            updates,
            end: ticks(all).max(1),
            scratch: Vec::new(),
            random: SplitMix(0),
            growth: &mut growth,
        };
        play.run(&mut inserted);
        growth
    }

    /// The keys in a leaf's range, including those that were never put.
    pub(super) fn keys_of(&self, leaf: usize) -> &[u32] {
        let end = self.leaves.get(leaf + 1).map(|next| next.start as usize);
        &self.order[self.leaves[leaf].start as usize..end.unwrap_or(self.order.len())]
    }

    /// Number of records at the end that are in buffers only.
    pub(super) fn buffered(&self) -> f64 {
        let each = self.leaves.iter().map(|leaf| f64::from(leaf.buffered));
        each.sum()
    }

    /// Number of sampled keys that were first put in the measured part.
    pub(super) fn measured_inserts(&self, workload: &Workload) -> f64 {
        let keys = workload.keys.iter();
        let new = keys.filter(|k| k.writes > 0 && is_from(k.first_put, self.measured_from));
        new.count() as f64
    }

    /// Increase of the number of occupied buffer slots over the measured part.
    pub(super) fn more_taken(&self) -> f64 {
        let now: f64 = self.leaves.iter().map(|leaf| leaf.taken).sum();
        now - self.taken_at_start
    }

    /// Mean number of occupied buffer slots per leaf; that of a random moment if there are too few
    /// leaves.
    pub(super) fn taken_per_leaf(&self, batch: usize) -> f64 {
        if self.leaves.len() < 64 {
            return batch as f64 / 2.0;
        }
        let taken: f64 = self.leaves.iter().map(|leaf| leaf.taken).sum();
        taken / self.leaves.len() as f64
    }

    /// Share of leaves with a buffer that is not empty.
    pub(super) fn busy_share(&self, batch: usize) -> f64 {
        if self.leaves.len() < 64 {
            return batch as f64 / (batch + 1) as f64;
        }
        let busy = self.leaves.iter().filter(|leaf| leaf.taken >= 1.0);
        busy.count() as f64 / self.leaves.len() as f64
    }

    /// The steps of the trace, with `more` splits spread evenly over the measured part.
    pub(super) fn steps(&self, more: f64) -> Vec<Step> {
        let of = |splits: &[f64], measured: bool, more: f64| -> Vec<Step> {
            let share = 1.0 / splits.len() as f64;
            (splits.iter())
                .map(|n| Step {
                    measured,
                    share,
                    splits: n + more * share,
                })
                .collect()
        };
        let mut steps = of(&self.warmup_splits, false, 0.0);
        steps.extend(of(&self.splits, true, more));
        steps
    }
}

/// The contents of a leaf's buffer since its last flush.
struct Buffer {
    /// New keys.
    new: Vec<u32>,
    /// Number of updates.
    updates: f64,
}

impl Buffer {
    fn taken(&self) -> f64 {
        self.new.len() as f64 + self.updates.floor()
    }
}

struct Play<'a> {
    /// When each rank was first put.
    times: Vec<u32>,
    batch: usize,
    updates: f64,
    end: u32,
    scratch: Vec<u32>,
    /// Chooses the keys to update.
    random: SplitMix,
    growth: &'a mut Growth,
}

impl Play<'_> {
    fn run(&mut self, inserted: &mut [u32]) {
        let mut ranges = vec![Range {
            start: 0,
            born: 0,
            flushed: Slots::default(),
            future: 0..inserted.len(),
        }];
        // The left range first, because leaves are output in key order.
        while let Some(range) = ranges.pop() {
            if let Some((left, right)) = self.fill_or_split(range, inserted) {
                ranges.push(right);
                ranges.push(left);
            }
        }
    }

    fn fill_or_split(&mut self, mut range: Range, inserted: &mut [u32]) -> Option<(Range, Range)> {
        let from = self.growth.measured_from;
        let mut buffer = Buffer {
            new: Vec::with_capacity(self.batch + 1),
            updates: 0.0,
        };
        let mut waiting_for_start = range.born < from;
        for at in range.future.clone() {
            let time = self.times[inserted[at] as usize];
            if time >= from {
                if std::mem::take(&mut waiting_for_start) {
                    self.growth.taken_at_start += buffer.taken();
                }
                buffer.updates += self.updates;
            }
            // First the updates that precede the new key, then the key.
            while buffer.taken() >= (self.batch + 1) as f64 {
                if !self.flush(&mut range.flushed, &mut buffer, time) {
                    return Some(self.split(range, buffer.new, inserted, at, time));
                }
            }
            buffer.new.push(inserted[at]);
            if buffer.taken() >= (self.batch + 1) as f64
                && !self.flush(&mut range.flushed, &mut buffer, time)
            {
                return Some(self.split(range, buffer.new, inserted, at + 1, time));
            }
        }
        if waiting_for_start {
            self.growth.taken_at_start += buffer.taken();
        }
        self.growth.leaves.push(PmLeaf {
            flushed: range.flushed.len() as u32,
            buffered: buffer.new.len() as u32,
            taken: buffer.taken(),
            start: range.start,
        });
        None
    }

    /// Flushes a full buffer; returns `false` if the leaf must be split instead.
    fn flush(&mut self, flushed: &mut Slots, buffer: &mut Buffer, time: u32) -> bool {
        if flushed.len() + self.batch + 1 > SLOTS {
            return false;
        }
        buffer.updates -= (self.batch + 1 - buffer.new.len()) as f64;
        let batch = self.with_updates(std::mem::take(&mut buffer.new), flushed);
        let stores = flushed.flush(&batch);
        if time >= self.growth.measured_from {
            self.growth.flushed.add(&stores);
        }
        true
    }

    /// Adds updates to the new keys until the batch is full.
    fn with_updates(&mut self, mut new: Vec<u32>, flushed: &Slots) -> Vec<u32> {
        let updates = (self.batch + 1).saturating_sub(new.len());
        new.extend(flushed.draw(updates, &mut self.random));
        new
    }

    /// Splits a range when a batch does not fit; `batch` holds its new keys. The rest of the
    /// insertion order begins at `next`.
    fn split(
        &mut self,
        range: Range,
        batch: Vec<u32>,
        inserted: &mut [u32],
        next: usize,
        time: u32,
    ) -> (Range, Range) {
        self.note_split(time);
        let mut lower = range.flushed;
        let batch = self.with_updates(batch, &lower);
        let (fence, upper, stores) = lower.split(&batch);
        if time >= self.growth.measured_from {
            self.growth.split.add(&stores);
        }
        let middle = next
            + part(
                &mut inserted[next..range.future.end],
                fence,
                &mut self.scratch,
            );
        let left = Range {
            start: range.start,
            born: time,
            flushed: lower,
            future: next..middle,
        };
        let right = Range {
            start: fence,
            born: time,
            flushed: upper,
            future: middle..range.future.end,
        };
        (left, right)
    }

    fn note_split(&mut self, time: u32) {
        let (from, growth) = (self.growth.measured_from, &mut *self.growth);
        let step = |since: u32, length: u32| {
            let share = f64::from(time - since) / f64::from(length.max(1));
            ((share * STEPS as f64) as usize).min(STEPS - 1)
        };
        if time >= from {
            growth.splits[step(from, self.end - from)] += 1.0;
        } else {
            growth.warmup_splits[step(0, from)] += 1.0;
        }
    }
}
