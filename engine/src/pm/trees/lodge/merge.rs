//! Reclaims leaves and nodes: a leaf is merged into its left neighbour, and so is a node with few
//! leaves. Neither the paper nor the spec has this.
//!
//! ```text
//! what is buffered for both into both ─▶ the right one's pairs to empty slots of the left one,
//! its next to the spare sibling pointer ─▶ fence
//! ─▶ left header word: new bits on, use_n flipped, the greater stamp of both ─▶ fence
//! ─▶ separator out of the node; the right leaf is free
//! ```
//!
//! It is a split in reverse, and commits by the same word, so a crash leaves either both leaves
//! unchanged or one with all keys of both.
//! - From then on, log entries of the right leaf's keys are compared with the left leaf's
//!   **stamp**. So that becomes the greater of the two stamps. This is only allowed while nothing
//!   is buffered for either leaf: otherwise a buffered entry would be numbered below the stamp, and
//!   recovery would skip it.
//! - The right leaf may be reused only once the left header word is durable, because until then the
//!   chain leads through it. The same is true of the record of its low.
//! - Only neighbours in one node are merged, under its lock. Neighbours in two nodes become
//!   neighbours in one when the **nodes** are merged, which happens in DRAM only. Of two nodes, the
//!   left one is locked first. Its lock protects the boundary to the right one, so that the
//!   boundary stays unchanged meanwhile.
//!
//! **When.** Flushes count leaves that deletes leave with less than half of t_split keys. If these
//! are a sizeable share of all leaves, [`crate::PmTask::MergeLeaves`] is due: a sweep over all
//! nodes, a few at a time. It merges a sparse leaf with a neighbour if both together take at most
//! three quarters of t_split, so that the next write does not split them again. A store that would
//! report that it is full first sweeps, merging every pair of leaves that fit in one, and then
//! redistributes leaves among their neighbours ([`super::share`]). Opening a store counts anew, so
//! leaves emptied before are found.

use super::phases::Sweep;
use crate::error::{Error, Result};
use crate::mutation;
use crate::pm::events::lodge::LodgeEvent;
use crate::pm::layout::LeafId;
use crate::sync::RwLockWriteGuard;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::IoClass;
use crate::types::Progress;

use super::Lodge;
use super::flush::Visit;
use super::leaf::{Bits, Header, SLOTS, members, next_at};
use super::node::Body;

/// The number of nodes that one step visits.
const STEP: usize = 16;
/// A sweep is due if at least one in this many leaves is sparse.
const SHARE: u64 = 32;

impl Lodge {
    /// Counts a leaf as sparse if deletes have left it with few keys.
    pub(super) fn note_sparse(&self, keys: usize) {
        self.space.leaf_shrank();
        if self.is_sparse(keys) {
            self.sparse.fetch_add(1, Relaxed);
        }
    }

    fn is_sparse(&self, keys: usize) -> bool {
        2 * keys < self.options.t_split
    }

    /// Returns whether leaves should be merged, or are being merged.
    pub(crate) fn merging_due(&self) -> bool {
        let sparse = self.sparse.load(Relaxed);
        sparse > 0 && sparse * SHARE > self.space.leaves() || self.sweep.lock().is_some()
    }

    /// Does one bounded step of the sweep.
    pub(crate) fn merge_step(&self) -> Result<Progress> {
        let mut sweep = self.sweep.lock();
        let under_way = sweep.get_or_insert_with(|| {
            self.sparse.store(0, Relaxed);
            Sweep {
                from: Vec::new(),
                most: self.options.t_split * 3 / 4,
                only_sparse: true,
            }
        });
        let progress = self.sweep_on(under_way)?;
        if progress == Progress::Idle {
            *sweep = None;
        }
        Ok(progress)
    }

    /// Merges whatever fits, for lack of space.
    pub(crate) fn merge_all(&self) -> Result<()> {
        let mut sweep = Sweep {
            from: Vec::new(),
            most: self.options.t_split,
            only_sparse: false,
        };
        while self.sweep_on(&mut sweep)? == Progress::More {}
        Ok(())
    }

    fn sweep_on(&self, sweep: &mut Sweep) -> Result<Progress> {
        for _ in 0..STEP {
            let mut body = self.write(&sweep.from);
            self.merge_leaves(&mut body, sweep)?;
            let low = body.low(0);
            while self.absorb_next(&mut body, &low)? {
                self.merge_leaves(&mut body, sweep)?;
            }
            if !sweep.only_sparse {
                self.share_leaves(&mut body)?;
            }
            // While the node is locked, its upper bound does not change.
            match self.index.fence_after(&low) {
                Some(next) => sweep.from = next,
                None => return Ok(Progress::Idle),
            }
        }
        Ok(Progress::More)
    }

    /// Merges leaves of a node with their right neighbours.
    fn merge_leaves(&self, body: &mut Body, sweep: &Sweep) -> Result<()> {
        let mut at = 0;
        while at + 1 < body.leaves() {
            let (keys, right) = (body.count(at), body.count(at + 1));
            let wanted = !sweep.only_sparse || self.is_sparse(keys) || self.is_sparse(right);
            let fits = wanted && keys + right <= sweep.most;
            if !(fits && self.merge_right(body, at, sweep.most)?) {
                at += 1;
            }
        }
        Ok(())
    }

