//! Long values: allocates their places, and frees them when no durable record refers to them.

use super::Pager;
use crate::error::{Error, Result};
use crate::mutation;
use crate::overflow::{self, Pointer, overflow_blocks};
use crate::pages::{PageStore as _, SlotRun};
use crate::sync::atomic::Ordering;
use crate::types::{BLOCK_SIZE, Lsn};

impl Pager {
    /// Writes a value to places of its own. Returns `None` if that would leave no more than
    /// `keep_slots` free. The value becomes durable before any log record appended from now on.
    pub(crate) fn write_value(
        &self,
        key: &[u8],
        value: &[u8],
        keep_slots: u64,
    ) -> Result<Option<Pointer>> {
        let blocks = overflow_blocks(value.len());
        let slots = blocks.div_ceil(self.layout.blocks_per_slot());
        if slots + keep_slots > self.layout.slots {
            return Err(Error::Full {
                pages: self.pages.page_limit(),
            });
        }
        // Places that have become free are reused first.
        self.free_values()?;
        let places = match self.pages.allocate_runs(slots, keep_slots) {
            Ok(places) => places,
            Err(Error::Full { .. }) => return Ok(None),
            Err(e) => return Err(e),
        };
        let written = (key, value);
        let pointer = (self.overflow).write(&self.volume, &self.layout, written, &places);
        if let Err(e) = &pointer {
            self.poison(e);
            if e.is_no_space() {
                self.give_back(&places)?;
            }
        }
        let pointer = pointer?;
        self.overflow.written(slots, blocks * BLOCK_SIZE as u64);
        Ok(Some(pointer))
    }

    /// Reads the value of `key` that `pointer` refers to and appends it to `value`; see
    /// [`overflow::read`].
    pub(crate) fn read_value(
        &self,
        key: &[u8],
        pointer: &Pointer,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        overflow::read(&self.volume, self.layout.id, key, pointer, value)?;
        let bytes = pointer.all_blocks() * BLOCK_SIZE as u64;
        self.overflow.read(bytes);
        Ok(())
    }

    /// Retires a value to which nothing refers from the log record at `lsn` on: its places are
    /// freed once that record is durable.
    pub(crate) fn retire_value(&self, pointer: Pointer, lsn: Lsn) {
        self.overflow.retire(pointer, lsn);
        if mutation::on("overflow-freed-at-once") {
            drop(self.free_values());
        }
    }

    /// Frees the places of a value to which nothing has ever referred.
    pub(crate) fn give_value_up(&self, pointer: &Pointer) -> Result<()> {
        self.free_value(pointer).inspect_err(|e| self.poison(e))
    }

    /// Returns whether values wait for the records that replaced them to become durable.
    pub(crate) fn has_retired_values(&self) -> bool {
        self.overflow.has_retired()
    }

    /// Frees the values to which no durable record refers. Returns their number.
    pub(crate) fn free_values(&self) -> Result<u64> {
        let free = self.overflow.take_free(self.log.durable());
        for pointer in &free {
            self.free_value(pointer).inspect_err(|e| self.poison(e))?;
            self.overflow.freed();
            self.counters.freed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(free.len() as u64)
    }

    fn free_value(&self, pointer: &Pointer) -> Result<()> {
        // All runs are collected before the first is trimmed, because each run names the next.
        let mut places = Vec::new();
        overflow::each_run(&self.volume, &self.layout, pointer, |run| places.push(run));
        let slots = places.iter().map(|run| run.slots).sum::<u64>();
        self.give_back(&places)?;
        self.overflow.gave_back(slots);
        Ok(())
    }

    fn give_back(&self, places: &[SlotRun]) -> Result<()> {
        places.iter().try_for_each(|run| self.pages.free_run(*run))
    }
}
