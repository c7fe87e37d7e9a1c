//! Writes to a leaf: batch insert and logless split (CCL-BTree §4.2). `pmtree` uses batches of one
//! change, and `ccl` batches of N_batch + 1.
//!
//! ```text
//! batch   free slots ─▶ fence ─▶ header line (bitmap, fingerprints, late timestamp) ─▶ fence
//! split   new leaf whole, free slots of the old one ─▶ fence
//!         ─▶ old header line (lower half, next = new) ─▶ fence ─▶ the rest as a batch
//! ```
//!
//! - New values, including updates, go to slots that are free in the durable bitmap: existing data
//!   is not touched until the header word commits.
//! - The header word commits. The fingerprints are written with it; recovery recomputes them if a
//!   crash left them out of date.
//! - The **timestamp** in the header line is that of the *previous* flush. It may become durable
//!   without the header word, and must then not cover entries that the leaf does not have yet. So
//!   recovery replays the entries of one flush too many, which changes nothing, because a later
//!   trigger write to such a key cannot be durable before this timestamp is. A new leaf gets the
//!   time of the flush itself, because it is complete before anything refers to it.
//!
//! - A split does not create empty buffer nodes. Both nodes begin with copies of the first N_batch
//!   entries of their leaf, which lookups find. The paper does not say so, but its code does
//!   (github.com/ISCS-ZJU/CCL-BTree, `cclbtree_lb.h`, `old_cache` and `new_cache`). The copies
//!   equal the leaf's entries, so the log does not need them.
//!
//! `specs/leaf_buffering` checks these orders.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::mutation;
use crate::pm::bytes::Bytes;
use crate::pm::events::{Event, SlotWords};
use crate::pm::layout::{LeafId, Time};
use crate::pm::leaf::{HEADER_BYTES, HeaderWord, LEAF_BYTES, LeafImage, SLOTS, Slot, fingerprint};
use crate::pm::nodes::Change;
use crate::pm::records::Records;
use crate::pm::space::Room;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::IoClass;

use super::{Leaves, Stamps, Written};

/// The planned new state of a leaf.
struct Edit<'a> {
    records: &'a Records,
    image: LeafImage,
    /// Slots that hold the leaf's current contents until the change is committed.
    taken: u16,
    /// Slots that were filled.
    filled: u16,
    /// Whether the smallest key must stay as the anchor.
    anchored: bool,
    /// Slots to whose records nothing refers after the commit.
    gone: Vec<Slot>,
    /// Anchors whose records were created for this edit, and to which nothing refers before the
    /// commit.
    made: Vec<Slot>,
}

/// A write to a leaf for which all space has been found. Nothing reachable has been written yet.
pub(crate) struct Plan<'a> {
    edit: Edit<'a>,
    /// The leaf's header word and timestamp before the write.
    before: (HeaderWord, Time),
    /// The split, if there is one.
    split: Option<Split>,
    changes: usize,
    deletes: bool,
}

/// The plan of a split.
struct Split {
    /// Changes that fit after the split.
    rest: Vec<Change>,
    /// The new leaf for the upper part.
    right: LeafId,
    /// The number of keys that stay. `None`: half of them.
    lower: Option<usize>,
    /// The number of entries of each half that are copied to its buffer node.
    copies: usize,
}

impl Plan<'_> {
    /// Returns the number of changes.
    pub(crate) fn changes(&self) -> usize {
        self.changes
    }

    /// Returns the leaf to which a split moves the upper part.
    pub(crate) fn new_leaf(&self) -> Option<LeafId> {
        self.split.as_ref().map(|split| split.right)
    }

    /// Requests that, if the leaf is split, both buffer nodes begin with copies of `copies` of
    /// their entries. The node must stay locked until the entries that `carry_out` returns for it
    /// are in it.
    pub(crate) fn with_copies(mut self, copies: usize) -> Self {
        if let Some(split) = &mut self.split {
            split.copies = copies;
        }
        self
    }
}

