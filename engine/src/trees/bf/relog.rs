//! Checkpoints that log dirty records again instead of merging them.
//!
//! ```text
//!   log     . . a1 . b1 . | begin . . .  a1 b1 | end        redo start moves to `begin`
//!   minis   a: a1*   b: b1*                                 still dirty, and of newer LSNs
//! ```
//!
//! A checkpoint wants the log before its beginning to be free, so it merges the dirty records of
//! every mini-page (Bf-Tree §5.7), however few a mini-page has: a page write for each. Records take
//! far less room in the log than pages do. Logged again, they need nothing from before the
//! checkpoint, and the mini-page goes on gathering until it is evicted.
//!
//! To log a record again is a put of the value that is there already, so it needs no step of
//! recovery: redo makes the change once more. It is made under the page's lock, and takes room in
//! the log like any writer. Between the intent of a batch and its end, the log has no other
//! writer's records, so then nothing is logged again.
//!
//! [`crate::options::BfOptions::relog_percent`] bounds the bytes. Otherwise, with more dirty
//! records than the log takes between two checkpoints, every checkpoint would make the next one
//! due. So all mini-pages are weighed first, and the [`Lightest`] are logged again. The checkpoints
//! of a writer that finds the log full, and those of closing, log nothing again.
//!
//! That only pays while the mini-page goes on gathering. So one that was not written since the
//! checkpoint before is merged: its changes were logged again then, or came while that ran.
//!
//! Redo makes the changes one by one, and on the leaf as the checkpoint leaves it. So those come first
//! that free bytes there; in the order of keys, a longer value might not fit yet. This is why the leaf
//! is read. And no change of the page may have been logged since the checkpoint began: redo would make
//! it before those that are logged again, and it may only fit after them. Such a page is merged.
//!
//! Cost: O(dirty records), and a page read if several are; at most half of the log between two
//! checkpoints.

use super::BfTree;
use super::counters::Counters;
use super::lightest::{Chosen, Lightest};
use super::page::{image, unexpected};
use crate::error::{Error, Result};
use crate::events::Event;
use crate::mapping::PageError;
use crate::mini::events::Event as Told;
use crate::mini::{MiniMut, MiniRef};
use crate::mutation;
use crate::pages::PageStore as _;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::{Lsn, PageId};
use crate::wal::Record;

/// One in so many bytes of the log is left to others.
const LEAST_LEFT: u64 = 4;

/// Number of pages that are weighed in one step of a checkpoint.
const WEIGHED_PAGES: u64 = 1024;

/// What a checkpoint may log again.
#[derive(Clone, Debug)]
pub(crate) struct Again {
    /// The most bytes of log.
    bytes: u64,
    /// Where the checkpoint began. Records behind are not given up.
    since: Lsn,
    lightest: Lightest,
    chosen: Chosen,
}

impl Again {
    /// Records of so many bytes of log may be, from a checkpoint that begins here.
    pub(crate) fn new(bytes: u64, since: Lsn) -> Again {
        Again {
            bytes,
            since,
            lightest: Lightest::new(bytes),
            chosen: Lightest::new(bytes).choose(),
        }
    }

    /// Nothing may be.
    pub(crate) fn none() -> Again {
        Again::new(0, Lsn(0))
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.bytes == 0
    }
}

impl BfTree {
    pub(crate) fn may_log_again(&self, every: u64) -> u64 {
        self.options.relog_bytes(every)
    }

    /// Performs one step of weighing all mini-pages from this page on. Returns the page to continue
    /// from.
    pub(crate) fn weigh(&self, from: PageId, again: &mut Again) -> Result<Option<PageId>> {
        let limit = self.leaves.pager.pages.high_water();
        let until = limit.min(from.0 + WEIGHED_PAGES);
        for page in (from.0..until).map(PageId) {
            if let Some(guard) = self.look_at(page)?
                && let Some(mini) = guard.bytes().map(MiniRef::new)
                && self.gathers(mini)
            {
                again.lightest.add(mini.bytes_of_changes() as u64);
            }
        }
        if until < limit {
            return Ok(Some(PageId(until)));
        }
        again.chosen = again.lightest.choose();
        Ok(None)
    }

