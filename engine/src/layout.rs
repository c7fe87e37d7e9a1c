//! The regions of a store on its device, and the superblock that describes them.
//!
//! ```text
//! block 0   1   2 .......... 2+log ..................... pages_start ............... capacity
//!      [SB A][SB B][log, circular][journal (2 halves) | page table][page space: one-page slots]
//! ```
//!
//! A *slot* is the space of one page in the page space. In the in-place and in the shadowing store,
//! slot `n` is the home of `PageId(n)`. In the copy-on-write store, the page table maps pages to
//! slots. Index snapshots (see [`crate::snapshot`]) are in slots, too, in the first page of each.
//!
//! ```text
//! a slot:   [image]   [log block, with a modification log]   [other image, with page shadowing]
//! ```
//!
//! The two superblocks are written in turn. Each has a sequence number greater by one than the
//! other, and fits one block, which a device writes whole or not at all. So a crash leaves two
//! valid ones with consecutive numbers. Anything else is damage and is refused: falling back to the
//! older superblock would lose what came after it, and then destroy it by writing. There is one
//! exception: a store whose first checkpoint was cut short by a crash has only the superblock with
//! number 1.
//!
//! Even a drive that tears a block between its sectors of 512 bytes cannot tear these: everything
//! that differs is in the first sector.
//!
//! # The superblock, little-endian
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 8 | magic `TREERING` |
//! | 8 | 4 | CRC-32 of bytes 12..4096 |
//! | 12 | 4 | format version |
//! | 16 | 8 | sequence number |
//! | 24 | 4 | page size |
//! | 28 | 1 | store kind: 0 in place, 1 copy-on-write, 2 shadowing |
//! | 29 | 1 | page table persisted: 0 at each flush, 1 at checkpoints |
//! | 30 | 2 | journal: pages in each half (0 for copy-on-write) |
//! | 32 | 8 | capacity in blocks |
//! | 40 | 8 | log blocks |
//! | 48 | 4 | log epoch |
//! | 52 | 4 | number of epochs that began behind the redo start |
//! | 56 | 8 | redo start: the log position at which recovery begins |
//! | 64 | 8 | head slot of the index snapshot |
//! | 72 | 8 | entries in the index snapshot |
//! | 80 | 1 | 1 if pages have a modification log |
//! | 88 | 8 | store id |
//! | 96 | 8 | high water: all page ids ever used are below this; 0: unknown |
//! | 104 | 4 | maximum number of blocks that one flush of the log writes |
//! | 108 | 4 | sum of the index snapshot ([`crate::snapshot`]); 0: not recorded |
//! | 112 | 8 | number of the index snapshot, which is also in its chunks |
//! | 120 | 8 | growing store: durable blocks of the device by then; 0: fixed size |

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use crate::device::{Access, Volume};
use crate::error::{Error, Result};
use crate::events::{Event, Redo};
use crate::mutation;
use crate::options::{Options, PageStoreKind};
use crate::types::{BLOCK_SIZE, IoClass, Lba, Lsn, StoreId};
use crate::wal::LogRegion;

const MAGIC: [u8; 8] = *b"TREERING";
const VERSION: u32 = 3;

/// Entries in one 4 KiB page-table block; see [`crate::pages`].
pub(crate) const TABLE_ENTRIES: u64 = ((BLOCK_SIZE - 16) / 8) as u64;

/// The first block of the log, behind the superblocks.
const LOG_START: Lba = Lba(2);
/// The maximum number of blocks of a device that a store uses: a pebibyte. The fixed part of its
/// maps in memory grows with the device, and stays below ten megabytes.
pub(crate) const MAX_BLOCKS: u64 = 1 << 38;

/// Log positions and sequence numbers of superblocks are below this: more than a drive writes in
/// its life, and far enough from the type's maximum that sums do not overflow.
const MAX_POSITION: u64 = 1 << 62;

/// The minimum number of slots of a store: for leaves, two snapshots, and room to move.
const MIN_SLOTS: u64 = 64;

