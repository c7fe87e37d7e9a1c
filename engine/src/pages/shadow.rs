//! Page store with deterministic page shadowing (B⁻-tree §3.1), with or without the modification
//! log of §3.2.
//!
//! ```text
//! page n:  [slot 0][log block][slot 1]        at a fixed place
//!          full images go to the slots alternately; once an image is durable,
//!          the other slot and the log block are trimmed
//!          Δ goes to the log block                                    see `mod_log`
//! ```
//!
//! Only the pages themselves are written (`W_e = 0`). Which slot is valid is kept in memory, 3
//! bytes per page name. When a page is first loaded, reading both slots determines it: the other
//! slot reads as zeros, or is torn (its checksum fails), or is older (its LSN is smaller).
//!
//! # What is durable when
//!
//! The paper leaves this open, and four of its steps lose pages if they are taken too early. This
//! store implements the protocol of `specs/page_shadowing/PageShadowing.tla` (its names are given
//! in parentheses; `specs/FINDINGS.md` has the counterexamples): *as long as the newest image is
//! not durable, the previous one, including its log block, is not touched.*
//!
//! ```text
//!             whole page          flush of the device         trims
//!   Alone ───────────────▶ Written ────────────────▶ Durable ──────▶ Alone
//!                           │  ▲                         │ whole page, to the other slot
//!                           └──┘ whole page, to          └────────▶ Written
//!                                the same slot
//! ```
//!
//! - While the newest image is only `Written`, the page is written whole again, to the *same* slot
//!   (`NextSlot`), never to the log block (`IsLogged`).
//! - A whole write leaves the log block alone, because that belongs to the previous image. The log
//!   block is trimmed together with the old slot (`Trim`), unless Δ over the new image has been
//!   written to it by then.
//! - Only a flush that began after the write returned makes the image `Durable`.
//! - Whatever a crash left in the other slot, or in a log block of the other image, is trimmed
//!   after the page's first load (`KnownAfter`).
//!
//! # After a restart
//!
//! What can be read need not be durable (see [`crate::store::recovery`]). So the pages that the log
//! names are read once, the valid slot and its log block are rewritten unchanged, and the choice is
//! kept (`Restart`). The other pages were durable when the redo start was recorded; they are
//! examined when they are first loaded.
//!
//! # Damage
//!
//! A slot that is neither zeros nor whole is either torn or damaged. The two look alike, and on a
//! device whose discards do nothing there is always a whole older image beside it. So this store
//! does not decide whether the image it finds is the newest. The page's version does
//! ([`super::versioned`]): the LSN of the newest image that was written or, after a restart, of one
//! that the snapshot vouches for. A torn write leaves an image that is at least as new, and the log
//! has the rest; damage does not.
//!
//! This store itself reports two cases as damage: a log block that names a newer base than any
//! whole slot, since it is only written when its base is durable; and a log block that was known to
//! be over the valid image and no longer is.

mod known;
mod reading;

pub(crate) use reading::look;

use known::{Is, Known, State};
use reading::{Choice, Reading};

use super::mod_log::{self, Block, ModLogs};
use super::places::Places;
use super::{Buffers, Found, PageImage, PageStore, SlotRun, read_spans};
use crate::device::{AlignedBuf, BlockWrite, Volume};
use crate::error::{Error, Result};
use crate::events::{Event, Shadow};
use crate::layout::{Layout, Slot};
use crate::mutation;
use crate::node::{self, PageDamage, PageRef};
use crate::options::ModLog;
use crate::stats::ModLogStats;
use crate::sync::{Arc, Mutex};
use crate::types::{BLOCK_SIZE, IoClass, Lba, Lsn, PageId};

/// The shadowing page store, described in the module's introduction.
pub(crate) struct ShadowStore {
    volume: Arc<Volume>,
    layout: Layout,
    places: Places,
    logs: ModLogs,
    max_batch: usize,
    state: Mutex<State>,
    /// Held for a whole batch, and while slots are trimmed.
    writing: Mutex<()>,
    /// Buffers for reading whole places.
    buffers: Buffers,
}

impl ShadowStore {
    /// Creates a store that knows nothing about its pages.
    pub(crate) fn new(
        volume: Arc<Volume>,
        layout: Layout,
        rule: Option<ModLog>,
        max_batch: usize,
    ) -> ShadowStore {
        ShadowStore {
            places: Places::new(Arc::clone(&volume), layout),
            logs: ModLogs::new(rule, &layout),
            max_batch,
            state: Mutex::new(State::new(layout.slots)),
            writing: Mutex::new(()),
            buffers: Buffers::new(layout.blocks_per_slot() as usize * BLOCK_SIZE),
            volume,
            layout,
        }
    }

