//! Predicts LodgeTree: what its last-level inner nodes buffer, what flushes write, and which
//! XPLines of leaves and logs result.
//!
//! | part | how |
//! |---|---|
//! | occupancy, flushes, splits of leaves and nodes | simulated, node by node (`play`) |
//! | updates | at random times between a key's first put and the end of the part that counts them |
//! | lines of a leaf, and which of its two XPLines | simulated: the slots that a flush fills |
//! | the XPBuffer | an XPLine stays while few others arrive (`lines`): a fixed point over gaps |
//! | cleaning of long logs | due by how long changes stay buffered without it (`cleaning`) |
//! | logs | an entry per write; XPLines filled one by one, in a ring as large as the logs in use |
//!
//! The number `m` of XPLines inserted per tick decides which XPLines stay in the buffer. With `n_g`
//! touches after gaps of `g` ticks,
//!
//! ```text
//! m = (sum over g of  n_g (1 - stays(g m))  +  logs) / ticks                            (1)
//! ```
//!
//! *Ignored*: space that deletes leave unused, the space in the parent node for the parts of a
//! split (LodgeTree eq. 1), and records that do not fit a leaf. If keys are sampled, the model has
//! fewer sequential writes to a leaf than the trace.
//!
//! Cost: `O(W log W)` for `W` writes of sampled keys, at most 2^23 (some 200 MB): beyond that fewer
//! keys are simulated.

mod cleaning;
mod lines;
mod play;

use self::cleaning::{Logs, Nobody};
use self::lines::{Medium, XpLine};
use self::play::{Cleaning, Counts, Write};
use super::buffer::XpBuffer;
use super::ccl::{ENTRY, LINE, PmPrediction, XPLINE};
use crate::predict::workload::{KeyStats, NEVER, Workload};
use crate::ssd::gc::SplitMix;

/// Bytes of a leaf (LodgeTree §IV-A).
const LEAF: f64 = 512.0;
/// Maximum number of simulated writes.
const MOST_WRITES: u64 = 1 << 23;
/// Maximum number of simulated log entries.
const MOST_ENTRIES: u32 = 1 << 16;

/// The parameters of the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LodgeShape {
    /// Slots of a last-level inner node.
    pub slots: usize,
    /// t_node: maximum number of leaves that a flush goes to.
    pub t_node: usize,
    /// t_split: number of keys above which a leaf is split, at most 27.
    pub t_split: usize,
    /// t of §III-C; `None` if nodes are always split into two.
    pub burst_factor: Option<f64>,
    /// L: number of entries of a log.
    pub log_entries: f64,
    /// Number of entries of the logs that all partitions append to.
    pub entitled_entries: f64,
    /// Share of the leaves' bytes that entries of logs may take. Beyond it, the changes that keep
    /// old logs alive are flushed.
    pub log_share: f64,
}

/// Counts over the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LodgePrediction {
    /// The counts of all trees in persistent memory; its flushes are visits to leaves.
    pub pm: PmPrediction,
    /// Flushes of nodes.
    pub node_flushes: f64,
    /// Changes per flush.
    pub pairs_per_flush: f64,
    /// Changes per visit to a leaf.
    pub pairs_per_leaf: f64,
    /// Last-level inner nodes at the end.
    pub nodes: f64,
    /// Share of their slots that index no leaf (§II-C), at the end.
    pub free_share: f64,
    /// Share of their slots that buffer a change, at the end.
    pub buffered_share: f64,
}

/// Predicts the measured part.
#[must_use]
pub fn predict(workload: &Workload, shape: &LodgeShape, buffer: &XpBuffer) -> LodgePrediction {
    let ticks = |ops: u64| (ops / workload.tick) as u32;
    let from = ticks(workload.warmup.all_ops());
    let end = ticks(workload.warmup.all_ops() + workload.measured.all_ops()).max(from + 1);
    let (mut writes, weight) = writes(workload, from, end);

    let cleanings = cleanings(shape, buffer, &writes, weight);
    // The times at which XPLines are touched do not depend on the buffer.
    let mut unbuffered = Medium::new(buffer, 0.0, from);
    let mut again = writes.clone();
    let counts = play::play(shape, &mut again, &cleanings, &mut unbuffered, &mut Nobody);
    let gaps = unbuffered.gaps;
    let appended = workload.measured.writes() as f64;
    let length = f64::from(end - from);
    let ring = 2.0 * shape.log_entries + 4.0 * counts.buffered * weight;
    let entries_a_tick = appended / length;
    let of_log = entries_a_tick * ENTRY / XPLINE;
    let mut per_tick = gaps.missed(buffer, f64::INFINITY) * weight / length + of_log;
    for _ in 0..40 {
        let of_leaves = gaps.missed(buffer, per_tick) * weight / length;
        let gone = 1.0 - buffer.stays(ring / entries_a_tick.max(1e-9) * per_tick);
        // Half a step, because with replacement that keeps young lines this is not monotonic.
        per_tick = 0.5 * (per_tick + of_leaves + of_log * gone);
    }
    let mut medium = Medium::new(buffer, per_tick, from);
    play::play(shape, &mut writes, &cleanings, &mut medium, &mut Nobody);
    let log = Log::play(buffer, per_tick / entries_a_tick.max(1e-9), ring, appended);
    let mut prediction = summary(workload, shape, counts, weight, (&medium, &log));
    prediction.pm.cleanings = cleanings.iter().filter(|c| c.at >= from).count() as f64;
    prediction
}

