//! Predicts the XPLines that CCL-BTree, or a tree without buffers, writes.
//!
//! CCL-BTree §3.5 counts `K / (N+1)` XPLines of leaves and `24 K N / (256 (N+1))` of logs for `K`
//! upserts, where `N` is the number of slots of a buffer node. The formula leaves out the
//! following:
//!
//! | part | what | how |
//! |---|---|---|
//! | splits | a new leaf, whole; buffers begin empty again | [`growth`]: simulated |
//! | updates of buffered keys | overwrite their slot: fewer flushes, more log | renewal, below |
//! | updates of full leaves | need free slots, so the leaf is split | probabilities |
//! | batches that fill an XPLine before its header | it is written twice | `slots`: simulated |
//! | cleaning | copies of buffered records, once a cycle | a saw-tooth over time |
//! | the XPBuffer | combines flushes of a hot leaf; writes a log's XPLine twice | [`buffer`] |
//!
//! **Renewal of a buffer.** A write to a key that is already buffered takes no slot. A leaf has `W`
//! writes in random order, `w_i` of them to key `i`. A stretch of `u W` writes has none to key `i`
//! with probability `(1 - u)^w_i`. So the number `D(u)` of distinct keys in it is a sum of
//! independent 0-1 variables, and from one flush to the next it takes
//!
//! ```text
//! E = (W + 1)  integral from 0 to 1 of  P(D(u) <= N) du                                 (1)
//! ```
//!
//! writes. The factor is `W + 1` and not `W`, because the stretch begins right after a write. If
//! each key is written once, then `E = N + 1`, the paper's formula.
//!
//! *Ignored*: merges, lookups, and records that are too long for a leaf.
//!
//! Cost: `O(N log N)` for the growth, and `O(keys N)` for each of some dozens of points of the
//! integral.

use super::bars::PmBars;
use super::buffer::{self, XpBuffer};
use super::growth::{self, Growth};
use super::slots::{SLOTS, Turnover};
use crate::pm::FullLines;
use crate::predict::workload::{NEVER, Workload};

/// Bytes of an XPLine, and of a leaf (CCL-BTree §2.1, §4.1).
pub(super) const XPLINE: f64 = 256.0;
/// Bytes of a cache line.
pub(super) const LINE: f64 = 64.0;
/// Bytes of a log entry (CCL-BTree §3.3).
pub(super) const ENTRY: f64 = 24.0;
/// Mean number of lines that an entry touches: two of eight entries in 192 bytes cross a border.
const LINES_PER_ENTRY: f64 = 1.25;

/// The writes that are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logged {
    /// None, because nothing is buffered.
    Nothing,
    /// All.
    Naive,
    /// Buffered writes, except those that trigger a flush (CCL-BTree §3.3).
    WriteConservative,
}

/// How a log is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCleaning {
    /// Buffered records are copied (CCL-BTree §3.4).
    LocalityAware,
    /// Buffered records are flushed.
    Naive,
}

/// The parameters of the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PmTree {
    /// Slots of a buffer node; 0 for a tree without buffers.
    pub batch: usize,
    /// Which writes are logged.
    pub logged: Logged,
    /// How logs are cleaned.
    pub cleaning: LogCleaning,
    /// TH_log: logs are cleaned when their live entries take more than this share of the leaves'
    /// bytes.
    pub log_share: f64,
    /// In addition, more than this share of the entries must be garbage.
    pub garbage_share: f64,
    /// Number of logs that are written in turn.
    pub logs: f64,
    /// Number of clients. They continue while a log is cleaned.
    pub clients: f64,
}

/// Number of writes that a client does while an entry is copied. It is less than one because some
/// writes flush a leaf. Derived from the times in `sim/profiles/pm.toml`.
const WRITES_PER_COPY: f64 = 0.7;

/// Counts over the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PmPrediction {
    /// Flushes of a batch to a leaf.
    pub flushes: f64,
    /// Splits.
    pub splits: f64,
    /// Log entries of writes.
    pub appended: f64,
    /// Cleanings of the logs.
    pub cleanings: f64,
    /// Log entries that cleanings copied, or flushes if cleaning is naive.
    pub cleaned: f64,
    /// Log entries that cleanings copied.
    pub copied: f64,
    /// XPLines of leaves written to the medium.
    pub leaf_xplines: f64,
    /// XPLines of logs written to the medium.
    pub log_xplines: f64,
    /// XPLines of the rest, the chunk directory and the log floor, written to the medium.
    pub extra_xplines: f64,
    /// Bytes of leaves that reach the XPBuffer.
    pub leaf_bytes: f64,
    /// Bytes of logs that reach the XPBuffer.
    pub log_bytes: f64,
    /// Bytes of the rest that reach the XPBuffer.
    pub extra_bytes: f64,
    /// Share of lookups that buffers answer; `None` without lookups, or if it is not predicted.
    pub hit_ratio: Option<f64>,
    /// Leaves at the end.
    pub leaves: f64,
    /// Records that are only in a buffer at the end.
    pub buffered: f64,
    /// Bytes of leaves divided by bytes of records at the end.
    pub leaf_bytes_per_record: f64,
    /// Error bars; `None` if writes were taken for independent draws.
    pub bars: Option<PmBars>,
}