    /// Returns the first block to read of a page whose valid slot is known, and the offsets of
    /// image and log block in what is read.
    fn span(&self, page: PageId, slot: u8) -> (Lba, usize, usize) {
        let place = Slot(page.0);
        if slot == 0 || !self.layout.mod_log {
            (
                self.layout.shadow_lba(place, slot),
                0,
                self.layout.page_size,
            )
        } else {
            (self.layout.mod_log_lba(place), BLOCK_SIZE, 0)
        }
    }

    fn span_bytes(&self) -> usize {
        self.layout.page_size + BLOCK_SIZE * usize::from(self.layout.mod_log)
    }

    /// Builds the page from a span that was read.
    fn finish(&self, page: PageId, known: Known, span: &[u8], buf: &mut [u8]) -> Result<()> {
        let (_, image_at, log_at) = self.span(page, known.slot);
        buf.copy_from_slice(&span[image_at..image_at + self.layout.page_size]);
        let block = known.logged.then(|| &span[log_at..log_at + BLOCK_SIZE]);
        self.lay_over(page, known.slot, block, buf)
    }

    /// Builds the page from the image in `buf`, which was read from `slot`, and the log block over
    /// it (`Load`).
    fn lay_over(&self, page: PageId, slot: u8, block: Option<&[u8]>, buf: &mut [u8]) -> Result<()> {
        let base = PageRef::new(buf).lsn();
        let mut delta = None;
        if self.layout.mod_log {
            let lba = self.layout.mod_log_lba(Slot(page.0));
            // A block that is over another image, perhaps because its trim is not durable, is
            // ignored.
            delta = self.logs.load(page, buf, block);
            if block.is_some() && delta.is_none() {
                return Err(mod_log::damaged(page, lba, "no differences for this image"));
            }
        }
        self.tell(|| Shadow::Loaded {
            page,
            slot,
            base,
            delta,
        });
        Ok(())
    }

    fn tell(&self, event: impl FnOnce() -> Shadow) {
        self.volume.tell(|| Event::Shadow(event()));
    }

    /// Reads a page for the first time: both slots (`Load`).
    fn read_unknown(&self, page: PageId, buf: &mut [u8]) -> Result<Found> {
        self.buffers.with(|both| {
            let lba = self.layout.slot_lba(Slot(page.0));
            self.volume.read(lba, both, IoClass::Page)?;
            let reading = Reading {
                layout: &self.layout,
                bytes: both,
            };
            let choice = match reading.choose(page) {
                Ok(choice) => choice,
                Err(PageDamage::Zeroed) => return Ok(Found::Nothing),
                Err(damage) => return Err(self.damaged(page, &damage)),
            };
            self.learn(page, &choice);
            buf.copy_from_slice(reading.image(choice.slot));
            let block = choice.delta.map(|_| reading.block());
            self.lay_over(page, choice.slot, block, buf)?;
            Ok(Found::Image)
        })
    }

    /// Records what reading both slots revealed (`KnownAfter`).
    fn learn(&self, page: PageId, choice: &Choice) {
        let mut state = self.state.lock();
        // Another thread may have read the page as well, and changed its state since.
        if state.known(page).is != Is::Unknown {
            return;
        }
        let leftover = choice.leftover && !mutation::on("leaves-leftovers");
        self.tell(|| Shadow::Chose {
            page,
            slot: choice.slot,
            lsn: choice.lsn,
            delta: choice.delta,
            leftover,
        });
        *state.known_mut(page) = Known {
            slot: choice.slot,
            is: if leftover { Is::Durable } else { Is::Alone },
            logged: choice.delta.is_some(),
        };
        if leftover {
            state.leftovers.push(page);
        }
    }

    fn damaged(&self, page: PageId, damage: &PageDamage) -> Error {
        Error::Damaged {
            what: page.to_string(),
            lba: self.layout.slot_lba(Slot(page.0)),
            expected: "a whole image in one of its slots, and zeros or its log block".into(),
            found: damage.to_string(),
        }
    }

    /// Reports that a page is about to be written, or its log block instead.
    fn tell_write(&self, image: &PageImage<'_>, slot: u8, block: Option<&[u8]>) {
        let page = image.page;
        self.tell(|| {
            let lsn = PageRef::new(image.bytes).lsn();
            match block.map(|block| Block::read(block, page, self.layout.page_size, self.layout.id))
            {
                Some(Ok(Block::Delta(delta))) => Shadow::WritesDelta {
                    page,
                    lsn: delta.lsn(),
                    base: delta.base_lsn(),
                    delta: delta.len(),
                },
                _ => Shadow::WritesWhole { page, lsn, slot },
            }
        });
    }

