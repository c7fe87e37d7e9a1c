//! Write-back: the second-chance clock hand, batches of dirty pages, and the sweep of a checkpoint.
//!
//! ```text
//!        hand ->  referenced   -> clear the bit, go on                    (its second chance)
//!                 clean        -> evict: the frame is free
//!                 dirty        -> into the batch; written; evicted if still clean and unreferenced
//! ```
//!
//! Eviction works ahead of need: it starts when fewer than B frames are free and stops at 2B, where
//! B is the batch size. A reader with a cache miss finds a free frame and never waits for a write,
//! unless write-back has fallen behind.
//!
//! Latches are only ever *tried* here, with one exception: a thread that needs a frame when all are
//! latched waits for one latch, then writes and evicts the page under it
//! ([`Pager::take_over_latched`]). It holds no other latch, and the latch's holder does not wait
//! for a frame ([`super::frames`]).

use super::Pager;
use crate::cache::{FrameData, FreeFrame};
use crate::device::AlignedBuf;
use crate::error::Result;
use crate::events::Event;
use crate::mutation;
use crate::node::{ChangeMap, PageMut, PageRef};
use crate::pages::{PageImage, PageStore};
use crate::sync::RwLockWriteGuard;
use crate::sync::atomic::Ordering;
use crate::types::Progress;
use crate::types::{Lsn, PageId};

/// The clock hand, and room for one batch of page images.
pub(crate) struct SweepState {
    hand: usize,
    images: AlignedBuf,
    picked: Vec<Picked>,
    /// The changes that failed writes would have covered, until the page is picked again.
    owed: Vec<(PageId, ChangeMap)>,
}

/// A dirty page copied out of its frame, on its way to the device.
struct Picked {
    frame: u32,
    page: PageId,
    lsn: Lsn,
    /// The frame's `rec_lsn`, to restore it if the write fails.
    rec_lsn: Lsn,
    changes: ChangeMap,
}

impl SweepState {
    pub(crate) fn new(batch: usize, page_size: usize) -> SweepState {
        SweepState {
            hand: 0,
            images: AlignedBuf::zeroed(batch * page_size),
            picked: Vec::with_capacity(batch),
            owed: Vec::new(),
        }
    }
}

/// The result of an attempt to evict a clean page.
pub(super) enum Evicted {
    One,
    /// Each evictable page is latched by another thread.
    Busy,
    /// All pages are dirty.
    None,
}

impl Pager {
    /// Evicts a clean page, even if it was used recently; writes nothing.
    pub(super) fn evict_clean(&self) -> Evicted {
        let mut sweep = self.sweep.lock();
        let frames = self.cache.len();
        let mut busy = Evicted::None;
        for _ in 0..frames {
            let at = sweep.hand;
            sweep.hand = (at + 1) % frames;
            let frame = self.cache.frame(at);
            let Some(data) = frame.latch.try_write() else {
                busy = Evicted::Busy;
                continue;
            };
            if data.page.is_some() && !frame.is_dirty() {
                self.evict(data, at as u32);
                return Evicted::One;
            }
        }
        busy
    }

    /// Returns whether so few frames are free that eviction should run ahead of need.
    pub(crate) fn write_back_due(&self) -> bool {
        self.cache.free_frames() < self.batch
    }

    /// Runs one step of eviction ahead of need: frees clean frames and writes at most one batch.
    pub(crate) fn write_back(&self) -> Result<Progress> {
        let mut sweep = self.sweep.lock();
        let goal = 2 * self.batch;
        let frames = self.cache.len();
        // In two turns, the hand sees every frame once without its reference bit.
        for _ in 0..2 * frames {
            if sweep.picked.len() == self.batch
                || self.cache.free_frames() + sweep.picked.len() >= goal
            {
                break;
            }
            let at = sweep.hand;
            sweep.hand = (at + 1) % frames;
            let frame = self.cache.frame(at);
            if frame.take_referenced() {
                continue;
            }
            let Some(mut data) = frame.latch.try_write() else {
                continue;
            };
            if data.page.is_none() {
                continue;
            }
            // A page picked on the hand's first turn is clean, but its image is only in the batch:
            // if it were evicted, a thread that loads it before the batch is written would read the
            // old image. If it is dirty again, it must not be picked twice, because the writes of
            // one batch are unordered.
            let picked = sweep.picked.iter().any(|p| p.frame == at as u32);
            if picked && !mutation::on("evict-picked-page") {
                continue;
            }
            if frame.is_dirty() {
                self.pick(&mut sweep, at as u32, &mut data);
            } else {
                drop(self.evict(data, at as u32));
            }
        }
        let written = sweep.picked.len();
        self.write_picked(&mut sweep)?;
        self.counters
            .written_back
            .fetch_add(written as u64, Ordering::Relaxed);
        self.evict_picked(&mut sweep);
        drop(sweep);
        self.free_retired()?;
        let enough = self.cache.free_frames() >= goal;
        Ok(if enough {
            Progress::Idle
        } else {
            Progress::More
        })
    }

