//! Options of stores and their defaults. Nothing here depends on the rest of the engine but for
//! its error type and its basic types.

mod check;
mod contention;
mod durability;
pub(crate) mod layout;
pub(crate) mod limits;
mod pages;
pub(crate) mod param;
mod pm;
mod tree;

pub use contention::ContentionSplit;
pub use durability::{Durability, LogPacking};
pub use layout::{LayoutChoice, PageLayout};
pub use limits::MIN_CACHE_PAGES;
pub use pages::{ModLog, PageStoreKind, ResetRule, TablePersist};
pub use param::Param;
pub(crate) use pm::part;
pub use pm::{
    CclOptions, Cleaning, GlobalOptions, LodgeOptions, Logging, NodeSplit, PmOptions, PmTreeKind,
};
pub use tree::{BfOptions, TreeKind};

/// How a store is made and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The tree. Default: `BTree`.
    pub tree: TreeKind,
    /// The page store. Default: `InPlace`.
    pub store: PageStoreKind,
    /// Whether pages have a modification log, in any page store. Default: none.
    pub mod_log: Option<ModLog>,
    /// How leaf pages lay out their records; `None`: as [`TreeKind::layouts`] says. A dense layout is one that leaves take on where
    /// their records let them. In a store that is there already pages keep theirs until they change it by that rule.
    pub layout: Option<LayoutChoice>,
    /// Whether leaves that writers wait for are split, in a [`TreeKind::BTree`]; over the leaves of a Bf-Tree writers do not meet. Default: none, as the paper has it but where
    /// it measures this (§7.3): a store with one thread gains nothing. Not kept with the store.
    pub contention_split: Option<ContentionSplit>,
    /// Page size in bytes: a power of two from 4 KiB to 64 KiB. Default: 4 KiB.
    pub page_size: usize,
    /// Cache budget in bytes: page frames and, where there are mini-pages, their ring. Default: 64 MiB.
    pub cache_bytes: u64,
    /// When writes are durable. Default: `PerCommit`, when they return; faster ones are asked for
    /// by name.
    pub durability: Durability,
    /// How records lie in the log. Default: `Packed`.
    pub log_packing: LogPacking,
    /// Size of the log's circular region in bytes. Default: 64 MiB.
    pub log_bytes: u64,
    /// A checkpoint comes due when the log has grown by this much since the last one began. Default: half of
    /// `log_bytes`.
    pub checkpoint_log_bytes: u64,
    /// The log is flushed when this much of it is unflushed. Default: 256 KiB.
    pub log_buffer_bytes: u64,
    /// Most pages that one write-back step writes. Default: 32; less in a small cache.
    pub write_batch_pages: usize,
    /// How large the store may become in bytes, where its device can grow as a file does. Default:
    /// `None`, as large as the device is when the store is made. Kept with the store.
    pub limit_bytes: Option<u64>,
    /// Entries of an inner node at most, which are in memory: 3 to 170. Default: 170, nodes of
    /// 4 KiB; with few entries a small tree is as deep as a large one. Not kept with the store.
    pub index_entries: usize,
    /// The LSN that a new store's log begins with, in bytes, rounded up to a block; at most 2^62. It
    /// changes nothing but numbers: for tests of stores that have written much. Default: 0.
    pub first_lsn: u64,
    /// Format the device when it holds no store. Default: true.
    pub create: bool,
    /// Write nothing: recovery works in memory, `put` and `delete` return [`Error::ReadOnly`].
    /// Others may have the device open so at the same time. For a store on a full file system, one
    /// that must not be changed, or a file that may not be written
    /// ([`crate::device::FileAccess::ReadOnly`]). Default: false.
    pub read_only: bool,
}

impl Options {
    /// The defaults of everything that is not the tree's; the tree is `btree` with its parts.
    pub(crate) fn unset() -> Options {
        Options {
            tree: TreeKind::BTree,
            store: PageStoreKind::InPlace,
            mod_log: None,
            layout: None,
            contention_split: None,
            page_size: 4096,
            cache_bytes: 64 << 20,
            durability: Durability::PerCommit,
            log_packing: LogPacking::Packed,
            log_bytes: 64 << 20,
            checkpoint_log_bytes: 32 << 20,
            log_buffer_bytes: 256 << 10,
            write_batch_pages: 32,
            limit_bytes: None,
            index_entries: *limits::INDEX_ENTRIES.end(),
            first_lsn: 0,
            create: true,
            read_only: false,
        }
    }
}

impl Options {
    /// The layouts of leaves.
    #[must_use]
    pub fn leaf_layouts(&self) -> LayoutChoice {
        self.layout.unwrap_or(self.tree.layouts())
    }

    /// The layout that leaves begin with.
    #[must_use]
    pub fn page_layout(&self) -> PageLayout {
        self.leaf_layouts().general()
    }

    /// The smallest cache that works.
    #[must_use]
    pub fn least_cache_bytes(&self) -> u64 {
        let pages = match self.tree {
            TreeKind::BTree => MIN_CACHE_PAGES,
            // Two mini-pages of half a page, and a little.
            TreeKind::Bf(_) => MIN_CACHE_PAGES + 2,
        };
        pages * self.page_size as u64
    }

    /// Frames for pages: all of the cache, or, below mini-pages, a sixteenth of it.
    #[must_use]
    pub fn frames(&self) -> u64 {
        let pages = self.cache_bytes / self.page_size as u64;
        match self.tree {
            TreeKind::BTree => pages,
            TreeKind::Bf(_) => (pages / 16).max(MIN_CACHE_PAGES),
        }
    }

    /// Bytes for mini-pages.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        let frames = self.frames() * self.page_size as u64;
        self.cache_bytes.saturating_sub(frames)
    }
}
