//! The index snapshot: the in-memory index as a checkpoint leaves it on the device.
//!
//! Inner nodes live in memory only (`index`); what recovery needs of them is the map from each leaf's lower fence to
//! its page. A checkpoint writes that map as a chain of page-sized chunks in free slots, and the superblock points at
//! the chain's head. The map is read *fuzzily*, while splits and merges go on: the redo log holds every change to it
//! since the checkpoint began, and replaying "fence -> page" and "fence gone" in log order on top of any mixture of old
//! and new gives the right map.
//!
//! # A chunk, little-endian
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | CRC-32 of bytes 4.. |
//! | 4 | 4 | magic `ISNP` |
//! | 8 | 8 | slot of the next chunk + 1, 0 at the end |
//! | 16 | 4 | entries in this chunk |
//! | 20 | 4 | bytes used |
//! | 24 | … | entries: fence length `u16`, fence, page `u64` |
//!
//! A chunk is written when the next one's slot is taken, so that it can name it.

use crate::device::{AlignedBuf, Volume};
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot};
use crate::pages::PageStore;
use crate::types::{IoClass, PageId};

const MAGIC: [u8; 4] = *b"ISNP";
const HEADER: usize = 24;

/// One entry: a leaf's lower fence and its page.
pub(crate) type Entry = (Vec<u8>, PageId);

/// A snapshot on the device.
pub(crate) struct Written {
    pub(crate) head: Slot,
    pub(crate) slots: Vec<Slot>,
    pub(crate) entries: u64,
}

/// Writes a snapshot of the entries that `each` visits, ascending, to free slots. It is durable after the next device flush. Memory: one page.
///
/// # Errors
/// No slot is free, or the device fails; no slot is taken then.
pub(crate) fn write(
    volume: &Volume,
    layout: &Layout,
    pages: &dyn PageStore,
    each: impl FnOnce(&mut dyn FnMut(&[u8], PageId)),
) -> Result<Written> {
    let mut writer = Writer {
        volume,
        layout,
        pages,
        chunk: AlignedBuf::zeroed(layout.page_size),
        used: HEADER,
        count: 0,
        slots: vec![pages.allocate_slot()?],
        entries: 0,
    };
    let mut outcome = Ok(());
    each(&mut |fence, page| {
        if outcome.is_ok() {
            outcome = writer.push(fence, page);
        }
    });
    match outcome.and_then(|()| writer.write_chunk(None)) {
        Ok(()) => Ok(Written {
            head: writer.slots[0],
            entries: writer.entries,
            slots: writer.slots,
        }),
        Err(e) => {
            // The chain is nobody's: its places are given back. What failed is told; that this fails, too, would be no news.
            let slots = writer.slots.into_iter();
            let _ = slots.map(|slot| pages.free_slot(slot)).collect::<Vec<_>>();
            Err(e)
        }
    }
}

/// The chunk that is being filled, and the places taken so far, the last of which is its own.
struct Writer<'a> {
    volume: &'a Volume,
    layout: &'a Layout,
    pages: &'a dyn PageStore,
    chunk: AlignedBuf,
    used: usize,
    count: u32,
    slots: Vec<Slot>,
    entries: u64,
}

impl Writer<'_> {
    fn push(&mut self, fence: &[u8], page: PageId) -> Result<()> {
        let need = 2 + fence.len() + 8;
        assert!(HEADER + need <= self.chunk.len(), "a fence fits a chunk");
        if self.used + need > self.chunk.len() {
            let slot = self.pages.allocate_slot()?;
            let written = self.write_chunk(Some(slot));
            self.slots.push(slot);
            written?;
        }
        for piece in [
            &(fence.len() as u16).to_le_bytes(),
            fence,
            &page.0.to_le_bytes()[..],
        ] {
            self.chunk[self.used..self.used + piece.len()].copy_from_slice(piece);
            self.used += piece.len();
        }
        self.count += 1;
        self.entries += 1;
        Ok(())
    }

    /// Writes the chunk to the slot that was taken last, and begins another one.
    fn write_chunk(&mut self, next: Option<Slot>) -> Result<()> {
        let chunk = &mut self.chunk;
        chunk[self.used..].fill(0);
        chunk[4..8].copy_from_slice(&MAGIC);
        let next = next.map_or(0, |slot| slot.0 + 1);
        chunk[8..16].copy_from_slice(&next.to_le_bytes());
        chunk[16..20].copy_from_slice(&self.count.to_le_bytes());
        chunk[20..24].copy_from_slice(&(self.used as u32).to_le_bytes());
        let crc = crc32fast::hash(&chunk[4..]);
        chunk[0..4].copy_from_slice(&crc.to_le_bytes());
        let slot = *self
            .slots
            .last()
            .expect("one is taken before a chunk is begun");
        self.volume
            .write(self.layout.slot_lba(slot), &self.chunk, IoClass::Extra)?;
        self.used = HEADER;
        self.count = 0;
        Ok(())
    }
}

