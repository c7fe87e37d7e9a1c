//! Merging as background work: a step, what a checkpoint does of it, and the last resort of a full
//! store.

use super::Tree;
use super::notes::Merge;
use crate::error::{Error, Result};
use crate::mutation;
use crate::sync::atomic::Ordering;
use crate::types::PageId;
use crate::types::Progress;

impl Tree {
    /// Whether leaves are noted that may want a merge.
    pub(crate) fn merge_due(&self) -> bool {
        self.leaves().notes.due() > 0
    }

    /// One step: takes a note, and merges its leaf with a neighbour if the rule says so.
    ///
    /// # Errors
    /// A device failure, or the store has failed before. The note is put off then. A damaged leaf
    /// is left to whoever needs it.
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

    /// How many steps a checkpoint does: as many as there are notes when it comes to them, and one
    /// for each merge that may follow.
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

    /// Merges neighbours that fit one page, or two if they are three, from the leaf that covers `from` on,
    /// until `wanted` pages are merged away; returns where to go on, or `None` at the end of the
    /// keys.
    ///
    /// # Errors
    /// Device failures; damage of a leaf.
    pub(crate) fn squeeze(&self, from: Vec<u8>, wanted: u64) -> Result<Option<Vec<u8>>> {
        let merges = &self.leaves().merges;
        let before = merges.load(Ordering::Relaxed);
        let mut at = from;
        while merges.load(Ordering::Relaxed) - before < wanted {
            let (merged, next) = match self {
                Tree::BTree(tree) => tree.squeeze(&at)?,
                Tree::Bf(tree) => tree.squeeze(&at)?,
            };
            // What has taken over its neighbour may take over the next one, too.
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
