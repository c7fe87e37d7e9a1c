//! Trees whose leaves are in persistent memory.

mod ccl;
mod clean;
mod global;
pub(crate) mod leaves;
pub(crate) mod lodge;
mod merge;
pub(crate) mod recover;
mod scan;
mod share;
mod sweep;
mod write;

pub(crate) use ccl::Ccl;
pub(crate) use global::Global;
pub(crate) use lodge::Lodge;

use crate::error::{Error, Result};
use crate::kv::Visitor;
use crate::mutation;
use crate::pm::logs::{LogicalClock, Logs};
use crate::pm::medium::Medium;
use crate::pm::nodes::Change;
use crate::pm::records::Records;
use crate::pm::space::Space;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::Progress;
use leaves::{Leaves, NothingAbove};

/// A tree in persistent memory.
pub(crate) enum PmTree {
    /// Every write goes to its leaf: no buffer, no log.
    Plain(Leaves),
    /// Leaf-node-centric buffering (CCL-BTree).
    Ccl(Ccl),
    /// One buffer for all leaves.
    Global(Global),
    /// A surrogate buffer in last-level inner nodes (LodgeTree).
    Lodge(Box<Lodge>),
}

/// A sweep that freed one leaf of so many was worth it.
const WORTH_SWEEPING: u64 = 32;

/// What all trees have.
#[derive(Clone, Copy)]
pub(crate) struct Base<'a> {
    pub(crate) medium: &'a Medium,
    pub(crate) space: &'a Space,
    pub(crate) records: &'a Records,
    pub(crate) clock: &'a LogicalClock,
}

impl PmTree {
    /// Leaf splits and merges so far, and bytes of the index.
    pub(crate) fn structure(&self) -> (u64, u64, u64) {
        let of = |leaves: &Leaves| {
            let splits = leaves.counters.splits.load(Relaxed);
            let merges = leaves.counters.merges.load(Relaxed);
            (splits, merges, leaves.index.bytes() as u64)
        };
        match self {
            PmTree::Plain(leaves) => of(leaves),
            PmTree::Ccl(tree) => of(&tree.leaves),
            PmTree::Global(tree) => of(&tree.leaves),
            PmTree::Lodge(tree) => (tree.splits(), tree.merges(), tree.index_bytes()),
        }
    }

