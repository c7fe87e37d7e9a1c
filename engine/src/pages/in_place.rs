//! Page store with fixed page homes, made atomic by a page journal (B⁻-tree §2.4 (i); InnoDB's
//! double-write buffer).
//!
//! ```text
//! batch k:   journal half k%2  <- images        class Extra
//!            device flush                       (also makes the homes of batch k-1 durable)
//!            homes             <- images        class Page
//! ```
//!
//! The journal holds only page images. Each contains its page's name and its own checksum, so the
//! extra bytes are exactly the page bytes (`W_e = W_pg`). Half `k%2` is overwritten by batch `k+2`,
//! whose journal writes begin after the flush of batch `k+1` has made the homes of batch `k`
//! durable. So whenever a home may be torn, its image is in the journal.
//!
//! Repair reads both halves and, for each page whose home fails its check, restores the journal
//! image with the largest LSN. A home that reads as zeros is not torn: the page was never written,
//! or has been freed, and the redo log knows which. A home that could not be written because the
//! file system was full is *owed*: until it is written, a crash needs its batch's half of the
//! journal, so no other batch begins before.
//!
//! Repair also rewrites homes that pass their check. A failed flush can only have lost the homes of
//! the last batch, which are in the journal, because the flush before it made all earlier ones
//! durable.

use std::collections::BTreeMap;

use super::mod_log::LogsBehind;
use super::places::Places;
use super::{Found, PageImage, PageStore, SlotRun};
use crate::device::{AlignedBuf, BlockWrite, Volume};
use crate::error::Result;
use crate::events::{Event, Snapshot};
use crate::layout::{Layout, Slot};
use crate::mutation;
use crate::node::{self, PageDamage, PageRef};
use crate::options::ModLog;
use crate::stats::ModLogStats;
use crate::sync::{Arc, Mutex};
use crate::types::{IoClass, Lba, Lsn, PageId};

/// The in-place page store, described in the module's introduction.
pub(crate) struct InPlaceStore {
    volume: Arc<Volume>,
    layout: Layout,
    places: Places,
    logs: LogsBehind,
    /// Held for a whole batch, so that batches do not overlap.
    journal: Mutex<Journal>,
}

#[derive(Default)]
struct Journal {
    /// The half that the next batch writes.
    next_half: u64,
    /// Images of the last batch, from the journal, whose homes may not have been written.
    owed: Vec<(PageId, AlignedBuf)>,
}

impl InPlaceStore {
    /// Creates a store with nothing allocated.
    pub(crate) fn new(volume: Arc<Volume>, layout: Layout, rule: Option<ModLog>) -> InPlaceStore {
        InPlaceStore {
            places: Places::new(Arc::clone(&volume), layout),
            logs: LogsBehind::new(rule, &layout),
            volume,
            layout,
            journal: Mutex::default(),
        }
    }

    fn home(&self, page: PageId) -> Option<Lba> {
        self.places
            .slot(page)
            .map(|slot| self.layout.slot_lba(slot))
    }

    /// Writes whole pages: first to the journal, then to their homes.
    fn write_whole(&self, batch: &[&PageImage<'_>]) -> Result<()> {
        assert!(
            batch.len() as u64 <= self.layout.journal_pages,
            "a batch fits a journal half"
        );
        let mut journal = self.journal.lock();
        let start = self.layout.journal_half(journal.next_half);
        let per_page = self.layout.blocks_per_page();
        let images: Vec<BlockWrite<'_>> = batch
            .iter()
            .enumerate()
            .map(|(i, image)| BlockWrite {
                lba: Lba(start.0 + i as u64 * per_page),
                bytes: image.bytes,
                class: IoClass::Extra,
            })
            .collect();
        self.volume.write_batch(&images)?;
        if !mutation::on("journal-not-flushed") {
            self.volume.flush()?;
        }
        let homes: Vec<BlockWrite<'_>> = batch
            .iter()
            .map(|image| BlockWrite {
                lba: self.layout.slot_lba(Slot(image.page.0)),
                bytes: image.bytes,
                class: IoClass::Page,
            })
            .collect();
        let written = self.volume.write_batch(&homes);
        // Even after a failure: the images now in the journal must not be overwritten.
        journal.next_half = 1 - journal.next_half;
        if written.is_err() && !mutation::on("owed-homes-forgotten") {
            let images = batch.iter().map(|image| {
                let mut copy = AlignedBuf::zeroed(image.bytes.len());
                copy.copy_from_slice(image.bytes);
                (image.page, copy)
            });
            journal.owed = images.collect();
        }
        written
    }

    /// Writes the homes that the last batch could not write.
    fn pay(&self) -> Result<()> {
        let mut journal = self.journal.lock();
        if journal.owed.is_empty() {
            return Ok(());
        }
        let homes: Vec<BlockWrite<'_>> = (journal.owed.iter())
            .map(|(page, bytes)| BlockWrite {
                lba: self.layout.slot_lba(Slot(page.0)),
                bytes,
                class: IoClass::Page,
            })
            .collect();
        self.volume.write_batch(&homes)?;
        journal.owed.clear();
        Ok(())
    }

    /// Returns the newest valid image of every page in the journal.
    fn journal_images(&self) -> Result<BTreeMap<PageId, (Lsn, AlignedBuf)>> {
        let mut newest: BTreeMap<PageId, (Lsn, AlignedBuf)> = BTreeMap::new();
        for half in 0..2 {
            let start = self.layout.journal_half(half);
            for i in 0..self.layout.journal_pages {
                let mut buf = AlignedBuf::zeroed(self.layout.page_size);
                let lba = Lba(start.0 + i * self.layout.blocks_per_page());
                self.volume.read(lba, &mut buf, IoClass::Extra)?;
                let view = PageRef::new(&buf);
                let (page, lsn) = (view.page_id(), view.lsn());
                if node::check_for(&buf, page, self.layout.id).is_err()
                    || page.0 >= self.layout.slots
                {
                    continue;
                }
                if newest.get(&page).is_none_or(|(seen, _)| *seen < lsn) {
                    newest.insert(page, (lsn, buf));
                }
            }
        }
        Ok(newest)
    }
}

impl PageStore for InPlaceStore {
    fn read(&self, page: PageId, buf: &mut [u8]) -> Result<Found> {
        let Some(home) = self.home(page) else {
            return Ok(Found::Nothing);
        };
        self.logs.read(&self.volume, page, home, buf)?;
        Ok(Found::Image)
    }

