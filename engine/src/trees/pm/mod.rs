//! Trees whose leaves are in persistent memory.

mod ccl;
mod clean;
pub(crate) mod leaves;
mod merge;
pub(crate) mod recover;
mod write;

pub(crate) use ccl::Ccl;

use crate::error::Result;
use crate::pm::nodes::Change;
use leaves::Leaves;

/// A tree in persistent memory.
pub(crate) enum PmTree {
    /// Every write goes to its leaf: no buffer, no log.
    Plain(Leaves),
    /// Leaf-node-centric buffering (CCL-BTree).
    Ccl(Ccl),
}

impl PmTree {
    /// The leaves and their index, which all trees have.
    pub(crate) fn leaves(&self) -> &Leaves {
        match self {
            PmTree::Plain(leaves) => leaves,
            PmTree::Ccl(tree) => &tree.leaves,
        }
    }

    /// Makes a change to `key`, durable when this returns. If it fails for lack of space, nothing has changed.
    pub(crate) fn change(&self, key: &[u8], change: Change) -> Result<()> {
        match self {
            PmTree::Plain(leaves) => {
                let (leaf, mut held) = leaves.lock(key);
                let sparse = leaves.flush_and_look(&mut held, leaf, Some(change))?;
                drop(held);
                if sparse {
                    leaves.merge_around(leaf)?;
                }
                Ok(())
            }
            PmTree::Ccl(tree) => tree.change(key, change),
        }
    }
}