impl PmPrediction {
    /// Bytes written to the medium divided by user bytes (CCL-BTree §2.1): by leaves, by logs, and
    /// by the rest.
    #[must_use]
    pub fn xbi(&self, user_bytes: f64) -> [f64; 3] {
        let of = |lines: f64| lines * XPLINE / user_bytes.max(1.0);
        [self.leaf_xplines, self.log_xplines, self.extra_xplines].map(of)
    }

    /// Bytes that reach the XPBuffer divided by user bytes.
    #[must_use]
    pub fn cli(&self, user_bytes: f64) -> f64 {
        (self.leaf_bytes + self.log_bytes + self.extra_bytes) / user_bytes.max(1.0)
    }
}

/// The measured part of a leaf, by equation (1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Renewal {
    /// Writes.
    writes: f64,
    /// Flushes.
    flushes: f64,
    /// Splits because there is no free slot.
    splits: f64,
    /// Mean number of occupied slots of its buffer.
    taken: f64,
    /// Lines that flushes and splits store in leaves.
    lines: f64,
    /// How often they fill an XPLine before its header is stored.
    twice: f64,
}

/// Result of equation (1) for a buffer.
#[derive(Clone, Copy)]
struct Cycle {
    /// Writes between two flushes.
    writes: f64,
    /// Mean number of occupied slots.
    taken: f64,
}

/// Whether all records have eight-byte keys and values, which are stored in leaves; others cannot
/// be predicted.
#[must_use]
pub fn fits_leaves(workload: &Workload) -> bool {
    let mut keys = workload.keys.iter();
    keys.all(|k| k.key_len == 8 && (k.value_len == 8 || k.first_put == NEVER || k.deleted))
}

/// Predicts the measured part.
#[must_use]
pub fn predict(workload: &Workload, tree: &PmTree, xp_buffer: &XpBuffer) -> PmPrediction {
    let mut growth = Growth::play(workload, tree.batch, 0.0);
    let mut renewals = renewals(workload, tree, &growth);
    if let Some(updates) = updates_of_a_new_key(workload, tree, &growth, &renewals) {
        growth = Growth::play(workload, tree.batch, updates);
        renewals = self::renewals(workload, tree, &growth);
    }
    let weight = workload.sample_weight();
    let sum = |of: fn(&Renewal) -> f64| renewals.iter().map(of).sum::<f64>() * weight;

    let measured = workload.measured.writes() as f64;
    let more_taken = growth.more_taken() * weight;
    let flushes = sum(|r| r.flushes) - more_taken / (tree.batch + 1) as f64;
    let flushes = flushes.clamp(0.0, measured);
    let overfull = sum(|r| r.splits);
    let splits = growth.splits.iter().sum::<f64>() * weight + overfull;

    let logged_share = match tree.logged {
        Logged::Nothing => 0.0,
        Logged::Naive => 1.0,
        Logged::WriteConservative => 1.0 - flushes / measured.max(1.0),
    };
    let appended = measured * logged_share;
    let log = clean(workload, tree, &growth, &renewals, logged_share);

    let cleaned_entries = match tree.cleaning {
        LogCleaning::LocalityAware => log.cleaned,
        LogCleaning::Naive => 0.0,
    };
    let entries = appended + cleaned_entries;
    // Cleaning flushes leaves that are far apart.
    let cleaning_flushes = log.cleaned - cleaned_entries;
    let rates: Vec<f64> = renewals.iter().map(|r| r.flushes).collect();
    let reach = buffer::media_share(xp_buffer, &rates, weight, splits, entries * ENTRY / XPLINE);
    let [flushed, split] = [growth.flushed, growth.split].map(|t| t.each((0.0, 0.0)));
    let played = growth.splits.iter().sum::<f64>() * weight;
    // Every split replaces a flush.
    let grown = |split: f64, flushed: f64| played * (split - flushed).max(0.0);
    let twice = match xp_buffer.full_lines {
        FullLines::AtOnce => sum(|r| r.twice) + grown(split.1, flushed.1),
        FullLines::OnEviction => 0.0,
    };
    let leaf_xplines = flushes * reach + cleaning_flushes + splits + twice;
    let log_xplines = entries * ENTRY / XPLINE * log_writes(xp_buffer, tree, entries, leaf_xplines);

    let per_flush = growth.flushed.each((2.0, 0.0)).0;
    let leaf_lines = sum(|r| r.lines) + grown(split.0, flushed.0) + cleaning_flushes * per_flush;
    let leaves = growth.leaves.len() as f64 * weight + overfull;
    PmPrediction {
        flushes,
        splits,
        appended,
        cleanings: log.cleanings,
        cleaned: log.cleaned,
        copied: cleaned_entries,
        leaf_xplines,
        log_xplines,
        leaf_bytes: leaf_lines * LINE,
        log_bytes: entries * LINES_PER_ENTRY * LINE,
        leaves,
        buffered: growth.buffered() * weight,
        leaf_bytes_per_record: leaves * XPLINE / workload.records().max(1.0),
        ..PmPrediction::default()
    }
}

