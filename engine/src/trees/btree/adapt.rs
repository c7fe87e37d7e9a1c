//! Operation adaption (B-Trees Are Back §5.1): some uses of a leaf count, and a leaf whose count comes to an end gets another layout at once.
//!
//! Counting needs the exclusive latch, which a reader has not got. So it lets go of the leaf and takes it anew, if that is to be had at once: for 5 % of the point
//! operations and 15 % of the leaves that scans visit. Whoever fails to count has lost nothing. Only the new layout is logged.

use super::BTree;
use crate::cache::WriteGuard;
use crate::error::Result;
use crate::node::adapt::{POINTS_PERCENT, SCANS_PERCENT, Use};
use crate::sync::atomic::Ordering;
use crate::types::PageId;

/// The golden ratio's multiples are spread evenly.
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// 32 bits in which its multiples are scattered.
#[inline]
pub(super) fn scattered(step: u64) -> u64 {
    (step ^ (step >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}

impl BTree {
    /// Whether this use counts: a matter of chance, the same in every run.
    #[inline]
    pub(in crate::trees) fn counts(&self, used: Use) -> bool {
        self.choice.is_adaptive() && {
            let percent = match used {
                Use::Point => POINTS_PERCENT,
                Use::Scan => SCANS_PERCENT,
            };
            let step = self.chance.fetch_add(GOLDEN, Ordering::Relaxed);
            (scattered(step) * 100) >> 32 < percent
        }
    }

    /// Counts a use of the leaf that covers `key`, if nobody is in the way.
    pub(super) fn count_use(&self, key: &[u8], used: Use) -> Result<()> {
        let page = self.index.find(key);
        let Some(mut leaf) = self.pager.try_write(page)? else {
            return Ok(());
        };
        if leaf.view().covers(key) {
            self.count_use_of(page, &mut leaf, used)?;
        }
        Ok(())
    }

    /// Counts a use of a leaf, if it is in memory and nobody is in the way; what follows from it is left to who can lay the leaf out anew.
    pub(in crate::trees) fn note_use(&self, page: PageId, used: Use) {
        if let Some(mut leaf) = self.pager.cache.try_resident(page) {
            let _ = leaf.edit().count_use(used);
        }
    }

    /// Counts a use of a leaf, and lays it out anew if it is time for that and it fits.
    pub(in crate::trees) fn count_use_of(
        &self,
        page: PageId,
        leaf: &mut WriteGuard<'_>,
        used: Use,
    ) -> Result<()> {
        let Some(layout) = leaf.edit().count_use(used) else {
            return Ok(());
        };
        // A store that has failed can still be read.
        if self.pager.check_poison().is_ok() && leaf.view().can_be(layout) {
            self.lay_out(page, leaf, layout)?;
        }
        Ok(())
    }

    /// Key adaption after a split or merge: a leaf gets the layout that suits its keys, if it fits.
    pub(super) fn adapt(&self, page: PageId, leaf: &mut WriteGuard<'_>) -> Result<()> {
        if !self.choice.is_adaptive() || leaf.view().layout().is_dense() {
            return Ok(());
        }
        let suited = leaf.view().suited_layout();
        if suited != leaf.view().layout() && leaf.view().can_be(suited) {
            self.lay_out(page, leaf, suited)?;
        }
        leaf.edit().judge_heads();
        Ok(())
    }
}
