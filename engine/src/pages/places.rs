//! Fixed places: page `n` lives in slot `n`. A slot may instead hold a chunk of an index snapshot,
//! in which case there is no page `n`.

use super::{SlotMap, SlotRun};
use crate::device::Volume;
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot};
use crate::sync::{Arc, Mutex};
use crate::types::{Lba, PageId};

/// The map of slots in use.
pub(super) struct Places {
    volume: Arc<Volume>,
    layout: Layout,
    taken: Mutex<SlotMap>,
}

impl Places {
    /// Creates the map with all slots of `layout` free.
    pub(super) fn new(volume: Arc<Volume>, layout: Layout) -> Places {
        let taken = Mutex::new(SlotMap::new(layout.slots));
        Places {
            volume,
            layout,
            taken,
        }
    }

    /// Takes a free slot, if more than `keep_free` are free.
    pub(super) fn take(&self, keep_free: u64) -> Result<u64> {
        let mut taken = self.taken.lock();
        let slot = if taken.free() > keep_free {
            taken.allocate()
        } else {
            None
        };
        slot.ok_or(Error::Full {
            pages: self.layout.slots,
        })
    }

    /// Returns the number of free slots.
    pub(super) fn free(&self) -> u64 {
        self.taken.lock().free()
    }

    /// Trims a slot and frees it.
    pub(super) fn give_back(&self, slot: u64) -> Result<()> {
        let lba = self.layout.slot_lba(Slot(slot));
        // Trim first: once the number is free, another thread may write there.
        self.volume.trim(lba, self.layout.blocks_per_slot())?;
        let was_taken = self.taken.lock().release(slot);
        debug_assert!(was_taken, "slot {slot} freed twice");
        Ok(())
    }

    /// Takes free slots for a long value, if at least `keep_free` remain free.
    pub(super) fn take_runs(&self, slots: u64, keep_free: u64) -> Result<Vec<SlotRun>> {
        let mut taken = self.taken.lock();
        let runs = match taken.free() >= slots.saturating_add(keep_free) {
            true => taken.allocate_runs(slots),
            false => None,
        };
        let runs = runs.ok_or(Error::Full {
            pages: self.layout.slots,
        })?;
        Ok(runs.iter().map(SlotRun::of).collect())
    }

    /// Trims the slots of a long value and frees them.
    pub(super) fn give_run_back(&self, run: SlotRun) -> Result<()> {
        let blocks = run.slots * self.layout.blocks_per_slot();
        // Trim first, as for one slot.
        self.volume.trim(self.layout.slot_lba(run.first), blocks)?;
        let mut taken = self.taken.lock();
        for slot in run.iter() {
            let was_taken = taken.release(slot);
            debug_assert!(was_taken, "slot {slot} freed twice");
        }
        Ok(())
    }

    /// Ends recovery, as [`super::PageStore::set_live`].
    pub(super) fn set_live(
        &self,
        live: &mut dyn Iterator<Item = PageId>,
        others: &mut dyn Iterator<Item = Slot>,
    ) -> Result<()> {
        let mut taken = self.taken.lock();
        let mut fresh = SlotMap::new(self.layout.slots);
        fresh.keep_high_water(&taken);
        *taken = fresh;
        for slot in live.map(|p| p.0).chain(others.map(|s| s.0)) {
            if !taken.take(slot) {
                return Err(Error::Damaged {
                    what: "index snapshot".into(),
                    lba: self.layout.slot_lba(Slot(slot.min(self.layout.slots - 1))),
                    expected: "every page named once".into(),
                    found: format!("page {slot} twice or out of range"),
                });
            }
        }
        Ok(())
    }

    /// Returns a bound that all slots ever taken are below.
    pub(super) fn high_water(&self) -> u64 {
        self.taken.lock().high_water()
    }

    /// Returns the number of slots in use.
    pub(super) fn taken(&self) -> u64 {
        self.taken.lock().used()
    }

    /// Returns the bytes of memory of the map.
    pub(super) fn map_bytes(&self) -> u64 {
        self.taken.lock().bytes()
    }

    /// Returns the slot of `page`, if the page can have one.
    pub(super) fn slot(&self, page: PageId) -> Option<Slot> {
        (page.0 < self.layout.slots).then_some(Slot(page.0))
    }

    /// Returns where `page` lies, for messages.
    pub(super) fn lba(&self, page: PageId) -> Lba {
        self.layout
            .slot_lba(Slot(page.0.min(self.layout.slots - 1)))
    }
}
