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
//! This needs no queue in the order of sizes. The head meets all mini-pages, one after the other, and
//! spares those with less than a [`Threshold`]. This follows what is met: it falls a
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
//! copy, or after a batch of them in a row for an operation that waits, it is merged.

use super::BfTree;
use super::counters::{Cause, Counters};
use super::page::{keep, marks_of};
use super::threshold::Threshold;
use crate::error::Result;
use crate::mini::{Marks, MiniMut, MiniRef};
use crate::mutation;
use crate::ring::{Exclusive, Shared};
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::PageId;

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

    /// Moves a mini-page that is used near the head to the tail (§5.5), if there are no other
    /// readers.
    pub(super) fn copy_to_tail(&self, guard: Shared<'_>) {
        if let Ok(guard) = guard.try_upgrade() {
            // If there is no room, or the merge fails, the mini-page stays where it is. The evictor
            // will meet the same error.
            drop(self.move_to_tail(guard));
        }
    }

    /// Moves a mini-page to the tail, without the records that were not used since its last move.
    /// If one of those is dirty, all dirty records are first merged into the leaf ("maximizing the
    /// utility of the disk write"). A mirror that a scan has used is moved unchanged. Without room,
    /// nothing happens.
    pub(super) fn move_to_tail(&self, mut guard: Exclusive<'_>) -> Result<()> {
        let (page, marks) = (guard.page(), marks_of(guard.marks()));
        let Some(block) = guard.bytes_mut() else {
            return Ok(());
        };
        let mut mini = MiniMut::new(block);
        let view = mini.view();
        // The merge changes no record's place.
        let stays = self.staying(view, marks);
        if (0..view.count()).any(|index| !stays[index] && view.is_dirty_at(index)) {
            self.merge(page, &mut mini, Cause::CopyOnAccess)?;
        }
        if keep(guard, &self.hook, |index| stays[index]).is_none() {
            Counters::add(&self.counters.copies_to_tail, 1);
        }
        Ok(())
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
