//! Reads the superblock and the slots off a device: leaves record by record, and chunks entry by
//! entry.

use treering_engine::device::Image;
use treering_engine::node::{self, PageRef};
use treering_engine::{BLOCK_SIZE, Lba, Lsn, PageId, StoreId};

use super::setup::{fence_of, key_of, upper_of};
use crate::conformance::at_rest::LogFound;
use treering_oracle::value;

/// The fields of a superblock, as `engine/src/layout.rs` draws them.
const SUPER_MAGIC: &[u8] = b"TREERING";
const SEQUENCE: usize = 16;
const REDO_START: usize = 56;
const HEAD: usize = 64;
const ALL_ENTRIES: usize = 72;
const SUM: usize = 108;
const SNAPSHOT: usize = 112;
/// The fields of a chunk, as `engine/src/snapshot.rs` draws them.
const CHUNK_MAGIC: &[u8] = b"ISNP";
const NEXT: usize = 8;
const ENTRIES: usize = 16;
const NUMBER: usize = 24;
const FIRST: usize = 32;

/// A leaf on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLeaf {
    /// Its name.
    pub page: PageId,
    /// The LSN of its last change.
    pub lsn: Lsn,
    /// Its fences, as keys of the spec. 0 for another one.
    pub fences: (u8, u8),
    /// Its keys of the spec, with the versions of their values.
    pub records: Vec<(u8, u64)>,
}

/// The content of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnSlot {
    /// Zeros.
    Zeros,
    /// The image of a leaf.
    Image(FoundLeaf),
    /// A chunk of a snapshot.
    Chunk {
        /// The number of its checkpoint.
        number: u64,
        /// The slot of the next chunk + 1, or 0.
        next: u64,
        /// The fence, page and version of each entry.
        entries: Vec<(u8, PageId, Lsn)>,
    },
    /// Something else.
    Other,
}

/// A superblock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoundSuper {
    /// The one with the greater number counts.
    pub sequence: u64,
    /// The position at which redo begins.
    pub redo_start: Lsn,
    /// The number of its snapshot.
    pub number: u64,
    /// The slot of the first chunk.
    pub head: u64,
    /// The number of entries of all chunks.
    pub entries: u64,
    /// The sum of the chunks' checksums.
    pub sum: u32,
}

/// The content of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The log, as a recovery of a copy reads it.
    pub log: LogFound,
    /// The superblock that counts.
    pub superblock: FoundSuper,
    /// The slots.
    pub slots: Vec<OnSlot>,
}

/// Where the slots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) store: StoreId,
    pub(super) slots: Lba,
    pub(super) count: usize,
}

impl Places {
    /// Reads the device. Recovery has found this log on it.
    pub(super) fn read(&self, image: &Image, log: LogFound) -> Found {
        let slot = |n: u64| on_slot(&block(image, self.slots.0 + n), self.store);
        Found {
            log,
            superblock: superblock(image),
            slots: (0..self.count as u64).map(slot).collect(),
        }
    }
}

fn superblock(image: &Image) -> FoundSuper {
    let both = [0, 1].map(|place| block(image, place)).into_iter();
    let both = both.filter(|bytes| bytes.starts_with(SUPER_MAGIC));
    let all = both.map(|bytes| FoundSuper {
        sequence: word(&bytes, SEQUENCE),
        redo_start: Lsn(word(&bytes, REDO_START)),
        number: word(&bytes, SNAPSHOT),
        head: word(&bytes, HEAD),
        entries: word(&bytes, ALL_ENTRIES),
        sum: half(&bytes, SUM),
    });
    all.max_by_key(|found| found.sequence).unwrap_or_default()
}

fn on_slot(bytes: &[u8], store: StoreId) -> OnSlot {
    if bytes.iter().all(|b| *b == 0) {
        return OnSlot::Zeros;
    }
    if &bytes[4..8] == CHUNK_MAGIC {
        return chunk(bytes).unwrap_or(OnSlot::Other);
    }
    let view = PageRef::new(bytes);
    let page = view.page_id();
    if node::check_for(bytes, page, store).is_err() {
        return OnSlot::Other;
    }
    let records = (0..view.count()).map(|at| {
        let version = value::version(view.value(at)).unwrap_or(u64::MAX);
        (key_of(&view.key(at)), version)
    });
    OnSlot::Image(FoundLeaf {
        page,
        lsn: view.lsn(),
        fences: (fence_of(view.lower_fence()), upper_of(view.upper_fence())),
        records: records.collect(),
    })
}

fn chunk(bytes: &[u8]) -> Option<OnSlot> {
    let mut entries = Vec::new();
    let mut rest = bytes.get(FIRST..)?;
    for _ in 0..half(bytes, ENTRIES) {
        let (len, tail) = rest.split_first_chunk::<2>()?;
        let (fence, tail) = tail.split_at_checked(u16::from_le_bytes(*len).into())?;
        let (page, tail) = tail.split_first_chunk::<8>()?;
        let (version, tail) = tail.split_first_chunk::<8>()?;
        let page = PageId(u64::from_le_bytes(*page));
        entries.push((fence_of(fence), page, Lsn(u64::from_le_bytes(*version))));
        rest = tail;
    }
    Some(OnSlot::Chunk {
        number: word(bytes, NUMBER),
        next: word(bytes, NEXT),
        entries,
    })
}

fn block(image: &Image, lba: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_SIZE];
    image.read(Lba(lba), &mut bytes);
    bytes
}

fn half(bytes: &[u8], at: usize) -> u32 {
    let field = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(field)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let field = bytes[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(field)
}