/// Returns whether a file that begins with these two blocks, or fewer bytes, is a store, valid or
/// not: one of the blocks has the magic bytes.
///
/// ```
/// use treering_engine::is_store_file;
///
/// assert!(is_store_file(b"TREERING, as at the start of a superblock"));
/// assert!(!is_store_file(b"SQLite format 3\0"));
/// ```
#[must_use]
pub fn is_store_file(start: &[u8]) -> bool {
    let begins = |block: &[u8]| block.starts_with(&MAGIC);
    start.chunks(BLOCK_SIZE).take(2).any(begins)
}

/// A slot of the page space: the blocks for one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(pub(crate) u64);

/// The regions of a store, fixed when it is formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The id of the store.
    pub(crate) id: StoreId,
    pub(crate) page_size: usize,
    pub(crate) store: PageStoreKind,
    /// Whether each slot has a log block (B⁻-tree §3.2).
    pub(crate) mod_log: bool,
    pub(crate) capacity_blocks: u64,
    pub(crate) log_blocks: u64,
    /// Pages in each half of the journal; 0 for copy-on-write.
    pub(crate) journal_pages: u64,
    /// Blocks of the page table; 0 in place.
    pub(crate) table_blocks: u64,
    /// The number of slots of the page space.
    pub(crate) slots: u64,
}

impl StoreId {
    /// Chooses an id for a store that is about to be made on this device, different from that of
    /// any store that was here before.
    ///
    /// # Errors
    /// Device failures.
    pub(crate) fn draw(volume: &Volume) -> Result<StoreId> {
        if mutation::on("stores-have-no-id") {
            return Ok(StoreId(1));
        }
        // Runs on memory must repeat exactly. There, the stores are told apart by what the previous
        // one left: its log's first block, which each store writes before any changed page, and
        // which is never discarded.
        let mut left = crate::device::AlignedBuf::zeroed(3 * BLOCK_SIZE);
        volume.read(Lba(0), &mut left, IoClass::Extra)?;
        let seed = match volume.device().access() {
            Access::Memory => 0,
            Access::File { .. } => RandomState::new().hash_one(std::time::SystemTime::now()),
        };
        Ok(StoreId(xxhash_rust::xxh3::xxh3_64_with_seed(&left, seed)))
    }
}

impl Layout {
    /// Divides a device of `capacity_blocks` into regions for `options`, for a store with this id.
    pub(crate) fn plan(options: &Options, capacity_blocks: u64, id: StoreId) -> Result<Layout> {
        let journal_pages = match options.store.has_journal() {
            true => options.write_batch_pages as u64,
            false => 0,
        };
        let capacity_blocks = capacity_blocks.min(MAX_BLOCKS);
        let log_blocks = options.log_bytes.div_ceil(BLOCK_SIZE as u64);
        let kind = (options.store, options.mod_log.is_some());
        Layout::with(id, options.page_size, kind, capacity_blocks, log_blocks, journal_pages)
            .ok_or_else(|| Error::BadOption {
                name: "capacity",
                why: format!(
                    "a device of {capacity_blocks} blocks is too small: log, journal and {MIN_SLOTS} pages \
                     take {} blocks",
                    required_blocks(options, MIN_SLOTS)
                ),
            })
    }

    fn with(
        id: StoreId,
        page_size: usize,
        (store, mod_log): (PageStoreKind, bool),
        capacity_blocks: u64,
        log_blocks: u64,
        journal_pages: u64,
    ) -> Option<Layout> {
        let per_page = (page_size / BLOCK_SIZE) as u64;
        let fixed = journal_pages
            .checked_mul(2 * per_page)?
            .checked_add(log_blocks)?
            .checked_add(2)?;
        let left = capacity_blocks.checked_sub(fixed)?;
        let per_slot = blocks_per_slot(per_page, store, mod_log);
        let (slots, table_blocks) = match store.table() {
            None => (left / per_slot, 0),
            Some(_) => {
                // Each table block serves TABLE_ENTRIES slots of per_slot blocks.
                let table = left.div_ceil(TABLE_ENTRIES * per_slot + 1);
                ((left - table) / per_slot, table)
            }
        };
        (slots >= MIN_SLOTS).then_some(Layout {
            id,
            page_size,
            store,
            mod_log,
            capacity_blocks,
            log_blocks,
            journal_pages,
            table_blocks,
            slots,
        })
    }

