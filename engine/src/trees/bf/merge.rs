//! Merges of mini-pages into leaves, and the splits of leaves that follow (Bf-Tree §5.5). Merges of
//! leaves are in `join`.
//!
//! A merge sets the leaf's LSN to that of the mini-page's newest change. Redo skips a change if the
//! leaf's LSN is not smaller. So all dirty records must be merged together, never only some of
//! them. A split, whose log record is newer than all of them, comes after the merge.

use super::counters::Cause;
use super::page::{address, keep, marks_of, unexpected};
use super::relog::Again;
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
use crate::ring::{Exclusive, Shared};
use crate::sync::atomic::Ordering::Relaxed;
use crate::trees::btree::Attempt;
use crate::types::PageId;

/// Number of pages that one step of a checkpoint examines.
const STEP_PAGES: u64 = 64;

impl BfTree {
    pub(super) fn write_leaf(&self, page: PageId) -> Result<WriteGuard<'_>> {
        match self.leaves.pager.write(page)? {
            Fix::Got(leaf) => Ok(leaf),
            Fix::Gone => Err(Error::MissingPage { page }),
        }
    }

    /// Merges the dirty records of a mini-page into its leaf. The page is locked exclusively. On
    /// return, all records are the same as in the leaf.
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
            // On a full file system, clean leaves must not become dirty: they could not be evicted.
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

    /// Applies the dirty records to the leaf. Returns their number.
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
        // All records together fit, because they were admitted. Applied in key order, some may not
        // fit yet: these wait for the ones that make the leaf smaller.
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
        // The records that replaced these values were logged before.
        for pointer in replaced {
            self.leaves.retire_value(Some(pointer), mini.view().lsn());
        }
        // The time of the first change is not recorded, but it is not before the last complete
        // checkpoint.
        let first = if mutation::on("bf-dirty-since-newest") {
            mini.view().lsn()
        } else {
            self.leaves.pager.log.redo_start()
        };
        leaf.changed_since(first, mini.view().lsn());
        // All logged changes are in the leaf, so its layout may change now.
        for _ in 0..records {
            if self.leaves.counts(Use::Point) {
                self.leaves.count_use_of(page, leaf, Use::Point)?;
            }
        }
        let view = leaf.view();
        mini.merged(Leaf::of(&view));
        // A leaf that has long been sparse and is growing need not be noted again.
        if view.is_three_quarters_free() && (deletes || !was_sparse) {
            self.leaves.notes.note(page);
        }
        Ok(records)
    }

    /// Handles a mini-page that has become too large (§5.5): merges its dirty records into the leaf
    /// and makes the mini-page a mirror with room for the change. If there is no room for a mirror,
    /// only the used records are kept, provided they are small enough.
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
        // Otherwise the caller would start again and find the mini-page as large as before.
        if let Some(mut guard) = left {
            guard.set_leaf(leaf);
            self.hook.tell(|| Told::Dropped { page });
        }
        Ok(Attempt::Again)
    }

    /// Handles a leaf without room for a change. If the mini-page has dirty records, merging them
    /// may reveal that there is room; otherwise the leaf is split.
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
        // Taken before the latch, because it may have to be waited for. A thread that holds a spare
        // does not wait for our pages.
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

    /// Updates what is known of a page's leaf, which may have another layout now. The mini-page is
    /// clean. If the leaf cannot be read, the knowledge is dropped.
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

    /// Adds a new page to the mapping table. Its id is free since a merge retired it, but the
    /// merging thread may not have removed it from the table yet; that thread waits for nobody.
    pub(super) fn adopt(&self, page: PageId) -> Result<Exclusive<'_>> {
        loop {
            match self.ring.adopt_page(page, address(None)) {
                Ok(guard) => return Ok(guard),
                Err(PageError::InUse { .. }) => crate::sync::yield_now(),
                Err(e) => return Err(unexpected(&e)),
            }
        }
    }

    /// Locks a page for reading; `None` if it is not in use.
    pub(super) fn look_at(&self, page: PageId) -> Result<Option<Shared<'_>>> {
        match self.ring.shared(page) {
            Ok(guard) => Ok(Some(guard)),
            Err(PageError::Unknown { .. } | PageError::BeyondLimit { .. }) => Ok(None),
            Err(e) => Err(unexpected(&e)),
        }
    }

    /// Performs one step of a checkpoint, see [`crate::trees::Tree::push_down`]. An operation in
    /// progress holds its page's lock. So once all pages have been examined, all changes logged
    /// before the sweep began have been seen.
    pub(crate) fn push_down(&self, from: PageId, again: &mut Again) -> Result<Option<PageId>> {
        if mutation::on("bf-checkpoint-skips-buffered") {
            return Ok(None);
        }
        // Pages from here on are unused, and so have no mini-page.
        let limit = self.leaves.pager.pages.high_water();
        let until = limit.min(from.0 + STEP_PAGES);
        let mut dirty = Vec::new();
        for page in (from.0..until).map(PageId) {
            let is_dirty = |guard: Shared<'_>| {
                let mini = guard.bytes().map(MiniRef::new);
                mini.is_some_and(MiniRef::is_dirty)
            };
            if self.look_at(page)?.is_some_and(is_dirty) {
                dirty.push(page);
            }
        }
        if !again.is_nothing() {
            dirty = self.log_again(dirty, again)?;
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
        if until == limit {
            self.swept.store(self.leaves.pager.log.end().0, Relaxed);
        }
        Ok((until < limit).then_some(PageId(until)))
    }
}
