//! [`Versioned`], a layer that returns the newest image of a page or an error. A page store by
//! itself cannot tell an old image from the newest.
//!
//! A checksum tells whether an image is whole. It does not tell whether a later image was lost: by
//! a write that never reached the medium, by a write that went elsewhere, or by a flipped bit in
//! the newer of two slots. So the LSN of every page's newest image, its *version*, is kept
//! separately from the page: in memory as pages are written, and on the device in the index
//! snapshot (see [`crate::snapshot`]).
//!
//! ```text
//!                    which image is accepted
//! recovery           from the snapshot's version up to the log's end     redo does the rest
//! afterwards         exactly the version
//! ```
//!
//! Redo can do the rest for this reason: a page that changed after the checkpoint began is named in
//! the log from there on, and the log is durable up to a page's LSN before the page is written. So
//! whichever image since the snapshot is found, the log has the changes that it lacks. Redo reads
//! each page that the log names; the others are as the snapshot says. From then on all versions are
//! known exactly.
//!
//! An image newer than the log's end cannot have been written under this log: the superblock or the
//! log is older than the pages.
//!
//! # Which silent damage a store detects
//!
//! In an in-place, a copy-on-write and a shadowed store, and by what means:
//!
//! | damage | in place | cow | shadow | detected by |
//! |---|---|---|---|---|
//! | flipped bits in a page | all | all | all | checksum |
//! | a page write that was lost, or went elsewhere | all | all | all | version |
//! | an older image of a page in its place | all | all | all | version |
//! | a page of another name or store in its place | all | all | all | name, store id in checksum |
//! | a modification log: flipped, lost, older | all | all | all | version of the page after Δ |
//! | a page-table block: flipped, lost, older | - | all | - | checksum; versions of its pages |
//! | a snapshot chunk: flipped, lost, older | all | all | all | checksum, checkpoint number, sum |
//! | a superblock: flipped, zeroed, two or more older | all | all | all | checksum, sequence |
//! | newest superblock lost, the third newest kept (1) | all | all | all | log blocks, images |
//! | a log block before the last flush | all | all | all | a later block that says so |
//! | a log block of the last flush, store dropped (2) | all | all | all | the witness block |
//! | **a log block of the last flush, after a crash** (3) | no | no | no | - |
//! | a journal block, when a crash tore its home | all | - | - | checksum of the home; version |
//!
//! 1. When they are read: log blocks of a later lap, or images from the future.
//! 2. When a store is dropped, it writes a block behind the log that says what was durable.
//! 3. It looks like a flush that the crash cut short, unless a page was written since.
//!
//! Memory: 8 bytes per page name in use.

use super::{Found, PageImage, PageStore, SlotRun};
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot};
use crate::mutation;
use crate::node::{self, PageDamage, PageRef};
use crate::sparse::Sparse;
use crate::stats::ModLogStats;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::{Lba, Lsn, PageId};

/// The horizon's value when all versions are known exactly.
const EXACT: u64 = u64::MAX;

/// A page store that accepts only the newest image of each page.
pub(crate) struct Versioned {
    inner: Box<dyn PageStore>,
    layout: Layout,
    versions: Sparse<AtomicU64>,
    /// In recovery, the end of the log, which no page may exceed. Afterwards [`EXACT`].
    horizon: AtomicU64,
}

impl Versioned {
    /// Wraps `inner` with no versions known. Suits a new store, in which every image has yet to be
    /// written.
    pub(crate) fn new(inner: Box<dyn PageStore>, layout: Layout) -> Versioned {
        Versioned {
            versions: Sparse::new(inner.page_limit()),
            inner,
            layout,
            horizon: AtomicU64::new(EXACT),
        }
    }

    /// Begins recovery with a log that ends at `end`: until [`PageStore::set_live`], images may be
    /// newer than their known version.
    pub(crate) fn recover_to(&self, end: Lsn) {
        self.horizon.store(end.0, Ordering::Release);
    }

    /// Notes that, according to the snapshot, `page` has an image with this LSN or a newer one.
    pub(crate) fn expect(&self, page: PageId, version: Lsn) {
        let cell = self.versions.make(page.0).filter(|_| version.0 > 0);
        cell.map(|cell| cell.fetch_max(version.0, Ordering::AcqRel));
    }

    /// Returns the LSN of the newest image of `page`, or zero if it has none.
    pub(crate) fn version(&self, page: PageId) -> Lsn {
        let known = self.versions.get(page.0);
        Lsn(known.map_or(0, |version| version.load(Ordering::Acquire)))
    }

    fn set(&self, page: PageId, version: Lsn) {
        let cell = match version.0 {
            0 => self.versions.get(page.0),
            _ => self.versions.make(page.0),
        };
        if let Some(cell) = cell {
            cell.store(version.0, Ordering::Release);
        }
    }

