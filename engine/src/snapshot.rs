//! The index snapshot: a copy of the in-memory index that a checkpoint writes to the device.
//!
//! Inner nodes exist only in memory (`index`). What recovery needs of them is the map from each
//! leaf's lower fence to its page. A checkpoint writes that map as a chain of page-sized chunks in
//! free slots, and the superblock points to the first chunk. The map is read *fuzzily*, while
//! splits and merges go on. The redo log has every change to it since the checkpoint began, and
//! replaying "fence -> page" and "fence gone" in log order gives the right map, starting from any
//! mixture of old and new.
//!
//! # A chunk, little-endian
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | CRC-32 of bytes 4.., with the store id mixed in |
//! | 4 | 4 | magic `ISNP` |
//! | 8 | 8 | slot of the next chunk + 1, 0 at the end |
//! | 16 | 4 | entries in this chunk |
//! | 20 | 4 | bytes used |
//! | 24 | 8 | number of the snapshot: the sequence number of the first superblock that names it |
//! | 32 | … | entries: fence length `u16`, fence, page `u64`, version `u64` |
//!
//! The highest bit of a fence's length is set if the leaf may have pointers to long values
//! ([`crate::overflow`]).
//!
//! A chunk is written once the next one's slot has been allocated, so that it can name it. A chunk
//! of another chain, left in its place by a lost or misdirected write, has another number.
//!
//! A checkpoint that a power cut ends before its superblock leaves chunks whose number the next one
//! uses again, perhaps in the same slots. So the superblock also has a sum: the CRC-32 of the chunks'
//! checksums, in order. Specified as `IsWhatWasWritten` in `specs/index_snapshot`.
//!
//! # Versions
//!
//! A page's checksum tells whether its image is whole, not whether it is the newest. So the
//! snapshot stores, for each page, the LSN of its newest image when the entry was made; that image
//! is durable before the superblock is. If recovery finds an older image, that is damage (see
//! [`crate::pages::Versioned`]). A newer one is not: the log has everything that changed since the
//! checkpoint began, and redo can begin from any image that is not older than the snapshot's.

use crate::device::{AlignedBuf, Volume};
use crate::error::{Error, Result};
use crate::events::{self, Event, chain_sum};
use crate::layout::{Layout, Slot, SnapshotContent};
use crate::mutation;
use crate::pages::PageStore;
use crate::types::{IoClass, Lsn, PageId};

const MAGIC: [u8; 4] = *b"ISNP";
/// Bytes of an entry beside its fence.
pub(crate) const ENTRY_BYTES: usize = 2 + 8 + 8;
const HEADER: usize = 32;
/// Flag in the length of a fence: the leaf may have pointers to long values.
const HAS_POINTERS: u16 = 1 << 15;

/// One entry: a leaf's lower fence, its page, and the LSN of that page's image, or zero if it has
/// none yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) fence: Vec<u8>,
    pub(crate) page: PageId,
    pub(crate) version: Lsn,
    /// Whether the leaf may have pointers to long values.
    pub(crate) pointers: bool,
}

/// The part of a leaf's entry behind its fence.
#[derive(Clone, Copy)]
pub(crate) struct Leaf {
    pub(crate) page: PageId,
    pub(crate) version: Lsn,
    pub(crate) pointers: bool,
}

/// The values that all chunks of one chain share.
#[derive(Clone, Copy)]
pub(crate) struct Chain<'a> {
    pub(crate) volume: &'a Volume,
    pub(crate) layout: &'a Layout,
    /// The sequence number of the first superblock that names the chain.
    pub(crate) number: u64,
}

/// A snapshot on the device.
pub(crate) struct Written {
    pub(crate) head: Slot,
    pub(crate) slots: Vec<Slot>,
    pub(crate) content: SnapshotContent,
}

