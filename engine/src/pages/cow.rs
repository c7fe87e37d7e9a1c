//! Copy-on-write page store with a persisted page table (B⁻-tree §2.4 (ii); the baseline of its
//! §4).
//!
//! ```text
//! batch:  new slots <- images                      class Page
//!         device flush
//!         table block of each page <- new places   class Extra   (TablePersist::EachFlush)
//!         device flush, old slots trimmed
//! ```
//!
//! With [`TablePersist::EachFlush`], one 4 KiB table block is written for every page, as in the
//! baseline of B⁻-tree §4 ("we persist the page table after each page flush"): table blocks shared
//! by two pages of a batch are not merged. With [`TablePersist::Checkpoint`], changed table blocks
//! are written at checkpoints. Until then, the slot that the *persisted* table refers to is held.
//! Slots taken since the checkpoint and left again are free at once, because nothing on the device
//! refers to them.
//!
//! A table that is newer than the checkpoint is harmless, because redo skips changes that a page's
//! LSN already covers. A table that can be read but is not durable is dangerous. Suppose that a
//! failed flush lost it. The slots of its previous version look free and are reused; when the next
//! crash restores the previous version, it refers to slots with other contents. So recovery
//! rewrites all table blocks that were ever written, and those of the pages that the log names (the
//! first write of a block may have failed), before any slot is reused.

use super::mod_log::LogsBehind;
use super::{Found, PageImage, PageStore, PageTable, SlotMap, SlotRun};
use crate::device::{AlignedBuf, BlockWrite, Volume};
use crate::error::{Error, Result};
use crate::events::{Cow, Event};
use crate::layout::{Layout, Slot};
use crate::mutation;
use crate::node::PageRef;
use crate::options::{ModLog, TablePersist};
use crate::stats::ModLogStats;
use crate::sync::{Arc, Mutex};
use crate::types::{BLOCK_SIZE, IoClass, Lba, Lsn, PageId};

/// The greatest number of table blocks in one write.
const TABLE_BLOCKS: usize = 64;

/// The copy-on-write page store, described in the module's introduction.
pub(crate) struct CowStore {
    volume: Arc<Volume>,
    layout: Layout,
    persist: TablePersist,
    max_batch: usize,
    logs: LogsBehind,
    state: Mutex<State>,
    /// Held for a whole batch or table write, so that these do not overlap.
    writing: Mutex<()>,
}

struct State {
    table: PageTable,
    names: SlotMap,
    slots: SlotMap,
    /// Slots that the persisted table may still refer to (`TablePersist::Checkpoint`). They are
    /// free after the next table write.
    held: SlotMap,
    // invariant: under `Checkpoint`, `persisted` contains every slot that the table on the device
    // refers to.
    persisted: SlotMap,
    /// Slots that become free once this block of the table is on the device. An earlier write of
    /// the block failed because the device was full.
    stranded: Vec<(u64, Slot)>,
}

impl CowStore {
    /// Creates a store over `table`. The `reserved` slots (of the index snapshot) are taken too.
    pub(crate) fn new(
        volume: Arc<Volume>,
        layout: Layout,
        table: PageTable,
        persist: TablePersist,
        rule: Option<ModLog>,
        max_batch: usize,
        reserved: &[Slot],
    ) -> Result<CowStore> {
        let mut slots = SlotMap::new(layout.slots);
        let mut persisted = SlotMap::new(layout.slots);
        for slot in reserved {
            slots.take(slot.0);
        }
        for (page, slot) in table.iter() {
            persisted.take(slot.0);
            if !slots.take(slot.0) {
                return Err(named_twice(&layout, page, slot));
            }
        }
        // A batch of new images and a new snapshot must fit beside every page's old image and the
        // old snapshot.
        let spare = layout.slots / 16 + 16;
        let max_batch = max_batch.min(8 + (layout.slots / 64) as usize);
        let names = SlotMap::new(table.len().min(layout.slots - spare));
        let state = Mutex::new(State {
            table,
            names,
            slots,
            held: SlotMap::new(layout.slots),
            persisted,
            stranded: Vec::new(),
        });
        Ok(CowStore {
            logs: LogsBehind::new(rule, &layout),
            volume,
            layout,
            persist,
            max_batch,
            state,
            writing: Mutex::new(()),
        })
    }