    /// Runs one step of a checkpoint: from frame `cursor` on, writes at most one batch of the pages
    /// that have been dirty since `begin` or longer. Returns the frame to continue from; the sweep
    /// is complete when that is the number of frames.
    pub(crate) fn checkpoint_sweep(&self, begin: Lsn, cursor: usize) -> Result<usize> {
        let mut sweep = self.sweep.lock();
        let mut at = cursor;
        while at < self.cache.len() && sweep.picked.len() < self.batch {
            let frame = self.cache.frame(at);
            if frame.is_dirty() && frame.rec_lsn() <= begin {
                // Busy: release the sweep lock, for which the latch's holder may be waiting, and
                // come back.
                let Some(mut data) = frame.latch.try_write() else {
                    break;
                };
                if frame.is_dirty() && frame.rec_lsn() <= begin {
                    self.pick(&mut sweep, at as u32, &mut data);
                }
            }
            at += 1;
        }
        let written = sweep.picked.len();
        self.write_picked(&mut sweep)?;
        self.counters
            .checkpointed
            .fetch_add(written as u64, Ordering::Relaxed);
        sweep.picked.clear();
        Ok(at)
    }

    /// Writes one page back, if it is cached, dirty and not latched. Returns whether it did.
    pub(crate) fn write_back_one(&self, page: PageId) -> Result<bool> {
        let mut sweep = self.sweep.lock();
        let Some(mut guard) = self.cache.try_resident(page) else {
            return Ok(false);
        };
        if !guard.frame.is_dirty() {
            return Ok(false);
        }
        let at = guard.index;
        self.pick(&mut sweep, at, &mut guard.data);
        drop(guard);
        let written = self.write_picked(&mut sweep);
        sweep.picked.clear();
        written.map(|()| true)
    }

    /// Evicts one page, if it is cached, clean and not latched. Returns whether it did.
    pub(crate) fn evict_one(&self, page: PageId) -> bool {
        let _no_write_back = self.sweep.lock();
        let Some(guard) = self.cache.try_resident(page) else {
            return false;
        };
        let clean = !guard.frame.is_dirty();
        if clean {
            let at = guard.index;
            drop(self.evict(guard.data, at));
        }
        clean
    }

