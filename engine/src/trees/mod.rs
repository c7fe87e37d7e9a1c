//! The trees, each composed of the parts below it.

pub(crate) mod bf;
pub(crate) mod btree;
mod merging;
mod notes;

use crate::error::Result;
use crate::events::{Hook, Observer};
use crate::kv::Visitor;
use crate::mini;
use crate::stats::{RingUse, Stats};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::types::Progress;
use crate::types::{Lsn, PageId};

pub(crate) use bf::Again;
use bf::BfTree;
use btree::{Attempt, BTree};

/// A tree whose leaves are pages.
#[allow(
    clippy::large_enum_variant,
    reason = "a store has one, and every operation goes through it: no pointer between"
)]
pub(crate) enum Tree {
    /// The conventional tree.
    BTree(Box<BTree>),
    /// The tree with mini-pages in a ring.
    Bf(Box<BfTree>),
}

impl Tree {
    /// The leaves: pages, log and index, which all trees have.
    pub(crate) fn leaves(&self) -> &BTree {
        match self {
            Tree::BTree(tree) => tree,
            Tree::Bf(tree) => tree.leaves(),
        }
    }

    /// What the ring holds; `None` without one.
    pub(crate) fn ring_use(&self) -> Option<RingUse> {
        match self {
            Tree::BTree(_) => None,
            Tree::Bf(tree) => Some(tree.ring_use()),
        }
    }

    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        match self {
            Tree::BTree(tree) => tree.get(key, value),
            Tree::Bf(tree) => tree.get(key, value),
        }
    }

    pub(crate) fn try_put(&self, key: &[u8], value: &[u8]) -> Result<Attempt<Lsn>> {
        match self {
            Tree::BTree(tree) => tree.try_put(key, value),
            Tree::Bf(tree) => tree.try_put(key, value),
        }
    }

    /// Reports what happens to mini-pages, if the tree has any, to `observer`.
    pub(crate) fn observe_mini_pages(&mut self, observer: Arc<dyn Observer<mini::events::Event>>) {
        if let Tree::Bf(tree) = self {
            tree.hook = Hook::new(Some(observer));
        }
    }

    /// Deletes a key. The flag says that some leaf may need a merge: the caller performs a step of
    /// it ([`Tree::merge_step`]).
    pub(crate) fn try_delete(&self, key: &[u8]) -> Result<Attempt<(Lsn, bool)>> {
        match self {
            Tree::BTree(tree) => tree.try_delete(key),
            Tree::Bf(tree) => tree.try_delete(key),
        }
    }

    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        match self {
            Tree::BTree(tree) => tree.scan(from, visit),
            Tree::Bf(tree) => tree.scan(from, visit),
        }
    }

    pub(crate) fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        match self {
            Tree::BTree(tree) => tree.scan_back(before, visit),
            Tree::Bf(tree) => tree.scan_back(before, visit),
        }
    }

    /// Performs one bounded step of a checkpoint: from page `from` on, merges dirty data buffered
    /// above the leaves into them, or logs it again as far as it may. Returns the page to continue from, if there is one.
    pub(crate) fn push_down(&self, from: PageId, again: &mut Again) -> Result<Option<PageId>> {
        match self {
            Tree::BTree(_) => Ok(None),
            Tree::Bf(tree) => tree.push_down(from, again),
        }
    }

    /// Performs one bounded step of weighing what is buffered above the leaves, from page `from`
    /// on, so that a checkpoint can choose what to log again. Returns the page to continue from, if
    /// there is one.
    pub(crate) fn weigh(&self, from: PageId, again: &mut Again) -> Result<Option<PageId>> {
        match self {
            Tree::BTree(_) => Ok(None),
            Tree::Bf(tree) => tree.weigh(from, again),
        }
    }

    /// Bytes that a checkpoint may log again, if the log grows by `every` bytes between checkpoints.
    pub(crate) fn may_log_again(&self, every: u64) -> u64 {
        match self {
            Tree::BTree(_) => 0,
            Tree::Bf(tree) => tree.may_log_again(every),
        }
    }

    /// The most pages that merging what is buffered above the leaves may split off.
    pub(crate) fn pages_owed(&self) -> u64 {
        match self {
            Tree::BTree(_) => 0,
            Tree::Bf(tree) => tree.pages_owed(),
        }
    }

    /// Returns whether the buffers above the leaves are so full that eviction should run ahead of
    /// need.
    pub(crate) fn evict_due(&self) -> bool {
        match self {
            Tree::BTree(_) => false,
            Tree::Bf(tree) => tree.evict_due(),
        }
    }

    /// Performs one step of eviction ahead of need.
    pub(crate) fn evict(&self) -> Result<Progress> {
        match self {
            Tree::BTree(_) => Ok(Progress::Idle),
            Tree::Bf(tree) => tree.evict(),
        }
    }

    /// Returns `io` with the tree's own counters filled in.
    pub(crate) fn stats(&self, io: Stats) -> Stats {
        let leaves = self.leaves();
        let base = Stats {
            splits: leaves.splits.load(Ordering::Relaxed),
            merges: leaves.merges.load(Ordering::Relaxed),
            contended_writes: leaves.contended_writes.load(Ordering::Relaxed),
            contention_splits: leaves.contention_splits.load(Ordering::Relaxed),
            leaf_pages: leaves.index.len() as u64,
            index_bytes: leaves.index.bytes() as u64,
            ..io
        };
        match self {
            Tree::BTree(_) => base,
            Tree::Bf(tree) => tree.stats(base),
        }
    }
}
