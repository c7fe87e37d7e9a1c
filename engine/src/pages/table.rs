//! The page table of the copy-on-write store: page name -> slot, in 4 KiB blocks that the device writes atomically.
//!
//! | offset | bytes | field of a table block |
//! |---:|---:|---|
//! | 0 | 4 | CRC-32 of bytes 4..4096 |
//! | 4 | 4 | magic `PTAB` |
//! | 8 | 4 | the block's number in the table |
//! | 12 | 4 | the store id, its halves xored |
//! | 16 | 8 each | 510 entries: slot + 1, or 0 for "no image" |
//!
//! A block never written reads as zeros, or as the block of a store that had the device before, and means 510 times "no image". Entries are independent of each other, so blocks
//! may be persisted at any time and in any order, as long as the images they point at are durable first.

use crate::device::{AlignedBuf, Volume};
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot, TABLE_ENTRIES};
use crate::mutation;
use crate::types::{BLOCK_SIZE, IoClass, Lba, PageId, StoreId};

const MAGIC: [u8; 4] = *b"PTAB";

/// The table in memory, with a note of which blocks differ from the device.
pub(crate) struct PageTable {
    store: StoreId,
    entries: Vec<u64>,
    dirty: Vec<bool>,
}

impl PageTable {
    /// A table that knows of no image.
    pub(crate) fn new(layout: &Layout) -> PageTable {
        PageTable {
            store: layout.id,
            entries: vec![0; (layout.table_blocks * TABLE_ENTRIES) as usize],
            dirty: vec![false; layout.table_blocks as usize],
        }
    }

    /// Reads the table; every entry is inside the page space and no slot is named twice. All blocks ever written count as dirty: that they
    /// can be read does not mean that they are durable.
    pub(crate) fn load(volume: &Volume, layout: &Layout) -> Result<PageTable> {
        let mut table = PageTable::new(layout);
        let mut buf = AlignedBuf::zeroed(BLOCK_SIZE);
        for block in 0..layout.table_blocks {
            let lba = layout.table_block(block);
            volume.read(lba, &mut buf, IoClass::Extra)?;
            table.decode_block(block, &buf, lba, layout.slots)?;
        }
        Ok(table)
    }

    fn decode_block(&mut self, block: u64, b: &[u8], lba: Lba, slots: u64) -> Result<()> {
        if b.iter().all(|&x| x == 0) {
            return Ok(());
        }
        let damaged = |expected: String, found: String| Error::Damaged {
            what: format!("page-table block {block}"),
            lba,
            expected,
            found,
        };
        let u64_at = |o: usize| u64::from_le_bytes(b[o..o + 8].try_into().expect("eight bytes"));
        if b[4..8] != MAGIC || crc32fast::hash(&b[4..]).to_le_bytes() != b[0..4] {
            return Err(damaged(
                "its magic and checksum".into(),
                "other bytes".into(),
            ));
        }
        let u32_at = |o: usize| u32::from_le_bytes(b[o..o + 4].try_into().expect("four bytes"));
        if u64::from(u32_at(8)) != block {
            return Err(damaged(format!("number {block}"), u32_at(8).to_string()));
        }
        if u32_at(12) != self.store.folded() {
            return Ok(());
        }
        for i in 0..TABLE_ENTRIES {
            let entry = u64_at(16 + 8 * i as usize);
            if entry > slots {
                return Err(damaged(
                    format!("slots below {slots}"),
                    (entry - 1).to_string(),
                ));
            }
            self.entries[(block * TABLE_ENTRIES + i) as usize] = entry;
        }
        self.dirty[block as usize] = !mutation::on("restart-trusts-table");
        Ok(())
    }

    pub(crate) fn get(&self, page: PageId) -> Option<Slot> {
        match self.entries.get(page.0 as usize) {
            Some(&e) if e > 0 => Some(Slot(e - 1)),
            _ => None,
        }
    }

    /// Says where `page` is now and returns where it was. `page` must be below [`PageTable::len`].
    pub(crate) fn set(&mut self, page: PageId, slot: Option<Slot>) -> Option<Slot> {
        let old = self.get(page);
        self.entries[page.0 as usize] = slot.map_or(0, |s| s.0 + 1);
        self.dirty[(page.0 / TABLE_ENTRIES) as usize] = true;
        old
    }

    /// Number of page names the table has room for.
    pub(crate) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The block that holds `page`'s entry.
    pub(crate) fn block_of(page: PageId) -> u64 {
        page.0 / TABLE_ENTRIES
    }

    /// The device image of a block, which counts as clean from now on.
    pub(crate) fn encode_block(&mut self, block: u64, buf: &mut [u8]) {
        buf[4..8].copy_from_slice(&MAGIC);
        buf[8..12].copy_from_slice(&(block as u32).to_le_bytes());
        buf[12..16].copy_from_slice(&self.store.folded().to_le_bytes());
        for i in 0..TABLE_ENTRIES as usize {
            let entry = self.entries[block as usize * TABLE_ENTRIES as usize + i];
            buf[16 + 8 * i..24 + 8 * i].copy_from_slice(&entry.to_le_bytes());
        }
        let crc = crc32fast::hash(&buf[4..]);
        buf[0..4].copy_from_slice(&crc.to_le_bytes());
        self.dirty[block as usize] = false;
    }

    pub(crate) fn mark_dirty(&mut self, block: u64) {
        self.dirty[block as usize] = true;
    }

    /// Blocks that differ from the device, ascending.
    pub(crate) fn dirty_blocks(&self) -> Vec<u64> {
        (0..self.dirty.len() as u64)
            .filter(|&b| self.dirty[b as usize])
            .collect()
    }

    /// Pages with an image, with their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PageId, Slot)> + '_ {
        (0..self.len()).filter_map(|p| self.get(PageId(p)).map(|s| (PageId(p), s)))
    }
}