    /// The number of page ids that the store may use: ids are below this.
    pub(crate) fn page_names(&self) -> u64 {
        match self.store.table() {
            None => self.slots,
            Some(_) => self.table_blocks * TABLE_ENTRIES,
        }
    }

    pub(crate) fn blocks_per_page(&self) -> u64 {
        (self.page_size / BLOCK_SIZE) as u64
    }

    pub(crate) fn blocks_per_slot(&self) -> u64 {
        blocks_per_slot(self.blocks_per_page(), self.store, self.mod_log)
    }

    pub(crate) fn log_start(&self) -> Lba {
        LOG_START
    }

    /// The log's place on the device, and the store that owns it.
    pub(crate) fn log_region(&self) -> LogRegion {
        LogRegion {
            start: LOG_START,
            blocks: self.log_blocks,
            store: self.id,
        }
    }

    /// First block of journal half `half` (0 or 1).
    pub(crate) fn journal_half(&self, half: u64) -> Lba {
        Lba(2 + self.log_blocks + half * self.journal_pages * self.blocks_per_page())
    }

    pub(crate) fn table_block(&self, block: u64) -> Lba {
        debug_assert!(block < self.table_blocks);
        Lba(2 + self.log_blocks + block)
    }

    pub(crate) fn slot_lba(&self, slot: Slot) -> Lba {
        debug_assert!(slot.0 < self.slots);
        let start = 2
            + self.log_blocks
            + 2 * self.journal_pages * self.blocks_per_page()
            + self.table_blocks;
        Lba(start + slot.0 * self.blocks_per_slot())
    }

    /// The log block of a slot, just behind its first image.
    pub(crate) fn mod_log_lba(&self, slot: Slot) -> Lba {
        debug_assert!(self.mod_log);
        Lba(self.slot_lba(slot).0 + self.blocks_per_page())
    }

    /// Image `which` (0 or 1) of a slot of the shadowing store.
    pub(crate) fn shadow_lba(&self, slot: Slot, which: u8) -> Lba {
        let behind = self.blocks_per_page() + u64::from(self.mod_log);
        Lba(self.slot_lba(slot).0 + u64::from(which) * behind)
    }
}

fn blocks_per_slot(per_page: u64, store: PageStoreKind, mod_log: bool) -> u64 {
    store.images_per_place() * per_page + u64::from(mod_log)
}

/// Returns the number of blocks that a device needs so that a store with these options has room for
/// `pages` pages.
///
/// ```
/// use treering_engine::{Options, required_blocks};
///
/// let options = Options::default();
/// let blocks = required_blocks(&options, 1_000);
/// // The pages, the log, and some more.
/// let page_bytes = 1_000 * options.page_size as u64;
/// assert!(blocks * 4096 > page_bytes + options.log_bytes);
/// assert!(required_blocks(&options, 2_000) > blocks);
/// ```
pub fn required_blocks(options: &Options, pages: u64) -> u64 {
    let per_page = (options.page_size / BLOCK_SIZE) as u64;
    let log = options.log_bytes.div_ceil(BLOCK_SIZE as u64);
    // The stores reserve a sixteenth and a bit for snapshots and for pages on the move.
    let slots = (pages + pages / 15 + 32).max(MIN_SLOTS);
    let journal = match options.store.has_journal() {
        true => 2 * options.write_batch_pages as u64 * per_page,
        false => 0,
    };
    let table = match options.store.table() {
        Some(_) => slots.div_ceil(TABLE_ENTRIES) + 1,
        None => 0,
    };
    2 + log
        + journal
        + table
        + slots * blocks_per_slot(per_page, options.store, options.mod_log.is_some())
}

