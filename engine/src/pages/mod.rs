//! Page stores: how a dirty page reaches the device so that a crash leaves either its old or its new image.
//!
//! Devices write single 4 KiB blocks atomically and nothing larger, so a page store must make larger writes atomic
//! itself. B⁻-tree §2.4 names two conventional ways, its §3.1 a third, and all are here:
//!
//! - [`in_place`]: every page has a fixed home; its image goes to a journal first (double write);
//! - [`cow`]: every write goes to a free slot, and a persisted page table says where the page is now;
//! - [`shadow`]: every page has two fixed slots, written in turns, and nothing else is written.
//!
//! The tree above sees one trait, [`PageStore`]. A store is told a page's changed ranges along with
//! its image ([`PageImage::changes`]); with a modification log ([`mod_log`]), which each of the
//! three may have, they decide what is written. What a store reads may be damaged, or old: above
//! them [`versioned`] believes only the newest image.
//!
//! Long values ([`crate::overflow`]) lie in places between the pages', which the stores hand out in
//! runs and know nothing else of.
//!
//! Write ordering is the caller's: the log is durable up to a page's LSN before the page comes here.

mod alloc;
mod cow;
mod in_place;
mod mod_log;
mod open;
mod places;
mod shadow;
mod table;
mod versioned;

pub(crate) use alloc::SlotMap;

pub use mod_log::delta_block;
pub(crate) use mod_log::{lay_over, log_block_of};
pub(crate) use open::open;
pub(crate) use shadow::look as look_at_shadows;
pub(crate) use table::PageTable;
pub(crate) use versioned::Versioned;

use std::ops::Range;

use crate::device::{AlignedBuf, BlockRead, Volume};
use crate::error::Result;
use crate::layout::Slot;
use crate::node::ChangeMap;
use crate::stats::ModLogStats;
use crate::sync::Mutex;
use crate::types::{IoClass, Lba, Lsn, PageId};

/// One sealed page on its way to the device.
pub(crate) struct PageImage<'a> {
    pub(crate) page: PageId,
    /// The page's bytes, checksum in place.
    pub(crate) bytes: &'a [u8],
    /// What changed since the page was last written, for the modification log (B⁻-tree §3.2).
    pub(crate) changes: &'a ChangeMap,
}

/// What reading a page found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The bytes of the page's place. They are *not* checked yet.
    Image,
    /// The store knows of no image of this page.
    Nothing,
}

/// Keeps pages on the device.
pub(crate) trait PageStore: Send + Sync {
    /// Reads the newest image of `page` that is here into `buf` (one page long).
    fn read(&self, page: PageId, buf: &mut [u8]) -> Result<Found>;

    /// Reads several pages, which the store must have images of, at once. All or nothing: what fails is read by itself when it is wanted.
    fn read_batch(&self, batch: &mut [(PageId, &mut [u8])]) -> Result<()>;

