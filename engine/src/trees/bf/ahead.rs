//! Work ahead of need: evicts mini-pages before an operation lacks room, and reads leaves in
//! batches before merges into them (Bf-Tree §4.2).
//!
//! A merge needs its leaf. Read one after the other, these leaves are most of the cost of writing
//! on a drive that could serve dozens of reads at once. So a caller that is about to merge many
//! mini-pages reads their leaves together. In a store whose background tasks are pumped
//! ([`crate::Task::Evict`]), operations find room and do not wait for leaves at all.

use super::BfTree;
use super::counters::Cause;
use crate::error::Result;
use crate::mapping::LeafAddress;
use crate::mini::{MiniMut, MiniRef};
use crate::types::PageId;
use crate::types::Progress;

/// The part of the ring that eviction ahead of need keeps free: one byte in this many.
pub(super) const FREE_SHARE: u64 = 64;

/// The maximum number of mini-pages that one step evicts, or spares for an operation that waits.
pub(super) const BATCH: usize = 32;

impl BfTree {
    /// Returns whether eviction should run ahead of need.
    pub(crate) fn evict_due(&self) -> bool {
        self.ring.room() < self.free_goal
    }

    /// Evicts one batch of mini-pages, or fewer if that makes twice the room to be kept free, so
    /// that the next step is a full batch again.
    pub(crate) fn evict(&self) -> Result<Progress> {
        let wanted = (2 * self.free_goal).saturating_sub(self.ring.room());
        let (victims, bytes) = self.ring.next_victims(BATCH, wanted);
        let dirty: Vec<PageId> = (victims.into_iter())
            .filter(|page| !self.spare(*page) && self.is_dirty(*page))
            .collect();
        self.leaves.pager.load_ahead(&dirty);
        self.ring.make_room(bytes, self.merging())?;
        Ok(if self.evict_due() {
            Progress::More
        } else {
            Progress::Idle
        })
    }

    /// Returns whether a page's mini-page is dirty, if that can be told without waiting.
    fn is_dirty(&self, page: PageId) -> bool {
        match self.ring.try_shared(page) {
            Ok(Some(guard)) => (guard.bytes()).is_some_and(|mini| MiniRef::new(mini).is_dirty()),
            Ok(None) | Err(_) => false,
        }
    }

    /// Evicts blocks of `bytes` together, without those of mini-pages that are spared. The caller
    /// must hold no page lock.
    pub(super) fn evict_bytes(&self, bytes: u64) -> Result<()> {
        let (mut made, mut spared) = (0, 0);
        while made < bytes {
            let moved = self.spares() && spared < BATCH && {
                let (next, _) = self.ring.next_victims(1, 1);
                next.first().is_some_and(|page| self.spare(*page))
            };
            spared += usize::from(moved);
            let evicted = self.ring.make_room(1, self.merging())?;
            if evicted == 0 {
                break;
            }
            // The copy of a mini-page takes room, too.
            made += if moved { 0 } else { evicted };
        }
        Ok(())
    }

    /// What becomes of a mini-page that the head passes.
    fn merging(&self) -> impl FnMut(PageId, &mut [u8]) -> Result<LeafAddress> {
        |page, block| self.merge(page, &mut MiniMut::new(block), Cause::Eviction)
    }
}
