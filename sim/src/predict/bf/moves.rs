//! How mini-pages move to the tail of the ring, are spared by the head, or leave it (Bf-Tree §4.2, §5.5;
//! `engine/src/trees/bf/spare.rs`).

use super::below::Below;
use super::model::{Cause, Model};
use super::pages::MiniPage;

impl<B: Below> Model<'_, B> {
    /// Whether mini-pages with few changes are spared, and changes may move to the tail unmerged.
    pub(super) fn spares(&self) -> bool {
        self.shape.spare_percent > 0
    }

    /// Whether a mini-page goes to the tail as a whole.
    fn goes_whole(&self, mini: &MiniPage) -> bool {
        let wanted = || self.mini_bytes(mini.wanted(self.shape.marks, self.spares()));
        mini.mirror && (mini.scanned || wanted() > self.shape.largest)
    }

    /// Copies a mini-page to the tail. Records that were not used since it was last at the tail
    /// stay behind; if one of them is dirty, all are merged (§5.5), unless changes go with it.
    pub(super) fn move_to_tail(&mut self, leaf: u32) {
        let Some(mini) = &self.leaves[leaf as usize].mini else {
            return;
        };
        let whole = self.goes_whole(mini);
        if !whole && !self.spares() && mini.leaves_dirty_behind(self.shape.marks) {
            self.merge(leaf, Cause::CopyOnAccess);
        }
        if self.keep(leaf, whole, self.spares()) {
            self.counts.copies_to_tail += 1.0;
        }
    }

    /// Copies the mini-page that the head reaches next to the tail, unless it is to be merged.
    /// Returns whether it was copied.
    fn spare(&mut self, leaf: u32) -> bool {
        let Some(mini) = &self.leaves[leaf as usize].mini else {
            return false;
        };
        let changes = mini.bytes_of_changes();
        if changes > 0 {
            let spared = self.threshold.spares(changes);
            self.threshold = self.threshold.after(spared, self.shape.spare_percent);
            if !spared {
                return false;
            }
        }
        let whole = self.goes_whole(mini);
        let some = whole || mini.wanted(self.shape.marks, true).next().is_some();
        some && self.keep(leaf, whole, true)
    }

    /// Moves the records that were used, and those that were changed if `changes`, or the whole
    /// mirror, to the smallest block that holds them. Returns `false` if the ring has no room.
    pub(super) fn keep(&mut self, leaf: u32, whole: bool, changes: bool) -> bool {
        let marks = self.shape.marks;
        let Some(mini) = &self.leaves[leaf as usize].mini else {
            return false;
        };
        let class = match whole {
            true => self.class_for(self.mini_bytes(mini.records.iter().copied())),
            false => self.class_for(self.mini_bytes(mini.wanted(marks, changes))),
        };
        if self.settle(leaf, class).is_err() {
            return false;
        }
        if let Some(mini) = &mut self.leaves[leaf as usize].mini {
            match whole {
                true => mini.cool_whole(),
                false => mini.cool(marks, changes),
            }
        }
        true
    }

    /// Evicts at least `short` bytes at the head (§4.2, "Evict"), without those of mini-pages that
    /// are spared.
    pub(super) fn make_room(&mut self, short: u64) {
        let spare = self.shape.spare as f64 / self.weight;
        let wanted = short.max(spare as u64);
        let (mut made, mut spared) = (0, 0);
        while made < wanted {
            let moved = self.spares() && spared < self.shape.batch && {
                let (next, _) = self.ring.next_victims(1, 1);
                next.first().is_some_and(|leaf| self.spare(*leaf))
            };
            spared += usize::from(moved);
            let Some((bytes, evicted)) = self.ring.evict() else {
                break;
            };
            made += if moved { 0 } else { bytes };
            self.evicted(evicted);
        }
    }

    /// Runs one step of eviction ahead of need, until `goal` bytes are free or a batch of mini-pages
    /// was looked at.
    pub(super) fn evict_ahead(&mut self, goal: u64) {
        let wanted = goal.saturating_sub(self.ring.room());
        let (leaves, bytes) = self.ring.next_victims(self.shape.batch, wanted);
        if self.spares() {
            for leaf in leaves {
                self.spare(leaf);
            }
        }
        let mut made = 0;
        while made < bytes
            && let Some((bytes, evicted)) = self.ring.evict()
        {
            made += bytes;
            self.evicted(evicted);
        }
    }

    /// The head has passed a block, which held the mini-page of this leaf.
    fn evicted(&mut self, mini_page_of: Option<u32>) {
        if let Some(leaf) = mini_page_of {
            self.merge(leaf, Cause::Eviction);
            self.leaves[leaf as usize].mini = None;
            self.counts.evictions += 1.0;
        }
    }
}
