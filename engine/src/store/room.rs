//! Room for pages in a store that has none left.
//!
//! ```text
//!   a split finds no place
//!     ──▶ pages merged away, their merges not durable yet?   flush the log, free them
//!     ──▶ leaves that are noted as sparse?                   merge them (mini-pages go down first:
//!                                                            deletes may still be in them)
//!     ──▶ two neighbours anywhere that fit one page,         merge some
//!         or three that fit two?
//!     ──▶ none of these: the store is full
//! ```
//!
//! One thread at a time makes room; those behind it look whether some has been made meanwhile. The
//! last step reads leaves, in the worst case all of them, so a full turn of it that freed nothing
//! is not repeated before the log has grown by a share of what it would read: a full store that is
//! written on reads at most [`READ_SHARE`] bytes for each one logged.

use super::core::Core;
use crate::error::{Error, Result};
use crate::mutation;
use crate::pages::PageStore as _;
use crate::sync::atomic::Ordering;
use crate::sync::{Mutex, Turns};
use crate::types::{Lsn, PageId};

/// Pages that one search for neighbours merges away at most, before the operation that wanted one
/// goes on.
const PAGES_WANTED: u64 = 16;

/// Bytes of leaves that a search may read in vain for each byte logged since the last one.
const READ_SHARE: u64 = 512;

/// What the search for neighbours remembers.
pub(crate) struct Full {
    turns: Turns,
    search: Mutex<Search>,
}

#[derive(Default)]
struct Search {
    /// Where it goes on: the lower fence of a leaf, or of one that was.
    from: Vec<u8>,
    /// End of the log when a whole turn had found nothing.
    in_vain: Option<Lsn>,
}

/// How room was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// What was merged away is free; somebody else may take it, and then this helps again.
    Freed,
    /// Neighbours were merged that happened to fit: the last resort.
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
    /// How many pages were freed since the store was opened.
    pub(crate) fn pages_freed(&self) -> u64 {
        let counters = &self.tree.leaves().pager.counters;
        counters.freed.load(Ordering::Relaxed)
    }

    /// Makes room for a page, unless pages have become free since there were `freed` of them; says
    /// how. No latch is held.
    ///
    /// # Errors
    /// [`Error::Full`] if there is none to be made; device failures.
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

    /// The error that says so.
    pub(crate) fn is_full(&self) -> Error {
        Error::Full {
            pages: self.tree.leaves().pager.pages.page_limit(),
        }
    }

    /// Frees the pages that were merged away; says whether there were any.
    fn free_merged(&self) -> Result<bool> {
        let pager = &*self.tree.leaves().pager;
        if !pager.has_retired() {
            return Ok(false);
        }
        self.flush_log(pager.log.end())?;
        Ok(pager.free_retired()? > 0)
    }

    /// Merges what is noted, and what deletes in mini-pages bring about; says whether pages became
    /// free.
    fn free_sparse(&self) -> Result<bool> {
        self.make_log_room()?;
        self.merge_noted()?;
        self.free_merged()
    }

    /// Brings what is buffered down to the leaves, and merges those that are noted as sparse.
    ///
    /// # Errors
    /// Device failures.
    pub(crate) fn merge_noted(&self) -> Result<()> {
        let mut from = Some(PageId(0));
        while let Some(page) = from {
            from = self.tree.push_down(page)?;
        }
        let mut owed = self.tree.merges_owed();
        while owed > 0 && self.tree.merge_due() {
            self.tree.merge_step()?;
            owed -= 1;
        }
        Ok(())
    }

    /// Merges neighbours that fit one page, or two if they are three, in the order of keys, from where the last search ended.
    fn search_neighbours(&self) -> Result<bool> {
        let log = &self.tree.leaves().pager.log;
        let mut search = self.full.search.lock();
        let would_read = (self.tree.leaves().index.len() * self.options().page_size) as u64;
        let pause = would_read / READ_SHARE;
        if (search.in_vain).is_some_and(|then| log.end().0 - then.0 < pause) {
            return Ok(false);
        }
        // From there to the last leaf, and once more from the first.
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