    /// Whether a mini-page was written since the checkpoint before.
    fn gathers(&self, mini: MiniRef<'_>) -> bool {
        mini.lsn().0 > self.swept.load(Relaxed)
    }

    /// Logs the dirty records of these pages again, as far as it may. Returns the pages that must be
    /// merged.
    pub(super) fn log_again(&self, pages: Vec<PageId>, again: &mut Again) -> Result<Vec<PageId>> {
        let mut others = Vec::new();
        for page in pages {
            if again.is_nothing() || !self.log_page_again(page, again)? {
                others.push(page);
            }
        }
        Ok(others)
    }

    /// Returns whether the page has no changes left that only the log before has.
    fn log_page_again(&self, page: PageId, again: &mut Again) -> Result<bool> {
        let pager = &self.leaves.pager;
        pager.check_poison()?;
        // Writers that come while the checkpoint runs need room, too.
        if pager.log.space_left() < pager.log.capacity() / LEAST_LEFT {
            return Ok(false);
        }
        // The records take less than a page, and what the log writes beside them less than another.
        let Some(_room) = self.leaves.room_in_turn(2 * pager.layout.page_size) else {
            return Ok(false);
        };
        let mut guard = match self.ring.exclusive(page) {
            Ok(guard) => guard,
            Err(PageError::Unknown { .. }) => return Ok(true),
            Err(e) => return Err(unexpected(&e)),
        };
        let Some(mini) = guard.bytes().map(MiniRef::new) else {
            return Ok(true);
        };
        if !self.gathers(mini) {
            return Ok(false);
        }
        // Of the leaf itself nothing is logged while a mini-page has dirty records.
        if mini.lsn() > again.since && !mutation::on("relogs-behind-newer") {
            return Ok(false);
        }
        let changes = mini.bytes_of_changes() as u64;
        if !again.chosen.takes(changes) && !mutation::on("relogs-the-first") {
            return Ok(false);
        }
        let mut entries: Vec<_> = mini.entries().filter(|e| e.kind.is_dirty()).collect();
        if entries.len() > 1 && !mutation::on("relog-in-key-order") {
            // Redo makes the changes one by one, on the leaf as it is now or newer. They fit in this
            // order: first those that free bytes of the leaf.
            let leaf = self.read_leaf(page)?;
            let view = leaf.view();
            entries.sort_by_key(|entry| match (entry.kind.exists(), view.get(entry.key)) {
                (false, _) => false,
                (true, old) => old.is_none_or(|old| old.len() < entry.value.len()),
            });
        }
        let (mut newest, mut records, mut done) = (None, 0, true);
        for entry in entries {
            let (key, value) = (entry.key, entry.value);
            let record = match entry.kind.exists() {
                true => Record::Put { page, key, value },
                false if mutation::on("relog-forgets-deletes") => continue,
                false => Record::Delete { page, key },
            };
            let bytes = record.encoded_len() as u64;
            let logged = match pager.log.append_beside_no_batch(&record) {
                Err(Error::LogFull { .. }) => None,
                logged => logged?,
            };
            let Some(lsn) = logged else {
                done = false;
                break;
            };
            (newest, records) = (Some(lsn), records + 1);
            again.bytes = again.bytes.saturating_sub(bytes);
            pager.volume.tell(|| Event::PageChanged { page, lsn });
        }
        if let (Some(lsn), Some(block)) = (newest, guard.bytes_mut()) {
            let mut mini = MiniMut::new(block);
            mini.set_lsn(lsn);
            if mutation::on("relog-cleans") {
                mini.merged(mini.view().leaf());
            }
            Counters::add(&self.counters.relogged, records);
        }
        self.hook.tell(|| Told::LoggedAgain {
            page,
            mini: image(guard.bytes(), guard.marks()),
        });
        Ok(done)
    }
}