/// What to do if a leaf has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfFull {
    /// Split it, using space that `Room` may use.
    Split(Room),
    /// Refuse, because the buffer holds more than is being written.
    Refuse,
}

impl<'a> Edit<'a> {
    fn new(records: &'a Records, image: LeafImage, anchored: bool) -> Edit<'a> {
        Edit {
            records,
            image,
            taken: image.header().bitmap(),
            filled: 0,
            anchored,
            gone: Vec::new(),
            made: Vec::new(),
        }
    }

    fn find(&self, key: &[u8]) -> Result<Option<usize>> {
        let wanted = fingerprint(key);
        for at in self.image.used() {
            if self.image.fingerprint(at) == wanted
                && self.records.is_key(self.image.slot(at), key)?
            {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn free_slot(&self) -> Option<usize> {
        let used = self.taken | self.image.header().bitmap();
        (0..SLOTS).find(|at| used >> at & 1 == 0)
    }

    fn fill(&mut self, at: usize, slot: Slot, key: &[u8]) {
        self.image.fill(at, slot, fingerprint(key));
        self.filled |= 1 << at;
    }

    fn clear(&mut self, at: usize) {
        self.image.set_header(self.image.header().without(at));
    }

    /// Returns whether the key is the smallest, including anchors.
    fn is_smallest(&self, key: &[u8]) -> Result<bool> {
        for at in self.image.used() {
            if *self.records.key(self.image.slot(at))? < *key {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Applies a change. If it needs a free slot and there is none, returns the change to be
    /// applied once there is one; it needs no more space then.
    fn apply(&mut self, change: Change) -> Result<Option<Change>> {
        let key = self.records.key(change.slot)?;
        let found = self.find(&key)?;
        if !change.delete {
            return Ok(self.put(change, &key, found));
        }
        let Some(at) = found else {
            self.gone.push(change.slot);
            return Ok(None);
        };
        let old = self.image.slot(at);
        // A delete that uses the leaf's own slot has no record of its own.
        if change.slot != old {
            self.gone.push(change.slot);
        }
        let stays = self.anchored && self.is_smallest(&key)? && !mutation::on("pm-anchor-dropped");
        if !stays {
            self.clear(at);
            self.gone.push(old);
            return Ok(None);
        }
        if old.is_absent() {
            return Ok(None);
        }
        let slot = self.records.anchor(old)?;
        if slot.key != old.key {
            self.made.push(slot);
        }
        let anchor = Change {
            slot,
            delete: false,
        };
        Ok(self.put(anchor, &key, found))
    }

    fn put(&mut self, change: Change, key: &[u8], found: Option<usize>) -> Option<Change> {
        let Some(free) = self.free_slot() else {
            return Some(change);
        };
        if let Some(at) = found {
            let mut old = self.image.slot(at);
            if old.indirect && old.key == change.slot.key {
                // The anchor keeps the record of its key.
                old.key = 0;
            }
            self.gone.push(old);
            self.clear(at);
        }
        self.fill(free, change.slot, key);
        None
    }
}

impl Leaves {
    /// Applies changes to different keys to a leaf, whose node must be locked; at most 7 of them.
    /// If this fails for lack of space, nothing has changed.
    pub(crate) fn write(
        &self,
        leaf: LeafId,
        changes: &[Change],
        if_full: IfFull,
        stamps: Stamps,
    ) -> Result<Written> {
        let plan = self.plan(leaf, changes, if_full)?;
        self.carry_out(leaf, plan, stamps)
    }

    /// Deletes a key from its leaf without a record for it and without a log entry, when there is
    /// no room for either: the leaf's own record identifies the key. Returns `Ok` if the key is
    /// already absent. The header carries the time of the last flush, as always. That covers the
    /// key's log entries, because none of them is buffered.
    pub(crate) fn delete_in_place(&self, key: &[u8]) -> Result<()> {
        loop {
            let (leaf, mut held) = self.lock(key);
            let buffered = held.unflushed();
            for change in &buffered {
                if self.records.is_key(change.slot, key)? {
                    // The key's buffered changes go to the leaf first, if there is room.
                    self.flush(&mut held, leaf, None)?;
                    break;
                }
            }
            if held.unflushed().len() < buffered.len() {
                continue;
            }
            // A cached copy of the key would be older than the leaf.
            held.fields.set_filled(buffered.len());
            let image = self.load(leaf)?;
            for at in image.used() {
                let slot = image.slot(at);
                if slot.is_absent() || !self.records.is_key(slot, key)? {
                    continue;
                }
                let change = Change { slot, delete: true };
                let flushed = held.flushed_at();
                let stamps = Stamps {
                    late: flushed,
                    new: flushed,
                };
                let written = self.write(leaf, &[change], IfFull::Refuse, stamps)?;
                drop(held);
                if written.is_sparse() {
                    self.merge_around(leaf)?;
                }
                break;
            }
            return Ok(());
        }
    }

    /// Finds the space for these changes. The node must stay locked until the plan is carried out
    /// or given up.
    pub(crate) fn plan(
        &self,
        leaf: LeafId,
        changes: &[Change],
        if_full: IfFull,
    ) -> Result<Plan<'_>> {
        debug_assert!(
            changes.len() <= SLOTS / 2,
            "what is left of a split takes a half"
        );
        let mut plan = Plan {
            changes: changes.len(),
            deletes: changes.iter().any(|change| change.delete),
            ..self.plan_nothing(leaf)?
        };
        match self.find_room(&mut plan, changes, if_full) {
            Ok(()) => Ok(plan),
            Err(e) => {
                self.give_up(plan)?;
                Err(e)
            }
        }
    }

    fn find_room(&self, plan: &mut Plan<'_>, changes: &[Change], if_full: IfFull) -> Result<()> {
        let mut rest = Vec::new();
        for change in changes {
            // The order of changes to different keys does not matter.
            rest.extend(plan.edit.apply(*change)?);
        }
        if rest.is_empty() {
            return Ok(());
        }
        let IfFull::Split(room) = if_full else {
            return Err(self.space.full("a change in a full leaf"));
        };
        plan.split = Some(Split {
            rest,
            right: self.space.allocate_leaf(room)?,
            lower: None,
            copies: 0,
        });
        Ok(())
    }

    /// Finds the space for splitting a leaf, whose node must be locked, so that `lower` of its keys
    /// stay. Returns `None` if it has no more keys than that.
    pub(crate) fn plan_division(
        &self,
        leaf: LeafId,
        lower: usize,
        room: Room,
    ) -> Result<Option<Plan<'_>>> {
        let plan = self.plan_nothing(leaf)?;
        if plan.edit.image.used().count() <= lower {
            return Ok(None);
        }
        let split = Split {
            rest: Vec::new(),
            right: self.space.allocate_leaf(room)?,
            lower: Some(lower),
            copies: 0,
        };
        Ok(Some(Plan {
            split: Some(split),
            ..plan
        }))
    }

    /// Creates a plan that leaves the leaf as it is.
    fn plan_nothing(&self, leaf: LeafId) -> Result<Plan<'_>> {
        let image = self.load(leaf)?;
        let anchored = leaf != self.space.geometry().first_leaf();
        Ok(Plan {
            before: (image.header(), image.timestamp()),
            edit: Edit::new(&self.records, image, anchored),
            split: None,
            changes: 0,
            deletes: false,
        })
    }

    /// Gives back the space of a plan.
    pub(crate) fn give_up(&self, plan: Plan<'_>) -> Result<()> {
        for anchor in plan.edit.made {
            self.records.free(anchor)?;
        }
        if let Some(split) = plan.split {
            self.space.free_leaf(split.right);
        }
        Ok(())
    }

    /// Writes what was planned; space has been found for all of it.
    pub(crate) fn carry_out(
        &self,
        leaf: LeafId,
        plan: Plan<'_>,
        stamps: Stamps,
    ) -> Result<Written> {
        let Plan {
            mut edit,
            before: (header, timestamp),
            split,
            changes,
            deletes,
        } = plan;
        // A tree without timestamps keeps those of another tree unchanged.
        let late = stamps.late.max(timestamp);
        if let Some(split) = split {
            let new = stamps.new.max(timestamp);
            let written = self.split(leaf, edit, split, Stamps { late, new })?;
            if deletes {
                // The halves may fit in one leaf again later.
                self.space.leaf_shrank();
            }
            return Ok(Written {
                changes,
                deletes,
                ..written
            });
        }
        if edit.image.header() != header || late > timestamp {
            self.commit(leaf, &mut edit, late)?;
        }
        for slot in edit.gone {
            self.retire(slot)?;
        }
        if deletes {
            self.space.leaf_shrank();
        }
        let used = usize::try_from(edit.image.header().bitmap().count_ones());
        Ok(Written {
            split_at: None,
            copies: Vec::new(),
            used: used.expect("at most 14"),
            changes,
            deletes,
        })
    }

    /// Returns the words of the slots that were filled and are in use.
    fn filled_slots(edit: &Edit<'_>) -> Vec<SlotWords> {
        let new = edit.filled & edit.image.header().bitmap();
        let slots = (0..SLOTS).filter(|at| new >> at & 1 == 1);
        slots.map(|at| (at, edit.image.words_of(at))).collect()
    }

    /// Stores the slots that were filled and are in use, and starts their write-back. Returns
    /// whether there are any.
    fn store_filled(&self, leaf: LeafId, edit: &Edit<'_>) -> Result<bool> {
        let new = edit.filled & edit.image.header().bitmap();
        let mut lines = 0u8;
        for at in (0..SLOTS).filter(|at| new >> at & 1 == 1) {
            let bytes = LeafImage::slot_range(at);
            lines |= 1 << (bytes.start / 64);
            let offset = leaf.offset() + bytes.start as u64;
            self.medium.store(offset, &edit.image.0[bytes])?;
        }
        for line in (0..LEAF_BYTES as u64 / 64).filter(|line| lines >> line & 1 == 1) {
            let offset = leaf.offset() + line * 64;
            self.medium.write_back(offset..offset + 64, IoClass::Page)?;
        }
        Ok(new != 0)
    }

    /// Stores everything before the slots, durably.
    fn store_header(&self, leaf: LeafId, image: &LeafImage) -> Result<()> {
        let offset = leaf.offset();
        self.medium.tell(|| Event::StoresHeader {
            leaf: leaf.0,
            header: image.header().0,
            stamp: image.timestamp().0,
        });
        self.medium.store(offset, &image.0[..HEADER_BYTES])?;
        self.medium
            .write_back(offset..offset + HEADER_BYTES as u64, IoClass::Page)?;
        if !mutation::on("ccl-trigger-acked-early") {
            self.medium.fence();
        }
        Ok(())
    }

    fn commit(&self, leaf: LeafId, edit: &mut Edit<'_>, late: Time) -> Result<()> {
        if !mutation::on("ccl-timestamp-not-stored") {
            edit.image.set_timestamp(late);
        }
        if mutation::on("pm-header-before-data") {
            self.store_header(leaf, &edit.image)?;
        }
        self.medium.tell(|| Event::StoresRecords {
            leaf: leaf.0,
            slots: Self::filled_slots(edit),
        });
        if self.store_filled(leaf, edit)? && !mutation::on("pm-data-not-fenced") {
            self.medium.fence();
        }
        self.store_header(leaf, &edit.image)
    }

    /// Splits a leaf.
    fn split(
        &self,
        leaf: LeafId,
        mut edit: Edit<'_>,
        split: Split,
        stamps: Stamps,
    ) -> Result<Written> {
        let Split {
            rest,
            right,
            lower,
            copies,
        } = split;
        let mut all = Vec::with_capacity(SLOTS);
        for at in edit.image.used() {
            all.push((self.records.key(edit.image.slot(at))?, at));
        }
        all.sort_unstable();
        let upper = all.split_off(lower.unwrap_or(all.len() / 2));
        let fence = upper[0].0.clone();
        let (above, below) = self.part(&rest, &fence)?;

        let mut image = LeafImage::empty();
        for (place, (_, at)) in upper.iter().enumerate() {
            let fingerprint = edit.image.fingerprint(*at);
            image.fill(place, edit.image.slot(*at), fingerprint);
            edit.clear(*at);
        }
        let mut new = Edit::new(&self.records, image, true);
        for change in above {
            let left_over = new.apply(change)?;
            debug_assert!(left_over.is_none(), "half a leaf and a batch fit a leaf");
        }
        let next = edit.image.header().next();
        new.image.set_header(new.image.header().with_next(next));
        new.image.set_timestamp(stamps.new);
        edit.image
            .set_header(edit.image.header().with_next(Some(right)));
        edit.image.set_timestamp(stamps.late);
        if mutation::on("pm-split-header-first") {
            self.store_header(leaf, &edit.image)?;
        }
        self.medium.tell(|| Event::StoresNewLeaf {
            leaf: leaf.0,
            new: right.0,
            fence: fence.to_vec(),
            words: new.image.words(),
            slots: Self::filled_slots(&edit),
        });
        let offset = right.offset();
        self.medium.store(offset, &new.image.0)?;
        self.medium
            .write_back(offset..offset + LEAF_BYTES as u64, IoClass::Page)?;
        self.store_filled(leaf, &edit)?;
        self.medium.fence();
        self.store_header(leaf, &edit.image)?;

        let mut node = self.nodes.node(right).lock();
        node.fields = Default::default();
        node.cache(&self.first_of(&new.image, &[], copies)?);
        node.set_flushed_at(stamps.new);
        self.index.insert(&fence, Self::page(right));
        self.medium.tell(|| Event::Linked {
            leaf: leaf.0,
            new: right.0,
            node: node.image(),
        });
        drop(node);
        self.counters.splits.fetch_add(1, Relaxed);
        for slot in edit.gone.into_iter().chain(new.gone) {
            self.retire(slot)?;
        }
        let copies = self.first_of(&edit.image, &below, copies)?;
        let lower = self.write(leaf, &below, IfFull::Refuse, stamps)?;
        debug_assert!(lower.split_at.is_none(), "half a leaf takes a batch");
        Ok(Written {
            split_at: Some(fence),
            copies,
            ..lower
        })
    }

    /// Returns the first `most` entries of a leaf in key order, as they will be after these puts.
    fn first_of(&self, image: &LeafImage, puts: &[Change], most: usize) -> Result<Vec<Change>> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let mut entries = BTreeMap::new();
        for slot in image.used().map(|at| image.slot(at)) {
            if !slot.is_absent() {
                let delete = false;
                entries.insert(self.records.key(slot)?, Change { slot, delete });
            }
        }
        for put in puts {
            let key = self.records.key(put.slot)?;
            // The anchor of a deleted key is not an entry.
            if put.slot.is_absent() {
                entries.remove(&key);
            } else {
                entries.insert(key, *put);
            }
        }
        Ok(entries.into_values().take(most).collect())
    }

    /// Splits changes into those to keys at or after `fence` and those to keys below.
    fn part(&self, changes: &[Change], fence: &Bytes) -> Result<(Vec<Change>, Vec<Change>)> {
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for change in changes {
            let key = self.records.key(change.slot)?;
            let part = if key >= *fence {
                &mut above
            } else {
                &mut below
            };
            part.push(*change);
        }
        Ok((above, below))
    }
}