    /// What all trees have.
    pub(crate) fn base(&self) -> Base<'_> {
        fn of(leaves: &Leaves) -> Base<'_> {
            Base {
                medium: &leaves.medium,
                space: &leaves.space,
                records: &leaves.records,
                clock: &leaves.clock,
            }
        }
        match self {
            PmTree::Plain(leaves) => of(leaves),
            PmTree::Ccl(tree) => of(&tree.leaves),
            PmTree::Global(tree) => of(&tree.leaves),
            PmTree::Lodge(tree) => Base {
                medium: &tree.medium,
                space: &tree.space,
                records: &tree.records,
                clock: &tree.clock,
            },
        }
    }

    /// The logs, if there are any and they are of chunks that die together.
    pub(crate) fn logs(&self) -> Option<&Logs> {
        match self {
            PmTree::Plain(_) | PmTree::Lodge(_) => None,
            PmTree::Ccl(tree) => Some(&tree.logs),
            PmTree::Global(tree) => Some(&tree.logs),
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
            PmTree::Lodge(tree) => tree.change(key, change),
        }
    }

    /// Deletes without a record of the key or a log entry, if the tree can; says whether it can.
    ///
    /// # Errors
    /// [`Error::PmFull`]: something else is in the way.
    pub(crate) fn delete_in_place(&self, key: &[u8]) -> Result<bool> {
        if mutation::on("pm-delete-wants-a-record") {
            return Ok(false);
        }
        match self {
            PmTree::Plain(leaves) => leaves.delete_in_place(key)?,
            PmTree::Ccl(tree) => {
                let _gate = tree.enter();
                tree.leaves.delete_in_place(key)?;
            }
            PmTree::Global(tree) => return tree.delete_in_place(key),
            PmTree::Lodge(tree) => tree.delete_in_place(key)?,
        }
        Ok(true)
    }

    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        match self {
            PmTree::Plain(leaves) => leaves.get(key, value),
            PmTree::Ccl(tree) => tree.leaves.get(key, value),
            PmTree::Global(tree) => tree.get(key, value),
            PmTree::Lodge(tree) => tree.get(key, value),
        }
    }

    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        match self {
            PmTree::Plain(leaves) => leaves.scan(&NothingAbove, from, visit),
            PmTree::Ccl(tree) => tree.leaves.scan(&NothingAbove, from, visit),
            PmTree::Global(tree) => tree.leaves.scan(tree, from, visit),
            PmTree::Lodge(tree) => tree.scan(from, visit),
        }
    }

    pub(crate) fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        match self {
            PmTree::Plain(leaves) => leaves.scan_back(&NothingAbove, before, visit),
            PmTree::Ccl(tree) => tree.leaves.scan_back(&NothingAbove, before, visit),
            PmTree::Global(tree) => tree.leaves.scan_back(tree, before, visit),
            PmTree::Lodge(tree) => tree.scan_back(before, visit),
        }
    }

    /// Whether the log wants cleaning, or is being cleaned.
    pub(crate) fn cleaning_due(&self) -> bool {
        match self {
            PmTree::Plain(_) => false,
            PmTree::Ccl(tree) => tree.cleaning_due(),
            PmTree::Global(tree) => tree.merge_due(),
            PmTree::Lodge(tree) => tree.cleaning_due(),
        }
    }

    /// One bounded step of that.
    pub(crate) fn clean(&self) -> Result<Progress> {
        match self {
            PmTree::Plain(_) => Ok(Progress::Idle),
            PmTree::Ccl(tree) => tree.clean(),
            PmTree::Global(tree) => tree.merge(),
            PmTree::Lodge(tree) => tree.clean(),
        }
    }

    /// Whether leaves want merging, or are being merged.
    pub(crate) fn merging_due(&self) -> bool {
        match self {
            PmTree::Plain(leaves) => leaves.merging_due(),
            PmTree::Ccl(tree) => tree.leaves.merging_due(),
            PmTree::Global(tree) => tree.leaves.merging_due(),
            PmTree::Lodge(tree) => tree.merging_due(),
        }
    }

    /// One bounded step of that.
    pub(crate) fn merge_step(&self) -> Result<Progress> {
        match self {
            PmTree::Plain(leaves) => leaves.merge_step(),
            PmTree::Ccl(tree) => {
                let _gate = tree.enter();
                tree.leaves.merge_step()
            }
            PmTree::Global(tree) => tree.leaves.merge_step(),
            PmTree::Lodge(tree) => tree.merge_step(),
        }
    }

    /// What can be done for a store that would say it is full: the log is cleaned if records wait
    /// for that, and leaves are merged as far as they fit if any has lost keys since `swept`. Says
    /// how often leaves have lost keys by now; `None` if there was nothing to do. If many leaves were
    /// freed the answer is `swept` as it was: what the next puts split may fit again, so another
    /// sweep is worth its time, which is a few leaf reads for each leaf that the last one freed.
    pub(crate) fn make_room(&self, swept: u64, delete: bool) -> Result<Option<u64>> {
        let space = self.base().space;
        // A delete may wait for what others have deleted, and is only buffered.
        let buffered = delete && self.buffered() > 0;
        let waiting = space.retired_bytes().0 > 0 || buffered;
        if waiting {
            let done = match self {
                PmTree::Ccl(tree) if buffered => tree.flush_what_fits(),
                _ => self.clean_all(),
            };
            match done {
                // What is buffered has no room; merging may make it.
                Ok(()) | Err(Error::PmFull { .. }) => {}
                Err(e) => return Err(e),
            }
        }
        let shrunk = space.shrunk();
        if shrunk == swept || mutation::on("pm-full-before-merge") {
            return Ok(waiting.then_some(shrunk));
        }
        let before = space.leaves();
        match self {
            PmTree::Plain(leaves) => leaves.merge_all(),
            PmTree::Ccl(tree) => {
                let _gate = tree.enter();
                tree.leaves.merge_all()
            }
            PmTree::Global(tree) => tree.leaves.merge_all(),
            PmTree::Lodge(tree) => tree.merge_all(),
        }?;
        let freed = before.saturating_sub(space.leaves());
        let fruitful = freed * WORTH_SWEEPING >= before;
        Ok(Some(if fruitful { swept } else { shrunk }))
    }

    /// Changes that are not in leaves, and so keep what they replace.
    fn buffered(&self) -> u64 {
        match self {
            PmTree::Plain(_) => 0,
            PmTree::Ccl(tree) => tree.leaves.counters.buffered.load(Relaxed),
            PmTree::Global(tree) => tree.buffered(),
            PmTree::Lodge(tree) => tree.buffered(),
        }
    }

    /// All of it, so that records which wait for it are free. If it fails for lack of space, what is buffered stays so.
    pub(crate) fn clean_all(&self) -> Result<()> {
        match self {
            PmTree::Plain(_) => Ok(()),
            PmTree::Ccl(tree) => tree.clean_all(),
            PmTree::Global(tree) => tree.merge_all(),
            PmTree::Lodge(tree) => tree.make_room(),
        }
    }

    /// Writes what is buffered to the leaves and gives up the log.
    pub(crate) fn flush_all(&self) -> Result<()> {
        match self {
            PmTree::Plain(_) => Ok(()),
            PmTree::Ccl(tree) => tree.flush_and_give_up(),
            PmTree::Global(tree) => tree.merge_all(),
            PmTree::Lodge(tree) => tree.flush_all(),
        }
    }
}
