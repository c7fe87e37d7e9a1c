//! Merges of leaves with their neighbours, under the locks of both pages. [`crate::trees::notes`]
//! decides when.

use super::BfTree;
use super::counters::Cause;
use super::page::{address, lock, unexpected};
use crate::error::Result;
use crate::mapping::PageError;
use crate::mini::MiniMut;
use crate::mini::events::Event as Told;
use crate::mutation;
use crate::node::PageRef;
use crate::ring::Exclusive;
use crate::trees::notes::{Merge, MergeRule};
use crate::types::PageId;

impl BfTree {
    /// Merges a noted leaf with its right or, failing that, its left neighbour, if the rule allows
    /// it and no other thread is in the way.
    pub(crate) fn merge_leaf(&self, page: PageId) -> Result<Merge> {
        let Some(lower) = self.lower_fence(page)? else {
            return Ok(Merge::NotWanted);
        };
        let right = self.merge_with_right(page, MergeRule::Sparse, |_| true)?;
        if right == Merge::Done || mutation::on("left-neighbour-forgotten") {
            return Ok(right);
        }
        let Some((_, left)) = self.leaves.index.find_before(&lower) else {
            return Ok(right);
        };
        let is_left = |leaf: &PageRef<'_>| leaf.upper_fence() == Some(&lower[..]);
        let left = self.merge_with_right(left, MergeRule::Sparse, is_left)?;
        Ok(right.or(left))
    }

    /// As [`crate::trees::btree::BTree::squeeze`].
    pub(crate) fn squeeze(&self, from: &[u8]) -> Result<(Merge, Option<Vec<u8>>)> {
        let page = self.leaves.index.find(from);
        let mut merged = self.merge_with_right(page, MergeRule::Fits, |leaf| leaf.covers(from))?;
        if merged == Merge::NotWanted && !mutation::on("full-without-sharing") {
            merged = self.share_next(from)?;
        }
        let (page, _guard) = self.lock_shared(from)?;
        let upper = self
            .read_leaf(page)?
            .view()
            .upper_fence()
            .map(<[u8]>::to_vec);
        Ok((merged, upper))
    }

    /// Makes two leaves of three, as [`crate::trees::btree::BTree::squeeze`] does.
    fn share_next(&self, from: &[u8]) -> Result<Merge> {
        let Some(three) = self.leaves.three_for_two(from)? else {
            return Ok(Merge::NotWanted);
        };
        let exclusive = |page| self.ring.exclusive(page);
        let (page, mut guard) = lock(&self.leaves.index, &self.hook, &three.middle, exclusive)?;
        if let Some(block) = guard.bytes_mut() {
            self.merge(page, &mut MiniMut::new(block), Cause::LeafMerge)?;
        }
        let spare = self.leaves.pager.spare()?;
        let leaf = self.write_leaf(page)?;
        let Some(right) = (self.leaves).divide_between(page, leaf, &three, spare)? else {
            self.know_leaf(guard)?;
            return Ok(Merge::NotWanted);
        };
        let adopted = self.adopt(right)?;
        self.divide_mini(guard, adopted)?;
        let left = self.leaves.index.find(from);
        let left = self.merge_with_right(left, MergeRule::Fits, |leaf| leaf.covers(from))?;
        let right = self.merge_with_right(right, MergeRule::Fits, |_| true)?;
        Ok(match (left, right) {
            (Merge::Done, Merge::Done) => Merge::Done,
            _ => Merge::PutOff,
        })
    }

    /// The lower fence of a page's leaf, if the leaf is sparse. `None` also if the page is gone.
    fn lower_fence(&self, page: PageId) -> Result<Option<Vec<u8>>> {
        match self.ring.shared(page) {
            Ok(_guard) => {
                let leaf = self.read_leaf(page)?;
                let sparse = leaf.view().is_three_quarters_free();
                Ok(sparse.then(|| leaf.view().lower_fence().to_vec()))
            }
            Err(PageError::Unknown { .. }) => Ok(None),
            Err(e) => Err(unexpected(&e)),
        }
    }

    fn merge_with_right(
        &self,
        left_id: PageId,
        rule: MergeRule,
        is_it: impl Fn(&PageRef<'_>) -> bool,
    ) -> Result<Merge> {
        let mut left = match self.ring.exclusive(left_id) {
            Ok(guard) => guard,
            Err(PageError::Unknown { .. }) => return Ok(Merge::NotWanted),
            Err(e) => return Err(unexpected(&e)),
        };
        let upper = {
            let leaf = self.read_leaf(left_id)?;
            let upper = leaf.view().upper_fence().map(<[u8]>::to_vec);
            upper.filter(|_| is_it(&leaf.view()))
        };
        let Some(upper) = upper else {
            return Ok(Merge::NotWanted);
        };
        let right_id = self.leaves.index.find(&upper);
        if right_id == left_id {
            return Ok(Merge::NotWanted);
        }
        // Another thread may hold the right page and wait for the left one.
        let mut right = match self.ring.try_exclusive(right_id) {
            Ok(Some(guard)) => guard,
            Ok(None) | Err(PageError::Unknown { .. }) => return Ok(Merge::PutOff),
            Err(e) => return Err(unexpected(&e)),
        };
        for (page, guard) in [(left_id, &mut left), (right_id, &mut right)] {
            if let Some(block) = guard.bytes_mut()
                && !mutation::on("bf-leaf-merge-forgets-mini-page")
            {
                self.merge(page, &mut MiniMut::new(block), Cause::LeafMerge)?;
            }
        }
        self.merge_locked(left, right, rule)
    }

    /// Merges two neighbours if the rule allows it. Their pages are locked exclusively, and their
    /// mini-pages are clean.
    fn merge_locked(
        &self,
        mut left: Exclusive<'_>,
        right: Exclusive<'_>,
        rule: MergeRule,
    ) -> Result<Merge> {
        let (left_id, right_id) = (left.page(), right.page());
        let leaf = self.write_leaf(left_id)?;
        let mut merged = self.leaves.merge_right(left_id, leaf, rule, None);
        if matches!(merged, Ok(Merge::NeedsSpare)) {
            let spare = self.leaves.pager.spare()?;
            let leaf = self.write_leaf(left_id)?;
            merged = self.leaves.merge_right(left_id, leaf, rule, Some(spare));
        }
        if !matches!(merged, Ok(Merge::Done)) {
            // A dense leaf may have been converted for the merge.
            return self.know_leaf(left).and(merged);
        }
        left.set_leaf(address(None));
        self.hook.tell(|| Told::Joined {
            page: left_id,
            right: right_id,
            leaf: self.leaf_image(left_id),
        });
        right.free_page();
        merged
    }
}
