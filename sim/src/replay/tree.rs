//! The tree that is replayed, and everything in a replay that depends on its kind.

use treering_engine::{Options, PmOptions, PmTreeKind};

use super::fit::Takes;
use crate::pm::XPLINE_SIZE;

/// A tree and its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A tree of pages on a block device. A replay sets `cache_bytes` and `durability` itself.
    Pages(Options),
    /// A tree in persistent memory.
    Pm(PmOptions),
}

impl Tree {
    /// A tree in persistent memory, with default options.
    ///
    /// ```
    /// use treering_engine::PmTreeKind;
    /// use treering_sim::replay::Tree;
    ///
    /// assert_eq!(Tree::pm(PmTreeKind::PmTree).name(), "pmtree");
    /// ```
    #[must_use]
    pub fn pm(tree: PmTreeKind) -> Tree {
        Tree::Pm(PmOptions {
            tree,
            ..PmOptions::default()
        })
    }

    /// Its name in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Tree::Pages(options) => options.tree_name(),
            Tree::Pm(options) => options.tree.name(),
        }
    }

    /// The options of a tree of pages; a tree in persistent memory is replaced by the default tree
    /// of pages.
    pub fn pages_mut(&mut self) -> &mut Options {
        if let Tree::Pm(_) = self {
            *self = Tree::Pages(Options::default());
        }
        match self {
            Tree::Pages(options) => options,
            Tree::Pm(_) => unreachable!("it has just become one of pages"),
        }
    }

    /// Size in bytes of the unit that records are stored in.
    pub(super) fn unit_bytes(&self) -> usize {
        match self {
            Tree::Pages(options) => options.page_size,
            Tree::Pm(_) => XPLINE_SIZE,
        }
    }

    /// The limits of its records.
    pub(super) fn takes(&self) -> Takes {
        match self {
            Tree::Pages(options) => {
                Takes::of_pages(&treering_engine::node::limits(options.page_size))
            }
            Tree::Pm(_) => Takes::OF_MEMORY,
        }
    }

    /// The kind of device that it runs on.
    pub(super) fn runs_on(&self) -> &'static str {
        match self {
            Tree::Pages(_) => "a drive or a file",
            Tree::Pm(_) => "persistent memory",
        }
    }
}
