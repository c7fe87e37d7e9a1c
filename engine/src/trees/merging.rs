//! Merging of leaves as background work: single steps, the part that a checkpoint does, and the
//! last resort of a full store.

use super::Tree;
use super::notes::Merge;
use crate::error::{Error, Result};
use crate::mutation;
use crate::sync::atomic::Ordering;
use crate::types::PageId;
use crate::types::Progress;

impl Tree {
    /// Returns whether leaves are noted that may need a merge.
    pub(crate) fn merge_due(&self) -> bool {
        self.leaves().notes.due() > 0
    }

    /// Performs one step: takes a note, and merges its leaf with a neighbour if the rule allows it.
    ///
    /// # Errors
    /// If the device fails, or the store has failed before; the note is then put off. A damaged
    /// leaf is skipped: an operation that needs it will report it.
    pub(crate) fn merge_step(&self) -> Result<Progress> {
        let notes = &self.leaves().notes;
        let Some(page) = notes.next() else {
            return Ok(Progress::Idle);
        };
        let merged = (self.leaves().pager.check_poison()).and_then(|()| self.merge_leaf(page));
        match merged {
            Ok(Merge::Done | Merge::NotWanted) => {}
            Ok(Merge::PutOff | Merge::NeedsSpare) => notes.put_off(page),
            Err(Error::Damaged { .. } | Error::MissingPage { .. }) => {}
            Err(e) => {
                notes.put_off(page);
                return Err(e);
            }
        }
        Ok(if self.merge_due() {
            Progress::More
        } else {
            Progress::Idle
        })
    }

    fn merge_leaf(&self, page: PageId) -> Result<Merge> {
        match self {
            Tree::BTree(tree) => tree.merge_leaf(page),
            Tree::Bf(tree) => tree.merge_leaf(page),
        }
    }

    /// The number of steps that a checkpoint performs: as many as there are notes when it begins,
    /// and one for each merge that may follow.
    pub(crate) fn merges_owed(&self) -> u64 {
        if mutation::on("checkpoint-forgets-notes") {
            return 0;
        }
        let leaves = self.leaves();
        leaves.notes.try_again();
        match leaves.notes.due() {
            0 => 0,
            due => (due + leaves.index.len()) as u64,
        }
    }

    /// Merges neighbours that fit one page, or three that fit two, from the leaf that covers `from`
    /// on, until `wanted` pages have been freed. Returns where to continue, or `None` at the end of
    /// the keys.
    ///
    /// # Errors
    /// Device failures, and damage of a leaf.
    pub(crate) fn squeeze(&self, from: Vec<u8>, wanted: u64) -> Result<Option<Vec<u8>>> {
        let merges = &self.leaves().merges;
        let before = merges.load(Ordering::Relaxed);
        let mut at = from;
        while merges.load(Ordering::Relaxed) - before < wanted {
            let (merged, next) = match self {
                Tree::BTree(tree) => tree.squeeze(&at)?,
                Tree::Bf(tree) => tree.squeeze(&at)?,
            };
            // A leaf that has absorbed its neighbour may absorb the next one, too.
            if merged == Merge::Done {
                continue;
            }
            match next {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }
}
