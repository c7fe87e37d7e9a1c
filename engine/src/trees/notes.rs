//! Which leaves are merged, and when.
//!
//! ```text
//!   delete, merge of a mini-page ──▶ noted ──▶ one step: merge with the right neighbour,
//!                                     ▲  │     or else the left one ──▶ still sparse: noted again
//!                                     │  └── busy, no room in the log ──▶ put off ──┐
//!                                     └─────── the next note, the next checkpoint ──┘
//! ```
//!
//! **When.** Two neighbours are merged when both are at least three quarters unused, or when one
//! holds nothing at all, and what they hold fits one page (B-Trees Are Back §2; the second part,
//! because a queue that is emptied from one side would otherwise leave a trail of empty leaves
//! beside a full one): [`MergeRule::Sparse`]. When a store finds no place for another page, any two
//! that fit one page are: [`MergeRule::Fits`]; and any three in a row that fit two pages become two.
//!
//! **What is noted.** Whatever leaves a leaf three quarters unused notes it: a delete, the merge of
//! a mini-page into it, a merge of leaves. A note is a page's name in memory. Merging is background
//! work ([`crate::Task::Merge`]), and a delete does one step of it, for the stores that nobody
//! pumps.
//!
//! **What survives.** Every leaf that wants a merge is noted, or named by the log behind the last
//! checkpoint: a checkpoint merges what was noted before it began, closing does before it
//! checkpoints, and opening merges the sparse ones of those that the log names, which recovery has
//! read anyway, and their neighbours. So nothing is written down. Beyond that a scan notes the
//! empty leaves that it passes: those whose merge was put off, or under way, when a checkpoint
//! ended and the store crashed, or that an older version left.
//!
//! **The bound.** Between these steps no leaf is empty, and of two neighbours one is more than a
//! quarter full: an eighth of the leaves' bytes is live, at least. In a store that says it is full
//! no three neighbours fit two pages, as of the last search for some ([`crate::room`]): two thirds,
//! at least, less what slots and fences take. (Merges that were put off, and neighbours whose records together need longer keys than
//! apart, are left out of this; and so are leaves of a `btree` that shrink because values are
//! replaced by shorter ones, which are found by the next delete, or when the store is full.)
//!
//! Cost: a note is a short mutex and is only made of sparse leaves; a step reads at most the leaf
//! and two neighbours, and writes one log record with the records that move.

use std::collections::BTreeSet;

use crate::mutation;
use crate::node::PageRef;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::types::PageId;

/// When two neighbours are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeRule {
    /// Both at least three quarters unused, or one without a record; and what they hold fits one
    /// page.
    Sparse,
    /// What they hold fits one page.
    Fits,
}

impl MergeRule {
    /// Whether these neighbours are to be merged, if the left one is none that takes over no
    /// others.
    pub(crate) fn wants(self, left: &PageRef<'_>, right: &PageRef<'_>) -> bool {
        let sparse = match self {
            MergeRule::Sparse => {
                let both = left.is_three_quarters_free() && right.is_three_quarters_free();
                both || left.is_empty() || right.is_empty()
            }
            MergeRule::Fits => true,
        };
        sparse && left.could_absorb(right)
    }
}

/// What an attempt at a merge came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    Done,
    /// By the rule the leaf stays, or is gone.
    NotWanted,
    /// A neighbour is busy, or the log has no room: later.
    PutOff,
    /// A frame for the neighbour has to be waited for first.
    NeedsSpare,
}

impl Merge {
    /// Of two attempts that were not done the one that is to be repeated.
    pub(crate) fn or(self, other: Merge) -> Merge {
        match (self, other) {
            (_, Merge::Done) => Merge::Done,
            (Merge::NotWanted, other) => other,
            (first, _) => first,
        }
    }
}

/// Leaves that may want a merge.
#[derive(Default)]
pub(crate) struct Notes {
    pages: Mutex<Noted>,
    /// How many are due, readable without the lock.
    due: AtomicUsize,
}

#[derive(Default)]
struct Noted {
    due: BTreeSet<PageId>,
    put_off: BTreeSet<PageId>,
}

impl Notes {
    /// The leaf may want a merge.
    pub(crate) fn note(&self, page: PageId) {
        let mut pages = self.pages.lock();
        pages.due.insert(page);
        // What stood in the way may be gone.
        self.recall(&mut pages);
    }

    /// The next one.
    pub(crate) fn next(&self) -> Option<PageId> {
        if self.due.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut pages = self.pages.lock();
        let page = pages.due.pop_first();
        self.due.store(pages.due.len(), Ordering::Relaxed);
        page
    }

    /// Not now: it is noted again with the next note.
    pub(crate) fn put_off(&self, page: PageId) {
        if !mutation::on("busy-leaf-forgotten") {
            self.pages.lock().put_off.insert(page);
        }
    }

    /// What was put off is due again.
    pub(crate) fn try_again(&self) {
        self.recall(&mut self.pages.lock());
    }

    fn recall(&self, pages: &mut Noted) {
        let mut put_off = std::mem::take(&mut pages.put_off);
        pages.due.append(&mut put_off);
        self.due.store(pages.due.len(), Ordering::Relaxed);
    }

    /// How many are due now.
    pub(crate) fn due(&self) -> usize {
        self.due.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_off_is_due_again_with_the_next_note_and_at_checkpoints() {
        let notes = Notes::default();
        assert_eq!(notes.next(), None);
        notes.note(PageId(7));
        assert_eq!((notes.due(), notes.next()), (1, Some(PageId(7))));
        notes.put_off(PageId(7));
        assert_eq!(
            (notes.due(), notes.next()),
            (0, None),
            "it would be tried without end"
        );
        notes.note(PageId(9));
        assert_eq!(notes.due(), 2);
        notes.next();
        notes.next();
        notes.put_off(PageId(9));
        notes.try_again();
        assert_eq!((notes.due(), notes.next()), (1, Some(PageId(9))));
    }
}
