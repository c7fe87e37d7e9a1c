//! Operation adaption (B-Trees Are Back §5.1): some uses of a leaf are counted, and a leaf whose
//! counter reaches an end is converted to another layout at once.
//!
//! Counting needs the exclusive latch, which a reader does not have. So the reader releases the
//! leaf and latches it again, if that is possible at once: for 5 % of the point operations and 15 %
//! of the leaves that scans visit. A failure to count does no harm. Only the conversion is logged.

use super::BTree;
use crate::cache::WriteGuard;
use crate::error::Result;
use crate::node::adapt::Use;
use crate::sync::atomic::Ordering;
use crate::types::PageId;

impl BTree {
    /// Returns whether this use is counted.
    #[inline]
    pub(in crate::trees) fn counts(&self, used: Use) -> bool {
        self.choice.is_adaptive() && used.counts(self.uses.fetch_add(1, Ordering::Relaxed))
    }

    /// Counts a use of the leaf that covers `key`, if no other thread is in the way.
    pub(super) fn count_use(&self, key: &[u8], used: Use) -> Result<()> {
        if !self.pager.can_write() {
            return Ok(());
        }
        let page = self.index.find(key);
        let Some(mut leaf) = self.pager.try_write(page)? else {
            return Ok(());
        };
        if leaf.view().covers(key) {
            self.count_use_of(page, &mut leaf, used)?;
        }
        Ok(())
    }

    /// Counts a use of a leaf, if it is cached and not latched. Conversions are left to callers
    /// that can make them.
    pub(in crate::trees) fn note_use(&self, page: PageId, used: Use) {
        if let Some(mut leaf) = self.pager.cache.try_resident(page) {
            let _ = leaf.edit().count_use(used);
        }
    }

    /// Counts a use of a leaf, and converts the leaf if its counter asks for it and its records
    /// fit.
    pub(in crate::trees) fn count_use_of(
        &self,
        page: PageId,
        leaf: &mut WriteGuard<'_>,
        used: Use,
    ) -> Result<()> {
        let Some(layout) = leaf.edit().count_use(used) else {
            return Ok(());
        };
        // A store that has failed, or has no room, can still be read.
        if self.pager.can_write() && leaf.view().can_be(layout) {
            self.lay_out(page, leaf, layout)?;
        }
        Ok(())
    }

    /// Key adaption after a split or merge: the leaf gets the layout that suits its keys, if its
    /// records fit.
    pub(super) fn adapt(&self, page: PageId, leaf: &mut WriteGuard<'_>) -> Result<()> {
        if !self.choice.is_adaptive() {
            return Ok(());
        }
        if let Some(layout) = leaf.view().better_layout() {
            self.lay_out(page, leaf, layout)?;
        }
        leaf.edit().judge_heads();
        Ok(())
    }
}