    /// Trims what became obsolete through flushes since the last call (`Trim`). The caller holds
    /// `writing`.
    fn settle(&self) -> Result<()> {
        let pages = self.state.lock().durable(&self.volume);
        for page in pages {
            let known = self.state.lock().known(page);
            let per_page = self.layout.blocks_per_page();
            let place = Slot(page.0);
            let other = self.layout.shadow_lba(place, 1 - known.slot);
            let log_too = self.layout.mod_log && (!known.logged || mutation::on("trims-live-log"));
            self.tell(|| Shadow::Trims {
                page,
                slot: 1 - known.slot,
                log: log_too,
            });
            match (log_too, known.slot) {
                (false, _) => self.volume.trim(other, per_page)?,
                // The three are adjacent.
                (true, 0) => self
                    .volume
                    .trim(self.layout.mod_log_lba(place), per_page + 1)?,
                (true, _) => self.volume.trim(other, per_page + 1)?,
            }
            self.state.lock().known_mut(page).is = Is::Alone;
        }
        Ok(())
    }
}

impl PageStore for ShadowStore {
    fn read(&self, page: PageId, buf: &mut [u8]) -> Result<Found> {
        if self.places.slot(page).is_none() {
            return Ok(Found::Nothing);
        }
        let known = self.state.lock().known(page);
        if known.is == Is::Unknown {
            return self.read_unknown(page, buf);
        }
        let (lba, ..) = self.span(page, known.slot);
        if !self.layout.mod_log {
            self.volume.read(lba, buf, IoClass::Page)?;
            self.lay_over(page, known.slot, None, buf)?;
            return Ok(Found::Image);
        }
        self.buffers.with(|span| {
            let span = &mut span[..self.span_bytes()];
            self.volume.read(lba, span, IoClass::Page)?;
            self.finish(page, known, span, buf)
        })?;
        Ok(Found::Image)
    }

    fn read_batch(&self, batch: &mut [(PageId, &mut [u8])]) -> Result<()> {
        let mut knowns = Vec::with_capacity(batch.len());
        for (page, _) in batch.iter() {
            let slot = self.places.slot(*page);
            slot.ok_or(Error::MissingPage { page: *page })?;
            let known = self.state.lock().known(*page);
            if known.is == Is::Unknown {
                // It is read by itself, with both slots, when it is needed.
                return Err(Error::MissingPage { page: *page });
            }
            knowns.push(known);
        }
        let starts = batch.iter().zip(&knowns);
        let starts = starts.map(|((page, _), known)| self.span(*page, known.slot).0);
        let spans = read_spans(&self.volume, starts, self.span_bytes())?;
        let spans = spans.chunks_exact(self.span_bytes());
        for (((page, buf), known), span) in batch.iter_mut().zip(knowns).zip(spans) {
            self.finish(*page, known, span, buf)?;
        }
        Ok(())
    }

