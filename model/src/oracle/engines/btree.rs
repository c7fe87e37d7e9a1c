//! Treering's own page trees on each page store, with and without a modification log.

use std::sync::Arc;

use treering_engine::device::BlockDevice;
use treering_engine::node::LayoutChoice;
use treering_engine::{
    BLOCK_SIZE, BfOptions, ContentionSplit, Durability, IoClass, Kv, Lba, LogPacking, ModLog,
    Options, PageStoreKind, ResetRule, Result, Store, SystemClock, TablePersist, TreeKind, node,
    required_blocks, verify,
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
    name: String,
    options: Options,
    blocks: u64,
}

/// How pages and log reach the device.
#[derive(Clone, Copy)]
struct Parts {
    store: PageStoreKind,
    mod_log: Option<ModLog>,
    log_packing: LogPacking,
    page_size: usize,
}

const COW: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::EachFlush,
};
const COW_LAZY: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::Checkpoint,
};

/// So little that a few operations fill a log block.
const SMALL_MOD_LOG: ModLog = ModLog {
    threshold: 1_024,
    segment: 64,
    reset: ResetRule::AtThreshold,
};

/// Every write counts, and few are enough.
const EAGER: ContentionSplit = ContentionSplit {
    sample_one_in: 1,
    period: 10,
};

impl Parts {
    const fn plain(store: PageStoreKind) -> Parts {
        Parts {
            store,
            mod_log: None,
            log_packing: LogPacking::Packed,
            page_size: 4_096,
        }
    }

    const fn logged(store: PageStoreKind) -> Parts {
        Parts {
            mod_log: Some(SMALL_MOD_LOG),
            ..Parts::plain(store)
        }
    }

    /// The B⁻-tree's.
    fn bminus() -> Parts {
        let options = Options::bminus();
        Parts {
            store: options.store,
            mod_log: options.mod_log,
            log_packing: options.log_packing,
            page_size: options.page_size,
        }
    }

    /// The same with a smaller log block.
    fn small_bminus() -> Parts {
        Parts {
            mod_log: Some(SMALL_MOD_LOG),
            ..Parts::bminus()
        }
    }

    fn named(name: &str) -> Option<Parts> {
        // Pages of several blocks can be torn.
        if let Some(name) = name.strip_suffix("-16k") {
            let page_size = 16_384;
            return Some(Parts {
                page_size,
                ..Parts::named(name)?
            });
        }
        Some(match name {
            "in-place" => Parts::plain(PageStoreKind::InPlace),
            "cow" => Parts::plain(COW),
            "cow-lazy" => Parts::plain(COW_LAZY),
            "shadow" => Parts::plain(PageStoreKind::Shadow),
            "in-place-logged" => Parts::logged(PageStoreKind::InPlace),
            "cow-logged" => Parts::logged(COW),
            "bminus" => Parts::bminus(),
            "bminus-small" => Parts {
                page_size: 4_096,
                ..Parts::small_bminus()
            },
            _ => return None,
        })
    }
}

impl BTree {
    /// The names of the variants that the oracle runs.
    pub const NAMES: [&str; 8] = [
        "btree:in-place",
        "btree:in-place-16k",
        "btree:in-place-logged",
        "btree:cow",
        "btree:cow-lazy",
        "btree:cow-logged",
        "btree:shadow",
        "btree:shadow-16k",
    ];

    /// The B⁻-tree: shadowed pages with modification logs, and a sparse redo log; as the paper has it, and small.
    pub const BMINUS_NAMES: [&str; 2] = ["bminus", "bminus-small"];

    /// Mini-pages in a ring.
    pub const BF_NAMES: [&str; 5] = [
        "bf:in-place",
        "bf:in-place-16k",
        "bf:cow",
        "bf:cow-lazy",
        "bf:bminus",
    ];

    /// Leaves of other layouts: behind the tree's name and a plus.
    pub const LAYOUT_NAMES: [&str; 13] = [
        "btree+baseline:in-place",
        "btree+prefix:cow-logged",
        "btree+compact:shadow",
        "btree+hints:in-place",
        "btree+fingerprint:cow",
        "btree+semi-dense:in-place-logged",
        "btree+fully-dense:cow",
        "btree+adaptive:in-place",
        "bf+hints:in-place",
        "bf+fingerprint:cow",
        "bf+semi-dense:cow-lazy",
        "bf+fully-dense:in-place",
        "bf+adaptive:in-place",
    ];

    /// Leaves that writers wait for are split.
    pub const CONTENTION_SPLIT: &str = "btree+contention-split:in-place";