    fn read_batch(&self, batch: &mut [(PageId, &mut [u8])]) -> Result<()> {
        let home = |page| self.home(page);
        self.logs.read_batch(&self.volume, batch, home)
    }

    fn write_batch(&self, batch: &[PageImage<'_>]) -> Result<()> {
        self.pay()?;
        for page in self.logs.settle(&self.volume) {
            if let Some(home) = self.home(page) {
                self.logs.trim(&self.volume, home)?;
            }
        }
        let home = |page| self.home(page);
        let write_whole = |whole: &[&PageImage<'_>]| self.write_whole(whole);
        self.logs.write(&self.volume, batch, home, write_whole)
    }

    fn max_batch(&self) -> usize {
        self.layout.journal_pages as usize
    }

    fn allocate(&self, keep_slots: u64) -> Result<PageId> {
        // The remaining slots are for index snapshots: a store too full to checkpoint could not
        // even be reopened.
        self.places.take(keep_slots).map(PageId)
    }

    fn free_places(&self) -> u64 {
        self.places.free()
    }

    fn free(&self, page: PageId) -> Result<()> {
        self.logs.free(page);
        // Its place may soon belong to another page.
        self.journal.lock().owed.retain(|(owed, _)| *owed != page);
        self.places.give_back(page.0)
    }

    fn set_live(
        &self,
        live: &mut dyn Iterator<Item = PageId>,
        others: &mut dyn Iterator<Item = Slot>,
    ) -> Result<()> {
        self.places.set_live(live, others)
    }

    fn page_limit(&self) -> u64 {
        self.layout.slots
    }

    fn high_water(&self) -> u64 {
        self.places.high_water()
    }

    fn places_taken(&self) -> u64 {
        self.places.taken()
    }

    fn map_bytes(&self) -> u64 {
        self.places.map_bytes() + self.logs.map_bytes()
    }

    fn allocate_slot(&self) -> Result<Slot> {
        self.places.take(0).map(Slot)
    }

    fn free_slot(&self, slot: Slot) -> Result<()> {
        self.places.give_back(slot.0)
    }

    fn allocate_runs(&self, slots: u64, keep_slots: u64) -> Result<Vec<SlotRun>> {
        self.places.take_runs(slots, keep_slots)
    }

    fn free_run(&self, run: SlotRun) -> Result<()> {
        self.places.give_run_back(run)
    }

    /// Does nothing: recovery writes pages only to their own places, and skips places that a value
    /// has taken.
    fn hold_run(&self, _: SlotRun) {}

    fn persist_table(&self) -> Result<()> {
        Ok(())
    }

    fn named_in_log(&self, page: PageId) {
        self.logs.named_in_log(page);
    }

    fn repair(&self, others: &dyn Fn(Slot) -> bool, redo_start: Lsn) -> Result<u64> {
        // Until the next superblock is written, a crash needs the chunks of the snapshot. Long
        // values are needed at any time.
        let place = |page: PageId| self.home(page).filter(|_| !others(Slot(page.0)));
        self.logs.repair(&self.volume, place)?;
        let mut repaired = 0;
        let mut home = AlignedBuf::zeroed(self.layout.page_size);
        for (page, (lsn, image)) in self.journal_images()? {
            // Older than the checkpoint: its home became durable before the checkpoint did.
            if lsn <= redo_start && !mutation::on("repair-with-old-page") {
                continue;
            }
            // The page was freed after it was written, and its home has a new owner that no journal
            // protects.
            if others(Slot(page.0)) {
                continue;
            }
            let lba = self.layout.slot_lba(Slot(page.0));
            self.volume.read(lba, &mut home, IoClass::Page)?;
            match node::check_for(&home, page, self.layout.id) {
                Err(PageDamage::Zeroed) => {}
                // The home reads as whole, yet the next crash may tear it, when its half of the
                // journal belongs to another batch.
                Ok(()) => {
                    if !mutation::on("restart-trusts-homes") {
                        self.volume.write(lba, &home, IoClass::Page)?;
                    }
                }
                Err(_) => {
                    self.volume.write(lba, &image, IoClass::Page)?;
                    let restored = Snapshot::Restored { page, lsn };
                    self.volume.tell(|| Event::Snapshot(restored));
                    repaired += 1;
                }
            }
        }
        Ok(repaired)
    }

    fn place(&self, page: PageId) -> Lba {
        self.places.lba(page)
    }

    fn forget(&self, page: PageId) {
        self.logs.forget(page);
    }

    fn mod_log_stats(&self) -> Option<ModLogStats> {
        self.logs.stats()
    }
}

#[cfg(test)]
mod tests;
