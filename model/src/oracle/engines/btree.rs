//! Treering's own page trees on either page store.

use std::sync::Arc;

use treering_engine::{
    BfOptions, Durability, Kv, Options, PageStoreKind, Result, Store, SystemClock, TablePersist,
    TreeKind, node, verify,
};

use crate::oracle::{Disk, DiskKind, Engine, Limits, Promise};

/// How large everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// Fewest frames, a log of 24 pages, a device of 200: everything that can fill up or wrap does within two hundred
    /// operations.
    Tiny,
    /// A cache of 64 pages and a device of 16,384.
    Small,
}

/// [`Store`] under judgement.
#[derive(Clone, Debug)]
pub struct BTree {
    store: PageStoreKind,
    options: Options,
    blocks: u64,
}

impl BTree {
    /// The names of the variants that the oracle runs.
    pub const NAMES: [&str; 4] = [
        "btree:in-place",
        "btree:in-place-16k",
        "btree:cow",
        "btree:cow-lazy",
    ];

    /// The same with mini-pages in a ring.
    pub const BF_NAMES: [&str; 4] = ["bf:in-place", "bf:in-place-16k", "bf:cow", "bf:cow-lazy"];

    /// Those with pages so small that a few keys split and merge them.
    pub const SMALL_PAGES: [&str; 3] = ["btree:in-place", "btree:cow", "btree:cow-lazy"];

    /// The same with mini-pages in a ring.
    pub const BF_SMALL_PAGES: [&str; 3] = ["bf:in-place", "bf:cow", "bf:cow-lazy"];

    /// A variant by name.
    #[must_use]
    pub fn named(name: &str, geometry: Geometry) -> Option<BTree> {
        // Pages of several blocks can be torn.
        let page_size = if name.ends_with("-16k") {
            16_384
        } else {
            4_096
        };
        let (tree, store) = name.split_once(':')?;
        let tree = match tree {
            "btree" => TreeKind::BTree,
            "bf" => TreeKind::Bf(BfOptions::default()),
            _ => return None,
        };
        let store = match store {
            "in-place" | "in-place-16k" => PageStoreKind::InPlace,
            "cow" => PageStoreKind::CopyOnWrite {
                table: TablePersist::EachFlush,
            },
            "cow-lazy" => PageStoreKind::CopyOnWrite {
                table: TablePersist::Checkpoint,
            },
            _ => return None,
        };
        Some(BTree::with(tree, store, page_size, geometry))
    }

    /// A variant with pages of `page_size` bytes.
    #[must_use]
    pub fn new(store: PageStoreKind, page_size: usize, geometry: Geometry) -> BTree {
        BTree::with(TreeKind::BTree, store, page_size, geometry)
    }

    fn with(tree: TreeKind, store: PageStoreKind, page_size: usize, geometry: Geometry) -> BTree {
        let page = page_size as u64;
        let (frames, pages, log_pages) = match geometry {
            Geometry::Tiny => (16, 200, 24),
            Geometry::Small => (64, 16_384, 64),
        };
        // A ring of so few pages that it goes round within as many operations.
        let ring = if tree == TreeKind::BTree {
            0
        } else {
            frames / 4
        };
        let log_bytes = log_pages * page;
        let options = Options {
            tree,
            store,
            page_size,
            cache_bytes: (frames + ring) * page,
            durability: Durability::Deferred,
            log_bytes,
            checkpoint_log_bytes: log_bytes / 4,
            log_buffer_bytes: log_bytes / 16,
            write_batch_pages: 3,
            ..Options::default()
        };
        BTree {
            store,
            options,
            blocks: pages * page / treering_engine::BLOCK_SIZE as u64,
        }
    }
}

impl Engine for BTree {
    fn name(&self) -> String {
        let store = match self.store {
            PageStoreKind::InPlace => "in-place",
            PageStoreKind::CopyOnWrite {
                table: TablePersist::EachFlush,
            } => "cow",
            PageStoreKind::CopyOnWrite {
                table: TablePersist::Checkpoint,
            } => "cow-lazy",
            PageStoreKind::Shadow => "shadow",
        };
        let tree = match self.options.tree {
            TreeKind::BTree => "btree",
            TreeKind::Bf(_) => "bf",
        };
        match self.options.page_size {
            4_096 => format!("{tree}:{store}"),
            bytes => format!("{tree}:{store}-{}k", bytes / 1024),
        }
    }

    fn disk(&self) -> DiskKind {
        DiskKind::Blocks(self.blocks)
    }

    fn promise(&self) -> Promise {
        match self.options.durability {
            Durability::PerCommit => Promise::OnReturn,
            Durability::Deferred | Durability::Grouped(_) => Promise::OnSync,
        }
    }

    fn limits(&self) -> Limits {
        let limits = node::limits(self.options.page_size);
        Limits {
            max_key: limits.max_key,
            max_record: limits.max_record,
            empty_key: true,
        }
    }

    fn open(&self, disk: &Disk) -> Result<Arc<dyn Kv>> {
        let Disk::Blocks(device) = disk else {
            unreachable!("the oracle gives the kind of disk that was asked for");
        };
        let clock = Arc::new(SystemClock::new());
        Ok(Arc::new(Store::open(
            Arc::clone(device),
            clock,
            &self.options,
        )?))
    }

    fn damage(&self, disk: &Disk) -> Result<Vec<String>> {
        let Disk::Blocks(device) = disk else {
            unreachable!("the oracle gives the kind of disk that was asked for");
        };
        Ok(verify(Arc::clone(device))?.damage)
    }
}
