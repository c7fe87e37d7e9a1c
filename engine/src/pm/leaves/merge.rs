//! Merges a leaf that deletes have left less than half full into its left neighbour (CCL-BTree
//! §4.2).
//!
//! ```text
//! flush both buffers ─▶ the right leaf's slots and a timestamp of now into the left one ─▶ fence
//! ─▶ left header word (with these slots, next = the right leaf's next) ─▶ fence
//! ```
//!
//! From then on, log entries of the right leaf's keys are compared with the left leaf's timestamp.
//! So that timestamp must cover everything that the right leaf's did, and it may only be raised
//! while nothing is unflushed for the left leaf. The paper does not mention this. Locks are taken
//! from right to left.

use crate::error::{Error, Result};
use crate::mutation;
use crate::pm::bytes::Bytes;
use crate::pm::events::Event;
use crate::pm::layout::LeafId;
use crate::pm::leaf::{HEADER_BYTES, LeafImage, SLOTS};
use crate::pm::nodes::Held;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::IoClass;

use super::Leaves;

impl Leaves {
    /// Merges a leaf that has become sparse into its left neighbour if both fit in one leaf, or
    /// else its right neighbour into it. No lock may be held.
    ///
    /// The change that made the leaf sparse is already done, so lack of space here is not a
    /// failure.
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
        // The right neighbour may have been emptied while this leaf was still full, and nothing
        // else would visit it.
        match self.right_of(leaf)? {
            Some(right) => self.merge_left(right).map(drop),
            None => Ok(()),
        }
    }

    /// Returns the leaf to the right, or `None` if there is none or if this leaf no longer exists.
    fn right_of(&self, leaf: LeafId) -> Result<Option<LeafId>> {
        let held = self.nodes.node(leaf).lock();
        if held.fields.is_gone() {
            return Ok(None);
        }
        Ok(self.load(leaf)?.header().next())
    }

    /// Merges a leaf into its left neighbour if their contents fit in one leaf. Returns whether it
    /// did. The leaf may have been merged away already.
    pub(crate) fn merge_left(&self, leaf: LeafId) -> Result<bool> {
        if leaf == self.space.geometry().first_leaf() {
            return Ok(false);
        }
        let mut held = self.nodes.node(leaf).lock();
        if held.fields.is_gone() {
            // The records to which its slots refer may already belong to others.
            return Ok(false);
        }
        let image = self.load(leaf)?;
        let keys = image.used().map(|at| self.records.key(image.slot(at)));
        let Some(fence) = keys.collect::<Result<Vec<Bytes>>>()?.into_iter().min() else {
            return Ok(false);
        };
        // A leaf that was merged away may be allocated again by the thread that holds the lock we
        // wait for below. A leaf that the index refers to stays in place while it is locked.
        if self.index.find(&fence) != Self::page(leaf) {
            return Ok(false);
        }
        let Some((lower, page)) = self.index.find_before(&fence) else {
            return Ok(false);
        };
        let left = LeafId(page.0);
        if left == leaf {
            // The leaf has been reallocated, and now lies elsewhere in the key order.
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
        self.medium.tell(|| Event::LatchesLeft {
            leaf: leaf.0,
            left: left.0,
        });
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
            self.medium.tell(|| Event::LetsGo {
                leaf: leaf.0,
                left: left.0,
            });
            return Ok(false);
        }
        self.move_slots(&mut held_left, (left, leaf), &from, &moved)?;
        self.index.remove(&fence);
        if !mutation::on("pm-merged-leaf-read") {
            held.fields.set_gone();
        }
        self.medium.tell(|| Event::Merged {
            leaf: leaf.0,
            left: left.0,
            node: held_left.image(),
        });
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
        (left, leaf): (LeafId, LeafId),
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
        let mut filled = Vec::with_capacity(moved.len());
        for (at, free) in moved.iter().zip(free) {
            into.fill(free, from.slot(*at), from.fingerprint(*at));
            filled.push(free);
        }
        self.medium.tell(|| Event::MovesRecords {
            leaf: leaf.0,
            left: left.0,
            slots: filled.iter().map(|at| (*at, into.words_of(*at))).collect(),
            stamp: into.timestamp().0,
        });
        let offset = left.offset();
        for free in filled {
            let bytes = LeafImage::slot_range(free);
            self.medium
                .store(offset + bytes.start as u64, &into.0[bytes])?;
        }
        self.medium.store_word(offset + 8, into.timestamp().0)?;
        self.medium
            .write_back(offset..offset + into.0.len() as u64, IoClass::Page)?;
        self.medium.fence();
        into.set_header(into.header().with_next(from.header().next()));
        self.medium.tell(|| Event::StoresHeader {
            leaf: left.0,
            header: into.header().0,
            stamp: into.timestamp().0,
        });
        self.medium.store(offset, &into.0[..HEADER_BYTES])?;
        self.medium
            .write_back(offset..offset + HEADER_BYTES as u64, IoClass::Page)?;
        self.medium.fence();
        held_left.set_flushed_at(now);
        Ok(())
    }
}
