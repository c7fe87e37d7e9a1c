//! What goes down to the leaves: merges, and the splits of leaves that follow (Bf-Tree §5.5).
//! Merges of leaves are in `join`.
//!
//! A merge stamps the leaf with the LSN of the mini-page's newest change. Redo skips a change if the leaf's LSN is not smaller, so all
//! dirty records go down together, never some of them; and a split, whose record is newer than all of them, comes after the merge.

use super::counters::Cause;
use super::page::{address, keep, marks_of, unexpected};
use super::{BfTree, Change};
use crate::cache::{Fix, WriteGuard};
use crate::error::{Error, Result};
use crate::mapping::{LeafAddress, PageError};
use crate::mini::events::{Event as Told, LeafImage, MiniImage};
use crate::mini::{Leaf, Marks, MiniMut, MiniRef};
use crate::mutation;
use crate::node::adapt::Use;
use crate::overflow::Pointer;
use crate::pages::PageStore as _;
use crate::ring::Exclusive;
use crate::trees::btree::Attempt;
use crate::types::PageId;

/// Pages that one step of a checkpoint looks at.
const STEP_PAGES: u64 = 64;

impl BfTree {
    pub(super) fn write_leaf(&self, page: PageId) -> Result<WriteGuard<'_>> {
        match self.leaves.pager.write(page)? {
            Fix::Got(leaf) => Ok(leaf),
            Fix::Gone => Err(Error::MissingPage { page }),
        }
    }

    /// Merges what is dirty in a mini-page, whose page is locked alone, into its leaf. On return all records are as the leaf has them.
    pub(super) fn merge(
        &self,
        page: PageId,
        mini: &mut MiniMut<'_>,
        cause: Cause,
    ) -> Result<LeafAddress> {
        let told = |mini: &MiniMut<'_>, leaf| Told::Merged {
            page,
            cause,
            mini: MiniImage::of(mini.view().bytes(), Marks::default()),
            leaf,
        };
        if mini.view().is_dirty() {
            self.leaves.pager.check_poison()?;
            // On a full file system leaves that readers brought in are not made dirty: they could
            // not go.
            self.leaves.pager.retry_refused()?;
            let mut leaf = self.write_leaf(page)?;
            let records = self.merge_into(page, mini, &mut leaf)?;
            self.counters.merged(cause, records);
            self.hook
                .tell(|| told(mini, Some(LeafImage::of(&leaf.view()))));
        } else {
            self.hook.tell(|| told(mini, None));
        }
        Ok(address(Some(mini.view().leaf())))
    }

    /// Says how many records that were.
    fn merge_into(
        &self,
        page: PageId,
        mini: &mut MiniMut<'_>,
        leaf: &mut WriteGuard<'_>,
    ) -> Result<u64> {
        let mut entries: Vec<_> = (mini.view().entries())
            .filter(|entry| entry.kind.is_dirty())
            .collect();
        let records = entries.len() as u64;
        if mutation::on("bf-merge-some") {
            entries.truncate(entries.len().div_ceil(2));
        }
        let was_sparse = leaf.view().is_three_quarters_free();
        let deletes = entries.iter().any(|entry| !entry.kind.exists());
        let replaced: Vec<Pointer> = (entries.iter())
            .filter_map(|entry| self.leaves.pointer_in(page, &leaf.view(), entry.key))
            .collect();
        let mut edit = leaf.edit();
        // All together fit, as they were admitted; one by one in the order of keys they need not. So what does not fit waits for what makes
        // the leaf smaller.
        while !entries.is_empty() {
            let before = entries.len();
            let mut refusal = None;
            entries.retain(|entry| {
                if !entry.kind.exists() {
                    let _ = !mutation::on("bf-tombstone-dropped") && edit.delete(entry.key);
                    return false;
                }
                let refused = edit.put(entry.key, entry.value).err();
                refusal = refused.or(refusal.take());
                refused.is_some()
            });
            if let Some(refused) = refusal.filter(|_| entries.len() == before) {
                let e = self.leaves.impossible(page, &refused);
                self.leaves.pager.poison(&e);
                return Err(e);
            }
        }
        // The records that replaced these were appended before.
        for pointer in replaced {
            self.leaves.retire_value(Some(pointer), mini.view().lsn());
        }
        // When its first change was made nobody has noted: not before the last checkpoint that is complete.
        let first = if mutation::on("bf-dirty-since-newest") {
            mini.view().lsn()
        } else {
            self.leaves.pager.log.redo_start()
        };
        leaf.changed_since(first, mini.view().lsn());
        // All that was logged is there: now it may get another layout.
        for _ in 0..records {
            if self.leaves.counts(Use::Point) {
                self.leaves.count_use_of(page, leaf, Use::Point)?;
            }
        }
        let view = leaf.view();
        mini.merged(Leaf::of(&view));
        // One that has long been sparse, and grows, wants no other look at its neighbours.
        if view.is_three_quarters_free() && (deletes || !was_sparse) {
            self.leaves.notes.note(page);
        }
        Ok(records)
    }

    /// A mini-page has become too large (§5.5): what is dirty goes to the leaf, and the mini-page becomes a mirror, with room for the change.
    /// Where there is none for a mirror only what was used stays, if that is not much.
    pub(super) fn merge_and_reshape<T>(
        &self,
        page: PageId,
        mut guard: Exclusive<'_>,
        change: &Change<'_>,
    ) -> Result<Attempt<T>> {
        let Some(block) = guard.bytes_mut() else {
            return Ok(Attempt::Again);
        };
        let leaf = self.merge(page, &mut MiniMut::new(block), Cause::Room)?;
        let none = {
            let leaf = self.read_leaf(page)?;
            match self.widen(guard, &leaf.view(), change.bytes()) {
                Ok(_) => return Ok(Attempt::Again),
                Err(none) => none,
            }
        };
        let guard = none.page;
        let marks = marks_of(guard.marks());
        let mini = guard.bytes().map(MiniRef::new);
        let whole = mini.is_some_and(MiniRef::is_whole);
        let hot = |index| marks.is_hot(index, whole);
        let small = mini.is_some_and(|mini| mini.bytes_of(hot) <= self.largest / 2);
        let left = if small {
            keep(guard, &self.hook, hot)
        } else {
            Some(guard)
        };
        // Or the caller, who begins anew, would find it as large as it was.
        if let Some(mut guard) = left {
            guard.set_leaf(leaf);
            self.hook.tell(|| Told::Dropped { page });
        }
        Ok(Attempt::Again)
    }

    /// The leaf has no room for what is to come: if the mini-page has something for it that may make the bound smaller; else it is split.
    pub(super) fn merge_or_split<T>(
        &self,
        page: PageId,
        mut guard: Exclusive<'_>,
        change: &Change<'_>,
    ) -> Result<Attempt<T>> {
        if let Some(block) = guard.bytes_mut() {
            let mut mini = MiniMut::new(block);
            if mini.view().is_dirty() {
                if !mini.view().is_whole() {
                    return self.merge_and_reshape(page, guard, change);
                }
                self.merge(page, &mut mini, Cause::Room)?;
                return Ok(Attempt::Again);
            }
        }
        // Before the latch, for it may have to be waited for. Whoever has one waits for no page of
        // ours.
        let spare = self.leaves.pager.spare()?;
        let leaf = self.write_leaf(page)?;
        let divided = (self.leaves).divide(page, leaf, change.key, change.value.len(), spare)?;
        match divided {
            Attempt::Done(Some(right)) => {
                let adopted = self.adopt(right)?;
                self.divide_mini(guard, adopted)?;
            }
            Attempt::Done(None) => self.know_leaf(guard)?,
            stopped => return Ok(stopped.and_then(|_| Attempt::Again)),
        }
        Ok(Attempt::Again)
    }

    /// The leaf of a page, whose mini-page is clean, may have another layout: what was known of it is known anew, or not at all.
    pub(super) fn know_leaf(&self, mut guard: Exclusive<'_>) -> Result<()> {
        let page = guard.page();
        let leaf = self.read_leaf(page);
        match (&leaf, guard.bytes_mut()) {
            (Ok(leaf), Some(block)) => MiniMut::new(block).recount(&leaf.view()),
            (Ok(leaf), None) => guard.set_leaf(address(Some(Leaf::of(&leaf.view())))),
            (Err(_), mini) => {
                let had_one = mini.is_some();
                guard.set_leaf(address(None));
                if had_one {
                    self.hook.tell(|| Told::Dropped { page });
                }
            }
        }
        leaf.map(drop)
    }

    /// Tells the mapping table of a new page. Its id is free since a merge has retired it, but who merged may not have taken it out of the
    /// table yet; that one waits for nobody.
    pub(super) fn adopt(&self, page: PageId) -> Result<Exclusive<'_>> {
        loop {
            match self.ring.adopt_page(page, address(None)) {
                Ok(guard) => return Ok(guard),
                Err(PageError::InUse { .. }) => crate::sync::yield_now(),
                Err(e) => return Err(unexpected(&e)),
            }
        }
    }

    /// One step of a checkpoint: see [`crate::trees::Tree::push_down`]. An operation that was under way holds its page, so whoever has looked at all pages has
    /// seen all changes that were logged before he began.
    pub(crate) fn push_down(&self, from: PageId) -> Result<Option<PageId>> {
        if mutation::on("bf-checkpoint-skips-buffered") {
            return Ok(None);
        }
        // Behind it no page has a name, and so none has a mini-page.
        let limit = self.leaves.pager.pages.high_water();
        let until = limit.min(from.0 + STEP_PAGES);
        let mut dirty = Vec::new();
        for page in (from.0..until).map(PageId) {
            match self.ring.shared(page) {
                Ok(guard)
                    if guard
                        .bytes()
                        .is_some_and(|mini| MiniRef::new(mini).is_dirty()) =>
                {
                    dirty.push(page);
                }
                Ok(_) | Err(PageError::Unknown { .. } | PageError::BeyondLimit { .. }) => {}
                Err(e) => return Err(unexpected(&e)),
            }
        }
        self.leaves.pager.load_ahead(&dirty);
        for page in dirty {
            let mut guard = match self.ring.exclusive(page) {
                Ok(guard) => guard,
                Err(PageError::Unknown { .. }) => continue,
                Err(e) => return Err(unexpected(&e)),
            };
            if let Some(block) = guard.bytes_mut() {
                self.merge(page, &mut MiniMut::new(block), Cause::Checkpoint)?;
            }
        }
        Ok((until < limit).then_some(PageId(until)))
    }
}
