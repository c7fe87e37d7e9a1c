//! A tree of pages: the tree, and the parts below it.

use crate::error::Result;
use crate::options::limits::INDEX_ENTRIES;
use crate::options::{
    BfOptions, ContentionSplit, Durability, LayoutChoice, LogPacking, ModLog, Options,
    PageStoreKind, TreeKind,
};

/// A tree of pages with the parts below it. Any combination is a tree, unless
/// [`crate::TreeSpec::check`] refuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageTree {
    /// The tree.
    pub tree: TreeKind,
    /// How dirty pages reach the device.
    pub store: PageStoreKind,
    /// The modification log of pages, if they have one.
    pub mod_log: Option<ModLog>,
    /// How records lie in the redo log.
    pub log_packing: LogPacking,
    /// How leaves lay out their records.
    pub layout: LayoutChoice,
    /// Whether leaves that writers wait for are split.
    pub contention_split: Option<ContentionSplit>,
    /// Page size in bytes.
    pub page_size: usize,
}

impl PageTree {
    /// A tree on the parts that most trees have: pages written in place, a packed log, the tree's
    /// own layout, pages of 4 KiB.
    fn plain(tree: TreeKind) -> PageTree {
        PageTree {
            tree,
            store: PageStoreKind::InPlace,
            mod_log: None,
            log_packing: LogPacking::Packed,
            layout: tree.layouts(),
            contention_split: None,
            page_size: 4096,
        }
    }

    /// The conventional B-tree over a page cache, the baseline of all comparisons.
    #[must_use]
    pub fn btree() -> PageTree {
        PageTree::plain(TreeKind::BTree)
    }

    /// The Bf-Tree.
    #[must_use]
    pub fn bf() -> PageTree {
        PageTree::plain(TreeKind::Bf(BfOptions::default()))
    }

    /// The B⁻-tree (B⁻-tree §3, §4.2). It is not another tree, but the conventional one on shadowed
    /// pages of 8 KiB with a modification log, and with a sparse redo log.
    #[must_use]
    pub fn bminus() -> PageTree {
        PageTree {
            store: PageStoreKind::Shadow,
            mod_log: Some(ModLog::default()),
            log_packing: LogPacking::Sparse,
            layout: LayoutChoice::of(crate::options::PageLayout::Slotted),
            page_size: 8192,
            ..PageTree::btree()
        }
    }

    /// What reports call it: the tree's name, or `bminus` if all three parts of that composition
    /// are here.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let parts = (self.store, self.mod_log.is_some(), self.log_packing);
        match (self.tree, parts) {
            (TreeKind::BTree, (PageStoreKind::Shadow, true, LogPacking::Sparse)) => "bminus",
            (tree, _) => tree.name(),
        }
    }

    /// Options of a store with this tree; the rest are defaults.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            tree: self.tree,
            store: self.store,
            mod_log: self.mod_log,
            // The tree's own layout is what an unset option means.
            layout: (self.layout != self.tree.layouts()).then_some(self.layout),
            contention_split: self.contention_split,
            page_size: self.page_size,
            log_packing: self.log_packing,
            cache_bytes: 64 << 20,
            durability: Durability::PerCommit,
            log_bytes: 64 << 20,
            checkpoint_log_bytes: 32 << 20,
            log_buffer_bytes: 256 << 10,
            write_batch_pages: 32,
            limit_bytes: None,
            index_entries: *INDEX_ENTRIES.end(),
            first_lsn: 0,
            create: true,
            read_only: false,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let mut options = self.options();
        options.cache_bytes = options.cache_bytes.max(options.least_cache_bytes());
        options.check()
    }
}

impl Default for Options {
    /// A `btree`, with the defaults that each field states.
    fn default() -> Options {
        PageTree::btree().options()
    }
}

impl Options {
    /// The B⁻-tree ([`PageTree::bminus`]). Durable as by default; the paper measures
    /// [`crate::Durability::PER_MINUTE`].
    #[must_use]
    pub fn bminus() -> Options {
        PageTree::bminus().options()
    }

    /// What reports call the tree: its kind's name, or `bminus` if it is that composition.
    #[must_use]
    pub fn tree_name(&self) -> &'static str {
        self.spec().name()
    }

    /// The tree of these options as a spec.
    ///
    /// ```
    /// use treering_engine::{Options, TreeSpec};
    ///
    /// assert_eq!(Options::bminus().spec().to_string(), "bminus");
    /// ```
    #[must_use]
    pub fn spec(&self) -> super::TreeSpec {
        super::TreeSpec::Pages(PageTree {
            tree: self.tree,
            store: self.store,
            mod_log: self.mod_log,
            log_packing: self.log_packing,
            layout: self.leaf_layouts(),
            contention_split: self.contention_split,
            page_size: self.page_size,
        })
    }
}