    /// Those with pages so small that a few keys split and merge them.
    pub const SMALL_PAGES: [&str; 7] = [
        "btree:in-place",
        "btree:cow",
        "btree:cow-lazy",
        "btree:in-place-logged",
        "btree:cow-logged",
        "btree:shadow",
        "bminus-small",
    ];

    /// The same with mini-pages in a ring.
    pub const BF_SMALL_PAGES: [&str; 3] = ["bf:in-place", "bf:cow", "bf:cow-lazy"];

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let trees = Self::NAMES.into_iter().chain(Self::BMINUS_NAMES);
        let layouts = trees.chain(Self::BF_NAMES).chain(Self::LAYOUT_NAMES);
        layouts.chain([Self::CONTENTION_SPLIT])
    }

    /// A variant by name.
    #[must_use]
    pub fn named(name: &str, geometry: Geometry) -> Option<BTree> {
        if let Some((tree, (layout, parts))) =
            (name.split_once('+')).and_then(|(tree, rest)| Some((tree, rest.split_once(':')?)))
        {
            let mut engine = BTree::named(&format!("{tree}:{parts}"), geometry)?;
            match layout {
                "contention-split" => engine.options.contention_split = Some(EAGER),
                layout => engine.options.layout = Some(LayoutChoice::named(layout)?),
            }
            engine.name = name.to_owned();
            return Some(engine);
        }
        let (tree, parts) = match name.split_once(':') {
            Some(("btree", parts)) if !parts.starts_with("bminus") => {
                (TreeKind::BTree, Parts::named(parts)?)
            }
            Some(("bf", "bminus")) => (TreeKind::Bf(BfOptions::default()), Parts::small_bminus()),
            Some(("bf", parts)) => (TreeKind::Bf(BfOptions::default()), Parts::named(parts)?),
            None if name.starts_with("bminus") => (TreeKind::BTree, Parts::named(name)?),
            _ => return None,
        };
        Some(BTree::with(name.to_owned(), tree, parts, geometry))
    }

    /// A variant with pages of `page_size` bytes.
    #[must_use]
    pub fn new(store: PageStoreKind, page_size: usize, geometry: Geometry) -> BTree {
        let parts = Parts {
            page_size,
            ..Parts::plain(store)
        };
        BTree::with("btree".to_owned(), TreeKind::BTree, parts, geometry)
    }

    fn with(name: String, tree: TreeKind, parts: Parts, geometry: Geometry) -> BTree {
        let page = parts.page_size as u64;
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
            store: parts.store,
            mod_log: parts.mod_log,
            log_packing: parts.log_packing,
            page_size: parts.page_size,
            cache_bytes: (frames + ring) * page,
            durability: Durability::Deferred,
            log_bytes,
            checkpoint_log_bytes: log_bytes / 4,
            log_buffer_bytes: log_bytes / 16,
            write_batch_pages: 3,
            ..Options::default()
        };
        let blocks_of = |pages| required_blocks(&options, pages);
        let place = blocks_of(pages + 1) - blocks_of(pages);
        BTree {
            name,
            blocks: log_bytes / BLOCK_SIZE as u64 + (pages - log_pages) * place,
            options,
        }
    }
}

impl Engine for BTree {
    fn name(&self) -> String {
        self.name.clone()
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
        let store = Store::open(Arc::clone(device), clock, &self.options)?;
        // The oracle lets go of a store as a killed process does: what was not synced must not come
        // back whole by courtesy.
        store.abandon_on_drop();
        Ok(Arc::new(store))
    }

    fn guarded(&self, disk: &Disk) -> Vec<Lba> {
        let Disk::Blocks(device) = disk else {
            unreachable!("the oracle gives the kind of disk that was asked for");
        };
        guarded(&**device, self.options.page_size)
    }

    fn damage(&self, disk: &Disk) -> Result<Vec<String>> {
        let Disk::Blocks(device) = disk else {
            unreachable!("the oracle gives the kind of disk that was asked for");
        };
        Ok(verify(Arc::clone(device))?.damage)
    }
}

/// The blocks of page images, of modification logs, and of the journal: what is lacking, the
/// version of a page tells (`engine/src/pages/versioned.rs`).
fn guarded(device: &dyn BlockDevice, page_size: usize) -> Vec<Lba> {
    let mut block = vec![0; BLOCK_SIZE];
    let mut found = Vec::new();
    for lba in (0..device.capacity_blocks()).map(Lba) {
        if device.read(lba, &mut block, IoClass::Page).is_err() {
            continue;
        }
        if &block[24..26] == b"TR" {
            let blocks = (page_size / BLOCK_SIZE) as u64;
            found.extend((0..blocks).map(|i| Lba(lba.0 + i)));
        } else if &block[4..8] == b"MLOG" {
            found.push(lba);
        }
    }
    found
}