    fn write_batch(&self, batch: &[PageImage<'_>]) -> Result<()> {
        let _one_at_a_time = self.writing.lock();
        self.settle()?;
        let mut plans = Vec::with_capacity(batch.len());
        for image in batch {
            let known = self.state.lock().known(image.page);
            // While the base is not durable, the log block is part of the previous image.
            let may = matches!(known.is, Is::Durable | Is::Alone);
            let delta = self.logs.delta(image, may);
            let again = known.is == Is::Written && !mutation::on("ping-pong-at-once");
            let slot = match (&delta, again) {
                (Some(_), _) | (None, true) => known.slot,
                (None, false) => 1 - known.slot,
            };
            plans.push((slot, delta));
        }
        let writes: Vec<BlockWrite<'_>> = batch
            .iter()
            .zip(&plans)
            .map(|(image, (slot, delta))| {
                self.tell_write(image, *slot, delta.as_ref().map(|(block, _)| &block[..]));
                let place = Slot(image.page.0);
                let (lba, bytes) = match delta {
                    Some((block, _)) => (self.layout.mod_log_lba(place), &block[..]),
                    None => (self.layout.shadow_lba(place, *slot), image.bytes),
                };
                let class = IoClass::Page;
                BlockWrite { lba, bytes, class }
            })
            .collect();
        if let Err(e) = self.volume.write_batch(&writes) {
            self.not_written(batch, &plans);
            return Err(e);
        }
        let stamp = self.volume.stamp();
        let mut state = self.state.lock();
        for (image, (slot, delta)) in batch.iter().zip(plans) {
            let page = image.page;
            let known = state.known(page);
            let delta_len = delta.as_ref().map(|(_, len)| *len);
            let after = match delta {
                Some(_) => Known {
                    logged: true,
                    ..known
                },
                None => {
                    state.written.insert(page, stamp);
                    state.queue.push_back((stamp, page));
                    Known {
                        slot,
                        is: Is::Written,
                        logged: false,
                    }
                }
            };
            *state.known_mut(page) = after;
            self.logs.written(image, delta_len);
        }
        drop(state);
        if mutation::on("resets-log-at-once") && self.layout.mod_log {
            for image in batch {
                let known = self.state.lock().known(image.page);
                if !known.logged {
                    self.volume
                        .trim(self.layout.mod_log_lba(Slot(image.page.0)), 1)?;
                }
            }
        }
        Ok(())
    }

    fn max_batch(&self) -> usize {
        self.max_batch
    }

    fn allocate(&self, keep_slots: u64) -> Result<PageId> {
        self.places.take(keep_slots).map(PageId)
    }

    fn free_places(&self) -> u64 {
        self.places.free()
    }

    fn free(&self, page: PageId) -> Result<()> {
        let _one_at_a_time = self.writing.lock();
        {
            let mut state = self.state.lock();
            state.written.remove(&page);
            *state.known_mut(page) = Known::NOTHING;
        }
        self.logs.free(page);
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
        let known = self.state.lock().known.bytes();
        known + self.places.map_bytes() + self.logs.map_bytes()
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
        let _one_at_a_time = self.writing.lock();
        self.settle()
    }

    fn named_in_log(&self, page: PageId) {
        if self.places.slot(page).is_some() {
            self.state.lock().named.insert(page);
        }
    }

    fn repair(&self, others: &dyn Fn(Slot) -> bool, _redo_start: Lsn) -> Result<u64> {
        let named = std::mem::take(&mut self.state.lock().named);
        let mut torn = 0;
        for page in named {
            // A place that a snapshot or a long value has taken belongs to no page any more.
            if others(Slot(page.0)) {
                continue;
            }
            torn += u64::from(self.write_again(page)?);
        }
        Ok(torn)
    }

    fn place(&self, page: PageId) -> Lba {
        self.places.lba(page)
    }

    fn forget(&self, page: PageId) {
        self.tell(|| Shadow::Evicted { page });
        self.logs.forget(page);
    }

    fn mod_log_stats(&self) -> Option<ModLogStats> {
        self.logs.stats()
    }
}

impl ShadowStore {
    /// Updates the state after a failed batch. Each of its images may be written, missing or torn:
    /// a page that was `Alone` no longer is, one that was `Written` is not durable after the next
    /// flush, and nothing on the device can be a base.
    fn not_written(&self, batch: &[PageImage<'_>], plans: &[(u8, Option<(AlignedBuf, u32)>)]) {
        let mut state = self.state.lock();
        for (image, (_, delta)) in batch.iter().zip(plans) {
            let page = image.page;
            self.logs.forget(page);
            match state.known(page).is {
                Is::Written if mutation::on("torn-rewrite-counts") => {}
                Is::Written => drop(state.written.remove(&page)),
                Is::Alone if delta.is_none() => {
                    state.known_mut(page).is = Is::Durable;
                    state.leftovers.push(page);
                }
                _ => {}
            }
        }
    }

    /// Reads a page that the log names, once, and rewrites its valid image and log block
    /// (`Restart`). Returns whether a slot was torn.
    fn write_again(&self, page: PageId) -> Result<bool> {
        self.buffers.with(|both| {
            let place = Slot(page.0);
            self.volume
                .read(self.layout.slot_lba(place), both, IoClass::Page)?;
            let reading = Reading {
                layout: &self.layout,
                bytes: both,
            };
            // Redo handles a page without a whole image: it knows whether the page should exist.
            let Ok(choice) = reading.choose(page) else {
                return Ok(false);
            };
            if !mutation::on("restart-trusts-slots") {
                let lba = self.layout.shadow_lba(place, choice.slot);
                let image = reading.image(choice.slot);
                self.volume.write(lba, image, IoClass::Page)?;
                if choice.delta.is_some() {
                    let lba = self.layout.mod_log_lba(place);
                    self.volume.write(lba, reading.block(), IoClass::Page)?;
                }
            }
            self.learn(page, &choice);
            let other = node::check_for(reading.image(1 - choice.slot), page, self.layout.id);
            Ok(!matches!(other, Ok(()) | Err(PageDamage::Zeroed)))
        })
    }
}

#[cfg(test)]
mod tests;
