//! Who gets an empty frame when there are more threads than frames.
//!
//! ```text
//!   free list ──▶ nobody waits: take one
//!       empty ──▶ draw a ticket ── sleep until it is served ──▶ write back, evict
//!                      nothing to be had? ──▶ sleep on one latch, and take what is under it
//! ```
//!
//! **Nobody waits for a frame with a latch in hand.** Otherwise all frames can be latched by
//! threads that wait for one. A thread whose change turns out to need another page lets its leaf
//! go, gets a [`Spare`], and begins anew with that in hand; the functions that make a page, or load
//! one beside a latched one, take the spare by value, so there is no other way to call them. Debug
//! builds count the latches of a thread and panic where it would wait ([`crate::held`]).
//!
//! **Few have a spare.** A spare is held while its owner waits for a frame for the leaf itself. So
//! at most a quarter of the frames are spares at any time (one, in the smallest caches), and the
//! others come round.
//!
//! **Nobody starves.** Frames and spares are handed out in the order of arrival ([`Turns`]). Who is
//! served makes room; if every frame is latched, it sleeps on the latch of one, whose holder waits
//! for no frame, and then has that frame for itself, whoever else wants the page in it.
//!
//! Locks of the ring's pages are no latches: they are held by who waits for a frame, and never
//! waited for with a latch, a turn, or a spare in hand.

use super::Pager;
use crate::cache::{FreeFrame, WriteGuard};
use crate::error::Result;
use crate::held::{self, Kind};
use crate::mutation;
use crate::sync::{Turn, Turns};
use crate::types::PageId;

/// Of so many frames one may be a spare.
const FRAMES_A_SPARE: usize = 4;

/// A frame for a page beside a latched one, and the leave to change the tree's structure. See the
/// module's story.
#[must_use]
pub(crate) struct Spare<'a> {
    // Goes back before the turn ends: who is next wants it.
    frame: FreeFrame<'a>,
    _turn: Turn<'a>,
}

/// Queues for frames.
pub(crate) struct Waiting {
    /// For an empty frame: one at a time makes room.
    frames: Turns,
    /// For a spare.
    spares: Turns,
}

impl Waiting {
    pub(super) fn new(frames: usize) -> Waiting {
        Waiting {
            frames: Turns::new(1),
            spares: Turns::new((frames / FRAMES_A_SPARE).max(1) as u64),
        }
    }
}

impl Pager {
    /// An empty frame: from the free list, or by making room in the foreground when write-back has
    /// fallen behind. May wait, so the caller has nothing latched.
    pub(super) fn free_frame(&self) -> Result<FreeFrame<'_>> {
        if !mutation::on("frame-awaited-under-latch") {
            held::assert_none(Kind::Latch, "who waits for a frame has nothing latched");
        }
        if let Some(free) = self.free_frame_now() {
            return Ok(free);
        }
        let _turn = self.waiting.frames.wait();
        loop {
            if let Some(free) = self.cache.take_free() {
                return Ok(free);
            }
            // Even a failing write-back may have evicted clean pages: a poisoned store can still be
            // read.
            let done = self.write_back();
            if let Some(free) = self.cache.take_free() {
                return Ok(free);
            }
            done?;
            if let Some(free) = self.take_over_latched()? {
                return Ok(free);
            }
        }
    }

    /// An empty frame, if there is one and nobody waits for it.
    fn free_frame_now(&self) -> Option<FreeFrame<'_>> {
        if self.waiting.frames.is_wanted() {
            return None;
        }
        self.cache.take_free()
    }

    /// Whether somebody waits for an empty frame.
    pub(super) fn is_short_of_frames(&self) -> bool {
        self.waiting.frames.is_wanted()
    }

    /// A spare. Waits for it, so the caller has nothing latched, and no other spare.
    ///
    /// # Errors
    /// No frame is free, and none can be made free since a write has failed.
    pub(crate) fn spare(&self) -> Result<Spare<'_>> {
        let turn = self.waiting.spares.wait();
        Ok(Spare {
            frame: self.free_frame()?,
            _turn: turn,
        })
    }

    /// A spare, if one is to be had at once.
    pub(crate) fn try_spare(&self) -> Option<Spare<'_>> {
        let turn = self.waiting.spares.try_now()?;
        Some(Spare {
            frame: self.free_frame_now()?,
            _turn: turn,
        })
    }

    /// A spare for who has a leaf latched: one that is to be had at once, or else none.
    pub(crate) fn spare_under_latch(&self) -> Result<Option<Spare<'_>>> {
        if mutation::on("frame-awaited-under-latch") {
            return self.spare().map(Some);
        }
        Ok(self.try_spare())
    }

    /// Latches a page that has no image yet; its bytes are to be built.
    ///
    /// # Errors
    /// The page is beyond the limit of names.
    pub(crate) fn create<'a>(&'a self, page: PageId, spare: Spare<'a>) -> Result<WriteGuard<'a>> {
        self.cache.create(page, spare.frame)
    }

    /// Latches a page that is on the device only for writing, loading it; `None` if somebody else
    /// does that already.
    ///
    /// # Errors
    /// Device failures and damage.
    pub(crate) fn load<'a>(
        &'a self,
        page: PageId,
        spare: Spare<'a>,
    ) -> Result<Option<WriteGuard<'a>>> {
        self.cache.load(page, &self.pages, spare.frame)
    }
}
