//! Reads superblocks, page table and slots off a device.

use treering_engine::device::Image;
use treering_engine::{BLOCK_SIZE, Lba, Lsn, PageId};

use super::setup::Page;
use crate::conformance::at_rest::LogFound;

/// The fields of a superblock, as `engine/src/layout.rs` draws them.
const SUPER_MAGIC: &[u8] = b"TREERING";
const NUMBER: usize = 16;
const REDO_START: usize = 56;
const SNAPSHOT: usize = 64;
/// The magic of a table block and of a snapshot, and where the entries and the number begin.
const TABLE_MAGIC: &[u8] = b"PTAB";
const ENTRIES: usize = 16;
const SNAPSHOT_MAGIC: &[u8] = b"ISNP";
const SNAPSHOT_NUMBER: usize = 24;
/// The fields of a page.
const PAGE_ID: usize = 8;
const LSN: usize = 16;
const PAGE_MAGIC: usize = 24;

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSlot {
    /// Zeros.
    Zeros,
    /// The image of a page, with its LSN.
    Image(PageId, Lsn),
    /// A snapshot, with its number.
    Snapshot(u64),
    /// Something else.
    Other,
}

/// A superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundSuper {
    /// Its number.
    pub number: u64,
    /// The position at which redo begins.
    pub redo_start: Lsn,
    /// The slot of its snapshot.
    pub snapshot: u64,
}

/// The content of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The log.
    pub log: LogFound,
    /// Both places of the superblock. `None` for something else.
    pub supers: [Option<FoundSuper>; 2],
    /// For each page of the episode, the engine's slot + 1, or 0.
    pub table: Vec<u64>,
    /// The slots.
    pub slots: Vec<OnSlot>,
}

/// Where things are on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) table: Lba,
    pub(super) slots: Lba,
    pub(super) count: usize,
}

pub(super) fn supers(image: &Image) -> [Option<FoundSuper>; 2] {
    [0, 1].map(|place| {
        let bytes = block(image, place);
        bytes.starts_with(SUPER_MAGIC).then(|| FoundSuper {
            number: word(&bytes, NUMBER),
            redo_start: Lsn(word(&bytes, REDO_START)),
            snapshot: word(&bytes, SNAPSHOT),
        })
    })
}

/// The table's entries for these pages: the slot + 1, or 0.
pub(super) fn table(image: &Image, at: Lba, pages: impl Iterator<Item = PageId>) -> Vec<u64> {
    let bytes = block(image, at.0);
    let written = &bytes[4..8] == TABLE_MAGIC;
    let entry = |page: PageId| match written {
        true => word(&bytes, ENTRIES + 8 * page.0 as usize),
        false => 0,
    };
    pages.map(entry).collect()
}

impl Places {
    /// Reads the device. Recovery has found this log on it.
    pub(super) fn read(&self, image: &Image, pages: &[Page], log: LogFound) -> Found {
        let slot = |n: u64| on_slot(&block(image, self.slots.0 + n));
        Found {
            log,
            supers: supers(image),
            table: table(image, self.table, pages.iter().map(|page| page.id)),
            slots: (0..self.count as u64).map(slot).collect(),
        }
    }
}

fn on_slot(bytes: &[u8]) -> OnSlot {
    if bytes.iter().all(|b| *b == 0) {
        OnSlot::Zeros
    } else if &bytes[4..8] == SNAPSHOT_MAGIC {
        OnSlot::Snapshot(word(bytes, SNAPSHOT_NUMBER))
    } else if &bytes[PAGE_MAGIC..PAGE_MAGIC + 2] == b"TR" {
        OnSlot::Image(PageId(word(bytes, PAGE_ID)), Lsn(word(bytes, LSN)))
    } else {
        OnSlot::Other
    }
}

fn block(image: &Image, lba: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_SIZE];
    image.read(Lba(lba), &mut bytes);
    bytes
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let field = bytes[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(field)
}