/// When logs are cleaned, derived from the nodes simulated without cleaning.
fn cleanings(
    shape: &LodgeShape,
    buffer: &XpBuffer,
    writes: &[Write],
    weight: f64,
) -> Vec<Cleaning> {
    // If few keys are simulated, a log represents several.
    let entries = shape.log_entries.max(weight);
    let mut logs = Logs::new(writes, entries / weight);
    let mut medium = Medium::new(buffer, 0.0, u32::MAX);
    play::play(shape, &mut writes.to_vec(), &[], &mut medium, &mut logs);
    let entitled = shape.entitled_entries;
    logs.cleanings(shape.log_share, (entries, entitled), weight)
}

fn summary(
    workload: &Workload,
    shape: &LodgeShape,
    counts: Counts,
    weight: f64,
    (medium, log): (&Medium<'_>, &Log),
) -> LodgePrediction {
    let appended = workload.measured.writes() as f64;
    let leaves = counts.leaves * weight;
    let slots = (counts.nodes * shape.slots as f64).max(1.0);
    LodgePrediction {
        pm: PmPrediction {
            flushes: counts.visits * weight,
            splits: counts.splits * weight,
            appended,
            leaf_xplines: medium.written * weight,
            log_xplines: appended * log.xplines,
            leaf_bytes: medium.lines * weight * LINE,
            log_bytes: appended * log.lines * LINE,
            leaves,
            buffered: counts.buffered * weight,
            leaf_bytes_per_record: leaves * LEAF / workload.records().max(1.0),
            ..PmPrediction::default()
        },
        node_flushes: counts.flushes * weight,
        pairs_per_flush: counts.flushed / counts.flushes.max(1.0),
        pairs_per_leaf: counts.flushed / counts.visits.max(1.0),
        nodes: counts.nodes * weight,
        free_share: 1.0 - counts.leaves / slots,
        buffered_share: counts.buffered / slots,
    }
}

/// All writes in order of time, and the number of keys that each represents. Times of first puts
/// are known; other writes come at random times.
fn writes(workload: &Workload, from: u32, end: u32) -> (Vec<Write>, f64) {
    let count = |k: &KeyStats| 1 + u64::from(k.writes) + u64::from(k.warmup_writes);
    let all: u64 = workload.keys.iter().map(|k| count(&k)).sum();
    let shift = (0..).find(|shift| all >> shift <= MOST_WRITES);
    let shift = shift.unwrap_or(0);
    let mut random = SplitMix(1);
    // Time first, for sorting.
    let mut by_time: Vec<(u32, u32)> = Vec::with_capacity((all >> shift) as usize);
    for (rank, key) in (0u32..).zip(workload.key_order()) {
        let k = workload.keys.get(key);
        let kept = SplitMix(u64::from(key)).next() & ((1 << shift) - 1) == 0;
        if k.first_put == NEVER || !kept {
            continue;
        }
        by_time.push((k.first_put, rank));
        let mut update = |n: u32, since: u32, until: u32| {
            let length = u64::from(until.saturating_sub(since).max(1));
            by_time.extend((0..n).map(|_| (since + random.below(length) as u32, rank)));
        };
        if super::growth::is_from(k.first_put, from) {
            update(k.writes.saturating_sub(1), k.first_put, end);
        } else {
            update(k.warmup_writes, k.first_put, from);
            update(k.writes, from, end);
        }
    }
    by_time.sort_unstable();
    let writes = by_time.into_iter();
    let writes = writes.map(|(time, rank)| Write::new(rank, time));
    (
        writes.collect(),
        workload.sample_weight() * (1u64 << shift) as f64,
    )
}

/// Cost of a log entry.
struct Log {
    /// Lines that reach the XPBuffer.
    lines: f64,
    /// XPLines that are written.
    xplines: f64,
}

impl Log {
    /// Appends entries to a ring of this size, while this many XPLines are inserted per entry.
    fn play(buffer: &XpBuffer, per_entry: f64, ring: f64, appended: f64) -> Log {
        let ring = ring.min(f64::from(MOST_ENTRIES)) as u32;
        let xplines = (ring.max(1) as f64 * ENTRY / XPLINE).ceil() as usize;
        let mut all = vec![XpLine::default(); xplines];
        // The first round finds an empty log.
        let entries = (appended.min(f64::from(MOST_ENTRIES)) as u32).max(1);
        let mut medium = Medium::new(buffer, per_entry, ring);
        for entry in 0..ring + entries {
            let start = entry % ring * ENTRY as u32;
            let (first, last) = (
                start / LINE as u32,
                (start + ENTRY as u32 - 1) / LINE as u32,
            );
            for line in first..=last {
                let xpline = &mut all[(line / 4) as usize];
                medium.touch(xpline, 1 << (line % 4), entry);
            }
        }
        for xpline in &mut all {
            medium.leave(xpline);
        }
        Log {
            lines: medium.lines / f64::from(entries),
            xplines: medium.written / f64::from(entries),
        }
    }
}

#[cfg(test)]
mod tests;
