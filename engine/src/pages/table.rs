//! The page table of the copy-on-write store. It maps page names to slots, in 4 KiB blocks that the
//! device writes atomically.
//!
//! | offset | bytes | field of a table block |
//! |---:|---:|---|
//! | 0 | 4 | CRC-32 of bytes 4..4096 |
//! | 4 | 4 | magic `PTAB` |
//! | 8 | 4 | the block's number in the table |
//! | 12 | 4 | the store id, its halves xored |
//! | 16 | 8 each | 510 entries: slot + 1, or 0 for "no image" |
//!
//! A block that was never written reads as zeros, or as the block of a store that had the device
//! before, and means 510 times "no image". Entries are independent of each other, so blocks may be
//! persisted at any time and in any order, as long as the images they point at are durable first.

use std::collections::BTreeSet;

use crate::device::{AlignedBuf, Volume};
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot, TABLE_ENTRIES};
use crate::mutation;
use crate::sparse::Sparse;
use crate::types::{BLOCK_SIZE, IoClass, Lba, PageId, StoreId};

const MAGIC: [u8; 4] = *b"PTAB";

/// The table in memory, and which of its blocks differ from the device.
pub(crate) struct PageTable {
    store: StoreId,
    entries: Sparse<u64>,
    dirty: BTreeSet<u64>,
    blocks: u64,
    slots: u64,
    /// Blocks below this were read when the table was loaded. Of later ones, recovery reads those
    /// that the log names.
    read: u64,
    /// The blocks at or after `read` that the log names.
    named: BTreeSet<u64>,
}

impl PageTable {
    /// Creates a table without images.
    pub(crate) fn new(layout: &Layout) -> PageTable {
        PageTable {
            store: layout.id,
            entries: Sparse::new(layout.table_blocks * TABLE_ENTRIES),
            dirty: BTreeSet::new(),
            blocks: layout.table_blocks,
            slots: layout.slots,
            read: layout.table_blocks,
            named: BTreeSet::new(),
        }
    }

    /// Reads the table's entries for pages named below `names`. Every entry must lie inside the
    /// page space. All blocks ever written count as dirty, because a block that can be read need
    /// not be durable.
    pub(crate) fn load(volume: &Volume, layout: &Layout, names: u64) -> Result<PageTable> {
        let mut table = PageTable::new(layout);
        table.read = names.div_ceil(TABLE_ENTRIES).min(layout.table_blocks);
        let mut buf = AlignedBuf::zeroed(BLOCK_SIZE);
        for block in 0..table.read {
            table.load_block(volume, layout, block, &mut buf)?;
        }
        Ok(table)
    }

    fn load_block(
        &mut self,
        volume: &Volume,
        layout: &Layout,
        block: u64,
        buf: &mut [u8],
    ) -> Result<()> {
        let lba = layout.table_block(block);
        volume.read(lba, buf, IoClass::Extra)?;
        self.decode_block(block, buf, lba)
    }

    /// Notes that the log names `page`: its block may have been written since the last checkpoint,
    /// and its first write may have failed. The block is noted until [`PageTable::load_named`].
    pub(crate) fn named_in_log(&mut self, page: PageId) {
        let block = PageTable::block_of(page);
        if block < self.read {
            if !mutation::on("restart-trusts-table") {
                self.dirty.insert(block);
            }
        } else if block < self.blocks {
            self.named.insert(block);
        }
    }

    /// Reads the blocks that the log names and that [`PageTable::load`] did not read, and returns
    /// their entries.
    pub(crate) fn load_named(
        &mut self,
        volume: &Volume,
        layout: &Layout,
    ) -> Result<Vec<(PageId, Slot)>> {
        let mut found = Vec::new();
        let mut buf = AlignedBuf::zeroed(BLOCK_SIZE);
        for block in std::mem::take(&mut self.named) {
            self.load_block(volume, layout, block, &mut buf)?;
            if !mutation::on("restart-trusts-table") {
                self.dirty.insert(block);
            }
            let names = block * TABLE_ENTRIES..(block + 1) * TABLE_ENTRIES;
            found.extend(names.filter_map(|p| Some((PageId(p), self.get(PageId(p))?))));
        }
        Ok(found)
    }

    fn decode_block(&mut self, block: u64, b: &[u8], lba: Lba) -> Result<()> {
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
            if entry > self.slots {
                return Err(damaged(
                    format!("slots below {}", self.slots),
                    (entry - 1).to_string(),
                ));
            }
            if entry != 0
                && let Some(place) = self.entries.make_mut(block * TABLE_ENTRIES + i)
            {
                *place = entry;
            }
        }
        if !mutation::on("restart-trusts-table") {
            self.dirty.insert(block);
        }
        Ok(())
    }

    pub(crate) fn get(&self, page: PageId) -> Option<Slot> {
        match self.entries.get(page.0) {
            Some(&e) if e > 0 => Some(Slot(e - 1)),
            _ => None,
        }
    }

    /// Sets the slot of `page` and returns the previous one. `page` must be below
    /// [`PageTable::len`].
    pub(crate) fn set(&mut self, page: PageId, slot: Option<Slot>) -> Option<Slot> {
        let old = self.get(page);
        let entry = self.entries.make_mut(page.0);
        *entry.expect("a page below the table's length") = slot.map_or(0, |s| s.0 + 1);
        self.dirty.insert(PageTable::block_of(page));
        old
    }

    /// Returns the number of page names that the table has room for.
    pub(crate) fn len(&self) -> u64 {
        self.entries.len()
    }

    /// Returns the block that holds `page`'s entry.
    pub(crate) fn block_of(page: PageId) -> u64 {
        page.0 / TABLE_ENTRIES
    }

    /// Encodes a block for the device and marks it clean.
    pub(crate) fn encode_block(&mut self, block: u64, buf: &mut [u8]) {
        buf[4..8].copy_from_slice(&MAGIC);
        buf[8..12].copy_from_slice(&(block as u32).to_le_bytes());
        buf[12..16].copy_from_slice(&self.store.folded().to_le_bytes());
        let mut at = block * TABLE_ENTRIES;
        let mut left = &mut buf[16..16 + 8 * TABLE_ENTRIES as usize];
        while !left.is_empty() {
            let (entries, made) = self.entries.run(at);
            let (bytes, rest) = left.split_at_mut(left.len().min(8 * entries));
            bytes.fill(0);
            for (bytes, entry) in bytes.chunks_exact_mut(8).zip(made.unwrap_or_default()) {
                bytes.copy_from_slice(&entry.to_le_bytes());
            }
            (at, left) = (at + entries as u64, rest);
        }
        let crc = crc32fast::hash(&buf[4..]);
        buf[0..4].copy_from_slice(&crc.to_le_bytes());
        self.dirty.remove(&block);
    }

    pub(crate) fn mark_dirty(&mut self, block: u64) {
        self.dirty.insert(block);
    }

    /// Returns the blocks that differ from the device, ascending.
    pub(crate) fn dirty_blocks(&self) -> Vec<u64> {
        self.dirty.iter().copied().collect()
    }

    /// Returns the pages that have an image, with their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PageId, Slot)> + '_ {
        let made = self.entries.iter().filter(|(_, entry)| **entry != 0);
        made.map(|(page, entry)| (PageId(page), Slot(entry - 1)))
    }

    /// Returns whether block `block` differs from the device.
    pub(crate) fn is_dirty(&self, block: u64) -> bool {
        self.dirty.contains(&block)
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.bytes()
    }
}
