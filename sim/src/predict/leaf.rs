//! Computes the leaves of a tree without building it: which keys share a page.
//!
//! The shape of a B-tree's leaf level depends only on the order in which keys came and on the bytes
//! that each takes. So recursion on key ranges gives it, without pages, index or searches:
//!
//! ```text
//! range of ranks, in order of insertion    k1 k2 k3 ... kj | kj+1 ...
//!                                          ^ fit the page   ^ does not fit: split here
//! sort k1..kj, choose the separator, partition the list (stably) into both sides, recurse
//! ```
//!
//! Module `grow` contains the recursion. It needs `O(N log(N/m))` moves of a 4-byte rank. Keys in
//! random order give the occupancies of random B-trees (Yao, *On random 2-3 trees*, Acta Inf. 1978:
//! mean fill -> ln 2), with the growth wave of a finite tree around that limit (all leaves of a
//! young tree split at about the same time); keys in sorted order give half-full leaves. Neither is
//! assumed; both are results.
//!
//! Record sizes and split rules: B-Trees Are Back §2 "Separator Selection", §3.1 prefix truncation;
//! header and slots are those of the page layout (§3.2, or Bf-Tree §3.2).
//!
//! *Ignored*: deletes do not shrink a leaf (a deleted key keeps its space), and a record has the
//! size of its last value from the beginning. Both are exact for loads followed by updates of the
//! same size.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use treering_engine::node::LayoutChoice;

use super::grow::{Growth, PartitionSplit};
use super::grown::AT_A_TIME;
use super::workload::{Accesses, NEVER, Workload};

pub use super::grown::{Leaf, Split};

/// What a workload keeps: the leaves that were last asked for.
type Kept = ((usize, LayoutChoice), Arc<LeafLevel>);

/// The leaf level of a tree, or of a sample of its keys.
#[derive(Debug)]
pub struct LeafLevel {
    /// The leaves in key order.
    pub leaves: Vec<Leaf>,
    /// The splits, in order of time.
    pub splits: Vec<Split>,
    /// Number of leaves that one leaf of the sample represents.
    pub weight: f64,
    /// Indices of the sample's keys, in key order.
    pub(crate) order: Vec<u32>,
    /// Where in that order each leaf begins.
    pub(crate) starts: Vec<u32>,
    /// The leaf of each key; see [`LeafLevel::leaf_of_key`].
    of_key: OnceLock<Vec<u32>>,
    /// The accesses to samples of the pages, by size of the sample, for further predictions.
    pub(crate) thinned: Mutex<Vec<(u64, Arc<Accesses>)>>,
}

impl LeafLevel {
    /// Grows the leaves of `workload` in pages of `page_size` bytes. They become dense, or have
    /// hints or fingerprints, as `choice` says and as if there were no scans. If the workload is a
    /// sample by key, no leaf becomes dense, because the keys in between are missing.
    #[must_use]
    pub fn grow(workload: &Workload, page_size: usize, choice: LayoutChoice) -> LeafLevel {
        let mut level = LeafLevel::grow_unvisited(workload, page_size, choice);
        level.spread_accesses(workload);
        level
    }

    /// The leaves without visits. The workload keeps those last asked for, as many predictions of
    /// one trace need the same.
    pub(crate) fn kept(
        workload: &Workload,
        page_size: usize,
        choice: LayoutChoice,
    ) -> Arc<LeafLevel> {
        let shape = (page_size, choice);
        let mut kept = workload.kept.lock();
        let known = kept.as_ref().and_then(|kept| kept.downcast_ref::<Kept>());
        if let Some((_, level)) = known.filter(|(of, _)| *of == shape) {
            return Arc::clone(level);
        }
        // Not two at once.
        *kept = None;
        let level = Arc::new(LeafLevel::grow_unvisited(workload, page_size, choice));
        let new: Kept = (shape, Arc::clone(&level));
        *kept = Some(Arc::new(new));
        level
    }

    /// As [`LeafLevel::grow`], without visits: reads, scans and writes of all leaves are 0.
    pub(crate) fn grow_unvisited(
        workload: &Workload,
        page_size: usize,
        choice: LayoutChoice,
    ) -> LeafLevel {
        let choice = match workload.sample_weight() > 1.0 {
            true => choice.without_dense(),
            false => choice,
        };
        let leaves = (choice, PartitionSplit::default());
        LeafLevel::grow_shape(workload, page_size, leaves, (b"", None))
    }

    /// Number of measured operations on the key that follows that of the previous one, in the whole
    /// tree.
    pub(crate) fn in_runs(&self) -> f64 {
        let in_runs: f64 = self.leaves.iter().map(|leaf| leaf.in_runs).sum();
        in_runs * self.weight
    }

    /// As [`LeafLevel::grow`], for a part of a tree: the first leaf has the given lower fence, the
    /// last one the given upper fence.
    #[must_use]
    pub(crate) fn grow_between(
        workload: &Workload,
        page_size: usize,
        leaves: (LayoutChoice, PartitionSplit),
        fences: (&[u8], Option<&[u8]>),
    ) -> LeafLevel {
        let mut level = LeafLevel::grow_shape(workload, page_size, leaves, fences);
        level.spread_accesses(workload);
        level
    }

    fn grow_shape(
        workload: &Workload,
        page_size: usize,
        leaves: (LayoutChoice, PartitionSplit),
        fences: (&[u8], Option<&[u8]>),
    ) -> LeafLevel {
        let order = workload.key_order();
        let mut growth = Growth::new(workload, &order, page_size, leaves);
        let mut inserted = insertion_order(workload, &order);
        growth.run(&mut inserted, fences);
        let mut level = LeafLevel {
            leaves: growth.leaves,
            splits: growth.splits,
            weight: workload.sample_weight(),
            starts: growth.leaf_starts,
            order: Vec::new(),
            of_key: OnceLock::new(),
            thinned: Mutex::default(),
        };
        level.splits.sort_by_key(|s| s.time);
        level.order = order;
        level
    }