/// Writes a snapshot of the entries that `each` visits in ascending order to free slots. It is
/// durable after the next device flush. Needs one page of memory, and four bytes for each chunk.
///
/// # Errors
/// If no slot is free, or the device fails. [`give_up`] says which slots then stay allocated.
pub(crate) fn write(
    chain: Chain<'_>,
    pages: &dyn PageStore,
    each: impl FnOnce(&mut dyn FnMut(&[u8], Leaf)),
) -> Result<Written> {
    let first = pages.allocate_slot()?;
    chain.tell(|number| events::Snapshot::Begins {
        number,
        slot: first.0,
    });
    let mut writer = Writer {
        chain,
        pages,
        chunk: AlignedBuf::zeroed(chain.layout.page_size),
        used: HEADER,
        count: 0,
        slots: vec![first],
        entries: 0,
        sums: Vec::new(),
    };
    let mut outcome = Ok(());
    each(&mut |fence, leaf| {
        if outcome.is_ok() {
            outcome = writer.push(fence, leaf);
        }
    });
    match outcome.and_then(|()| writer.write_chunk(None)) {
        Ok(()) => Ok(Written {
            head: writer.slots[0],
            content: SnapshotContent {
                entries: writer.entries,
                sum: chain_sum(writer.sums),
            },
            slots: writer.slots,
        }),
        Err(e) => {
            give_up(pages, writer.slots, &e);
            Err(e)
        }
    }
}

/// Frees the slots of a chain to which nothing refers, if `cause` was want of room. Any other error
/// stops the store, and then nothing is sent to the device any more: not even a trim.
pub(crate) fn give_up(pages: &dyn PageStore, slots: Vec<Slot>, cause: &Error) {
    if cause.is_no_space() || mutation::on("failed-checkpoint-trims") {
        // The caller reports the cause; a failure to free them would add nothing.
        let freed = slots.into_iter().map(|slot| pages.free_slot(slot));
        let _ = freed.collect::<Vec<_>>();
    }
}

/// The chunk that is being filled, and the slots allocated so far, the last of which is for this
/// chunk.
struct Writer<'a> {
    chain: Chain<'a>,
    pages: &'a dyn PageStore,
    chunk: AlignedBuf,
    used: usize,
    count: u32,
    slots: Vec<Slot>,
    entries: u64,
    /// The checksums of the chunks written so far.
    sums: Vec<u32>,
}

impl Chain<'_> {
    /// Reports a step of the chain.
    fn tell(&self, event: impl FnOnce(u64) -> events::Snapshot) {
        (self.volume).tell(|| Event::Snapshot(event(self.number)));
    }
}

impl Writer<'_> {
    fn push(&mut self, fence: &[u8], leaf: Leaf) -> Result<()> {
        let need = fence.len() + ENTRY_BYTES;
        assert!(HEADER + need <= self.chunk.len(), "a fence fits a chunk");
        if self.used + need > self.chunk.len() {
            let slot = self.pages.allocate_slot()?;
            let written = self.write_chunk(Some(slot));
            self.slots.push(slot);
            written?;
        }
        let pointers = if leaf.pointers { HAS_POINTERS } else { 0 };
        for piece in [
            &(fence.len() as u16 | pointers).to_le_bytes(),
            fence,
            &leaf.page.0.to_le_bytes()[..],
            &leaf.version.0.to_le_bytes()[..],
        ] {
            self.chunk[self.used..self.used + piece.len()].copy_from_slice(piece);
            self.used += piece.len();
        }
        self.count += 1;
        self.entries += 1;
        Ok(())
    }

    /// Writes the chunk to the last slot allocated, and begins a new one.
    fn write_chunk(&mut self, next: Option<Slot>) -> Result<()> {
        let chunk = &mut self.chunk;
        chunk[self.used..].fill(0);
        chunk[4..8].copy_from_slice(&MAGIC);
        let behind = next.map_or(0, |slot| slot.0 + 1);
        chunk[8..16].copy_from_slice(&behind.to_le_bytes());
        chunk[16..20].copy_from_slice(&self.count.to_le_bytes());
        chunk[20..24].copy_from_slice(&(self.used as u32).to_le_bytes());
        chunk[24..32].copy_from_slice(&self.chain.number.to_le_bytes());
        let layout = self.chain.layout;
        let crc = layout.id.crc(&chunk[4..]);
        chunk[0..4].copy_from_slice(&crc.to_le_bytes());
        self.sums.push(crc);
        let slot = *self
            .slots
            .last()
            .expect("one is taken before a chunk is begun");
        let lba = layout.slot_lba(slot);
        let (entries, next) = (self.count, next.map(|slot| slot.0));
        self.chain.tell(|number| events::Snapshot::WritesChunk {
            number,
            slot: slot.0,
            next,
            entries,
            sum: crc,
        });
        (self.chain.volume).write(lba, &self.chunk, IoClass::Extra)?;
        self.used = HEADER;
        self.count = 0;
        Ok(())
    }
}

