//! Decides which leaves are merged, and when.
//!
//! ```text
//!   delete, merge of a mini-page ──▶ noted ──▶ one step: merge with the right neighbour,
//!                                     ▲  │     or else the left one ──▶ still sparse: noted again
//!                                     │  └── busy, no room in the log ──▶ put off ──┐
//!                                     └─────── the next note, the next checkpoint ──┘
//! ```
//!
//! **When.** Two neighbours are merged when both are at least three quarters unused, or one is
//! empty, and their records fit one page: [`MergeRule::Sparse`] (B-Trees Are Back §2). The case of
//! an empty leaf is needed because a queue that is drained from one side would otherwise leave a
//! trail of empty leaves beside a full one. When a store has no slot for another page, any two
//! neighbours that fit one page are merged: [`MergeRule::Fits`]; and any three in a row that fit
//! two pages become two.
//!
//! **What is noted.** Every operation that leaves a leaf three quarters unused notes it: a delete,
//! the merge of a mini-page into it, a merge of leaves. A note is a page id in memory. Merging is
//! background work ([`crate::Task::Merge`]), and a delete performs one step of it, for stores that
//! are not pumped.
//!
//! **What survives.** Every leaf that needs a merge is noted, or is named by the log behind the
//! last checkpoint. A checkpoint merges what was noted before it began, and closing does so before
//! it checkpoints. Opening merges the sparse ones among the leaves that the log names, which
//! recovery has read anyway, and their neighbours. So notes are not written to the device. In
//! addition, a scan notes the empty leaves that it passes. These are leaves whose merge was put off
//! or in progress when a checkpoint ended and the store crashed, or that an older version left.
//!
//! **The bound.** Between these steps, no leaf is empty, and of two neighbours, one is more than a
//! quarter full. So at least an eighth of the leaves' bytes is live. In a store that reports that
//! it is full, no three neighbours fit two pages, as of the last search for some (`room` in
//! [`crate::store`]): at least two thirds of the bytes are live, less what slots and fences take.
//! (Three cases are not covered: merges that were put off; neighbours whose records need longer
//! keys together than apart; and leaves of a `btree` that shrink because values are replaced by
//! shorter ones, which are found by the next delete, or when the store is full.)
//!
//! Cost: a note is a short mutex and is made only of sparse leaves. A step reads at most the leaf
//! and two neighbours, and writes one log record with the records that move.

use std::collections::BTreeSet;

use crate::mutation;
use crate::node::PageRef;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::types::PageId;

/// The rule for when two neighbours are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeRule {
    /// Both are at least three quarters unused, or one is empty; and their records fit one page.
    Sparse,
    /// Their records fit one page.
    Fits,
}

impl MergeRule {
    /// Returns whether these neighbours should be merged. If the left one is dense, it is judged as
    /// if converted to the general layout.
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

/// The result of an attempt at a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    Done,
    /// The rule does not ask for a merge, or the leaf is gone.
    NotWanted,
    /// A neighbour is busy, or the log has no room: try later.
    PutOff,
    /// A frame for the neighbour must be waited for first.
    NeedsSpare,
}

impl Merge {
    /// Combines two attempts. If neither is done, returns the one that must be repeated.
    pub(crate) fn or(self, other: Merge) -> Merge {
        match (self, other) {
            (_, Merge::Done) => Merge::Done,
            (Merge::NotWanted, other) => other,
            (first, _) => first,
        }
    }
}

/// Leaves that may need a merge.
#[derive(Default)]
pub(crate) struct Notes {
    pages: Mutex<Noted>,
    /// The number of due notes, readable without the lock.
    due: AtomicUsize,
}

#[derive(Default)]
struct Noted {
    due: BTreeSet<PageId>,
    put_off: BTreeSet<PageId>,
}

impl Notes {
    /// Notes a leaf that may need a merge.
    pub(crate) fn note(&self, page: PageId) {
        let mut pages = self.pages.lock();
        pages.due.insert(page);
        // Put-off notes are retried, because the obstacle may be gone.
        self.recall(&mut pages);
    }

    /// Takes the next due note.
    pub(crate) fn next(&self) -> Option<PageId> {
        if self.due.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut pages = self.pages.lock();
        let page = pages.due.pop_first();
        self.due.store(pages.due.len(), Ordering::Relaxed);
        page
    }

    /// Puts a note off: it becomes due again with the next note.
    pub(crate) fn put_off(&self, page: PageId) {
        if !mutation::on("busy-leaf-forgotten") {
            self.pages.lock().put_off.insert(page);
        }
    }

    /// Makes all put-off notes due again.
    pub(crate) fn try_again(&self) {
        self.recall(&mut self.pages.lock());
    }

    fn recall(&self, pages: &mut Noted) {
        let mut put_off = std::mem::take(&mut pages.put_off);
        pages.due.append(&mut put_off);
        self.due.store(pages.due.len(), Ordering::Relaxed);
    }

    /// The number of notes that are due now.
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
