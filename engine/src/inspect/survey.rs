//! What a device holds, in the words of the log protocol: the superblock that recovery would believe, the log's blocks, the pages.
//!
//! For whoever compares a device with a model of it (`treering oracle`, mode events): it looks, it repairs nothing.

use std::collections::BTreeMap;

use crate::device::{AlignedBuf, BlockDevice, Volume};
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot, Superblock};
use crate::node::{self, PageRef};
use crate::pages::{PageTable, look_at_shadows};
use crate::sync::Arc;
use crate::types::{BLOCK_SIZE, IoClass, Lba, Lsn, PageId, StoreId};
use crate::wal::BlockHeader;

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

impl LogBlock {
    /// What a block says of itself, if it is a block of the log of `store`.
    #[must_use]
    pub fn read(block: &[u8], store: StoreId) -> Option<LogBlock> {
        let header = BlockHeader::read_any(block, store).filter(|header| !header.witness);
        header.map(|header| LogBlock {
            epoch: header.epoch,
            index: header.index,
            used: header.used,
        })
    }
}

/// What a superblock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuperblockFound {
    /// The greater one is believed.
    pub sequence: u64,
    /// The log's epoch.
    pub epoch: u32,
    /// Where redo begins.
    pub redo_start: Lsn,
}

impl SuperblockFound {
    /// What a block says, if it is a superblock of a device of so many blocks.
    #[must_use]
    pub fn read(block: &[u8], device_blocks: u64) -> Option<SuperblockFound> {
        let superblock = Superblock::decode(block, Lba(0), device_blocks).ok()?;
        Some(SuperblockFound {
            sequence: superblock.sequence,
            epoch: superblock.epoch,
            redo_start: superblock.redo_start,
        })
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Whose blocks they are.
    pub store: StoreId,
    /// Epoch of the newest good superblock.
    pub epoch: u32,
    /// Where redo begins by it.
    pub redo_start: Lsn,
    /// First block of the log.
    pub log_start: Lba,
    /// The places of the log, in order of address; `None`: zeros, or torn.
    pub log: Vec<Option<LogBlock>>,
    /// Every page that passes its check: its LSN, and where it lies.
    pub pages: BTreeMap<PageId, (Lsn, Lba)>,
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
        store: layout.id,
        log_start: layout.log_start(),
        epoch: superblock.epoch,
        redo_start: superblock.redo_start,
        log: log(&volume, &layout)?,
        pages: pages(&volume, &layout)?,
    })
}

fn log(volume: &Volume, layout: &Layout) -> Result<Vec<Option<LogBlock>>> {
    let region = layout.log_region();
    let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
    let mut found = Vec::with_capacity(region.blocks as usize);
    for place in 0..region.blocks {
        volume.read(region.lba(place), &mut block, IoClass::Log)?;
        let log_block = LogBlock::read(&block, layout.id);
        found.push(log_block.filter(|b| b.index % region.blocks == place));
    }
    Ok(found)
}

fn pages(volume: &Volume, layout: &Layout) -> Result<BTreeMap<PageId, (Lsn, Lba)>> {
    if layout.store.images_per_place() > 1 {
        let mut found = BTreeMap::new();
        for page in (0..layout.slots).map(PageId) {
            if let Some(newest) = look_at_shadows(volume, layout, page)? {
                found.insert(page, newest);
            }
        }
        return Ok(found);
    }
    let places: Vec<(PageId, Slot)> = match layout.store.table() {
        None => (0..layout.slots).map(|n| (PageId(n), Slot(n))).collect(),
        Some(_) => PageTable::load(volume, layout, layout.page_names())?
            .iter()
            .collect(),
    };
    let mut page_bytes = AlignedBuf::zeroed(layout.page_size);
    let mut found = BTreeMap::new();
    for (page, slot) in places {
        volume.read(layout.slot_lba(slot), &mut page_bytes, IoClass::Page)?;
        if node::check_for(&page_bytes, page, layout.id).is_ok() {
            let lsn = PageRef::new(&page_bytes).lsn();
            found.insert(page, (lsn, layout.slot_lba(slot)));
        }
    }
    Ok(found)
}
