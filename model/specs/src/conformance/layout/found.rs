//! Reads the leaves off a device, record by record.

use std::collections::BTreeMap;

use treering_engine::device::Image;
use treering_engine::node::{self, PageRef};
use treering_engine::{BLOCK_SIZE, Lba, Lsn, PageId, StoreId};

use super::pages::Pages;
use super::setup::{digest, layout_of};
use crate::conformance::at_rest::LogFound;
use crate::mirror::wide::leaf_layout::Layout;

/// A leaf on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLeaf {
    /// Its layout.
    pub layout: Layout,
    /// The LSN of its last change.
    pub lsn: Lsn,
    /// Its fences, as numbers of the spec. `None` for others.
    pub fences: (Option<u32>, Option<u32>),
    /// Its keys with the digests of their values. `None` for a key that the spec does not have.
    pub records: Vec<(Option<u32>, u64)>,
}

/// The content of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The log, as a recovery of a copy reads it.
    pub log: LogFound,
    /// The leaves that have a whole image.
    pub leaves: BTreeMap<PageId, FoundLeaf>,
}

/// Where the slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) store: StoreId,
    pub(super) slots: Lba,
    pub(super) count: u64,
}

impl Places {
    /// Reads the device. Recovery has found this log on it.
    pub(super) fn read(&self, image: &Image, log: LogFound, pages: &Pages) -> Found {
        let leaf = |n: u64| {
            let mut bytes = vec![0; BLOCK_SIZE];
            image.read(Lba(self.slots.0 + n), &mut bytes);
            Some((PageId(n), self.leaf(&bytes, PageId(n), pages)?))
        };
        Found {
            log,
            leaves: (0..self.count).filter_map(leaf).collect(),
        }
    }

    fn leaf(&self, bytes: &[u8], page: PageId, pages: &Pages) -> Option<FoundLeaf> {
        node::check_for(bytes, page, self.store).ok()?;
        let view = PageRef::new(bytes);
        let upper = view.upper_fence();
        let mut records: Vec<_> = (0..view.count())
            .map(|at| (pages.number(&view.key(at)), digest(view.value(at))))
            .collect();
        // Those of a leaf with fingerprints have no order.
        records.sort_unstable();
        Some(FoundLeaf {
            layout: layout_of(view.layout()),
            lsn: view.lsn(),
            fences: (
                pages.number_of_fence(view.lower_fence()),
                upper.map_or(Some(pages.top), |upper| pages.number_of_fence(upper)),
            ),
            records,
        })
    }
}
