//! The parts of a page tree: page store, modification log, log packing, and page size.

use treering_engine::{
    ContentionSplit, Durability, LogPacking, ModLog, Nanos, Options, PageStoreKind, ResetRule,
    TablePersist,
};

/// The log is flushed after this many readings of the test clock. Each write reads it once.
pub(super) const GROUPED: Durability = Durability::Grouped(Nanos(6));

/// How pages and log reach the device.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) store: PageStoreKind,
    pub(super) mod_log: Option<ModLog>,
    pub(super) log_packing: LogPacking,
    pub(super) page_size: usize,
}

const COW: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::EachFlush,
};
const COW_LAZY: PageStoreKind = PageStoreKind::CopyOnWrite {
    table: TablePersist::Checkpoint,
};

/// So small that a few operations fill a log block.
pub(super) const SMALL_MOD_LOG: ModLog = ModLog {
    threshold: 1_024,
    segment: 64,
    reset: ResetRule::AtThreshold,
};

/// Every write is sampled, and few are enough for a split.
pub(super) const EAGER: ContentionSplit = ContentionSplit {
    sample_one_in: 1,
    period: 10,
};

impl Parts {
    pub(super) const fn plain(store: PageStoreKind) -> Parts {
        Parts {
            store,
            mod_log: None,
            log_packing: LogPacking::Packed,
            page_size: 4_096,
        }
    }

    pub(super) const fn logged(store: PageStoreKind) -> Parts {
        Parts {
            mod_log: Some(SMALL_MOD_LOG),
            ..Parts::plain(store)
        }
    }

    /// The parts of the B⁻-tree.
    pub(super) fn bminus() -> Parts {
        let options = Options::bminus();
        Parts {
            store: options.store,
            mod_log: options.mod_log,
            log_packing: options.log_packing,
            page_size: options.page_size,
        }
    }

    /// The same with a smaller modification log.
    pub(super) fn small_bminus() -> Parts {
        Parts {
            mod_log: Some(SMALL_MOD_LOG),
            ..Parts::bminus()
        }
    }

    pub(super) fn named(name: &str) -> Option<Parts> {
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
