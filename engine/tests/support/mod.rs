//! Shared by the store tests: the trees and page stores that they cover.
#![allow(dead_code, unused_imports)] // each test binary uses only a part

mod map;

use std::collections::BTreeSet;
use std::sync::Arc;

use treering_engine::device::{BlockDevice, DeviceError, MemDevice};
use treering_engine::node::{LayoutChoice, PageLayout, PageRef, check_for};
use treering_engine::{
    BLOCK_SIZE, BfOptions, Durability, IoClass, Lba, LogPacking, ModLog, Options, PageStoreKind,
    Promote, ResetRule, StoreId, TablePersist, TreeKind,
};

pub(crate) use map::{Map, assert_same, contents, operate, pump_all};

/// Every tree, with default options.
pub(crate) const TREES: [TreeKind; 2] = [TreeKind::BTree, BF];

/// A tree with mini-pages in a ring.
pub(crate) const BF: TreeKind = bf(10, 30);

/// Copy on access and promotion, in percent.
pub(crate) const fn bf(copy_on_access_percent: u8, promotion_percent: u8) -> TreeKind {
    TreeKind::Bf(BfOptions {
        copy_on_access_percent,
        promote: Promote::Percent(promotion_percent),
        relog_percent: 0,
        growth_percent: 100,
        spare_percent: 0,
        max_mini_page_percent: 50,
    })
}

/// How pages and the log reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pages {
    pub(crate) kind: PageStoreKind,
    pub(crate) mod_log: Option<ModLog>,
    pub(crate) packing: LogPacking,
}

impl Pages {
    const fn plain(kind: PageStoreKind) -> Pages {
        Pages {
            kind,
            mod_log: None,
            packing: LogPacking::Packed,
        }
    }

    const fn logged(kind: PageStoreKind, packing: LogPacking) -> Pages {
        // So small that small programs also write whole pages.
        let rule = ModLog {
            threshold: 1024,
            segment: 64,
            reset: ResetRule::AtThreshold,
        };
        Pages {
            kind,
            mod_log: Some(rule),
            packing,
        }
    }
}

const TABLE_EACH_FLUSH: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::EachFlush,
};
const TABLE_AT_CHECKPOINTS: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::Checkpoint,
};

pub(crate) const IN_PLACE: Pages = Pages::plain(PageStoreKind::InPlace);
pub(crate) const EACH_FLUSH: Pages = Pages::plain(TABLE_EACH_FLUSH);
pub(crate) const LAZY: Pages = Pages::plain(TABLE_AT_CHECKPOINTS);
pub(crate) const SHADOW: Pages = Pages::plain(PageStoreKind::Shadow);
/// The B⁻-tree's composition.
pub(crate) const BMINUS: Pages = Pages::logged(PageStoreKind::Shadow, LogPacking::Sparse);
pub(crate) const IN_PLACE_LOGGED: Pages = Pages::logged(PageStoreKind::InPlace, LogPacking::Sparse);
pub(crate) const LAZY_LOGGED: Pages = Pages::logged(TABLE_AT_CHECKPOINTS, LogPacking::Packed);

/// Every page store, with and without a modification log.
pub(crate) const STORES: [Pages; 7] = [
    IN_PLACE,
    EACH_FLUSH,
    LAZY,
    SHADOW,
    BMINUS,
    IN_PLACE_LOGGED,
    LAZY_LOGGED,
];

/// Returns every block of a device.
pub(crate) fn read_all(device: &MemDevice) -> Vec<Vec<u8>> {
    (0..device.capacity_blocks())
        .map(|lba| {
            let mut block = vec![0; BLOCK_SIZE];
            device
                .read(Lba(lba), &mut block, IoClass::Page)
                .expect("reads");
            block
        })
        .collect()
}

/// Creates a device that holds these blocks.
pub(crate) fn device_of(blocks: &[Vec<u8>]) -> Arc<MemDevice> {
    let device = Arc::new(MemDevice::new(blocks.len() as u64));
    for (lba, block) in (0..).zip(blocks) {
        if block.iter().any(|b| *b != 0) {
            device
                .write(Lba(lba), block, IoClass::Page)
                .expect("writes");
        }
    }
    device
}

/// Returns every combination of tree and page store.
pub(crate) fn all() -> impl Iterator<Item = (TreeKind, Pages)> {
    let on_all = |tree| STORES.map(|store| (tree, store));
    TREES.into_iter().flat_map(on_all)
}

/// The number of pages of the smallest ring.
pub(crate) const LEAST_RING: u64 = 2;

/// Options for a tree whose leaves have `frames` pages of cache. A tree with a ring has 16 frames,
/// and its ring has the remaining pages plus `ring` more.
pub(crate) fn options(
    tree: TreeKind,
    store: Pages,
    page_size: usize,
    frames: u64,
    ring: u64,
) -> Options {
    let pages = match tree {
        TreeKind::BTree => frames,
        TreeKind::Bf(_) => frames + ring,
    };
    // The tests rely on the space that slotted leaves take. Other layouts have tests of their own.
    let slotted = LayoutChoice::of(PageLayout::Slotted);
    Options {
        tree,
        layout: (tree == TreeKind::BTree).then_some(slotted),
        store: store.kind,
        mod_log: store.mod_log,
        log_packing: store.packing,
        page_size,
        cache_bytes: pages * page_size as u64,
        durability: Durability::PER_MINUTE,
        ..Options::default()
    }
}

/// These options with a log of `log_bytes`, which wraps after few operations.
pub(crate) fn with_log(log_bytes: u64, options: Options) -> Options {
    Options {
        durability: Durability::Deferred,
        log_bytes,
        checkpoint_log_bytes: log_bytes / 4,
        log_buffer_bytes: log_bytes / 16,
        write_batch_pages: 4,
        ..options
    }
}

/// Options for a store so small that logs wrap and rings soon fill up: the ring has as many pages
/// as there are mini-pages of the largest size.
pub(crate) fn tiny(tree: TreeKind, store: Pages) -> Options {
    with_log(64 * 4096, options(tree, store, 4096, 16, 4))
}

/// A memory device whose discards do nothing, as with some files: data stays until it is
/// overwritten.
pub(crate) struct NoTrim(pub(crate) MemDevice);

impl BlockDevice for NoTrim {
    fn capacity_blocks(&self) -> u64 {
        self.0.capacity_blocks()
    }
    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
        self.0.read(lba, buf, class)
    }
    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
        self.0.write(lba, bytes, class)
    }
    fn trim(&self, _: Lba, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }
    fn flush(&self) -> Result<(), DeviceError> {
        self.0.flush()
    }
}

/// Returns the id of the store on a device.
pub(crate) fn store_id(device: &dyn BlockDevice) -> StoreId {
    let mut block = vec![0; 4096];
    (device.read(Lba(0), &mut block, IoClass::Extra)).expect("reads");
    StoreId(u64::from_le_bytes(
        block[88..96].try_into().expect("eight bytes"),
    ))
}

/// Returns the layouts of all pages on the device.
pub(crate) fn layouts(device: &MemDevice) -> BTreeSet<&'static str> {
    let store = store_id(device);
    let mut block = vec![0; 4096];
    let mut found = BTreeSet::new();
    for lba in (0..device.capacity_blocks()).map(Lba) {
        device.read(lba, &mut block, IoClass::Page).expect("reads");
        let page = PageRef::new(&block);
        if check_for(&block, page.page_id(), store).is_ok() {
            found.insert(page.layout().name());
        }
    }
    found
}