/// Reads a chain back: its entries in ascending order of fence, and the slots it occupies.
///
/// # Errors
/// [`Error::Damaged`] if a chunk is not what [`write`] wrote, fences do not ascend or pages are out
/// of range.
pub(crate) fn read(
    chain: Chain<'_>,
    head: Slot,
    expected: SnapshotContent,
    page_limit: u64,
) -> Result<(Vec<Entry>, Vec<Slot>)> {
    let Chain { volume, layout, .. } = chain;
    chain.tell(|number| events::Snapshot::Takes {
        number,
        head: head.0,
        entries: expected.entries,
        sum: expected.sum,
    });
    let mut entries: Vec<Entry> = Vec::new();
    let mut slots = Vec::new();
    let mut buf = AlignedBuf::zeroed(layout.page_size);
    let mut sums = Vec::new();
    let mut at = Some(head);
    while let Some(slot) = at {
        if slots.len() as u64 >= layout.slots {
            return Err(damaged(layout, head, "a chain that ends", "a cycle".into()));
        }
        volume.read(layout.slot_lba(slot), &mut buf, IoClass::Extra)?;
        slots.push(slot);
        let before = entries.len();
        at = read_chunk(&buf, chain, slot, page_limit, &mut entries)?;
        sums.push(u32::from_le_bytes(
            buf[0..4].try_into().expect("four bytes"),
        ));
        chain.tell(|_| events::Snapshot::ReadChunk {
            slot: slot.0,
            next: at.map(|slot| slot.0),
            entries: (entries.len() - before) as u32,
        });
        // Fences ascend, so a chain in which every chunk has entries must end.
        if at.is_some() && entries.len() == before {
            let found = "an empty chunk that is not the last".into();
            return Err(damaged(layout, slot, "entries in each chunk", found));
        }
    }
    let believes = mutation::on("snapshot-believed");
    if entries.len() as u64 != expected.entries && !believes {
        let found = format!("{} entries", entries.len());
        return Err(damaged(
            layout,
            head,
            &format!("{} entries", expected.entries),
            found,
        ));
    }
    let is_known = expected.sum != 0 && !believes && !mutation::on("snapshot-sum-unchecked");
    if is_known && chain_sum(sums) != expected.sum {
        return Err(damaged(
            layout,
            head,
            "the chunks that the superblock was written for",
            "others with the same number".into(),
        ));
    }
    if entries.first().is_none_or(|first| !first.fence.is_empty()) {
        return Err(damaged(
            layout,
            head,
            "an empty first fence",
            "another fence, or no entry".into(),
        ));
    }
    chain.tell(|_| events::Snapshot::Built {
        entries: entries.len() as u64,
    });
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
    chain: Chain<'_>,
    slot: Slot,
    page_limit: u64,
    entries: &mut Vec<Entry>,
) -> Result<Option<Slot>> {
    let layout = chain.layout;
    let bad = |expected: &str, found: String| damaged(layout, slot, expected, found);
    let u32_at = |o: usize| u32::from_le_bytes(buf[o..o + 4].try_into().expect("four bytes"));
    let u64_at = |o: usize| u64::from_le_bytes(buf[o..o + 8].try_into().expect("eight bytes"));
    if buf[4..8] != MAGIC || u32_at(0) != layout.id.crc(&buf[4..]) {
        return Err(bad("its magic and checksum", "other bytes".into()));
    }
    if u64_at(24) != chain.number && !mutation::on("snapshot-believed") {
        let expected = format!("a chunk of checkpoint {}", chain.number);
        return Err(bad(&expected, format!("one of checkpoint {}", u64_at(24))));
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
            let len = u16::from_le_bytes([len[0], len[1]]);
            let (fence, tail) = tail.split_at_checked(usize::from(len & !HAS_POINTERS))?;
            let (page, tail) = tail.split_at_checked(8)?;
            let (version, tail) = tail.split_at_checked(8)?;
            rest = tail;
            Some(Entry {
                fence: fence.to_vec(),
                page: PageId(u64::from_le_bytes(page.try_into().ok()?)),
                version: Lsn(u64::from_le_bytes(version.try_into().ok()?)),
                pointers: len & HAS_POINTERS != 0,
            })
        });
        let Some(entry) = entry else {
            return Err(bad("whole entries", "a truncated entry".into()));
        };
        if entry.page.0 >= page_limit {
            let expected = format!("pages below {page_limit}");
            return Err(bad(&expected, entry.page.0.to_string()));
        }
        if (entries.last()).is_some_and(|last| last.fence >= entry.fence) {
            return Err(bad(
                "ascending fences",
                "a fence that does not ascend".into(),
            ));
        }
        entries.push(entry);
    }
    Ok(next.checked_sub(1).map(Slot))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::MemDevice;
    use crate::options::Options;
    use crate::pages::{self, PageTable};
    use crate::types::StoreId;

    fn leaf(page: u64) -> Leaf {
        Leaf {
            page: PageId(page),
            version: Lsn(0),
            pointers: false,
        }
    }

    /// A checkpoint is cut off before its superblock. The next one has its number, its slot and as
    /// many entries, and the drive loses its chunk.
    #[test]
    fn a_chunk_of_a_checkpoint_that_was_cut_off_is_not_taken_for_that_of_the_next() {
        let blocks = 32 << 10;
        let volume = Arc::new(Volume::new(Arc::new(MemDevice::new(blocks))));
        let options = Options::default();
        let layout = Layout::plan(&options, blocks, StoreId(7)).unwrap();
        let table = PageTable::new(&layout);
        let pages = pages::open(&volume, layout, &options, table, &[]).unwrap();
        let chain = Chain {
            volume: &volume,
            layout: &layout,
            number: 2,
        };
        let write = |fence: &[u8], page| {
            write(chain, &pages, |visit| {
                visit(b"", leaf(1));
                visit(fence, leaf(page));
            })
            .unwrap()
        };
        let cut_off = write(b"pear", 2);
        let lba = layout.slot_lba(cut_off.head);
        let mut left = AlignedBuf::zeroed(layout.page_size);
        volume.read(lba, &mut left, IoClass::Extra).unwrap();
        pages.free_slot(cut_off.head).unwrap();

        let next = write(b"plum", 3);
        assert_eq!(next.head, cut_off.head);
        let read = |content| read(chain, next.head, content, layout.page_names());
        let (entries, _) = read(next.content).unwrap();
        assert_eq!(entries[1].fence, b"plum");

        volume.write(lba, &left, IoClass::Extra).unwrap();
        let told = read(next.content).map(|_| ()).unwrap_err().to_string();
        assert!(told.contains("others with the same number"), "{told}");
        // An older version of the engine recorded no sum.
        let unknown = SnapshotContent {
            sum: 0,
            ..next.content
        };
        assert!(read(unknown).is_ok());
    }
}