/// What a superblock says of the index snapshot that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotContent {
    pub(crate) entries: u64,
    /// The CRC-32 of the chunks' checksums, never 0. 0: a version of the engine that recorded none.
    pub(crate) sum: u32,
}

/// The content of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) sequence: u64,
    pub(crate) layout: Layout,
    /// The newest epoch of the log.
    pub(crate) epoch: u32,
    /// The epoch that was being written at `redo_start`: `epoch`, except while recovery completes a
    /// batch.
    pub(crate) redo_epoch: u32,
    pub(crate) redo_start: Lsn,
    /// The head of the snapshot chain; there always is one.
    pub(crate) snapshot_head: Slot,
    pub(crate) snapshot: SnapshotContent,
    /// The sequence number under which the snapshot was written.
    pub(crate) snapshot_number: u64,
    /// The maximum number of blocks that one flush of the log writes, in the session that wrote
    /// this. The first block that proves a bad block of the log damaged may lie this far behind it.
    pub(crate) flush_blocks: u32,
    /// All page ids in use at the time of the checkpoint are below this; 0: unknown. Pages that
    /// were named since are in the log.
    pub(crate) high_water: u64,
    /// In a growing store, the number of blocks that its device had durably when this was written.
    /// 0: the store has a fixed size.
    pub(crate) grown_blocks: u64,
}

impl Superblock {
    /// The number of page ids that may be in use at this superblock. Greater ids are in the log, or
    /// unused.
    pub(crate) fn names(&self) -> u64 {
        let all = self.layout.page_names();
        match self.high_water {
            0 => all,
            known if mutation::on("high-water-too-low") => (known / 2).min(all),
            known => known.min(all),
        }
    }

