//! Page stores: write dirty pages to the device such that a crash leaves each page's old or its new
//! image.
//!
//! A device writes single 4 KiB blocks atomically, and nothing larger, so a page store has to make
//! larger writes atomic itself. B⁻-tree §2.4 names two conventional ways and §3.1 a third; all
//! three are here:
//!
//! - [`in_place`]: every page has a fixed home, and its image is first written to a journal (double
//!   write);
//! - [`cow`]: every write goes to a free slot, and a persisted page table says where each page is;
//! - [`shadow`]: every page has two fixed slots, which are written alternately, and nothing else is
//!   written.
//!
//! The tree above uses one trait, [`PageStore`]. With each image, a store receives the ranges that
//! changed ([`PageImage::changes`]). All three stores can have a modification log ([`mod_log`]), in
//! which case these ranges determine what is written. What a store reads may be damaged or stale,
//! so the layer above, [`versioned`], accepts only the newest image.
//!
//! Long values ([`crate::overflow`]) lie in places between those of pages. The stores hand these
//! places out in runs and know nothing else about them.
//!
//! The caller is responsible for write ordering: the log must be durable up to a page's LSN before
//! the page is written here.

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

/// A sealed page to be written.
pub(crate) struct PageImage<'a> {
    pub(crate) page: PageId,
    /// The page's bytes, including their checksum.
    pub(crate) bytes: &'a [u8],
    /// The ranges changed since the page was last written, for the modification log (B⁻-tree §3.2).
    pub(crate) changes: &'a ChangeMap,
}

/// The result of reading a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The bytes at the page's place. They are *not* checked yet.
    Image,
    /// The store has no image of this page.
    Nothing,
}

/// A page store: reads and writes pages, and allocates page names and places.
pub(crate) trait PageStore: Send + Sync {
    /// Reads the newest image of `page` that the store has into `buf` (one page long).
    fn read(&self, page: PageId, buf: &mut [u8]) -> Result<Found>;

    /// Reads several pages at once, all of which must have images. If it fails, the caller reads
    /// the pages one by one when they are needed.
    fn read_batch(&self, batch: &mut [(PageId, &mut [u8])]) -> Result<()>;

    /// Writes pages such that after a crash each has its old or its new content. They are durable
    /// after the next device flush, not when this returns.
    fn write_batch(&self, batch: &[PageImage<'_>]) -> Result<()>;

    /// Returns the greatest number of pages in one batch.
    fn max_batch(&self) -> usize;

    /// Allocates a name for a new page if more than `keep_slots` places are free. Index snapshots
    /// need some.
    fn allocate(&self, keep_slots: u64) -> Result<PageId>;

    /// Returns the number of places that [`PageStore::allocate`] can take, at least.
    fn free_places(&self) -> u64;

    /// Frees the name and place of `page`. The removal of `page` from the tree must be durable.
    fn free(&self, page: PageId) -> Result<()>;

    /// Ends recovery: exactly the `live` pages exist, and `taken` are the places of index snapshots
    /// and long values. Everything else is free. [`PageStore::persist_table`] must be called before
    /// anything is written.
    fn set_live(
        &self,
        live: &mut dyn Iterator<Item = PageId>,
        taken: &mut dyn Iterator<Item = Slot>,
    ) -> Result<()>;

    /// Returns the number of possible page names. All ids are below this.
    fn page_limit(&self) -> u64;

    /// Returns a bound that all page names ever used are below. Opening a store reads the page
    /// table up to here.
    fn high_water(&self) -> u64;

    /// Returns the number of places in use: by pages, by index snapshots, and by images that become
    /// free once something else is durable.
    fn places_taken(&self) -> u64;

    /// Returns the bytes of memory used by the maps of pages and places, which grow with what the
    /// store has held.
    fn map_bytes(&self) -> u64;

    /// Allocates a place for one page of an index snapshot.
    fn allocate_slot(&self) -> Result<Slot>;

    /// Frees a place of an index snapshot.
    fn free_slot(&self, slot: Slot) -> Result<()>;

    /// Allocates places for a long value, `slots` in all, if more than `keep_slots` remain free.
    /// Otherwise returns [`crate::Error::Full`] and allocates none.
    fn allocate_runs(&self, slots: u64, keep_slots: u64) -> Result<Vec<SlotRun>>;

    /// Frees places of a long value. Readers that still use them must detect that.
    fn free_run(&self, run: SlotRun) -> Result<()>;

    /// Prevents writes to these places until [`PageStore::set_live`], because recovery may find a
    /// live long value there.
    fn hold_run(&self, run: SlotRun);

    /// Makes durable what recovery needs besides the pages themselves (the page table), as part of
    /// a checkpoint.
    fn persist_table(&self) -> Result<()>;

    /// Tells the store that the log names `page`. Recovery calls it before [`PageStore::repair`].
    fn named_in_log(&self, page: PageId);

    /// Repairs what a crash may have left torn (using the journal), and rewrites whatever can be
    /// read but may not be durable, so that it is durable after the next good flush. Called before
    /// any page is read. The slots `others` hold no pages and are left alone, whatever an old
    /// journal image says. Returns the number of pages repaired. Images up to `redo_start` are left
    /// alone too: their homes were durable at that checkpoint, so a bad one is damaged and not
    /// torn.
    fn repair(&self, others: &dyn Fn(Slot) -> bool, redo_start: Lsn) -> Result<u64>;

    /// Returns where `page` lies now, for messages.
    fn place(&self, page: PageId) -> Lba;

    /// Tells the store that `page` left the cache, clean or discarded, so that state needed only
    /// for writing it can be dropped.
    fn forget(&self, page: PageId);

    /// Returns the counters of the modification log, if there is one.
    fn mod_log_stats(&self) -> Option<ModLogStats>;
}

/// A run of consecutive places.
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

    /// Returns each place.
    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        self.first.0..self.first.0 + self.slots
    }
}

/// A pool of reusable buffers of one length.
struct Buffers {
    bytes: usize,
    spare: Mutex<Vec<AlignedBuf>>,
}

/// Reads a span of `len` bytes at each of these blocks in one batch, and returns the spans one
/// after another.
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

    /// Lends a buffer, with arbitrary contents.
    fn with<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let buffer = self.spare.lock().pop();
        let mut buffer = buffer.unwrap_or_else(|| AlignedBuf::zeroed(self.bytes));
        let done = work(&mut buffer);
        self.spare.lock().push(buffer);
        done
    }
}