    /// Merges the leaf behind the one at `at` into it, if both have no more than `most` keys
    /// including their buffered pairs. Returns whether it did.
    fn merge_right(&self, body: &mut Body, at: usize, most: usize) -> Result<bool> {
        let visits = [self.visit(body, at)?, self.visit(body, at + 1)?];
        if visits.iter().map(|visit| visit.keys_after()).sum::<usize>() > most {
            return Ok(false);
        }
        for visit in visits {
            self.merge_buffered(body, visit)?;
        }
        self.link_past(body, at)?;
        Ok(true)
    }

    /// Merges a leaf's buffered pairs into it, if there are any, before its neighbour's pairs
    /// arrive: their numbers may be below the greater stamp.
    pub(super) fn merge_buffered(&self, body: &mut Body, visit: Visit) -> Result<()> {
        if visit.group.is_empty() || mutation::on("lodge-merges-unflushed") {
            return Ok(());
        }
        self.counters.flushes.fetch_add(1, Relaxed);
        self.tell_flush(body, &[visit.at]);
        self.merge(body, visit)
    }

    /// Takes over the pairs of the leaf behind the one at `at`, and its place in the chain. Nothing
    /// may be buffered for either.
    pub(super) fn link_past(&self, body: &mut Body, at: usize) -> Result<()> {
        let (left, right) = (body.leaf(at), body.leaf(at + 1));
        let (mut image, from) = (self.load(left)?, self.load(right)?);
        let (header, kinds) = (image.header(), image.kinds());
        let mut empty = (0..SLOTS).filter(|at| header.bits() >> at & 1 == 0);
        let mut filled: Bits = 0;
        for slot in members(from.header().bits()).map(|at| from.slot(at)) {
            let at = empty.next().expect("both fit one leaf");
            image.fill(at, slot);
            filled |= 1 << at;
        }
        let use_n = 1 - header.use_n();
        let stamp = if mutation::on("lodge-merge-keeps-stamp") {
            header.stamp()
        } else {
            header.stamp().max(from.header().stamp())
        };
        let linked = Header::new(header.bits() | filled, use_n, stamp);
        if mutation::on("lodge-merge-links-first") {
            self.store_header(left.offset(), linked)?;
        }
        let spare = left.offset() + next_at(use_n);
        let next = from.word(next_at(from.header().use_n()));
        self.tell(|| LodgeEvent::MovesPairs {
            leaf: right.0,
            left: left.0,
            slots: image.words_of(filled),
            next,
        });
        self.medium.store_word(spare, next)?;
        self.medium.write_back(spare..spare + 8, IoClass::Page)?;
        self.store_slots(left.offset(), &image, filled, kinds != image.kinds())?;
        self.medium.fence();
        if mutation::on("lodge-leaf-freed-early") {
            self.wipe_for_mutation(right)?;
        }
        self.tell(|| LodgeEvent::LinksPast {
            left: left.0,
            header: linked.0,
        });
        self.store_header(left.offset(), linked)?;
        body.remove_leaf_behind(at);
        body.set_count(at, linked.count());
        self.tell(|| LodgeEvent::LeavesMerged {
            leaf: right.0,
            node: body.image(),
        });
        // No log entry ever referred to it.
        self.records.free(from.low())?;
        self.space.free_leaf(right);
        self.counters.merges.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Simulates, for a mutation, what the next owner of a leaf that was freed too early would do
    /// to it.
    fn wipe_for_mutation(&self, leaf: LeafId) -> Result<()> {
        self.medium.store_word(leaf.offset(), 0)?;
        let line = leaf.offset()..leaf.offset() + 8;
        self.medium.write_back(line, IoClass::Page)?;
        self.medium.fence();
        Ok(())
    }

    /// Merges the node to the right into this one, if they are small. Returns whether it did.
    fn absorb_next(&self, body: &mut RwLockWriteGuard<'_, Body>, low: &[u8]) -> Result<bool> {
        let Some(next) = self.index.fence_after(low) else {
            return Ok(false);
        };
        // Changing where that node begins would require this node's lock.
        let number = self.index.find(&next).0;
        let mut right = self.nodes.node(number).write();
        let few = (self.options.slots / 2).max(2);
        let leaves = |left: &Body, right: &Body| left.leaves() + right.leaves();
        while leaves(body, &right) <= few
            && leaves(body, &right) + body.buffered() + right.buffered() + 1 >= self.options.slots
        {
            // Both have leaves to spare for splits by a flush.
            let fuller: &mut Body = if body.buffered() > right.buffered() {
                body
            } else {
                &mut right
            };
            match self.flush(fuller, |_| true) {
                Ok(()) => {}
                Err(Error::PmFull { .. }) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        if leaves(body, &right) > few {
            return Ok(false);
        }
        body.absorb(&right);
        self.tell(|| LodgeEvent::NodesMerged { node: body.image() });
        self.index.remove(&next);
        *right = right.like();
        drop(right);
        self.nodes.free(number);
        Ok(true)
    }
}