    /// The address of a superblock with this sequence number: one of two.
    pub(crate) fn lba(&self) -> Lba {
        Lba(self.sequence % 2)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut b = vec![0u8; BLOCK_SIZE];
        b[0..8].copy_from_slice(&MAGIC);
        b[12..16].copy_from_slice(&VERSION.to_le_bytes());
        b[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        b[24..28].copy_from_slice(&(self.layout.page_size as u32).to_le_bytes());
        b[28..30].copy_from_slice(&self.layout.store.code());
        b[30..32].copy_from_slice(&(self.layout.journal_pages as u16).to_le_bytes());
        b[32..40].copy_from_slice(&self.layout.capacity_blocks.to_le_bytes());
        b[40..48].copy_from_slice(&self.layout.log_blocks.to_le_bytes());
        b[48..52].copy_from_slice(&self.epoch.to_le_bytes());
        b[52..56].copy_from_slice(&(self.epoch - self.redo_epoch).to_le_bytes());
        b[56..64].copy_from_slice(&self.redo_start.0.to_le_bytes());
        b[64..72].copy_from_slice(&self.snapshot_head.0.to_le_bytes());
        b[72..80].copy_from_slice(&self.snapshot.entries.to_le_bytes());
        b[108..112].copy_from_slice(&self.snapshot.sum.to_le_bytes());
        b[80] = u8::from(self.layout.mod_log);
        b[88..96].copy_from_slice(&self.layout.id.0.to_le_bytes());
        b[112..120].copy_from_slice(&self.snapshot_number.to_le_bytes());
        b[104..108].copy_from_slice(&self.flush_blocks.to_le_bytes());
        b[96..104].copy_from_slice(&self.high_water.to_le_bytes());
        b[120..128].copy_from_slice(&self.grown_blocks.to_le_bytes());
        let crc = crc32fast::hash(&b[12..]);
        b[8..12].copy_from_slice(&crc.to_le_bytes());
        b
    }

    /// Decodes a superblock. Every field is checked against the others before it is trusted.
    pub(crate) fn decode(b: &[u8], lba: Lba, device_blocks: u64) -> Result<Superblock> {
        let u32_at = |o: usize| u32::from_le_bytes([b[o], b[o + 1], b[o + 2], b[o + 3]]);
        let u64_at = |o: usize| u64::from(u32_at(o)) | (u64::from(u32_at(o + 4)) << 32);
        let damaged = |expected: &str, found: String| Error::Damaged {
            what: "superblock".into(),
            lba,
            expected: expected.into(),
            found,
        };
        if b.len() != BLOCK_SIZE || b[0..8] != MAGIC {
            return Err(Error::NotAStore { lba });
        }
        if u32_at(8) != crc32fast::hash(&b[12..]) {
            return Err(damaged("a matching checksum", "a different one".into()));
        }
        if u32_at(12) != VERSION {
            return Err(damaged(
                &format!("format version {VERSION}"),
                u32_at(12).to_string(),
            ));
        }
        let page_size = u32_at(24) as usize;
        if !(BLOCK_SIZE..=65536).contains(&page_size) || !page_size.is_power_of_two() {
            return Err(damaged(
                "a page size of 4 KiB to 64 KiB",
                page_size.to_string(),
            ));
        }
        let code = (b[28], b[29]);
        let store = PageStoreKind::of_code([code.0, code.1])
            .ok_or_else(|| damaged("a known page store", format!("{code:?}")))?;
        let kind = match b[80] {
            0 | 1 => (store, b[80] == 1),
            other => {
                return Err(damaged("0 or 1 for a modification log", other.to_string()));
            }
        };
        let (capacity, grown_blocks) = (u64_at(32), u64_at(120));
        let present = match grown_blocks {
            0 => capacity,
            grown => grown,
        };
        if present > device_blocks || capacity > MAX_BLOCKS || grown_blocks > capacity {
            return Err(damaged(
                &format!("at most the device's {device_blocks} blocks"),
                format!("{present} (was the file cut?)"),
            ));
        }
        let journal_pages = u64::from(u16::from_le_bytes([b[30], b[31]]));
        let id = StoreId(u64_at(88));
        let layout = Layout::with(id, page_size, kind, capacity, u64_at(40), journal_pages)
            .ok_or_else(|| damaged("regions that fit the device", "regions that do not".into()))?;
        if layout.log_blocks < 2 {
            return Err(damaged(
                "a log of two blocks or more",
                layout.log_blocks.to_string(),
            ));
        }
        let amounts = [
            (
                "an epoch below 2^32 - 1",
                u64::from(u32_at(48)),
                u64::from(u32::MAX),
            ),
            (
                "a redo start in an epoch that has been",
                u64::from(u32_at(52)),
                u64::from(u32_at(48)) + 1,
            ),
            ("a sequence number below 2^62", u64_at(16), MAX_POSITION),
            ("a log position below 2^62", u64_at(56), MAX_POSITION),
            (
                "no more entries in the index snapshot than page names",
                u64_at(72),
                layout.page_names() + 1,
            ),
            (
                "a flush no larger than the log",
                u64::from(u32_at(104)),
                layout.log_blocks + 1,
            ),
            ("a snapshot's number below 2^62", u64_at(112), MAX_POSITION),
        ];
        for (expected, found, limit) in amounts {
            if found >= limit {
                return Err(damaged(expected, found.to_string()));
            }
        }
        let snapshot_head = Slot(u64_at(64));
        if snapshot_head.0 >= layout.slots {
            return Err(damaged(
                "a snapshot inside the page space",
                snapshot_head.0.to_string(),
            ));
        }
        Ok(Superblock {
            sequence: u64_at(16),
            layout,
            epoch: u32_at(48),
            redo_epoch: u32_at(48) - u32_at(52),
            redo_start: Lsn(u64_at(56)),
            snapshot_head,
            snapshot: SnapshotContent {
                entries: u64_at(72),
                sum: u32_at(108),
            },
            snapshot_number: u64_at(112),
            flush_blocks: u32_at(104),
            high_water: u64_at(96),
            grown_blocks,
        })
    }

    /// Writes both superblocks again, unchanged. After the next successful flush, neither can
    /// revert to its previous content, or to what a failed write attempted.
    pub(crate) fn rewrite(volume: &Volume) -> Result<()> {
        volume.tell(|| Event::Redo(Redo::RewritesSuperblock));
        let mut both = crate::device::AlignedBuf::zeroed(2 * BLOCK_SIZE);
        volume.read(Lba(0), &mut both, IoClass::Extra)?;
        volume.write(Lba(0), &both, IoClass::Extra)
    }

    /// Reads the newest superblock of a device. Returns `None` if the device is blank (both places
    /// all zero).
    ///
    /// # Errors
    /// [`Error::NotAStore`] if neither place has the magic; [`Error::Damaged`] unless both are what
    /// a crash can leave: one written directly after the other.
    pub(crate) fn load(volume: &Volume) -> Result<Option<Superblock>> {
        let blocks = volume.capacity_blocks();
        if blocks < 2 {
            return Err(Error::NotAStore { lba: Lba(0) });
        }
        let mut both = crate::device::AlignedBuf::zeroed(2 * BLOCK_SIZE);
        volume.read(Lba(0), &mut both, IoClass::Extra)?;
        let (a, b) = both.split_at(BLOCK_SIZE);
        let is_blank = |block: &[u8]| block.iter().all(|&b| b == 0);
        if is_blank(a) && is_blank(b) {
            return Ok(None);
        }
        let first = Superblock::decode(a, Lba(0), blocks);
        let second = Superblock::decode(b, Lba(1), blocks);
        match (first, second) {
            (Ok(first), Ok(second)) => Superblock::newer(first, second).map(Some),
            // The second checkpoint of a new store has not happened.
            (Err(_), Ok(only)) if only.sequence == 1 && is_blank(a) => Ok(Some(only)),
            (Ok(one), Err(_)) | (Err(_), Ok(one)) if mutation::on("one-superblock-will-do") => {
                Ok(Some(one))
            }
            (Ok(one), Err(e)) | (Err(e), Ok(one)) => Err(Superblock::lost_beside(&one, e)),
            // A damaged superblock says more than a missing one.
            (Err(Error::NotAStore { .. }), Err(e)) | (Err(e), Err(_)) => Err(e),
        }
    }

    /// Returns the newer of the two, which must have been written directly one after the other.
    fn newer(a: Superblock, b: Superblock) -> Result<Superblock> {
        let a_is_newer = (a.sequence > b.sequence) != mutation::on("older-superblock");
        let (newer, older) = if a_is_newer { (a, b) } else { (b, a) };
        let consecutive = newer.sequence.abs_diff(older.sequence) == 1;
        let at_home = |sb: &Superblock, which: u64| sb.sequence % 2 == which;
        if consecutive && at_home(&a, 0) && at_home(&b, 1) && a.layout == b.layout {
            return Ok(newer);
        }
        Err(Error::Damaged {
            what: "superblock".into(),
            lba: older.lba(),
            expected: "two superblocks of one store, written one right after the other".into(),
            found: format!("numbers {} and {}", a.sequence, b.sequence),
        })
    }

    /// The error for a bad superblock beside the good superblock `one`. The bad one may have been
    /// the older or the newer one.
    fn lost_beside(one: &Superblock, error: Error) -> Error {
        let lba = Lba(1 - one.lba().0);
        let found = match error {
            Error::Damaged {
                lba: at,
                found,
                expected,
                ..
            } if at == lba => {
                format!("{found} instead of {expected}")
            }
            _ => "none".into(),
        };
        Error::Damaged {
            what: "superblock".into(),
            lba,
            expected: format!(
                "a valid one with number {} or {}, which may be the newest",
                one.sequence.saturating_sub(1),
                one.sequence + 1
            ),
            found,
        }
    }
}
