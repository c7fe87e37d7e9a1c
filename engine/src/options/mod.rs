//! Options of stores and their defaults. This module depends on the rest of the engine only for its
//! error type and its basic types.

mod check;
mod contention;
mod durability;
pub(crate) mod layout;
pub(crate) mod limits;
mod pages;
pub(crate) mod param;
pub(crate) mod pm;
mod tree;

pub use contention::ContentionSplit;
pub use durability::{Durability, LogPacking};
pub use layout::{LayoutChoice, PageLayout};
pub use limits::MIN_CACHE_PAGES;
pub use pages::{ModLog, PageStoreKind, ResetRule, TablePersist};
pub use param::Param;
pub(crate) use pm::*;
pub use tree::{BfOptions, Policy, Promote, TreeKind};

/// How a store is made and run.
///
/// Some options are recorded in the store when it is made. [`Options::of_store`] reads those back.
///
/// ```
/// use std::sync::Arc;
/// use treering_engine::device::MemDevice;
/// use treering_engine::prelude::*;
/// use treering_engine::{Error, SystemClock};
///
/// let device = Arc::new(MemDevice::new(1 << 15));
/// let large_pages = Options { page_size: 16 << 10, ..Options::default() };
/// let store = Store::open(device.clone(), Arc::new(SystemClock::new()), &large_pages)?;
/// store.close()?;
///
/// // The store has pages of 16 KiB, the default is 4 KiB.
/// let opened = Store::open(device, Arc::new(SystemClock::new()), &Options::default());
/// assert!(matches!(opened, Err(Error::Mismatch { name: "page size", .. })));
/// # Ok::<(), treering_engine::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The tree. Default: `BTree`.
    pub tree: TreeKind,
    /// The page store. Default: `InPlace`.
    pub store: PageStoreKind,
    /// The modification log of pages, or `None` for pages without one. Works with any page store.
    /// Default: `None`.
    pub mod_log: Option<ModLog>,
    /// The layout of records in leaf pages. Default: `None`, which means [`TreeKind::layouts`].
    /// With a dense layout, leaves become dense where their records allow it. Pages of an existing
    /// store keep their layout until this rule converts them.
    pub layout: Option<LayoutChoice>,
    /// Splits leaves that writers wait for, or `None` to split only full ones. Only for a
    /// [`TreeKind::BTree`]: the writers of a Bf-Tree do not meet at its leaves. Default: `None`, as
    /// in the paper except where it measures this (§7.3). A store with one thread gains nothing.
    /// Not recorded in the store.
    pub contention_split: Option<ContentionSplit>,
    /// Page size in bytes: a power of two from 4 KiB to 64 KiB. Default: 4 KiB.
    pub page_size: usize,
    /// Cache budget in bytes. Covers page frames and, for a tree with mini-pages, their ring.
    /// Default: 64 MiB.
    pub cache_bytes: u64,
    /// When writes become durable. Default: `PerCommit`, so a write is durable when it returns. The
    /// other choices are faster.
    pub durability: Durability,
    /// How records are packed in the log. Default: `Packed`.
    pub log_packing: LogPacking,
    /// Size of the log's circular region in bytes. Default: 64 MiB.
    pub log_bytes: u64,
    /// A checkpoint comes due when the log has grown by this many bytes since the last one began.
    /// Default: half of the default `log_bytes`.
    pub checkpoint_log_bytes: u64,
    /// The log is flushed when this many bytes of it are unflushed. Default: 256 KiB.
    pub log_buffer_bytes: u64,
    /// Most pages that one write-back step writes. Default: 32; a small cache writes fewer.
    pub write_batch_pages: usize,
    /// Largest size of the store in bytes, on a device that can grow, such as a file. Default:
    /// `None`: the size of the device when the store is made. Recorded in the store.
    pub limit_bytes: Option<u64>,
    /// Most entries in an inner node of the in-memory index: 3 to 170. Default: 170, for nodes of 4
    /// KiB. With few entries, a small tree is as deep as a large one. Not recorded in the store.
    pub index_entries: usize,
    /// First LSN of a new store's log, in bytes, rounded up to a block; at most 2^62. It changes
    /// only numbers. For tests of stores that have written much. Default: 0.
    pub first_lsn: u64,
    /// Whether to format the device if it holds no store. Default: true.
    pub create: bool,
    /// Whether to open the store without writing to the device. Recovery then works in memory, and
    /// `put` and `delete` return [`crate::Error::ReadOnly`]. Several stores may have the device
    /// open in this way at once. For a store on a full file system, one that must not be changed,
    /// or a file without write permission ([`crate::device::FileAccess::ReadOnly`]). Default:
    /// false.
    pub read_only: bool,
}

impl Options {
    /// Returns the layouts that leaves may have.
    #[must_use]
    pub fn leaf_layouts(&self) -> LayoutChoice {
        self.layout.unwrap_or(self.tree.layouts())
    }

    /// Returns the layout of new leaves.
    #[must_use]
    pub fn page_layout(&self) -> PageLayout {
        self.leaf_layouts().general()
    }

    /// Returns the size of the smallest cache that works.
    #[must_use]
    pub fn least_cache_bytes(&self) -> u64 {
        let pages = match self.tree {
            TreeKind::BTree => MIN_CACHE_PAGES,
            // Room for two mini-pages of half a page each, with their overhead.
            TreeKind::Bf(_) => MIN_CACHE_PAGES + 2,
        };
        pages * self.page_size as u64
    }

    /// Returns the number of page frames: the whole cache, or a sixteenth of it if mini-pages use
    /// the rest.
    #[must_use]
    pub fn frames(&self) -> u64 {
        let pages = self.cache_bytes / self.page_size as u64;
        match self.tree {
            TreeKind::BTree => pages,
            TreeKind::Bf(_) => (pages / 16).max(MIN_CACHE_PAGES),
        }
    }

    /// Returns the number of bytes for mini-pages.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        let frames = self.frames() * self.page_size as u64;
        self.cache_bytes.saturating_sub(frames)
    }
}
