//! Merging a leaf that deletes have left below one half into its left neighbour (CCL-BTree §4.2).
//!
//! ```text
//! flush both buffers ─▶ the right one's slots and a timestamp of now into the left one ─▶ fence ─▶ left header word (with them, next = the right one's next) ─▶ fence
//! ```
//!
//! From then on log entries of the right one's keys are compared with the left one's timestamp, so that must cover all that the right one's did; and it may only be raised while the left
//! one has nothing unflushed. The paper does not say. Locks are taken from right to left.

use crate::error::{Error, Result};
use crate::mutation;
use crate::pm::bytes::Bytes;
use crate::pm::layout::LeafId;
use crate::pm::leaf::{HEADER_BYTES, LeafImage, SLOTS};
use crate::pm::nodes::Held;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::IoClass;

use super::Leaves;

impl Leaves {
    /// A leaf has become sparse: merges it into its left neighbour if both fit, or else its right neighbour into it. No lock is held.
    ///
    /// What made it sparse is done whatever becomes of this, so lack of space is no failure.
    pub(crate) fn merge_around(&self, leaf: LeafId) -> Result<()> {
        match self.try_merge_around(leaf) {
            Err(Error::PmFull { .. }) => {
                self.note_sparse();
                Ok(())
            }
            done => done,
        }
    }

    fn try_merge_around(&self, leaf: LeafId) -> Result<()> {
        if self.merge_left(leaf)? {
            return Ok(());
        }
        // Nobody would come by a neighbour that was emptied when this leaf was still full.
        match self.right_of(leaf)? {
            Some(right) => self.merge_left(right).map(drop),
            None => Ok(()),
        }
    }

    /// The leaf to the right; `None` if there is none, or no such leaf as this any more.
    fn right_of(&self, leaf: LeafId) -> Result<Option<LeafId>> {
        let held = self.nodes.node(leaf).lock();
        if held.fields.is_gone() {
            return Ok(None);
        }
        Ok(self.load(leaf)?.header().next())
    }

    /// Merges a leaf into its left neighbour, if what both hold fits one; says whether it did. It may have been merged away already.
    pub(crate) fn merge_left(&self, leaf: LeafId) -> Result<bool> {
        if leaf == self.space.geometry().first_leaf() {
            return Ok(false);
        }
        let mut held = self.nodes.node(leaf).lock();
        if held.fields.is_gone() {
            // The records that its slots name are others' by now.
            return Ok(false);
        }
        let image = self.load(leaf)?;
        let keys = image.used().map(|at| self.records.key(image.slot(at)));
        let Some(fence) = keys.collect::<Result<Vec<Bytes>>>()?.into_iter().min() else {
            return Ok(false);
        };
        // A leaf that was merged away may be allocated anew by whoever holds the lock that is waited for below; one that the index names stays while it is locked.
        if self.index.find(&fence) != Self::page(leaf) {
            return Ok(false);
        }
        let Some((lower, page)) = self.index.find_before(&fence) else {
            return Ok(false);
        };
        let left = LeafId(page.0);
        if left == leaf {
            // The leaf is another one by now, and lies elsewhere.
            return Ok(false);
        }
        let mut held_left = self.nodes.node(left).lock();
        let into = self.load(left)?;
        let unflushed = held_left.fields.unflushed() + held.fields.unflushed();
        let used = into.used().count() + image.used().count() + unflushed;
        let neighbours = into.header().next() == Some(leaf)
            && self.index.find_before(&fence) == Some((lower, page))
            && self.index.find(&fence) == Self::page(leaf);
        // An anchor is not moved.
        if !neighbours || used > SLOTS + 1 {
            return Ok(false);
        }
        for (held, leaf) in [(&mut held_left, left), (&mut held, leaf)] {
            if held.fields.unflushed() > 0 {
                self.flush(held, leaf, None)?;
            }
            held.fields.set_filled(0);
        }
        let from = self.load(leaf)?;
        let (gone, moved): (Vec<usize>, Vec<usize>) =
            from.used().partition(|at| from.slot(*at).is_absent());
        if self.load(left)?.used().count() + moved.len() > SLOTS {
            return Ok(false);
        }
        self.move_slots(&mut held_left, left, &from, &moved)?;
        self.index.remove(&fence);
        if !mutation::on("pm-merged-leaf-read") {
            held.fields.set_gone();
        }
        for at in gone {
            self.retire(from.slot(at))?;
        }
        self.space.free_leaf(leaf);
        self.counters.merges.fetch_add(1, Relaxed);
        Ok(true)
    }

    fn move_slots(
        &self,
        held_left: &mut Held<'_>,
        left: LeafId,
        from: &LeafImage,
        moved: &[usize],
    ) -> Result<()> {
        let mut into = self.load(left)?;
        let now = self.clock.tick();
        if self.stamped && !mutation::on("ccl-merge-keeps-timestamp") {
            into.set_timestamp(now);
        }
        let taken = into.header().bitmap();
        let free = (0..SLOTS).filter(|at| taken >> at & 1 == 0);
        let offset = left.offset();
        for (at, free) in moved.iter().zip(free) {
            into.fill(free, from.slot(*at), from.fingerprint(*at));
            let bytes = LeafImage::slot_range(free);
            self.medium
                .store(offset + bytes.start as u64, &into.0[bytes])?;
        }
        self.medium.store_word(offset + 8, into.timestamp().0)?;
        self.medium
            .write_back(offset..offset + into.0.len() as u64, IoClass::Page)?;
        self.medium.fence();
        into.set_header(into.header().with_next(from.header().next()));
        self.medium.store(offset, &into.0[..HEADER_BYTES])?;
        self.medium
            .write_back(offset..offset + HEADER_BYTES as u64, IoClass::Page)?;
        self.medium.fence();
        held_left.set_flushed_at(now);
        Ok(())
    }
}