/// Updates that take a buffer slot, per new key of the measured part; 0 if there are no new keys or
/// no updates.
fn updates_of_a_new_key(
    workload: &Workload,
    tree: &PmTree,
    growth: &Growth,
    renewals: &[Renewal],
) -> Option<f64> {
    let inserts = growth.measured_inserts(workload);
    let writes: f64 = renewals.iter().map(|r| r.writes).sum();
    let flushes: f64 = renewals.iter().map(|r| r.flushes).sum();
    let distinct = flushes * (tree.batch + 1) as f64;
    let updates = (distinct - inserts).min(writes - inserts);
    (inserts > 0.0 && updates > 0.01 * inserts).then(|| updates / inserts)
}

/// Evaluates equation (1) for each leaf.
fn renewals(workload: &Workload, tree: &PmTree, growth: &Growth) -> Vec<Renewal> {
    let leaves = Leaves {
        workload,
        batch: tree.batch,
        growth,
        turnover: Turnover::of(tree.batch + 1),
    };
    let each = |leaf: usize| leaves.renewal(leaf);
    (0..growth.leaves.len()).map(each).collect()
}

/// The leaves at the end, with the statistics of their records.
struct Leaves<'a> {
    workload: &'a Workload,
    batch: usize,
    growth: &'a Growth,
    turnover: Turnover,
}

impl Leaves<'_> {
    fn counts(&self, keys: &[u32]) -> Vec<f64> {
        let writes = keys
            .iter()
            .map(|k| f64::from(self.workload.keys.writes(*k)));
        writes.filter(|w| *w > 0.0).collect()
    }

    /// Whether a leaf of this many records lacks free slots for a batch.
    fn is_overfull(&self, records: usize) -> bool {
        records + self.batch + 1 > SLOTS
    }

    /// Equation (1) for a leaf. If it has too few free slots for a batch, it is split although no
    /// key is new. The first flush splits it; or the second, if records that the load left in the
    /// buffer are part of the first batch.
    fn renewal(&self, leaf: usize) -> Renewal {
        let keys = self.growth.keys_of(leaf);
        let stats = |k: &u32| self.workload.keys.get(*k);
        let all = self.counts(keys);
        let writes: f64 = all.iter().sum();
        let whole = cycle(&all, self.batch);
        let at = &self.growth.leaves[leaf];
        let unsplit = Renewal {
            writes,
            flushes: writes / whole.writes,
            taken: whole.taken,
            ..Renewal::default()
        };
        // A leaf that grows was simulated with its updates.
        let from = self.growth.measured_from;
        if (keys.iter().map(stats)).any(|k| k.writes > 0 && growth::is_from(k.first_put, from)) {
            let touched = self.growth.flushed.each(self.turnover.flush(SLOTS / 2));
            return unsplit.touch(unsplit.flushes, touched);
        }
        let records = (at.flushed + at.buffered) as usize;
        let first = if self.is_overfull(at.flushed as usize) {
            1.0
        } else if self.is_overfull(records) {
            2.0
        } else {
            return unsplit.touch(unsplit.flushes, self.turnover.flush(records));
        };
        let rewrites: f64 = keys.iter().map(|k| f64::from(stats(k).warmup_writes)).sum();
        let before = rewrites / whole.writes;
        let splits = reached(first, before + unsplit.flushes) - reached(first, before);
        let split_from = ((first - before) * whole.writes).clamp(0.0, writes);
        let unsplit =
            Renewal { splits, ..unsplit }.touch(splits, self.turnover.split(at.flushed as usize));
        if split_from >= writes {
            let rest = (unsplit.flushes - splits).max(0.0);
            return unsplit.touch(rest, self.turnover.flush(at.flushed as usize));
        }
        let mut parted = Renewal {
            flushes: split_from / whole.writes,
            taken: 0.0,
            ..unsplit
        };
        self.halves(keys, writes - split_from, &mut parted);
        parted
    }

    /// Adds `writes` writes of a leaf that has just been split. A half that still has too many
    /// records is split by its next flush.
    fn halves(&self, keys: &[u32], writes: f64, sum: &mut Renewal) {
        let all: f64 = self.counts(keys).iter().sum();
        let (lower, upper) = keys.split_at(keys.len() / 2);
        for half in [lower, upper] {
            let own = self.counts(half);
            if half.len() <= self.batch || own.is_empty() {
                // Its buffer holds all of them.
                sum.taken += own.len() as f64;
                continue;
            }
            let writes = writes * own.iter().sum::<f64>() / all;
            let cycle = cycle(&own, self.batch);
            // The buffer begins empty, so the first flush takes a whole cycle instead of a part of
            // one.
            let lost = 0.5 * (cycle.writes - 1.0) / cycle.writes;
            let flushes = (writes / cycle.writes - lost).max(0.0);
            if !self.is_overfull(half.len()) {
                sum.flushes += flushes;
                sum.taken += cycle.taken;
                *sum = sum.touch(flushes, self.turnover.flush(half.len()));
                continue;
            }
            let splits = reached(1.0, flushes);
            sum.splits += splits;
            sum.flushes += flushes.min(1.0);
            *sum = sum.touch(splits, self.turnover.split(half.len()));
            if writes > cycle.writes {
                self.halves(half, writes - cycle.writes, sum);
            } else {
                sum.taken += cycle.taken;
            }
        }
    }
}

