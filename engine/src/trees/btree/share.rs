//! Makes two leaves of three: the last resort of a store that has no slot for another leaf, when no
//! two neighbours fit one page.
//!
//! ```text
//!   [ left ....    ][ middle ......  ][ right .....   ]        together no more than two pages
//!   [ left ....    ][ mid ][ dle ... ][ right .....   ]        split, into a reserved slot
//!   [ left .... mid        ][ dle ... right .....     ]        two merges
//! ```
//!
//! So sharing out a leaf is a split and two merges like any others, each logged and redone by
//! itself. If other operations come in between, the tree stays correct. At worst, a reserved slot
//! is not freed before the next search for neighbours that fit.
//!
//! The split point is chosen with copies of the neighbours, because no thread may hold three
//! latches. The merges check the actual leaves.

use super::smo::Means;
use super::{Attempt, BTree, Keep};
use crate::cache::WriteGuard;
use crate::error::Result;
use crate::node::{ChangeMap, PageMut, PageRef};
use crate::pager::Spare;
use crate::trees::notes::{Merge, MergeRule};
use crate::types::PageId;

/// Three neighbours that fit two pages, as copied a moment ago.
pub(in crate::trees) struct Three {
    left: Vec<u8>,
    right: Vec<u8>,
    /// Lower fence of the middle leaf.
    pub(in crate::trees) middle: Vec<u8>,
}

impl BTree {
    /// Copies the leaf that covers `from` and the two behind it, if they fit two pages.
    pub(in crate::trees) fn three_for_two(&self, from: &[u8]) -> Result<Option<Three>> {
        let copy = |key: &[u8]| Ok::<_, crate::Error>(self.leaf(key)?.view().bytes().to_vec());
        let left = copy(from)?;
        let Some(middle) = PageRef::new(&left).upper_fence().map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        let mut between = copy(&middle)?;
        let Some(next) = PageRef::new(&between).upper_fence().map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        let right = copy(&next)?;
        PageMut::new(&mut between, &mut ChangeMap::new()).sort();
        let plan = PageRef::new(&between).choose_share(&PageRef::new(&left), &PageRef::new(&right));
        Ok(plan.map(|_| Three {
            left,
            right,
            middle,
        }))
    }

    /// Splits the middle leaf, if it still can be shared out. Returns the new page.
    pub(in crate::trees) fn divide_between(
        &self,
        page: PageId,
        mut leaf: WriteGuard<'_>,
        three: &Three,
        spare: Spare<'_>,
    ) -> Result<Option<PageId>> {
        leaf.edit().sort();
        let [left, right] = [&three.left, &three.right].map(|bytes| PageRef::new(bytes));
        let Some(plan) = leaf.view().choose_share(&left, &right) else {
            return Ok(None);
        };
        let means = Means {
            keep: Keep::Snapshots,
            ..Means::new(spare)
        };
        Ok(match self.divide_at(page, leaf, &plan, means)? {
            Attempt::Done(right) => Some(right),
            Attempt::Again | Attempt::LogFull | Attempt::StoreFull => None,
        })
    }

    /// Shares out the leaf behind the one that covers `from` among its two neighbours, if the three
    /// fit two pages.
    pub(super) fn share_next(&self, from: &[u8]) -> Result<Merge> {
        let Some(three) = self.three_for_two(from)? else {
            return Ok(Merge::NotWanted);
        };
        let spare = self.pager.spare()?;
        let (page, leaf) = self.leaf_mut(&three.middle)?;
        let Some(right) = self.divide_between(page, leaf, &three, spare)? else {
            return Ok(Merge::NotWanted);
        };
        let left = self.index.find(from);
        let left = self.merge_right_of(left, MergeRule::Fits, |leaf| leaf.covers(from))?;
        let right = self.merge_right_of(right, MergeRule::Fits, |_| true)?;
        Ok(match (left, right) {
            (Merge::Done, Merge::Done) => Merge::Done,
            _ => Merge::PutOff,
        })
    }
}