    /// Evicts the clean page in frame `at`, which `data` has latched. Dropping the result makes the
    /// frame free.
    fn evict<'a>(
        &'a self,
        data: RwLockWriteGuard<'a, FrameData>,
        at: u32,
    ) -> Option<FreeFrame<'a>> {
        if let Some(page) = data.page {
            self.pages.forget(page);
        }
        self.counters.evictions.fetch_add(1, Ordering::Relaxed);
        self.cache.evict(data, at)
    }

    /// Waits for the latch of a latched frame, and evicts its page, writing it if necessary: the
    /// last resort for a thread that needs a frame. Returns `None` if no frame is latched any more,
    /// or if that one has become free.
    pub(super) fn take_over_latched(&self) -> Result<Option<FreeFrame<'_>>> {
        let hand = self.sweep.lock().hand;
        let frames = self.cache.len();
        let order = (0..frames).map(|n| (hand + n) % frames);
        let mut latched = order.filter(|at| self.cache.frame(*at).latch.try_write().is_none());
        let Some(at) = latched.next() else {
            crate::sync::yield_now();
            return Ok(None);
        };
        let frame = self.cache.frame(at);
        let mut data = frame.latch.write();
        if data.page.is_none() {
            return Ok(None);
        }
        // Holders of the sweep lock only try latches, so it may be waited for while holding this
        // latch. A clean page may be in a batch that is not written yet, which is why the lock is
        // needed.
        let mut sweep = self.sweep.lock();
        if frame.is_dirty() {
            self.pick(&mut sweep, at as u32, &mut data);
            let written = self.write_picked(&mut sweep);
            sweep.picked.clear();
            written?;
        }
        Ok(self.evict(data, at as u32))
    }

    /// Waits until every operation that was changing a page when this was called has finished.
    pub(crate) fn quiesce(&self) {
        for at in 0..self.cache.len() {
            drop(self.cache.frame(at).latch.read());
        }
    }

    /// Copies a dirty page out of its frame and marks it clean: any later change makes it dirty
    /// again.
    fn pick(&self, sweep: &mut SweepState, at: u32, data: &mut RwLockWriteGuard<'_, FrameData>) {
        let Some(page) = data.page else { return };
        let frame = self.cache.frame(at as usize);
        let size = self.layout.page_size;
        let i = sweep.picked.len();
        let image = &mut sweep.images[i * size..(i + 1) * size];
        image.copy_from_slice(&data.bytes);
        let mut changes = std::mem::take(&mut data.changes);
        for (_, owed) in sweep.owed.extract_if(.., |(of, _)| *of == page) {
            changes.merge(&owed);
        }
        PageMut::new(image, &mut changes).seal_for(self.layout.id);
        let lsn = PageRef::new(image).lsn();
        let rec_lsn = frame.rec_lsn();
        debug_assert!(
            rec_lsn <= lsn,
            "{page}: first dirtied at {rec_lsn}, but at {lsn} now"
        );
        if !mutation::on("clean-after-write") {
            frame.set_clean();
        }
        self.volume.tell(|| Event::PageCopied { page, lsn });
        sweep.picked.push(Picked {
            frame: at,
            page,
            lsn,
            rec_lsn,
            changes,
        });
    }

    /// Writes the picked pages, after the log.
    fn write_picked(&self, sweep: &mut SweepState) -> Result<()> {
        let Some(lsn) = sweep.picked.iter().map(|p| p.lsn).max() else {
            return Ok(());
        };
        let size = self.layout.page_size;
        let logged = if mutation::on("page-before-log") {
            Ok(())
        } else {
            self.flush_log(lsn)
        };
        let written = logged.and_then(|()| {
            if mutation::on("clean-without-write") {
                return Ok(());
            }
            let images: Vec<PageImage<'_>> = sweep
                .picked
                .iter()
                .zip(sweep.images.chunks_exact(size))
                .map(|(p, bytes)| PageImage {
                    page: p.page,
                    bytes,
                    changes: &p.changes,
                })
                .collect();
            debug_assert!(
                images
                    .iter()
                    .all(|i| PageRef::new(i.bytes).page_id() == i.page)
            );
            for p in &sweep.picked {
                let (page, lsn) = (p.page, p.lsn);
                self.volume.tell(|| Event::PageWriting { page, lsn });
            }
            self.pages.write_batch(&images)?;
            for p in &sweep.picked {
                let (page, lsn) = (p.page, p.lsn);
                self.volume.tell(|| Event::PageWritten { page, lsn });
                if mutation::on("clean-after-write") {
                    self.cache.frame(p.frame as usize).set_clean();
                }
            }
            Ok(())
        });
        if let Err(e) = &written {
            self.poison(e);
            if mutation::on("failed-write-stays-clean") {
                sweep.picked.clear();
            } else {
                self.mark_dirty_again(sweep);
            }
        }
        written
    }

    /// Marks the picked pages as dirty again after a failed write: the device's images are unknown,
    /// so the frames hold the only good ones (BUGS D4). No latch is waited for, as the caller may
    /// hold the one that another thread waits for. None is needed: a page that was changed
    /// meanwhile is dirty since its first unwritten change, and what the failed write would have
    /// covered goes with the next write.
    fn mark_dirty_again(&self, sweep: &mut SweepState) {
        for p in sweep.picked.drain(..) {
            let frame = self.cache.frame(p.frame as usize);
            let later = mutation::on("refused-write-forgets-its-lsn") && frame.is_dirty();
            if !later {
                frame.set_dirty(p.rec_lsn);
            }
            if !mutation::on("refused-write-forgets-its-changes") {
                sweep.owed.push((p.page, p.changes));
            }
        }
    }

    fn evict_picked(&self, sweep: &mut SweepState) {
        for p in sweep.picked.drain(..) {
            let frame = self.cache.frame(p.frame as usize);
            let Some(data) = frame.latch.try_write() else {
                continue;
            };
            if data.page == Some(p.page) && !frame.is_dirty() && !frame.is_referenced() {
                drop(self.evict(data, p.frame));
            }
        }
    }
}