impl Renewal {
    /// Counts lines for more flushes or splits, each with this many lines.
    fn touch(self, flushes: f64, (lines, twice): (f64, f64)) -> Renewal {
        Renewal {
            lines: self.lines + flushes * lines,
            twice: self.twice + flushes * twice,
            ..self
        }
    }
}

/// Probability that `first` flushes (1 or 2) have happened when `expected` are expected.
fn reached(first: f64, expected: f64) -> f64 {
    let none = (-expected).exp();
    if first <= 1.0 {
        1.0 - none
    } else {
        1.0 - none * (1.0 + expected)
    }
}

/// Equation (1): writes of a leaf from one flush to the next, and mean occupancy of its buffer,
/// from the counts of its keys.
fn cycle(counts: &[f64], batch: usize) -> Cycle {
    let writes: f64 = counts.iter().sum();
    let distinct = (batch + 1) as f64;
    let slots = batch as f64;
    if counts.iter().all(|w| *w <= 1.0) {
        return Cycle {
            writes: distinct,
            taken: slots / 2.0,
        };
    }
    if counts.len() <= batch {
        // The buffer never fills up with these keys. Other keys are assumed to come as often as
        // keys that were written once (Good and Turing).
        let once = counts.iter().filter(|w| **w <= 1.0).count() as f64;
        let missing = distinct - counts.len() as f64;
        return Cycle {
            writes: writes * (1.0 + missing / once.max(0.5)),
            taken: counts.len() as f64,
        };
    }
    // The buffer is not full at first, so the steps grow with u.
    let mut u = 0.25 * distinct / writes.max(distinct);
    let mut before = few(counts, batch, u);
    let mut sums = [0.5 * u * (1.0 + before[0]), 0.5 * u * before[1]];
    while u < 1.0 && before[0] > 1e-6 {
        let next = (u * STEP).min(1.0);
        let at = few(counts, batch, next);
        let between = few(counts, batch, 0.5 * (u + next));
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum += (next - u) / 6.0 * (before[i] + 4.0 * between[i] + at[i]);
        }
        (u, before) = (next, at);
    }
    Cycle {
        writes: ((writes + 1.0) * sums[0]).max(distinct),
        taken: (sums[1] / sums[0]).min(slots),
    }
}

/// Ratio of one point of the integral to the next.
const STEP: f64 = 1.3;

/// `P(D(u) <= batch)`, and the mean of `D(u)` restricted to that event.
fn few(counts: &[f64], batch: usize, u: f64) -> [f64; 2] {
    // Probabilities of 0, 1, ... distinct keys.
    let mut by_keys = [0.0; SLOTS + 1];
    by_keys[0] = 1.0;
    for w in counts {
        let none = (1.0 - u).powf(*w);
        for d in (1..=batch).rev() {
            by_keys[d] = by_keys[d] * none + by_keys[d - 1] * (1.0 - none);
        }
        by_keys[0] *= none;
    }
    let held = (0u8..).zip(&by_keys[..=batch]);
    let mean = held.map(|(d, p)| f64::from(d) * p).sum();
    [by_keys[..=batch].iter().sum(), mean]
}

