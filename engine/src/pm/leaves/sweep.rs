//! Merges sparse leaves that no operation would visit: [`crate::PmTask::MergeLeaves`] of the trees
//! with leaves of 256 bytes.
//!
//! A delete that leaves its leaf sparse merges it at once ([`super::merge`]). That misses leaves
//! that replay emptied when the store was opened, leaves whose buffers were flushed by a cleaning
//! that holds their locks, and leaves that had no room to be flushed before a merge. These are
//! counted, and a sweep over the index finds them, a few leaves at a time. Opening a store counts
//! anew, so a crash forgets none. A store that would report that it is full first sweeps, merging
//! every pair of leaves that fit in one, and then redistributes leaves among their neighbours
//! ([`super::share`]).

use crate::error::Result;
use crate::mutation;
use crate::pm::layout::LeafId;
use crate::pm::leaf::SLOTS;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::Progress;

use super::Leaves;
use crate::pm::leaf::SPARSE;

/// The number of leaves that one step visits.
const STEP: usize = 64;

/// A walk over all leaves.
pub(crate) struct Sweep {
    /// The fence from which to continue.
    from: Vec<u8>,
    /// Leaves with fewer used slots are merged with a neighbour.
    below: usize,
}

impl Leaves {
    /// Counts a leaf that is left sparse for now.
    pub(crate) fn note_sparse(&self) {
        if !mutation::on("pm-sparse-forgotten-at-open") {
            self.sparse.fetch_add(1, Relaxed);
        }
    }

    /// Returns whether leaves should be merged, or are being merged.
    pub(crate) fn merging_due(&self) -> bool {
        self.sparse.load(Relaxed) > 0 || self.sweep.lock().is_some()
    }

    /// Does one bounded step of the sweep.
    pub(crate) fn merge_step(&self) -> Result<Progress> {
        let mut sweep = self.sweep.lock();
        let under_way = sweep.get_or_insert_with(|| {
            self.sparse.store(0, Relaxed);
            Sweep::of(SPARSE)
        });
        let progress = self.sweep_on(under_way)?;
        if progress == Progress::Idle {
            *sweep = None;
        }
        Ok(progress)
    }

    /// Merges whatever fits, for lack of space: first two leaves into one, then three into two.
    pub(crate) fn merge_all(&self) -> Result<()> {
        let mut sweep = Sweep::of(SLOTS);
        while self.sweep_on(&mut sweep)? == Progress::More {}
        self.share_all()
    }

    fn sweep_on(&self, sweep: &mut Sweep) -> Result<Progress> {
        let entries = self.index.range(&sweep.from, STEP);
        for (_, page) in &entries {
            let leaf = LeafId(page.0);
            if self.used(leaf)?.is_some_and(|used| used < sweep.below) {
                self.merge_around(leaf)?;
            }
        }
        if entries.len() < STEP {
            return Ok(Progress::Idle);
        }
        let (mut last, _) = entries.into_iter().next_back().expect("there are some");
        // The smallest key above that fence.
        last.push(0);
        sweep.from = last;
        Ok(Progress::More)
    }

    /// Returns the number of used slots of a leaf, or `None` if it was merged away.
    fn used(&self, leaf: LeafId) -> Result<Option<usize>> {
        let held = self.nodes.node(leaf).lock();
        if held.fields.is_gone() {
            return Ok(None);
        }
        let used = self.load(leaf)?.header().bitmap().count_ones();
        Ok(Some(used as usize))
    }
}

impl Sweep {
    fn of(below: usize) -> Sweep {
        Sweep {
            from: Vec::new(),
            below,
        }
    }
}
