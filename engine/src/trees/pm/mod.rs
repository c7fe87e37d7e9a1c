//! Trees whose leaves are in persistent memory.

mod ccl;
mod clean;
mod global;
pub(crate) mod leaves;
mod merge;
pub(crate) mod recover;
mod write;

pub(crate) use ccl::Ccl;
pub(crate) use global::Global;

use crate::error::Result;
use crate::kv::Visitor;
use crate::pager::Progress;
use crate::pm::logs::Logs;
use crate::pm::nodes::Change;
use leaves::{Above, Leaves, NothingAbove};

/// A tree in persistent memory.
pub(crate) enum PmTree {
    /// Every write goes to its leaf: no buffer, no log.
    Plain(Leaves),
    /// Leaf-node-centric buffering (CCL-BTree).
    Ccl(Ccl),
    /// One buffer for all leaves.
    Global(Global),
}

impl PmTree {
    /// The leaves and their index, which all trees have.
    pub(crate) fn leaves(&self) -> &Leaves {
        match self {
            PmTree::Plain(leaves) => leaves,
            PmTree::Ccl(tree) => &tree.leaves,
            PmTree::Global(tree) => &tree.leaves,
        }
    }

    /// The logs, if there are any.
    pub(crate) fn logs(&self) -> Option<&Logs> {
        match self {
            PmTree::Plain(_) => None,
            PmTree::Ccl(tree) => Some(&tree.logs),
            PmTree::Global(tree) => Some(&tree.logs),
        }
    }

    fn above(&self) -> &dyn Above {
        match self {
            PmTree::Plain(_) | PmTree::Ccl(_) => &NothingAbove,
            PmTree::Global(tree) => tree,
        }
    }

    /// Makes a change to `key`, durable when this returns. If it fails for lack of space, nothing has changed.
    pub(crate) fn change(&self, key: &[u8], change: Change) -> Result<()> {
        match self {
            PmTree::Plain(leaves) => {
                let (leaf, mut held) = leaves.lock(key);
                let written = leaves.flush(&mut held, leaf, Some(change))?;
                drop(held);
                if written.is_sparse() {
                    leaves.merge_around(leaf)?;
                }
                Ok(())
            }
            PmTree::Ccl(tree) => tree.change(key, change),
            PmTree::Global(tree) => tree.change(key, change),
        }
    }

    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        match self {
            PmTree::Plain(_) | PmTree::Ccl(_) => self.leaves().get(key, value),
            PmTree::Global(tree) => tree.get(key, value),
        }
    }

    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        self.leaves().scan(self.above(), from, visit)
    }

    pub(crate) fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        self.leaves().scan_back(self.above(), before, visit)
    }

    /// Whether the log wants cleaning, or is being cleaned.
    pub(crate) fn cleaning_due(&self) -> bool {
        match self {
            PmTree::Plain(_) => false,
            PmTree::Ccl(tree) => tree.cleaning_due(),
            PmTree::Global(tree) => tree.merge_due(),
        }
    }

    /// One bounded step of that.
    pub(crate) fn clean(&self) -> Result<Progress> {
        match self {
            PmTree::Plain(_) => Ok(Progress::Idle),
            PmTree::Ccl(tree) => tree.clean(),
            PmTree::Global(tree) => tree.merge(),
        }
    }

    /// All of it, so that records which wait for it are free. If it fails for lack of space, what is buffered stays so.
    pub(crate) fn clean_all(&self) -> Result<()> {
        match self {
            PmTree::Plain(_) => Ok(()),
            PmTree::Ccl(tree) => tree.clean_all(),
            PmTree::Global(tree) => tree.merge_all(),
        }
    }

    /// Writes what is buffered to the leaves and gives up the log.
    pub(crate) fn flush_all(&self) -> Result<()> {
        match self {
            PmTree::Plain(_) => Ok(()),
            PmTree::Ccl(tree) => tree.flush_and_give_up(),
            PmTree::Global(tree) => tree.merge_all(),
        }
    }
}
