//! What the tests of the store have in common: the trees and the page stores that they go through.
#![allow(dead_code)] // each test file uses its own part

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use treering_engine::{
    BfOptions, Durability, Kv, Options, PageStoreKind, Store, TablePersist, TreeKind,
};

/// Every tree, as it is by default.
pub(crate) const TREES: [TreeKind; 2] = [TreeKind::BTree, BF];

/// Mini-pages in a ring.
pub(crate) const BF: TreeKind = bf(10, 30);

/// Copy on access and promotion in percent.
pub(crate) const fn bf(copy_on_access_percent: u8, promotion_percent: u8) -> TreeKind {
    TreeKind::Bf(BfOptions {
        copy_on_access_percent,
        promotion_percent,
    })
}

pub(crate) const IN_PLACE: PageStoreKind = PageStoreKind::InPlace;
pub(crate) const EACH_FLUSH: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::EachFlush,
};
pub(crate) const LAZY: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::Checkpoint,
};

/// Every page store.
pub(crate) const STORES: [PageStoreKind; 3] = [IN_PLACE, EACH_FLUSH, LAZY];

/// Every tree on every page store.
pub(crate) fn all() -> impl Iterator<Item = (TreeKind, PageStoreKind)> {
    let on_all = |tree| STORES.map(|store| (tree, store));
    TREES.into_iter().flat_map(on_all)
}

/// Pages of the smallest ring.
pub(crate) const LEAST_RING: u64 = 2;

/// A tree whose leaves have `frames` pages of cache, or, if it has a ring, 16, and its ring the others and `ring` more.
pub(crate) fn options(
    tree: TreeKind,
    store: PageStoreKind,
    page_size: usize,
    frames: u64,
    ring: u64,
) -> Options {
    let pages = match tree {
        TreeKind::BTree => frames,
        TreeKind::Bf(_) => frames + ring,
    };
    Options {
        tree,
        store,
        page_size,
        cache_bytes: pages * page_size as u64,
        ..Options::default()
    }
}

/// A store so small that logs wrap and rings are full soon: as many pages of ring as there are mini-pages of the largest size.
pub(crate) fn tiny(tree: TreeKind, store: PageStoreKind) -> Options {
    let log_bytes = 64 * 4096;
    Options {
        durability: Durability::Deferred,
        log_bytes,
        checkpoint_log_bytes: log_bytes / 4,
        log_buffer_bytes: log_bytes / 16,
        write_batch_pages: 4,
        ..options(tree, store, 4096, 16, 4)
    }
}

/// What a scan says.
pub(crate) fn contents(store: &Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut map = BTreeMap::new();
    store
        .scan(b"", &mut |k, v| {
            map.insert(k.to_vec(), v.to_vec());
            ControlFlow::Continue(())
        })
        .expect("scans");
    map
}
