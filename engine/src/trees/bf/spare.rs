//! Mini-pages that the head of the ring reaches with few changes go to the tail.
//!
//! ```text
//!     head                                  tail
//!      [ few | many | few | .. ] ---------->  few, few      many: merged into its leaf
//! ```
//!
//! A merge writes a page, however few changes it is for. So memory is best freed where one write
//! frees the most: by the mini-page with the most bytes of changes. The paper merges whatever the
//! head reaches (Bf-Tree §4.2), and that is as full as mini-pages are on average. If instead each is
//! merged only when it is as full as any, mini-pages of all sizes below that are in the ring, and
//! those that are merged have about twice the average.
//!
//! The head can be had without a queue in the order of sizes. It meets all mini-pages, one after the
//! other, and spares those with less than a [`Threshold`]. This follows what is met: it falls a
//! little whenever a mini-page is spared, and rises whenever one is merged, so that a fixed share is
//! spared ([`crate::options::BfOptions::spare_percent`]). So it needs no setting for sizes, and
//! follows the workload. With three of four spared, each merge costs three copies within memory.
//!
//! What is spared keeps its changes and what was used since it was last at the tail, the rest stays
//! behind. A mini-page without changes is spared if some of it was used. That is the second chance of
//! §5.5, at the head itself. In the copy-on-access region, too, changes then move unmerged.
//!
//! To the ring, a mini-page that is spared is one that moves: its page's lock is held, a block is
//! allocated and published, and the old block is dead when the head passes it. Without room for the
//! copy, or after [`MOST`] in a row for an operation that waits, it is merged.

use super::BfTree;
use super::counters::Counters;
use super::page::{keep, marks_of};
use crate::mini::{Marks, MiniRef};
use crate::mutation;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::PageId;

/// The most mini-pages that are spared in a row for an operation that waits for room.
pub(super) const MOST: usize = 32;

/// The threshold is in this part of a byte.
const UNIT: u64 = 1 << 16;

/// One step of the threshold is at most this part of it.
const PART: u64 = 50;

/// Below how many bytes of changes a mini-page is spared.
///
/// ```
/// use treering_engine::Threshold;
///
/// let mut threshold = Threshold::new();
/// // Of mini-pages of 1 to 100 bytes, it comes to spare three of four.
/// for n in 0..10_000 {
///     let spared = threshold.spares(n * 37 % 100 + 1);
///     threshold = threshold.after(spared, 75);
/// }
/// assert!(threshold.spares(65) && !threshold.spares(85));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold(u64);

impl Default for Threshold {
    fn default() -> Self {
        Threshold::new()
    }
}

impl Threshold {
    /// A threshold before anything was met: half a KiB.
    #[must_use]
    pub fn new() -> Self {
        Threshold(512 * UNIT)
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        Threshold(bits)
    }

    pub(super) fn to_bits(self) -> u64 {
        self.0
    }

    /// Whether a mini-page with so many bytes of changes is spared.
    #[must_use]
    pub fn spares(self, bytes: u64) -> bool {
        bytes.saturating_mul(UNIT) < self.0
    }

    /// The threshold after a mini-page with changes was spared or not, if `percent` of them are to
    /// be.
    #[must_use]
    pub fn after(self, spared: bool, percent: u8) -> Self {
        let step = self.0 / (100 * PART);
        let percent = u64::from(percent.min(100));
        Threshold(match spared {
            true => (self.0 - step * (100 - percent)).max(UNIT),
            false => self.0 + step * percent,
        })
    }
}

impl BfTree {
    /// Whether mini-pages with few changes are spared at all.
    pub(super) fn spares(&self) -> bool {
        self.options.spare_percent > 0
    }

    /// Which records of a mini-page go with it to the tail: those that were used since it was last
    /// there and, if they need not be merged for that, those that were changed. A mirror that a scan
    /// has used stays a mirror, and so does one of which too much was used for anything else.
    pub(super) fn staying(&self, mini: MiniRef<'_>, marks: Marks) -> Vec<bool> {
        let whole = mini.is_whole();
        let changes = self.spares() && !mutation::on("bf-spare-forgets-changes");
        let wanted = |index| marks.is_hot(index, whole) || changes && mini.is_dirty_at(index);
        let all = whole && (marks.is_scanned() || mini.bytes_of(wanted) > self.largest);
        (0..mini.count())
            .map(|index| all || wanted(index))
            .collect()
    }

    /// Copies the mini-page of a page that the head reaches next to the tail, unless it is to be
    /// merged. Returns whether it was copied. The caller holds no page's lock.
    pub(super) fn spare(&self, page: PageId) -> bool {
        if !self.spares() {
            return false;
        }
        let Ok(guard) = self.ring.exclusive(page) else {
            return false;
        };
        let Some(mini) = guard.bytes().map(MiniRef::new) else {
            return false;
        };
        let changes = mini.bytes_of_changes();
        if changes > 0 {
            let threshold = Threshold::from_bits(self.threshold.load(Relaxed));
            let spared = threshold.spares(changes as u64);
            // Another thread's step may be lost, which does no harm.
            let after = threshold.after(spared, self.options.spare_percent);
            self.threshold.store(after.to_bits(), Relaxed);
            if !spared {
                return false;
            }
        }
        let stays = self.staying(mini, marks_of(guard.marks()));
        if !stays.contains(&true) {
            return false;
        }
        let copied = keep(guard, &self.hook, |index| stays[index]).is_none();
        if copied {
            Counters::add(&self.counters.spared, 1);
        }
        copied
    }
}
