//! Ahead of need: eviction before an operation lacks room, and leaves read in batches before they are merged into (Bf-Tree §4.2).
//!
//! A merge needs its leaf, and one after the other these reads are most of what writing costs on a drive that could serve dozens at once. So
//! whoever is about to merge many asks for their leaves together, and where somebody pumps ([`crate::Task::Evict`]) operations find
//! room and wait for no leaf at all.

use super::BfTree;
use super::counters::Cause;
use crate::error::Result;
use crate::mini::{MiniMut, MiniRef};
use crate::types::PageId;
use crate::types::Progress;

/// Share of the ring that is kept free where somebody pumps: one in so many bytes.
pub(super) const FREE_SHARE: u64 = 64;

/// Mini-pages that one step evicts at most.
pub(super) const BATCH: usize = 32;

impl BfTree {
    /// Whether eviction should run ahead of need.
    pub(crate) fn evict_due(&self) -> bool {
        self.ring.room() < self.free_goal
    }

    /// Evicts a batch, or as much of it as makes twice the room that is to be kept, so that the next one is a batch again.
    pub(crate) fn evict(&self) -> Result<Progress> {
        let wanted = (2 * self.free_goal).saturating_sub(self.ring.room());
        let (victims, bytes) = self.ring.next_victims(BATCH, wanted);
        let dirty: Vec<PageId> = (victims.into_iter())
            .filter(|page| self.is_dirty(*page))
            .collect();
        self.leaves.pager.load_ahead(&dirty);
        self.evict_bytes(bytes)?;
        Ok(if self.evict_due() {
            Progress::More
        } else {
            Progress::Idle
        })
    }

    /// Whether a page's mini-page wants merging, as far as can be told without waiting.
    fn is_dirty(&self, page: PageId) -> bool {
        match self.ring.try_shared(page) {
            Ok(Some(guard)) => (guard.bytes()).is_some_and(|mini| MiniRef::new(mini).is_dirty()),
            Ok(None) | Err(_) => false,
        }
    }

    /// Evicts what together has so many bytes. No page is locked.
    pub(super) fn evict_bytes(&self, bytes: u64) -> Result<()> {
        let merge =
            |page, block: &mut [u8]| self.merge(page, &mut MiniMut::new(block), Cause::Eviction);
        self.ring.make_room(bytes, merge).map(drop)
    }
}
