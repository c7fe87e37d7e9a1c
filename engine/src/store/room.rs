//! Makes room for pages in a store that is full.
//!
//! ```text
//!   a split finds no place
//!     ──▶ pages merged away by merges not yet durable?  flush the log, free them
//!     ──▶ leaves noted as sparse?                       merge them, after pushing down
//!                                                       mini-pages, which may hold deletes
//!     ──▶ two neighbours that fit one page,             merge some
//!         or three that fit two?
//!     ──▶ none of these: the store is full
//! ```
//!
//! One thread at a time makes room. Threads that waited for it first check whether there is room
//! now. The last step reads leaves, in the worst case all of them. After a full round that freed
//! nothing, it is not repeated until the log has grown by a share of what the search would read. So
//! a full store that is still written to reads at most [`READ_SHARE`] bytes per byte logged.

use super::core::Core;
use crate::error::{Error, Result};
use crate::mutation;
use crate::pages::PageStore as _;
use crate::sync::atomic::Ordering;
use crate::sync::{Mutex, Turns};
use crate::trees::Again;
use crate::types::{Lsn, PageId};

/// Most pages that one search for neighbours merges away before the waiting operation continues.
const PAGES_WANTED: u64 = 16;

/// Bytes of leaves that a search may read in vain per byte logged since the last one.
const READ_SHARE: u64 = 512;

/// State of the search for neighbours.
pub(crate) struct Full {
    turns: Turns,
    search: Mutex<Search>,
}

#[derive(Default)]
struct Search {
    /// Where the search continues: the lower fence of a present or former leaf.
    from: Vec<u8>,
    /// End of the log when a full round found nothing.
    in_vain: Option<Lsn>,
}

/// How room was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// Pages that had been merged away were freed. Another thread may take them; then this can help
    /// again.
    Freed,
    /// Neighbours were merged because they happened to fit: the last resort.
    Squeezed,
}

impl Default for Full {
    fn default() -> Self {
        Full {
            turns: Turns::new(1),
            search: Mutex::new(Search::default()),
        }
    }
}

impl Core {
    /// Returns how many pages have been freed since the store was opened.
    pub(crate) fn pages_freed(&self) -> u64 {
        let counters = &self.tree.leaves().pager.counters;
        counters.freed.load(Ordering::Relaxed)
    }

    /// Makes room for a page and returns how. Does nothing if [`Core::pages_freed`] no longer
    /// equals `freed`, because there is room then. No latch may be held.
    ///
    /// # Errors
    /// [`Error::Full`] if no room can be made; device failures.
    pub(crate) fn make_page_room(&self, freed: u64) -> Result<Made> {
        let _turn = self.full.turns.wait();
        if self.pages_freed() != freed || self.free_merged()? {
            return Ok(Made::Freed);
        }
        if mutation::on("full-without-merge") {
            return Err(self.is_full());
        }
        if self.free_sparse()? {
            return Ok(Made::Freed);
        }
        match self.search_neighbours()? {
            true => Ok(Made::Squeezed),
            false => Err(self.is_full()),
        }
    }

    /// Returns the error for a full store.
    pub(crate) fn is_full(&self) -> Error {
        Error::Full {
            pages: self.tree.leaves().pager.pages.page_limit(),
        }
    }

    /// Frees the pages that were merged away. Returns whether there were any.
    fn free_merged(&self) -> Result<bool> {
        let pager = &*self.tree.leaves().pager;
        if !pager.has_retired() {
            return Ok(false);
        }
        self.flush_log(pager.log.end())?;
        Ok(pager.free_retired()? > 0)
    }

    /// Merges the leaves noted as sparse, including those that deletes in mini-pages make sparse.
    /// Returns whether pages became free.
    fn free_sparse(&self) -> Result<bool> {
        self.make_log_room()?;
        self.merge_noted()?;
        self.free_merged()
    }

    /// Pushes buffered changes down to the leaves, and merges the leaves noted as sparse.
    ///
    /// # Errors
    /// Device failures.
    pub(crate) fn merge_noted(&self) -> Result<()> {
        let mut from = Some(PageId(0));
        while let Some(page) = from {
            from = self.tree.push_down(page, &mut Again::none())?;
        }
        let mut owed = self.tree.merges_owed();
        while owed > 0 && self.tree.merge_due() {
            self.tree.merge_step()?;
            owed -= 1;
        }
        Ok(())
    }

    /// Merges neighbours that fit one page, or three that fit two. Goes through the leaves in key
    /// order from where the last search ended. Returns whether pages became free.
    fn search_neighbours(&self) -> Result<bool> {
        let log = &self.tree.leaves().pager.log;
        let mut search = self.full.search.lock();
        let would_read = (self.tree.leaves().index.len() * self.options().page_size) as u64;
        let pause = would_read / READ_SHARE;
        if (search.in_vain).is_some_and(|then| log.end().0 - then.0 < pause) {
            return Ok(false);
        }
        // Search to the last leaf, then once more from the first.
        let began_at_first = search.from.is_empty();
        for _ in 0..2 {
            self.make_log_room()?;
            let from = std::mem::take(&mut search.from);
            let next = self.tree.squeeze(from, PAGES_WANTED)?;
            let more = next.is_some();
            search.from = next.unwrap_or_default();
            if self.free_merged()? {
                search.in_vain = None;
                return Ok(true);
            }
            if !more && began_at_first {
                break;
            }
        }
        search.in_vain = Some(log.end());
        Ok(false)
    }
}
