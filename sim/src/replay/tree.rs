//! The tree that is replayed, and everything in a replay that depends on its kind.

use treering_engine::{BLOCK_SIZE, Options, PmOptions, PmTreeKind};
use treering_traces::Header;

use super::error::{ReplayError, setting};
use super::fit::Takes;
use super::target::Target;
use crate::pm::XPLINE_SIZE;

/// A tree and its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A tree of pages on a block device. A replay sets `cache_bytes` and `durability` itself.
    Pages(Options),
    /// A tree in persistent memory.
    Pm(PmOptions),
    /// No tree: the trace's own writes go straight to the blocks of a drive.
    Direct,
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
            Tree::Direct => "none",
        }
    }

    /// The options of a tree of pages; anything else is replaced by the default tree of
    /// pages.
    pub fn pages_mut(&mut self) -> &mut Options {
        if let Tree::Pm(_) | Tree::Direct = self {
            *self = Tree::Pages(Options::default());
        }
        match self {
            Tree::Pages(options) => options,
            Tree::Pm(_) | Tree::Direct => unreachable!("it has just become one of pages"),
        }
    }

    /// Size in bytes of the unit that records are stored in.
    pub(super) fn unit_bytes(&self) -> usize {
        match self {
            Tree::Pages(options) => options.page_size,
            Tree::Pm(_) => XPLINE_SIZE,
            Tree::Direct => BLOCK_SIZE,
        }
    }

    /// The limits of its records in a replay of a trace with this header.
    pub(super) fn takes(&self, header: &Header) -> Takes {
        match self {
            Tree::Pages(options) => {
                Takes::of_pages(&treering_engine::node::limits(options.page_size))
            }
            Tree::Pm(_) => Takes::WITHOUT_PAGES,
            // A block of a block trace is a whole block of the drive.
            Tree::Direct => Takes {
                record_bytes: header.addresses.then_some(BLOCK_SIZE),
                ..Takes::WITHOUT_PAGES
            },
        }
    }

    /// The error for a device that it does not run on.
    pub(super) fn not_on(&self, target: &Target) -> ReplayError {
        let runs_on = match self {
            Tree::Pages(_) => "a drive or a file",
            Tree::Pm(_) => "persistent memory",
            Tree::Direct => "a simulated drive",
        };
        let (device, name) = (target.name(), self.name());
        setting("device", format!("{device}; {name} expects {runs_on}"))
    }
}