/// The work of cleaning in the measured part.
struct Cleaned {
    cleanings: f64,
    cleaned: f64,
}

/// Follows the saw-tooth of the log's length from the beginning of the trace. While a log is
/// cleaned, clients continue. So some of the records that were buffered at the start are flushed or
/// overwritten before they are copied. Let a write append `a` entries, `s` be the share of the
/// buffered records copied, and `c` the number of writes during one copy. Then
///
/// ```text
/// s = (1 - exp(-y)) / y        y = a c s                                                (2)
/// ```
fn clean(
    workload: &Workload,
    tree: &PmTree,
    growth: &Growth,
    renewals: &[Renewal],
    logged_share: f64,
) -> Cleaned {
    let mut sum = Cleaned {
        cleanings: 0.0,
        cleaned: 0.0,
    };
    if tree.logged == Logged::Nothing {
        return sum;
    }
    let weight = workload.sample_weight();
    let overfull: f64 = renewals.iter().map(|r| r.splits).sum();
    let settled: f64 = renewals.iter().map(|r| r.taken).sum();
    let settled = settled / (growth.leaves.len() as f64 + overfull);
    let flushes: f64 = renewals.iter().map(|r| r.flushes).sum();
    // The buffers change from their state after the load to the steady state of updates. This takes
    // about one flush per leaf.
    let turns = flushes / (growth.leaves.len() as f64 + overfull);
    let grown = growth.taken_per_leaf(tree.batch);
    let updates = 1.0
        - growth.measured_inserts(workload) / (workload.measured.writes() as f64 / weight).max(1.0);
    let copied = match tree.cleaning {
        LogCleaning::LocalityAware => still_there(logged_share * WRITES_PER_COPY * tree.clients),
        LogCleaning::Naive => 1.0,
    };
    let logged = |writes: u64| writes as f64 * logged_share / weight;
    let (mut leaves, mut live, mut measured) = (1.0, 0.0, 0.0);
    for step in &growth.steps(overfull) {
        leaves += step.splits;
        let of = if step.measured {
            measured += step.share;
            &workload.measured
        } else {
            &workload.warmup
        };
        live += logged(of.writes()) * step.share;
        let moved = updates.max(0.0) * (1.0 - f64::exp(-measured * turns));
        let buffered = leaves * (grown + moved * (settled - grown));
        let long = leaves * XPLINE * tree.log_share / ENTRY;
        let due = long.max(buffered / (1.0 - tree.garbage_share).max(0.01));
        if live <= due {
            continue;
        }
        let copies = copied * buffered;
        let kept = match tree.cleaning {
            LogCleaning::LocalityAware => copies.min(live),
            LogCleaning::Naive => 0.0,
        };
        // Several cycles may fit in a step.
        let cycles = ((live - kept) / (due - kept).max(1.0)).floor().max(1.0);
        live -= cycles * (due - kept).max(1.0);
        if step.measured {
            sum.cleanings += cycles;
            sum.cleaned += weight
                * cycles
                * match tree.cleaning {
                    LogCleaning::LocalityAware => copies,
                    // One flush for each leaf whose buffer is not empty.
                    LogCleaning::Naive => leaves * growth.busy_share(tree.batch),
                };
        }
    }
    sum
}

/// Solves equation (2) for `s`, given `a c`.
fn still_there(pace: f64) -> f64 {
    (0..60).fold(1.0, |s, _| {
        let y: f64 = pace * s;
        if y < 1e-9 {
            1.0
        } else {
            0.5 * (s + (1.0 - (-y).exp()) / y)
        }
    })
}

/// Number of times an XPLine of a log is written. It is written when it is full. If that happens at
/// once, it is written again for the entries that end in its last line, because they come one by
/// one. And it is written when others evict it before it is full.
fn log_writes(buffer: &XpBuffer, tree: &PmTree, entries: f64, leaf_xplines: f64) -> f64 {
    if entries <= 0.0 {
        return 1.0;
    }
    let ends = match buffer.full_lines {
        FullLines::AtOnce => 2.0,
        FullLines::OnEviction => 1.0,
    };
    // Number of XPLines that enter the buffer while one of a log is filled.
    let others = tree.logs * (leaf_xplines / entries * XPLINE / ENTRY + 1.0);
    ends + buffer.evictions_while(others, XPLINE / ENTRY)
}

#[cfg(test)]
mod tests;
