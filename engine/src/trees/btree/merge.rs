//! Merges of noted leaves, and the sweep over all leaves when the store is full.
//! [`crate::trees::notes`] has the rules.

use super::BTree;
use crate::cache::{Fix, WriteGuard};
use crate::error::Result;
use crate::mutation;
use crate::node::PageRef;
use crate::trees::notes::{Merge, MergeRule};
use crate::types::PageId;

impl BTree {
    /// Notes a leaf that a scan has reached, if it is empty. This finds empty leaves from before
    /// the last crash, or from an older version of this engine.
    #[inline]
    pub(in crate::trees) fn note_if_empty(&self, leaf: &PageRef<'_>) {
        if leaf.is_empty() && self.index.len() > 1 {
            self.notes.note(leaf.page_id());
        }
    }

    /// Merges a noted leaf with its right or, failing that, its left neighbour, if the rule allows
    /// it and no other thread is in the way.
    pub(crate) fn merge_leaf(&self, page: PageId) -> Result<Merge> {
        let lower = {
            let Fix::Got(leaf) = self.pager.write(page)? else {
                return Ok(Merge::NotWanted);
            };
            if !leaf.view().is_three_quarters_free() {
                return Ok(Merge::NotWanted);
            }
            leaf.view().lower_fence().to_vec()
        };
        let right = self.merge_with_right(page, |leaf| leaf.lower_fence() == lower)?;
        if right == Merge::Done || mutation::on("left-neighbour-forgotten") {
            return Ok(right);
        }
        // Latch order is left before right, so the left neighbour must be latched first.
        let Some((_, left)) = self.index.find_before(&lower) else {
            return Ok(right);
        };
        let left = self.merge_with_right(left, |leaf| leaf.upper_fence() == Some(&lower[..]))?;
        Ok(right.or(left))
    }

    /// Merges the leaf that covers `from` with its right neighbour, if both fit one page; or makes
    /// two leaves of the three from there on, if they fit two pages. Returns the lower fence of the
    /// next leaf, if there is one.
    pub(crate) fn squeeze(&self, from: &[u8]) -> Result<(Merge, Option<Vec<u8>>)> {
        let page = self.index.find(from);
        let mut merged = self.merge_right_of(page, MergeRule::Fits, |leaf| leaf.covers(from))?;
        if merged == Merge::NotWanted && !mutation::on("full-without-sharing") {
            merged = self.share_next(from)?;
        }
        let upper = self.leaf(from)?.view().upper_fence().map(<[u8]>::to_vec);
        Ok((merged, upper))
    }

    fn merge_with_right(
        &self,
        page: PageId,
        is_it: impl Fn(&PageRef<'_>) -> bool,
    ) -> Result<Merge> {
        self.merge_right_of(page, MergeRule::Sparse, is_it)
    }

    /// Merges a leaf with its right neighbour, if `is_it` confirms that it is the intended leaf. If
    /// no frame for the neighbour is available at once, waits for one before latching the leaf.
    pub(super) fn merge_right_of(
        &self,
        page: PageId,
        rule: MergeRule,
        is_it: impl Fn(&PageRef<'_>) -> bool,
    ) -> Result<Merge> {
        let latched = || -> Result<Option<WriteGuard<'_>>> {
            Ok(match self.pager.write(page)? {
                Fix::Got(leaf) if is_it(&leaf.view()) => Some(leaf),
                Fix::Got(_) | Fix::Gone => None,
            })
        };
        let Some(leaf) = latched()? else {
            return Ok(Merge::NotWanted);
        };
        let merged = self.merge_right(page, leaf, rule, None)?;
        if merged != Merge::NeedsSpare {
            return Ok(merged);
        }
        let spare = self.pager.spare()?;
        let Some(leaf) = latched()? else {
            return Ok(Merge::NotWanted);
        };
        self.merge_right(page, leaf, rule, Some(spare))
    }
}