    /// The leaf of each key, by the number of the key.
    pub(crate) fn leaf_of_key(&self) -> &[u32] {
        self.of_key.get_or_init(|| {
            let mut of_key = vec![0; self.order.len()];
            let ends = self.starts.iter().skip(1).copied();
            let ends = ends.chain([self.order.len() as u32]);
            for (leaf, (start, end)) in self.starts.iter().zip(ends).enumerate() {
                for key in &self.order[*start as usize..end as usize] {
                    of_key[*key as usize] = leaf as u32;
                }
            }
            of_key
        })
    }

    /// Number of leaves of the whole tree.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.leaves.len() as f64 * self.weight
    }

    /// Mean number of records in a leaf.
    #[must_use]
    pub fn records_per_leaf(&self) -> f64 {
        let records: f64 = self.leaves.iter().map(|l| f64::from(l.records)).sum();
        records / self.leaves.len().max(1) as f64
    }

    /// Distributes accesses to the leaves of their keys; scans also access the following leaves.
    fn spread_accesses(&mut self, workload: &Workload) {
        let (order, starts) = (&self.order, &self.starts);
        let mut scan_starts = vec![0u32; self.leaves.len()];
        for (i, &start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).map_or(order.len(), |&s| s as usize);
            let leaf = &mut self.leaves[i];
            for &key in &order[start as usize..end] {
                let k = workload.keys.get(key);
                let (mut reads, mut writes) = (k.reads, k.writes);
                // A run that starts at the leaf's first key continues from the previous leaf.
                if key != order[start as usize] {
                    reads -= k.run_reads;
                    writes -= k.run_writes;
                    leaf.in_runs += f64::from(k.run_reads) + f64::from(k.run_writes);
                }
                leaf.reads += f64::from(reads);
                leaf.writes += f64::from(writes);
                if workload.keys.has_scans() {
                    scan_starts[i] += workload.keys.scans(key);
                    leaf.scans = f64::from(scan_starts[i]);
                }
            }
        }
        let scans = workload.measured.of(treering_traces::OpKind::Scan);
        if scans > 0 {
            let mean = workload.measured.scanned_records as f64 / scans as f64;
            self.extend_scans(&scan_starts, mean);
        }
    }

    /// Adds the following leaves that a scan of `length` records reads. It begins in the middle of
    /// its leaf on average.
    fn extend_scans(&mut self, scan_starts: &[u32], length: f64) {
        for (i, &n) in scan_starts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let mut left = length - f64::from(self.leaves[i].records) / 2.0;
            for leaf in &mut self.leaves[i + 1..] {
                let records = f64::from(leaf.records).max(1.0);
                // Of all starting points, some end in this leaf's left neighbour.
                let here = f64::from(n) * (0.5 + left / records).clamp(0.0, 1.0);
                leaf.reads += here;
                leaf.scans += here;
                left -= records;
                if left < -records / 2.0 {
                    break;
                }
            }
        }
    }
}

/// The keys of a workload in key order.
pub(crate) enum KeyOrder {
    /// As some level has them that the workload keeps.
    Kept(Arc<LeafLevel>),
    Own(Vec<u32>),
}

impl KeyOrder {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, u32> {
        match self {
            KeyOrder::Kept(level) => level.order.iter(),
            KeyOrder::Own(order) => order.iter(),
        }
    }
}

/// The keys in key order, which are not sorted again if they were for a prediction.
pub(crate) fn key_order(workload: &Workload) -> KeyOrder {
    let kept = workload.kept.lock();
    let level = kept.as_ref().and_then(|kept| kept.downcast_ref::<Kept>());
    match level {
        Some((_, level)) => KeyOrder::Kept(Arc::clone(level)),
        None => KeyOrder::Own(workload.key_order()),
    }
}

/// The ranks of all keys that were ever put, by time of the first put. `order` has all keys in key
/// order. Needs 4 MiB besides the list, unless keys were not numbered in the order of their first
/// put.
pub(crate) fn insertion_order(workload: &Workload, order: &[u32]) -> Vec<u32> {
    inserted(workload, order, AT_A_TIME)
}

fn inserted(workload: &Workload, order: &[u32], at_a_time: usize) -> Vec<u32> {
    /// Marks an element that is already a rank.
    const DONE: u32 = 1 << 31;
    let keys = &workload.keys;
    let mut by_time = Vec::new();
    by_time.reserve_exact(keys.len());
    by_time.extend((0..keys.len() as u32).filter(|k| keys.first_put(*k) != NEVER));
    // Keys are numbered in the order in which they were first seen, so this is sorted or nearly so.
    if !by_time.is_sorted_by_key(|k| keys.first_put(*k)) {
        by_time.sort_by_key(|k| keys.first_put(*k));
    }
    let mut ranks = vec![0u32; keys.len().min(at_a_time)];
    for first in (0..keys.len()).step_by(at_a_time) {
        for (rank, &key) in order.iter().enumerate() {
            if let Some(place) = ranks.get_mut((key as usize).wrapping_sub(first)) {
                *place = rank as u32;
            }
        }
        for key in &mut by_time {
            // Finished elements are beyond the end.
            if let Some(rank) = ranks.get((*key as usize).wrapping_sub(first)) {
                *key = rank | DONE;
            }
        }
    }
    by_time.iter_mut().for_each(|rank| *rank &= !DONE);
    by_time
}
