//! The registry of trees: each is one entry, and what a spec leaves out is what the entry says.

use super::TreeSpec;
use super::pages::PageTree;
use crate::options::{
    CclOptions, GlobalOptions, LayoutChoice, LodgeOptions, LogPacking, PageStoreKind, PmTreeKind,
};

/// Which kind of device a tree needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// A block device: pages of several kibibytes, a cache, a redo log.
    Pages,
    /// Persistent memory: leaves are changed in place, a word at a time.
    Pm,
}

impl Family {
    /// The device that such a tree runs on, as [`crate::device`] calls it.
    #[must_use]
    pub const fn device(self) -> &'static str {
        match self {
            Family::Pages => "block device",
            Family::Pm => "persistent memory",
        }
    }
}

/// A tree in the registry.
pub struct TreeEntry {
    /// Its name in specs, on the command line and in reports.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The tree with *the* defaults.
    pub tree: fn() -> TreeSpec,
}

/// All trees.
pub const TREES: &[TreeEntry] = &[
    TreeEntry {
        name: "btree",
        about: "conventional B-tree over a page cache, the baseline",
        source: "B-Trees Are Back",
        tree: || TreeSpec::Pages(PageTree::btree()),
    },
    TreeEntry {
        name: "bf",
        about: "mini-pages in a ring above the leaves",
        source: "Bf-Tree",
        tree: || TreeSpec::Pages(PageTree::bf()),
    },
    TreeEntry {
        name: "bminus",
        about: "shadowed pages of 8 KiB with a modification log, and a sparse redo log",
        source: "B⁻-tree",
        tree: || TreeSpec::Pages(PageTree::bminus()),
    },
    TreeEntry {
        name: "ccl",
        about: "a buffer node for each leaf, over a log that trigger writes skip",
        source: "CCL-BTree",
        tree: || TreeSpec::Pm(PmTreeKind::Ccl(CclOptions::default())),
    },
    TreeEntry {
        name: "lodge",
        about: "a buffer in the free slots of last-level inner nodes, over a partitioned log",
        source: "LodgeTree",
        tree: || TreeSpec::Pm(PmTreeKind::Lodge(LodgeOptions::default())),
    },
    TreeEntry {
        name: "pmtree",
        about: "every write goes to its leaf, the baseline in persistent memory",
        source: "CCL-BTree §5.2",
        tree: || TreeSpec::Pm(PmTreeKind::PmTree),
    },
    TreeEntry {
        name: "pmtree-global",
        about: "one buffer for all leaves, in the manner of DPTree",
        source: "CCL-BTree §3.2",
        tree: || TreeSpec::Pm(PmTreeKind::Global(GlobalOptions::default())),
    },
];

/// The parts below a page tree, and the names of each.
#[must_use]
pub fn parts() -> [(&'static str, Vec<&'static str>); 3] {
    let mut stores: Vec<_> = PageStoreKind::ALL.map(PageStoreKind::name).to_vec();
    stores.dedup();
    let logs = LogPacking::NAMED.iter().map(|(name, _)| *name).collect();
    let layouts = LayoutChoice::all().map(LayoutChoice::name).collect();
    [
        ("page store", stores),
        ("redo log", logs),
        ("leaf layout", layouts),
    ]
}