/// Reads a chain back: its entries in ascending order of fence, and the slots it occupies.
///
/// # Errors
/// [`Error::Damaged`] where a chunk is not what [`write`] wrote, fences do not ascend or pages are out of
/// range.
pub(crate) fn read(
    volume: &Volume,
    layout: &Layout,
    head: Slot,
    expected_entries: u64,
    page_limit: u64,
) -> Result<(Vec<Entry>, Vec<Slot>)> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut slots = Vec::new();
    let mut buf = AlignedBuf::zeroed(layout.page_size);
    let mut at = Some(head);
    while let Some(slot) = at {
        if slots.len() as u64 >= layout.slots {
            return Err(damaged(layout, head, "a chain that ends", "a cycle".into()));
        }
        volume.read(layout.slot_lba(slot), &mut buf, IoClass::Extra)?;
        slots.push(slot);
        let before = entries.len();
        at = read_chunk(&buf, layout, slot, page_limit, &mut entries)?;
        // Fences ascend, so a chain whose chunks all have some comes to an end within what was written.
        if at.is_some() && entries.len() == before {
            let found = "none, and a next chunk".into();
            return Err(damaged(layout, slot, "entries in each chunk", found));
        }
    }
    if entries.len() as u64 != expected_entries {
        let found = format!("{} entries", entries.len());
        return Err(damaged(
            layout,
            head,
            &format!("{expected_entries} entries"),
            found,
        ));
    }
    if entries.first().is_none_or(|(fence, _)| !fence.is_empty()) {
        return Err(damaged(
            layout,
            head,
            "a first fence that is empty",
            "none".into(),
        ));
    }
    Ok((entries, slots))
}

fn damaged(layout: &Layout, slot: Slot, expected: &str, found: String) -> Error {
    Error::Damaged {
        what: "index snapshot".into(),
        lba: layout.slot_lba(slot),
        expected: expected.into(),
        found,
    }
}

fn read_chunk(
    buf: &[u8],
    layout: &Layout,
    slot: Slot,
    page_limit: u64,
    entries: &mut Vec<Entry>,
) -> Result<Option<Slot>> {
    let bad = |expected: &str, found: String| damaged(layout, slot, expected, found);
    let u32_at = |o: usize| u32::from_le_bytes(buf[o..o + 4].try_into().expect("four bytes"));
    let u64_at = |o: usize| u64::from_le_bytes(buf[o..o + 8].try_into().expect("eight bytes"));
    if buf[4..8] != MAGIC || u32_at(0) != crc32fast::hash(&buf[4..]) {
        return Err(bad("its magic and checksum", "other bytes".into()));
    }
    let next = u64_at(8);
    let used = u32_at(20) as usize;
    if next > layout.slots || used > buf.len() || used < HEADER {
        return Err(bad(
            "offsets inside the store",
            format!("next {next}, used {used}"),
        ));
    }
    let mut rest = &buf[HEADER..used];
    for _ in 0..u32_at(16) {
        let entry = rest.split_at_checked(2).and_then(|(len, tail)| {
            let len = usize::from(u16::from_le_bytes([len[0], len[1]]));
            let (fence, tail) = tail.split_at_checked(len)?;
            let (page, tail) = tail.split_at_checked(8)?;
            rest = tail;
            Some((fence.to_vec(), u64::from_le_bytes(page.try_into().ok()?)))
        });
        let Some((fence, page)) = entry else {
            return Err(bad("whole entries", "a cut one".into()));
        };
        if page >= page_limit {
            return Err(bad(&format!("pages below {page_limit}"), page.to_string()));
        }
        if entries.last().is_some_and(|(last, _)| *last >= fence) {
            return Err(bad("ascending fences", "one that does not ascend".into()));
        }
        entries.push((fence, PageId(page)));
    }
    Ok(next.checked_sub(1).map(Slot))
}
