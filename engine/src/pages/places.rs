//! Fixed places: page `n` lives in slot `n`, and so may a chunk of an index snapshot, of which there is then no page `n`.

use super::{SlotMap, SlotRun};
use crate::device::Volume;
use crate::error::{Error, Result};
use crate::layout::{Layout, Slot};
use crate::sync::{Arc, Mutex};
use crate::types::{Lba, PageId};

/// Who has which slot.
pub(super) struct Places {
    volume: Arc<Volume>,
    layout: Layout,
    taken: Mutex<SlotMap>,
}

impl Places {
    /// All slots of `layout`, free.
    pub(super) fn new(volume: Arc<Volume>, layout: Layout) -> Places {
        let taken = Mutex::new(SlotMap::new(layout.slots));
        Places {
            volume,
            layout,
            taken,
        }
    }

    /// A free slot, as long as more than `keep_free` are.
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

    /// Gives a slot back, all of it trimmed.
    pub(super) fn give_back(&self, slot: u64) -> Result<()> {
        let lba = self.layout.slot_lba(Slot(slot));
        // Trim first: once the number is free somebody may write there.
        self.volume.trim(lba, self.layout.blocks_per_slot())?;
        let was_taken = self.taken.lock().release(slot);
        debug_assert!(was_taken, "slot {slot} freed twice");
        Ok(())
    }

    /// Free slots for a long value, as long as more than `keep_free` are left then.
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

    /// Gives the slots of a long value back, all of them trimmed.
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

    /// As [`super::PageStore::set_live`].
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

    /// No place from here on was ever taken.
    pub(super) fn high_water(&self) -> u64 {
        self.taken.lock().high_water()
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken.lock().used()
    }

    /// Bytes of the map of what is taken.
    pub(super) fn map_bytes(&self) -> u64 {
        self.taken.lock().bytes()
    }

    /// The slot of `page`, if it can have one.
    pub(super) fn slot(&self, page: PageId) -> Option<Slot> {
        (page.0 < self.layout.slots).then_some(Slot(page.0))
    }

    /// Where `page` is, for messages.
    pub(super) fn lba(&self, page: PageId) -> Lba {
        self.layout
            .slot_lba(Slot(page.0.min(self.layout.slots - 1)))
    }
}
