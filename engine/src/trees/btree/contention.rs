//! Contention split (B-Trees Are Back §7.3). A latch covers a whole leaf, so a few keys that many
//! threads write can make everyone wait for one leaf. Such a leaf is split between those keys.
//!
//! A thread that has written a leaf still holds its latch, and knows whether it had to wait for it.
//! Some writes are sampled. The choice depends on their LSNs, so that it does not favour certain
//! threads and no counter is shared. At the end of a period ([`crate::cache`]) in which at least
//! one sampled write in thirty waited, the leaf is split halfway between the last two sampled keys.
//! These are two draws from the written keys, so the hotter a range is, the likelier it is cut. If
//! both are the same key, nothing would be gained.
//!
//! The split is an ordinary one, logged and redone like any other. Leaves that are cold again are
//! merged like any other: when deletes have left neighbours three quarters empty.

use super::smo::Means;
use super::{Attempt, BTree};
use crate::cache::{Latched, WriteGuard};
use crate::error::{Error, Result};
use crate::node::adapt::scattered;
use crate::sync::atomic::Ordering;
use crate::types::{Lsn, PageId};

impl BTree {
    /// Counts a finished write of `key`, whose record ends at `lsn`, and splits its leaf if too
    /// many threads wait for it.
    ///
    /// # Errors
    /// As other splits. A lack of room in the log or the store is not an error here, because the
    /// leaf is not full.
    #[inline]
    pub(super) fn note_write(
        &self,
        page: PageId,
        leaf: WriteGuard<'_>,
        key: &[u8],
        lsn: Lsn,
    ) -> Result<()> {
        if leaf.latched() == Latched::AfterWaiting {
            self.contended_writes.fetch_add(1, Ordering::Relaxed);
        }
        match self.contention {
            Some(rule) if is_sampled(lsn, rule.sample_one_in) => {
                self.sample_write(page, leaf, key, rule.period)
            }
            _ => Ok(()),
        }
    }

    fn sample_write(
        &self,
        page: PageId,
        mut leaf: WriteGuard<'_>,
        key: &[u8],
        period: u16,
    ) -> Result<()> {
        let Some(earlier) = leaf.sample_write(key, period) else {
            return Ok(());
        };
        let Some(plan) = leaf.view().split_between(&earlier, key) else {
            return Ok(());
        };
        // The leaf is not full: if no frame is available, it is split another time.
        let Some(spare) = self.pager.try_spare() else {
            return Ok(());
        };
        match self.divide_at(page, leaf, &plan, Means::new(spare)) {
            Ok(Attempt::Done(_right)) => {
                self.contention_splits.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Ok(Attempt::Again | Attempt::LogFull | Attempt::StoreFull)
            | Err(Error::Full { .. }) => Ok(()),
            Err(e) => Err(e),
        }
    }
}

/// Returns whether the write with this LSN is sampled.
#[inline]
fn is_sampled(lsn: Lsn, one_in: u16) -> bool {
    // LSNs are byte positions, which for records of one size follow a pattern; so scatter them.
    (scattered(lsn.0) * u64::from(one_in)) >> 32 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_write_in_so_many_is_sampled_whatever_size_records_have() {
        for one_in in [1, 2, 16, 1000] {
            for size in [1, 16, 37, 64, 100, 4096] {
                let writes = 100_000;
                let sampled = (1..=writes).filter(|n| is_sampled(Lsn(n * size), one_in));
                let (found, expected) = (sampled.count() as u64, writes / u64::from(one_in));
                let off = found.abs_diff(expected);
                // Four standard deviations.
                assert!(
                    off * off <= 16 * expected,
                    "1 in {one_in}, {size} bytes each: {found}, expected {expected}"
                );
            }
        }
    }
}
