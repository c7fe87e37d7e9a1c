//! Distributes empty frames when there are more threads than frames.
//!
//! ```text
//!   free list ──▶ nobody waits: take one
//!       empty ──▶ draw a ticket ── sleep until it is served ──▶ write back, evict
//!                      nothing evictable? ──▶ sleep on one latch, then take the frame under it
//! ```
//!
//! **No thread waits for a frame while it holds a latch.** Otherwise all frames could be latched by
//! threads that wait for one. A thread whose change turns out to need another page releases its
//! leaf, gets a [`Spare`], and restarts its operation with it. The functions that make a page, or
//! load one beside a latched one, take the spare by value, so they cannot be called otherwise.
//! Debug builds count the latches of a thread and panic where it would wait ([`crate::held`]).
//!
//! **Few threads have a spare.** A thread holds its spare while it waits for a frame for the leaf
//! itself. So at most a quarter of the frames are spares at any time (one, in the smallest caches),
//! and the other frames keep circulating.
//!
//! **No thread starves.** Frames and spares are handed out in the order of arrival ([`Turns`]). The
//! thread that is served makes room. If every frame is latched, it sleeps on the latch of one,
//! whose holder does not wait for a frame, and then gets that frame, even if other threads want the
//! page in it.
//!
//! Locks of the ring's pages are not latches. A thread may hold them while it waits for a frame;
//! they are never waited for while holding a latch, a turn, or a spare.

use super::Pager;
use crate::cache::{FreeFrame, WriteGuard};
use crate::error::Result;
use crate::held::{self, Kind};
use crate::mutation;
use crate::sync::{Turn, Turns};
use crate::types::PageId;

/// One in this many frames may be a spare.
const FRAMES_A_SPARE: usize = 4;

/// A frame for a page beside a latched one. It also grants the right to change the tree's
/// structure. See the module documentation.
#[must_use]
pub(crate) struct Spare<'a> {
    // Dropped before the turn ends, because the next thread wants the frame.
    frame: FreeFrame<'a>,
    _turn: Turn<'a>,
}

/// The queues for frames.
pub(crate) struct Waiting {
    /// For an empty frame: one thread at a time makes room.
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
    /// Returns an empty frame, from the free list or, if write-back has fallen behind, by making
    /// room in the foreground. May wait, so the caller must hold no latch.
    pub(super) fn free_frame(&self) -> Result<FreeFrame<'_>> {
        if !mutation::on("frame-awaited-under-latch") {
            held::assert_none(
                Kind::Latch,
                "a thread must hold no latch while it waits for a frame",
            );
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

    /// Takes an empty frame, if there is one and nobody waits for it.
    fn free_frame_now(&self) -> Option<FreeFrame<'_>> {
        if self.waiting.frames.is_wanted() {
            return None;
        }
        self.cache.take_free()
    }

    /// Returns whether a thread waits for an empty frame.
    pub(super) fn is_short_of_frames(&self) -> bool {
        self.waiting.frames.is_wanted()
    }

    /// Returns a spare. May wait, so the caller must hold no latch and no other spare.
    ///
    /// # Errors
    /// If no frame is free, and none can be freed because a write has failed.
    pub(crate) fn spare(&self) -> Result<Spare<'_>> {
        let turn = self.waiting.spares.wait();
        Ok(Spare {
            frame: self.free_frame()?,
            _turn: turn,
        })
    }

    /// Returns a spare, if one is available at once.
    pub(crate) fn try_spare(&self) -> Option<Spare<'_>> {
        let turn = self.waiting.spares.try_now()?;
        Some(Spare {
            frame: self.free_frame_now()?,
            _turn: turn,
        })
    }

    /// Returns a spare to a thread that holds a leaf's latch, if one is available at once.
    pub(crate) fn spare_under_latch(&self) -> Result<Option<Spare<'_>>> {
        if mutation::on("frame-awaited-under-latch") {
            return self.spare().map(Some);
        }
        Ok(self.try_spare())
    }

    /// Latches a page that has no image yet; the caller must build its bytes.
    ///
    /// # Errors
    /// If the page is beyond the limit of ids.
    pub(crate) fn create<'a>(&'a self, page: PageId, spare: Spare<'a>) -> Result<WriteGuard<'a>> {
        self.cache.create(page, spare.frame)
    }

    /// Loads a page that is on the device only, and latches it for writing. Returns `None` if
    /// another thread is already doing so.
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
