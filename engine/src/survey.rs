//! What a device holds, in the words of the log protocol: the superblock that recovery would believe, the log's blocks, the pages.
//!
//! For whoever compares a device with a model of it (`treering oracle`, mode events): it looks, it repairs nothing.

use std::collections::BTreeMap;

use crate::device::{AlignedBuf, BlockDevice, Volume};
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot, Superblock};
use crate::node::{self, PageRef};
use crate::options::PageStoreKind;
use crate::pages::PageTable;
use crate::sync::Arc;
use crate::types::{BLOCK_SIZE, IoClass, Lba, Lsn, PageId};
use crate::wal::{BlockHeader, LogRegion};

/// A block of the log that passes its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBlock {
    /// The epoch it was written under.
    pub epoch: u32,
    /// Which block it is, counted from the log's beginning.
    pub index: u64,
    /// Bytes in use, its header included.
    pub used: usize,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Epoch of the newest good superblock.
    pub epoch: u32,
    /// Where redo begins by it.
    pub redo_start: Lsn,
    /// The places of the log, in order of address; `None`: zeros, or torn.
    pub log: Vec<Option<LogBlock>>,
    /// The LSN of every page that passes its check.
    pub pages: BTreeMap<PageId, Lsn>,
}

/// Looks at all of a device that holds a store.
///
/// # Errors
/// [`Error::NotAStore`], [`Error::Damaged`] of superblock or page table, device failures.
pub fn survey(device: Arc<dyn BlockDevice>) -> Result<Survey> {
    let volume = Volume::new(device);
    let superblock = Superblock::load(&volume)?.ok_or(Error::NotAStore { lba: Lba(0) })?;
    let layout = superblock.layout;
    Ok(Survey {
        epoch: superblock.epoch,
        redo_start: superblock.redo_start,
        log: log(&volume, &layout)?,
        pages: pages(&volume, &layout)?,
    })
}

fn log(volume: &Volume, layout: &Layout) -> Result<Vec<Option<LogBlock>>> {
    let region = LogRegion {
        start: layout.log_start(),
        blocks: layout.log_blocks,
    };
    let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
    let mut found = Vec::with_capacity(region.blocks as usize);
    for place in 0..region.blocks {
        volume.read(region.lba(place), &mut block, IoClass::Log)?;
        let header = BlockHeader::read_any(&block).filter(|h| h.index % region.blocks == place);
        found.push(header.map(|h| LogBlock {
            epoch: h.epoch,
            index: h.index,
            used: h.used,
        }));
    }
    Ok(found)
}

fn pages(volume: &Volume, layout: &Layout) -> Result<BTreeMap<PageId, Lsn>> {
    let places: Vec<(PageId, Slot)> = match layout.store {
        PageStoreKind::InPlace => (0..layout.slots).map(|n| (PageId(n), Slot(n))).collect(),
        PageStoreKind::CopyOnWrite { .. } => PageTable::load(volume, layout)?.iter().collect(),
    };
    let mut page_bytes = AlignedBuf::zeroed(layout.page_size);
    let mut found = BTreeMap::new();
    for (page, slot) in places {
        volume.read(layout.slot_lba(slot), &mut page_bytes, IoClass::Page)?;
        if node::check(&page_bytes, page).is_ok() {
            found.insert(page, PageRef::new(&page_bytes).lsn());
        }
    }
    Ok(found)
}
