//! The registry of trees: each is one entry, and what a spec leaves out is what the entry says.

use super::TreeSpec;
use super::pages::PageTree;
use crate::options::{LayoutChoice, LogPacking, PageStoreKind, PmTreeKind};

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
    pub tree: TreeSpec,
}

/// All trees: those of pages, which are compositions of parts, and those in persistent memory, each
/// of which says of itself what stands here.
#[must_use]
pub fn trees() -> Vec<TreeEntry> {
    let pages = [
        (
            PageTree::btree(),
            "conventional B-tree over a page cache, the baseline",
            "B-Trees Are Back",
        ),
        (
            PageTree::bf(),
            "mini-pages in a ring above the leaves",
            "Bf-Tree",
        ),
        (
            PageTree::bminus(),
            "shadowed pages of 8 KiB with a modification log, and a sparse redo log",
            "B⁻-tree",
        ),
    ];
    let pages = pages.into_iter().map(|(tree, about, source)| TreeEntry {
        name: tree.name(),
        about,
        source,
        tree: TreeSpec::Pages(tree),
    });
    let pm = PmTreeKind::all().into_iter().map(|tree| TreeEntry {
        name: tree.name(),
        about: tree.part().about(),
        source: tree.part().source(),
        tree: TreeSpec::Pm(tree),
    });
    pages.chain(pm).collect()
}

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