    fn tell(&self, event: impl FnOnce() -> Cow) {
        self.volume.tell(|| Event::Cow(event()));
    }

    fn lba(&self, slot: Slot) -> Lba {
        self.layout.slot_lba(slot)
    }

    /// Returns where the image of `page` lies, if it has one.
    fn home(&self, page: PageId) -> Option<Lba> {
        let slot = self.state.lock().table.get(page)?;
        Some(self.lba(slot))
    }

    /// Takes a slot for each page of a batch. Writes the table first if slots are short and some
    /// are held.
    fn take_slots(&self, count: usize) -> Result<Vec<Slot>> {
        let short = {
            let state = self.state.lock();
            state.slots.free() < count as u64 && state.held.used() > 0
        };
        if short {
            self.write_table()?;
        }
        let mut state = self.state.lock();
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            match state.slots.allocate() {
                Some(n) => taken.push(Slot(n)),
                None => {
                    taken.iter().for_each(|s: &Slot| {
                        state.slots.release(s.0);
                    });
                    return Err(Error::Full {
                        pages: self.layout.slots,
                    });
                }
            }
        }
        Ok(taken)
    }

    /// Writes one table block per page, then frees the old slots.
    fn persist_each(&self, batch: &[&PageImage<'_>], old: &[Option<Slot>]) -> Result<()> {
        let mut bytes = AlignedBuf::zeroed(BLOCK_SIZE * batch.len());
        {
            let mut state = self.state.lock();
            for (image, buf) in batch.iter().zip(bytes.chunks_exact_mut(BLOCK_SIZE)) {
                state
                    .table
                    .encode_block(PageTable::block_of(image.page), buf);
            }
        }
        self.tell(|| Cow::WritesTable);
        // One after another, not as a batch, because two pages may share a block.
        let blocks = batch.iter().map(|image| PageTable::block_of(image.page));
        let written = blocks
            .clone()
            .zip(bytes.chunks_exact(BLOCK_SIZE))
            .try_for_each(|(block, buf)| {
                let lba = self.layout.table_block(block);
                self.volume.write(lba, buf, IoClass::Extra)
            })
            .and_then(|()| self.volume.flush());
        if written.is_err() {
            let mut state = self.state.lock();
            for (block, slot) in blocks.zip(old) {
                state.table.mark_dirty(block);
                // The table on the device may or may not refer to the slot. The next version
                // written does not.
                state.stranded.extend(slot.map(|slot| (block, slot)));
            }
        }
        written?;
        self.tell(|| Cow::TableWritten);
        old.iter()
            .flatten()
            .try_for_each(|slot| self.release(*slot))?;
        self.release_stranded()
    }

    /// Frees stranded slots whose table blocks are on the device by now.
    fn release_stranded(&self) -> Result<()> {
        let ready: Vec<Slot> = {
            let State {
                table, stranded, ..
            } = &mut *self.state.lock();
            let ready = stranded.extract_if(.., |(block, _)| !table.is_dirty(*block));
            ready.map(|(_, slot)| slot).collect()
        };
        ready.into_iter().try_for_each(|slot| self.release(slot))
    }

    /// Writes whole pages to new slots, and the table if it is written each time. The caller holds
    /// `writing`.
    fn write_whole(&self, batch: &[&PageImage<'_>]) -> Result<()> {
        let slots = self.take_slots(batch.len())?;
        for (image, slot) in batch.iter().zip(&slots) {
            self.tell(|| Cow::WritesImage {
                page: image.page,
                lsn: PageRef::new(image.bytes).lsn(),
                slot: slot.0,
            });
        }
        let writes: Vec<BlockWrite<'_>> = batch
            .iter()
            .zip(&slots)
            .map(|(image, slot)| BlockWrite {
                lba: self.lba(*slot),
                bytes: image.bytes,
                class: IoClass::Page,
            })
            .collect();
        let written = self.volume.write_batch(&writes).and_then(|()| {
            // The images must be durable before the table that refers to them is written.
            if self.persist == TablePersist::EachFlush && !mutation::on("table-before-page") {
                return self.volume.flush();
            }
            Ok(())
        });
        if let Err(e) = written {
            let mut state = self.state.lock();
            slots.iter().for_each(|slot| {
                state.slots.release(slot.0);
            });
            return Err(e);
        }
        let old: Vec<Option<Slot>> = {
            let mut state = self.state.lock();
            batch
                .iter()
                .zip(&slots)
                .map(|(i, s)| state.table.set(i.page, Some(*s)))
                .collect()
        };
        match self.persist {
            TablePersist::EachFlush => self.persist_each(batch, &old),
            TablePersist::Checkpoint => self.leave_places(&old),
        }
    }

    /// Frees `slot`, to which nothing that survives a crash refers.
    fn release(&self, slot: Slot) -> Result<()> {
        // Trim first: once the number is free, another thread may write there.
        self.trim(slot)?;
        self.state.lock().slots.release(slot.0);
        Ok(())
    }

    fn trim(&self, slot: Slot) -> Result<()> {
        self.volume
            .trim(self.lba(slot), self.layout.blocks_per_slot())
    }

    /// Frees the slots that a batch left. Only slots that the persisted table refers to must wait.
    fn leave_places(&self, old: &[Option<Slot>]) -> Result<()> {
        for slot in old.iter().flatten() {
            let mut state = self.state.lock();
            if state.persisted.contains(slot.0) && !mutation::on("cow-frees-held") {
                state.held.take(slot.0);
            } else {
                drop(state);
                self.release(*slot)?;
            }
        }
        Ok(())
    }

    /// Makes the images durable, then the table that refers to them, then frees the held slots. The
    /// caller holds `writing`, so that the table does not change meanwhile.
    fn write_table(&self) -> Result<()> {
        self.volume.flush()?;
        let mut state = self.state.lock();
        let blocks = state.table.dirty_blocks();
        // The held slots also stay in `held`, so that a thread that computes the free space
        // meanwhile counts them.
        let held: Vec<u64> = state.held.iter_taken().collect();
        if mutation::on("table-write-hides-held") {
            state.held = SlotMap::new(self.layout.slots);
        }
        let mut persisted = SlotMap::new(self.layout.slots);
        for (_, slot) in state.table.iter() {
            persisted.take(slot.0);
        }
        drop(state);
        self.tell(|| Cow::WritesTable);
        let written = self
            .write_table_blocks(&blocks)
            .and_then(|()| self.volume.flush());
        let mut state = self.state.lock();
        if let Err(e) = written {
            blocks.iter().for_each(|b| state.table.mark_dirty(*b));
            // Some blocks may have been written, and others not.
            if !mutation::on("refused-table-forgets-names") {
                persisted.iter_taken().for_each(|slot| {
                    state.persisted.take(slot);
                });
            }
            return Err(e);
        }
        state.persisted = persisted;
        drop(state);
        self.tell(|| Cow::TableWritten);
        held.into_iter().map(Slot).try_for_each(|slot| {
            self.trim(slot)?;
            let mut state = self.state.lock();
            state.held.release(slot.0);
            state.slots.release(slot.0);
            Ok::<(), Error>(())
        })?;
        self.release_stranded()
    }

    /// Reads the table blocks that the log names and that were beyond the table's end at the last
    /// checkpoint, because new page names were used since.
    fn read_named_blocks(&self) -> Result<()> {
        let mut state = self.state.lock();
        for (page, slot) in state.table.load_named(&self.volume, &self.layout)? {
            state.persisted.take(slot.0);
            if !state.slots.take(slot.0) {
                return Err(named_twice(&self.layout, page, slot));
            }
        }
        Ok(())
    }

    /// Writes these table blocks, in groups.
    fn write_table_blocks(&self, blocks: &[u64]) -> Result<()> {
        let mut bytes = AlignedBuf::zeroed(BLOCK_SIZE * TABLE_BLOCKS.min(blocks.len()));
        for blocks in blocks.chunks(TABLE_BLOCKS) {
            let mut writes = Vec::with_capacity(blocks.len());
            for (block, bytes) in blocks.iter().zip(bytes.chunks_exact_mut(BLOCK_SIZE)) {
                self.state.lock().table.encode_block(*block, bytes);
                writes.push(BlockWrite {
                    lba: self.layout.table_block(*block),
                    bytes,
                    class: IoClass::Extra,
                });
            }
            self.volume.write_batch(&writes)?;
        }
        Ok(())
    }
}

impl PageStore for CowStore {
    fn read(&self, page: PageId, buf: &mut [u8]) -> Result<Found> {
        let Some(at) = self.home(page) else {
            return Ok(Found::Nothing);
        };
        self.logs.read(&self.volume, page, at, buf)?;
        Ok(Found::Image)
    }

    fn read_batch(&self, batch: &mut [(PageId, &mut [u8])]) -> Result<()> {
        let home = |page| self.home(page);
        self.logs.read_batch(&self.volume, batch, home)
    }

    fn write_batch(&self, batch: &[PageImage<'_>]) -> Result<()> {
        let _one_at_a_time = self.writing.lock();
        self.logs.settle(&self.volume);
        let home = |page| self.home(page);
        let write_whole = |whole: &[&PageImage<'_>]| self.write_whole(whole);
        self.logs.write(&self.volume, batch, home, write_whole)
    }

    fn max_batch(&self) -> usize {
        self.max_batch
    }

    fn allocate(&self, keep_slots: u64) -> Result<PageId> {
        let mut state = self.state.lock();
        let pages = state.names.limit();
        let left = state.slots.free() + state.held.used();
        if left <= keep_slots + self.max_batch as u64 {
            return Err(Error::Full { pages });
        }
        state
            .names
            .allocate()
            .map(PageId)
            .ok_or(Error::Full { pages })
    }

    fn free_places(&self) -> u64 {
        let state = self.state.lock();
        let left = state.slots.free() + state.held.used();
        left.saturating_sub(self.max_batch as u64)
    }

    fn free(&self, page: PageId) -> Result<()> {
        // A table that refers to the slot must not be on its way to the device while the slot is
        // freed.
        let _one_at_a_time = self.writing.lock();
        self.logs.free(page);
        let old = self.state.lock().table.set(page, None);
        match self.persist {
            // A crash must not find two pages in one slot, so the entry is removed before the slot
            // is reused.
            TablePersist::EachFlush => {
                if let Err(e) = self.write_table() {
                    let block = PageTable::block_of(page);
                    let stranded = old.map(|slot| (block, slot));
                    self.state.lock().stranded.extend(stranded);
                    return Err(e);
                }
                old.map_or(Ok(()), |slot| self.release(slot))?;
            }
            TablePersist::Checkpoint => self.leave_places(&[old])?,
        }
        self.state.lock().names.release(page.0);
        Ok(())
    }

    fn set_live(
        &self,
        live: &mut dyn Iterator<Item = PageId>,
        others: &mut dyn Iterator<Item = Slot>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        let mut names = SlotMap::new(state.names.limit());
        for page in live {
            if !names.take(page.0) {
                return Err(Error::MissingPage { page });
            }
        }
        names.keep_high_water(&state.names);
        let dead: Vec<(PageId, Slot)> = state
            .table
            .iter()
            .filter(|(p, _)| !names.contains(p.0))
            .collect();
        state.names = names;
        for (page, _) in &dead {
            state.table.set(*page, None);
        }
        let mut slots = SlotMap::new(self.layout.slots);
        // Include the held slots: the table on the device refers to them until it is next written.
        let named: Vec<Slot> = state
            .table
            .iter()
            .map(|(_, s)| s)
            .chain(state.held.iter_taken().map(Slot))
            .collect();
        for slot in named.into_iter().chain(others).map(|s| s.0) {
            if !slots.take(slot) {
                return Err(Error::Damaged {
                    what: "page table".into(),
                    lba: self.layout.table_block(0),
                    expected: "every slot named once".into(),
                    found: format!("slot {slot} named twice"),
                });
            }
        }
        state.slots = slots;
        Ok(())
    }

    fn page_limit(&self) -> u64 {
        self.state.lock().table.len()
    }

    fn allocate_slot(&self) -> Result<Slot> {
        let _one_at_a_time = self.writing.lock();
        self.take_slots(1).map(|s| s[0])
    }

    fn free_slot(&self, slot: Slot) -> Result<()> {
        self.release(slot)
    }

    fn allocate_runs(&self, slots: u64, keep_slots: u64) -> Result<Vec<SlotRun>> {
        // Pages that move need a batch of slots, as when page names are allocated.
        let needed = (slots.saturating_add(keep_slots)).saturating_add(self.max_batch as u64);
        let try_to = || {
            let mut state = self.state.lock();
            let enough = state.slots.free() >= needed;
            enough.then(|| state.slots.allocate_runs(slots)).flatten()
        };
        let mut runs = try_to();
        if runs.is_none() {
            let _one_at_a_time = self.writing.lock();
            let held = self.state.lock().held.used();
            if held > 0 && self.state.lock().slots.free() + held >= needed {
                self.write_table()?;
                runs = try_to();
            }
        }
        let runs = runs.ok_or(Error::Full {
            pages: self.layout.slots,
        })?;
        Ok(runs.iter().map(SlotRun::of).collect())
    }

    fn free_run(&self, run: SlotRun) -> Result<()> {
        let blocks = run.slots * self.layout.blocks_per_slot();
        // Trim first, as for one slot.
        self.volume.trim(self.lba(run.first), blocks)?;
        let mut state = self.state.lock();
        for slot in run.iter() {
            let was_taken = state.slots.release(slot);
            debug_assert!(was_taken, "slot {slot} freed twice");
        }
        Ok(())
    }

    fn hold_run(&self, run: SlotRun) {
        let mut state = self.state.lock();
        // The slot may already be taken by a page. Then nothing is written there anyway, and no
        // value in it is live at the end of the log.
        run.iter().for_each(|slot| {
            state.slots.take(slot);
        });
    }

    fn persist_table(&self) -> Result<()> {
        let _one_at_a_time = self.writing.lock();
        if self.state.lock().table.dirty_blocks().is_empty() {
            return Ok(());
        }
        self.write_table()
    }

    fn high_water(&self) -> u64 {
        self.state.lock().names.high_water()
    }

    fn places_taken(&self) -> u64 {
        self.state.lock().slots.used()
    }

    fn map_bytes(&self) -> u64 {
        let state = self.state.lock();
        let maps = [&state.names, &state.slots, &state.held, &state.persisted];
        let maps = maps.into_iter().map(SlotMap::bytes).sum::<u64>();
        maps + state.table.bytes() + self.logs.map_bytes()
    }

    fn named_in_log(&self, page: PageId) {
        self.state.lock().table.named_in_log(page);
        self.logs.named_in_log(page);
    }

    fn repair(&self, _others: &dyn Fn(Slot) -> bool, _redo_start: Lsn) -> Result<u64> {
        self.read_named_blocks()?;
        // The images are durable, because each was flushed before the table that refers to it was
        // written.
        let blocks = self.state.lock().table.dirty_blocks();
        self.write_table_blocks(&blocks)?;
        self.logs.repair(&self.volume, |page| self.home(page))?;
        Ok(0)
    }

    fn place(&self, page: PageId) -> Lba {
        let table = || self.layout.table_block(PageTable::block_of(page));
        self.home(page).unwrap_or_else(table)
    }

    fn forget(&self, page: PageId) {
        self.logs.forget(page);
    }

    fn mod_log_stats(&self) -> Option<ModLogStats> {
        self.logs.stats()
    }
}

fn named_twice(layout: &Layout, page: PageId, slot: Slot) -> Error {
    Error::Damaged {
        what: "page table".into(),
        lba: layout.table_block(PageTable::block_of(page)),
        expected: "every slot named once".into(),
        found: format!("slot {} named twice", slot.0),
    }
}

#[cfg(test)]
mod tests;
