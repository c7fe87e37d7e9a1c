//! Page stores: how a dirty page reaches the device so that a crash leaves either its old or its new image.
//!
//! Devices write single 4 KiB blocks atomically and nothing larger, so a page store must make larger writes atomic
//! itself. B⁻-tree §2.4 names the two conventional ways, and both are here:
//!
//! - [`in_place`]: every page has a fixed home; its image goes to a journal first (double write);
//! - [`cow`]: every write goes to a free slot, and a persisted page table says where the page is now.
//!
//! The tree above sees one trait, [`PageStore`]. A store is told a page's changed ranges along with its image
//! ([`PageImage::changes`]); these two ignore them, a store with a modification log would not.
//!
//! Write ordering is the caller's: the log is durable up to a page's LSN before the page comes here.

mod alloc;
mod cow;
mod in_place;
mod table;

pub(crate) use alloc::SlotMap;
pub(crate) use cow::CowStore;
pub(crate) use in_place::InPlaceStore;
pub(crate) use table::PageTable;

use crate::device::{BlockRead, Volume};
use crate::error::{Error, Result};
use crate::layout::Slot;
use crate::node::ChangeMap;
use crate::types::{IoClass, Lba, Lsn, PageId};

/// One sealed page on its way to the device.
pub(crate) struct PageImage<'a> {
    pub(crate) page: PageId,
    /// The page's bytes, checksum in place.
    pub(crate) bytes: &'a [u8],
    /// What changed since the page was last written. The seam for a store with a modification log (B⁻-tree §3.2); the two
    /// conventional ones look only whether anything did.
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
    /// Reads the newest image of `page` into `buf` (one page long).
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

    /// After recovery: exactly `live` pages exist, everything else is free. [`PageStore::persist_table`] must follow before
    /// anything is written.
    fn set_live(&self, live: &mut dyn Iterator<Item = PageId>, snapshot: &[Slot]) -> Result<()>;

    /// Number of page names, used or not: ids are below this.
    fn page_limit(&self) -> u64;

    /// A place for one page of an index snapshot.
    fn allocate_slot(&self) -> Result<Slot>;

    /// Gives a snapshot's place back.
    fn free_slot(&self, slot: Slot) -> Result<()>;

    /// Writes whatever recovery needs beside the pages themselves (the page table), durably, as part of a checkpoint.
    fn persist_table(&self) -> Result<()>;

    /// Recovery says which pages the log names, before [`PageStore::repair`].
    fn named_in_log(&self, page: PageId);

    /// Makes good what a crash may have left half-written (the journal's work) and writes again what may be read now and yet not be
    /// durable, so that after the next good flush it is; before any page is read. `snapshot` slots hold no
    /// pages and are left alone, whatever an old journal image says. Returns the number of pages repaired.
    /// Images up to `redo_start` are left alone too: their homes were durable when that checkpoint was, so a bad one is damage and
    /// not a torn write.
    fn repair(&self, snapshot: &[Slot], redo_start: Lsn) -> Result<u64>;

    /// Where `page` lies now, for messages.
    fn place(&self, page: PageId) -> Lba;
}

/// Reads pages whose images lie where `place` says.
fn read_places(
    volume: &Volume,
    batch: &mut [(PageId, &mut [u8])],
    place: impl Fn(PageId) -> Option<Lba>,
) -> Result<()> {
    let mut reads = Vec::with_capacity(batch.len());
    for (page, buf) in batch {
        let lba = place(*page).ok_or(Error::MissingPage { page: *page })?;
        let class = IoClass::Page;
        reads.push(BlockRead { lba, buf, class });
    }
    volume.read_batch(&mut reads)
}
