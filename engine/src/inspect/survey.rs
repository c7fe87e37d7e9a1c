//! A survey of a device in terms of the log protocol: the superblock that recovery would use, the
//! log's blocks, and the pages.
//!
//! It is for comparing a device with a model of it (`treering oracle`, mode events). It repairs
//! nothing.

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
    /// The epoch under which it was written.
    pub epoch: u32,
    /// Its index, counted from the beginning of the log.
    pub index: u64,
    /// Bytes in use, including the header.
    pub used: usize,
}

impl LogBlock {
    /// Reads a block. Returns `None` if it is not a log block of `store`.
    #[must_use]
    pub fn read(block: &[u8], store: StoreId) -> Option<LogBlock> {
        let header = BlockHeader::read_any(block, store).filter(BlockHeader::has_records);
        header.map(|header| LogBlock {
            epoch: header.epoch,
            index: header.index,
            used: header.used,
        })
    }
}

/// What the header of a block of the log's region says, whether the block is valid or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// The epoch under which the block was written. 0 if there is none.
    pub epoch: u32,
    /// Its index, counted from the beginning of the log.
    pub index: u64,
    /// Bytes in use, including the header.
    pub used: u16,
    /// Offset of the first record that begins in it; 0 if none does.
    pub first: u16,
    /// The number of blocks just before it in the same flush.
    pub unforced: u16,
    /// Whether the block is the first of its epoch.
    pub starts: bool,
    /// Whether nothing more is added to it.
    pub closed: bool,
    /// Whether it has no records, and only states that everything before it is durable.
    pub witness: bool,
    /// Whether it has no records, and only states that recovery found the log's end there.
    pub end_mark: bool,
    /// Whether the block passes its checksum.
    pub whole: bool,
}

impl LogHeader {
    /// Reads a block.
    #[must_use]
    pub fn read(block: &[u8], store: StoreId) -> LogHeader {
        let header = BlockHeader::parse(block);
        LogHeader {
            epoch: header.epoch,
            index: header.index,
            used: header.used as u16,
            first: header.first as u16,
            unforced: header.unforced,
            starts: header.starts_epoch,
            closed: header.closed,
            witness: header.witness,
            end_mark: header.end_mark,
            whole: BlockHeader::read_any(block, store).is_some(),
        }
    }
}

/// The contents of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuperblockFound {
    /// The superblock with the greater sequence number is valid.
    pub sequence: u64,
    /// The log's epoch.
    pub epoch: u32,
    /// The position where redo starts.
    pub redo_start: Lsn,
}

impl SuperblockFound {
    /// Reads a block. Returns `None` if it is not a superblock of a device of `device_blocks`
    /// blocks.
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

/// The result of [`survey`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The store's id.
    pub store: StoreId,
    /// The epoch of the newest valid superblock.
    pub epoch: u32,
    /// The position where redo starts according to that superblock.
    pub redo_start: Lsn,
    /// The epoch that was being written at that position.
    pub redo_epoch: u32,
    /// First block of the log.
    pub log_start: Lba,
    /// The blocks of the log's region in order of address. `None` means zeros or a torn block.
    pub log: Vec<Option<LogBlock>>,
    /// Every page with a valid image: its LSN, and its place.
    pub pages: BTreeMap<PageId, (Lsn, Lba)>,
}

/// Examines a device that holds a store.
///
/// # Errors
/// [`Error::NotAStore`], [`Error::Damaged`] if the superblock or the page table is damaged, and
/// device failures.
pub fn survey(device: Arc<dyn BlockDevice>) -> Result<Survey> {
    let volume = Volume::new(device);
    let superblock = Superblock::load(&volume)?.ok_or(Error::NotAStore { lba: Lba(0) })?;
    let layout = superblock.layout;
    Ok(Survey {
        store: layout.id,
        log_start: layout.log_start(),
        epoch: superblock.epoch,
        redo_start: superblock.redo_start,
        redo_epoch: superblock.redo_epoch,
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