    /// Checks whether these bytes are the newest image of `page`.
    fn check(&self, page: PageId, found: Found, bytes: &[u8]) -> Result<Found> {
        let version = self.version(page);
        let whole = match found {
            Found::Nothing => Err(PageDamage::Zeroed),
            Found::Image => node::check_for(bytes, page, self.layout.id),
        };
        match whole {
            Ok(()) => {}
            // As far as is known, never written, or trimmed since: recovery decides.
            Err(PageDamage::Zeroed) if version.0 == 0 => return Ok(Found::Nothing),
            Err(damage) => return Err(self.damaged(page, version, damage.to_string())),
        }
        let lsn = PageRef::new(bytes).lsn();
        let horizon = self.horizon.load(Ordering::Acquire);
        let newest = if horizon == EXACT {
            lsn == version
        } else {
            version <= lsn && lsn.0 <= horizon
        };
        if !newest && !mutation::on("any-image-will-do") {
            return Err(self.damaged(page, version, format!("an image of {lsn}")));
        }
        if horizon != EXACT {
            self.set(page, lsn);
        }
        Ok(Found::Image)
    }

    #[cold]
    fn damaged(&self, page: PageId, version: Lsn, found: String) -> Error {
        let horizon = self.horizon.load(Ordering::Acquire);
        let expected = if horizon == EXACT {
            format!("its image of {version}")
        } else {
            format!("an image from {version} to {}", Lsn(horizon))
        };
        Error::Damaged {
            what: page.to_string(),
            lba: self.inner.place(page),
            expected,
            found,
        }
    }
}

impl PageStore for Versioned {
    /// Reads as the inner store, and checks that the bytes are whole, this page's, and the newest.
    fn read(&self, page: PageId, buf: &mut [u8]) -> Result<Found> {
        let found = self.inner.read(page, buf)?;
        self.check(page, found, buf)
    }

    fn read_batch(&self, batch: &mut [(PageId, &mut [u8])]) -> Result<()> {
        self.inner.read_batch(batch)?;
        for (page, bytes) in batch.iter() {
            if self.check(*page, Found::Image, bytes)? == Found::Nothing {
                return Err(Error::MissingPage { page: *page });
            }
        }
        Ok(())
    }

    fn write_batch(&self, batch: &[PageImage<'_>]) -> Result<()> {
        self.inner.write_batch(batch)?;
        for image in batch {
            self.set(image.page, PageRef::new(image.bytes).lsn());
        }
        Ok(())
    }

    fn max_batch(&self) -> usize {
        self.inner.max_batch()
    }

    fn allocate(&self, keep_slots: u64) -> Result<PageId> {
        self.inner.allocate(keep_slots)
    }

    fn free_places(&self) -> u64 {
        self.inner.free_places()
    }

    fn free(&self, page: PageId) -> Result<()> {
        // Before the name can be reused.
        self.set(page, Lsn(0));
        self.inner.free(page)
    }

    fn set_live(
        &self,
        live: &mut dyn Iterator<Item = PageId>,
        others: &mut dyn Iterator<Item = Slot>,
    ) -> Result<()> {
        let live: Vec<PageId> = live.collect();
        let mut kept = live.iter().map(|page| (*page, self.version(*page)));
        let kept: Vec<(PageId, Lsn)> = kept.by_ref().filter(|(_, v)| v.0 > 0).collect();
        self.versions
            .iter()
            .for_each(|(_, version)| version.store(0, Ordering::Release));
        kept.iter()
            .for_each(|(page, version)| self.set(*page, *version));
        self.horizon.store(EXACT, Ordering::Release);
        self.inner.set_live(&mut live.into_iter(), others)
    }

    fn page_limit(&self) -> u64 {
        self.inner.page_limit()
    }

    fn high_water(&self) -> u64 {
        self.inner.high_water()
    }

    fn places_taken(&self) -> u64 {
        self.inner.places_taken()
    }

    fn map_bytes(&self) -> u64 {
        self.versions.bytes() + self.inner.map_bytes()
    }

    fn allocate_slot(&self) -> Result<Slot> {
        self.inner.allocate_slot()
    }

    fn free_slot(&self, slot: Slot) -> Result<()> {
        self.inner.free_slot(slot)
    }

    fn allocate_runs(&self, slots: u64, keep_slots: u64) -> Result<Vec<SlotRun>> {
        self.inner.allocate_runs(slots, keep_slots)
    }

    fn free_run(&self, run: SlotRun) -> Result<()> {
        self.inner.free_run(run)
    }

    fn hold_run(&self, run: SlotRun) {
        self.inner.hold_run(run);
    }

    fn persist_table(&self) -> Result<()> {
        self.inner.persist_table()
    }

    fn named_in_log(&self, page: PageId) {
        self.inner.named_in_log(page);
    }

    fn repair(&self, others: &dyn Fn(Slot) -> bool, redo_start: Lsn) -> Result<u64> {
        self.inner.repair(others, redo_start)
    }

    fn place(&self, page: PageId) -> Lba {
        self.inner.place(page)
    }

    fn forget(&self, page: PageId) {
        self.inner.forget(page);
    }

    fn mod_log_stats(&self) -> Option<ModLogStats> {
        self.inner.mod_log_stats()
    }
}