    /// Writes pages such that after a crash each is there in its old or its new form. Returning does not make them
    /// durable; the next device flush does.
    fn write_batch(&self, batch: &[PageImage<'_>]) -> Result<()>;

    /// Most pages in one batch.
    fn max_batch(&self) -> usize;

    /// A name for a new page, as long as more than `keep_slots` places are left: index snapshots need some.
    fn allocate(&self, keep_slots: u64) -> Result<PageId>;

    /// `page` is in no tree any more, and that is durable: its name and place may be used again.
    fn free(&self, page: PageId) -> Result<()>;

    /// After recovery: exactly `live` pages exist, and `taken` are the places of index snapshots
    /// and long values; everything else is free. [`PageStore::persist_table`] must follow before
    /// anything is written.
    fn set_live(
        &self,
        live: &mut dyn Iterator<Item = PageId>,
        taken: &mut dyn Iterator<Item = Slot>,
    ) -> Result<()>;

    /// Number of page names, used or not: ids are below this.
    fn page_limit(&self) -> u64;

    /// No page was ever named so, or with a greater number: what opening has to read of a page
    /// table ends here.
    fn high_water(&self) -> u64;

    /// Places that are taken: by pages, by index snapshots, and by what is free once something
    /// else is durable.
    fn places_taken(&self) -> u64;

    /// Bytes of memory that the maps of pages and places take now; they grow with what the store
    /// has held.
    fn map_bytes(&self) -> u64;

    /// A place for one page of an index snapshot.
    fn allocate_slot(&self) -> Result<Slot>;

    /// Gives a snapshot's place back.
    fn free_slot(&self, slot: Slot) -> Result<()>;

    /// Places for a long value, so many in all, as long as more than `keep_slots` are left then:
    /// all, or [`crate::Error::Full`].
    fn allocate_runs(&self, slots: u64, keep_slots: u64) -> Result<Vec<SlotRun>>;

    /// Gives places of a long value back. Nobody is reading them for it, or minds.
    fn free_run(&self, run: SlotRun) -> Result<()>;

    /// Recovery may find a live long value there: nothing is to be written over it until
    /// [`PageStore::set_live`].
    fn hold_run(&self, run: SlotRun);

    /// Writes whatever recovery needs beside the pages themselves (the page table), durably, as part of a checkpoint.
    fn persist_table(&self) -> Result<()>;

    /// Recovery says which pages the log names, before [`PageStore::repair`].
    fn named_in_log(&self, page: PageId);

    /// Makes good what a crash may have left half-written (the journal's work) and writes again what may be read now and yet not be
    /// durable, so that after the next good flush it is; before any page is read. `others` slots
    /// hold no
    /// pages and are left alone, whatever an old journal image says. Returns the number of pages repaired.
    /// Images up to `redo_start` are left alone too: their homes were durable when that checkpoint was, so a bad one is damage and
    /// not a torn write.
    fn repair(&self, others: &dyn Fn(Slot) -> bool, redo_start: Lsn) -> Result<u64>;

    /// Where `page` lies now, for messages.
    fn place(&self, page: PageId) -> Lba;

    /// `page` leaves the cache, clean or discarded: what is only needed to write it need not be kept.
    fn forget(&self, page: PageId);

    /// What the modification log did, if there is one.
    fn mod_log_stats(&self) -> Option<ModLogStats>;
}

/// Places that lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotRun {
    pub(crate) first: Slot,
    pub(crate) slots: u64,
}

impl SlotRun {
    fn of(range: &Range<u64>) -> SlotRun {
        SlotRun {
            first: Slot(range.start),
            slots: range.end - range.start,
        }
    }

    /// Each of them.
    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        self.first.0..self.first.0 + self.slots
    }
}

/// Buffers of one length, used again.
struct Buffers {
    bytes: usize,
    spare: Mutex<Vec<AlignedBuf>>,
}

/// Reads as many bytes from each of these blocks on, together; they lie one behind the other then.
fn read_spans(
    volume: &Volume,
    starts: impl ExactSizeIterator<Item = Lba>,
    bytes: usize,
) -> Result<AlignedBuf> {
    let mut spans = AlignedBuf::zeroed(starts.len() * bytes);
    let reads = starts.zip(spans.chunks_exact_mut(bytes));
    let class = IoClass::Page;
    let mut reads: Vec<_> = reads
        .map(|(lba, buf)| BlockRead { lba, buf, class })
        .collect();
    volume.read_batch(&mut reads)?;
    Ok(spans)
}

impl Buffers {
    fn new(bytes: usize) -> Buffers {
        Buffers {
            bytes,
            spare: Mutex::new(Vec::new()),
        }
    }

    /// Lends one, its content whatever it was.
    fn with<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let buffer = self.spare.lock().pop();
        let mut buffer = buffer.unwrap_or_else(|| AlignedBuf::zeroed(self.bytes));
        let done = work(&mut buffer);
        self.spare.lock().push(buffer);
        done
    }
}
