//! The page cache: frames, the map from page ids to frames, and the latches.
//!
//! ```text
//! map[page]:  GONE       no such page: it was merged away (or never made). Readers descend again.
//!             ABSENT     on the device only
//!             frame i    in frames[i], or being loaded there under the frame's exclusive latch
//! ```
//!
//! There are no pins: a page stays in its frame as long as somebody holds the frame's latch.
//! Finding a page is optimistic: read the map, latch the frame, and check whether the frame still
//! holds that page; if not, start over. Three kinds of writers change the map, and keep this sound.
//! A load enters the frame in the map under the frame's exclusive latch. An eviction removes it
//! from the map before it releases the latch. Freeing a page needs the page's own exclusive latch.
//! A thread that loads a page keeps the latch until it is done with the page: with more threads
//! than frames, the page would otherwise be evicted before its loader came back for it.
//!
//! An empty frame is a [`FreeFrame`], owned by the thread that took it. Loading or making a page
//! takes one as an argument. How a thread gets one, and which threads may wait for one, is decided
//! in [`crate::pager`].
//!
//! Replacement is second chance: a hit sets the frame's reference bit, a load leaves it clear, and
//! the clock hand ([`crate::pager`]) takes unreferenced frames. Memory: one page for each frame,
//! and 4 bytes for each page id in use.

mod contention;
mod frame;
mod free;
mod map;

pub(crate) use contention::Latched;
pub(crate) use frame::{Frame, FrameData, ReadGuard, WriteGuard};
pub(crate) use free::FreeFrame;

use crate::device::AlignedBuf;
use crate::error::{Error, Result};
use crate::events::{Event, Hook};
use crate::node::PageRef;
use crate::pages::{Found, PageStore, SlotMap};
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, RwLockWriteGuard, downgrade};
use crate::types::PageId;
use map::{ABSENT, FIRST_FRAME, GONE, PageMap};

/// Frames reserved for readers of a store that cannot write.
const RESERVED_FRAMES: usize = 4;

/// The result of looking for a page.
pub(crate) enum Fix<G> {
    /// The page, latched.
    Got(G),
    /// The page is in no tree: the caller's reference to it is outdated.
    Gone,
}

/// A fixed number of page frames.
pub(crate) struct Cache {
    frames: Vec<Frame>,
    map: PageMap,
    /// Frames from here on are reserved for readers of a store that cannot write. If all other
    /// frames are dirty, they could not read anything without them.
    ordinary: usize,
    reserved: Mutex<Vec<u32>>,
    free: Mutex<Vec<u32>>,
    /// Length of `free`, readable without its lock.
    free_len: AtomicUsize,
    page_size: usize,
    hits: AtomicU64,
    misses: AtomicU64,
    hook: Hook,
}

impl Cache {
    /// Makes `frames` empty frames for page ids below `page_limit`. All pages are unknown: if they
    /// exist, they are on the device.
    pub(crate) fn new(frames: usize, page_size: usize, page_limit: u64, hook: Hook) -> Cache {
        Cache {
            frames: AlignedBuf::many(frames + RESERVED_FRAMES, page_size)
                .map(Frame::new)
                .collect(),
            map: PageMap::new(page_limit),
            ordinary: frames,
            reserved: Mutex::new((frames as u32..).take(RESERVED_FRAMES).collect()),
            free: Mutex::new((0..frames as u32).rev().collect()),
            free_len: AtomicUsize::new(frames),
            page_size,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            hook,
        }
    }

    /// The number of frames, including those reserved for readers.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// The number of frames that are not reserved for readers.
    pub(crate) fn ordinary(&self) -> usize {
        self.ordinary
    }

    /// Bytes of memory that all frames take.
    pub(crate) fn frame_bytes(&self) -> u64 {
        let bytes = self.frames.len() * size_of::<Frame>();
        (bytes + self.frames.len() * self.page_size) as u64
    }

    pub(crate) fn frame(&self, i: usize) -> &Frame {
        &self.frames[i]
    }

    pub(crate) fn free_frames(&self) -> usize {
        self.free_len.load(Ordering::Relaxed)
    }

    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        (
            self.hits.load(Ordering::Relaxed),
            self.misses.load(Ordering::Relaxed),
        )
    }

    /// After recovery: the pages of `live` are on the device or in frames; all others are gone.
    /// Nothing may be latched.
    pub(crate) fn set_live(&self, live: &SlotMap) {
        self.map.set_live(live);
    }

    /// Bytes of the map from page ids to frames.
    pub(crate) fn map_bytes(&self) -> u64 {
        self.map.bytes()
    }

    fn entry(&self, page: PageId) -> Result<&AtomicU32> {
        self.map.entry(page).ok_or(Error::MissingPage { page })
    }

    /// Latches `page` for reading, loading it if necessary. `free_frame` supplies an empty frame.
    pub(crate) fn fix_shared<'a>(
        &'a self,
        page: PageId,
        store: &dyn PageStore,
        free_frame: &dyn Fn() -> Result<FreeFrame<'a>>,
    ) -> Result<Fix<ReadGuard<'a>>> {
        let entry = self.entry(page)?;
        loop {
            match entry.load(Ordering::Acquire) {
                GONE => return Ok(Fix::Gone),
                ABSENT => {
                    if let Some(guard) = self.load(page, store, free_frame()?)? {
                        self.count_miss();
                        let data = downgrade(&guard.frame.latch, guard.data);
                        // Under an explorer, the page may have been evicted in between.
                        if data.page == Some(page) {
                            return Ok(Fix::Got(ReadGuard::new(data)));
                        }
                    }
                }
                at => {
                    let frame = &self.frames[(at - FIRST_FRAME) as usize];
                    let data = frame.latch.read();
                    if data.page == Some(page) {
                        self.count_access(frame);
                        return Ok(Fix::Got(ReadGuard::new(data)));
                    }
                }
            }
        }
    }

    /// Latches `page` for writing, loading it if necessary.
    pub(crate) fn fix_exclusive<'a>(
        &'a self,
        page: PageId,
        store: &dyn PageStore,
        free_frame: &dyn Fn() -> Result<FreeFrame<'a>>,
    ) -> Result<Fix<WriteGuard<'a>>> {
        let entry = self.entry(page)?;
        loop {
            match entry.load(Ordering::Acquire) {
                GONE => return Ok(Fix::Gone),
                ABSENT => {
                    if let Some(guard) = self.load(page, store, free_frame()?)? {
                        self.count_miss();
                        return Ok(Fix::Got(guard));
                    }
                }
                at => {
                    let frame = &self.frames[(at - FIRST_FRAME) as usize];
                    let (data, latched) = match frame.latch.try_write() {
                        Some(data) => (data, Latched::AtOnce),
                        None => (frame.latch.write(), Latched::AfterWaiting),
                    };
                    if data.page == Some(page) {
                        self.count_access(frame);
                        let at = at - FIRST_FRAME;
                        return Ok(Fix::Got(WriteGuard::new(data, frame, at, latched)));
                    }
                }
            }
        }
    }

    /// Returns whether the page is on the device only, so that an access needs a free frame.
    pub(crate) fn is_absent(&self, page: PageId) -> bool {
        let entry = self.map.entry(page);
        entry.is_some_and(|entry| entry.load(Ordering::Acquire) == ABSENT)
    }

    /// Latches the page for writing, if it is in the cache and its latch is free right now.
    pub(crate) fn try_resident(&self, page: PageId) -> Option<WriteGuard<'_>> {
        let at = self.map.entry(page)?.load(Ordering::Acquire);
        if at < FIRST_FRAME {
            return None;
        }
        let frame = &self.frames[(at - FIRST_FRAME) as usize];
        let data = frame.latch.try_write()?;
        (data.page == Some(page))
            .then(|| WriteGuard::new(data, frame, at - FIRST_FRAME, Latched::AtOnce))
    }

    /// The access that loads a page is a miss and leaves the reference bit clear.
    fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Every other access is a hit and sets the bit, except for the first one to a page that was
    /// loaded ahead of need.
    fn count_access(&self, frame: &Frame) {
        if frame.take_ahead() {
            self.count_miss();
        } else {
            self.hits.fetch_add(1, Ordering::Relaxed);
            frame.set_referenced();
        }
    }

    /// Reads `page` into a free frame and leaves it latched. Returns `None` if another thread was
    /// first. The latch of a free frame is only ever held for an instant, so this may be called
    /// while holding other latches.
    pub(crate) fn load<'a>(
        &'a self,
        page: PageId,
        store: &dyn PageStore,
        free: FreeFrame<'a>,
    ) -> Result<Option<WriteGuard<'a>>> {
        let Some((at, mut data)) = self.enter(page, free) else {
            return Ok(None);
        };
        let frame = &self.frames[at as usize];
        match read_image(page, store, &mut data.bytes) {
            Ok(()) => {
                self.loaded(page, frame, &mut data);
                Ok(Some(WriteGuard::new(data, frame, at, Latched::AtOnce)))
            }
            Err(e) => {
                self.not_loaded(page, at, data);
                Err(e)
            }
        }
    }

    /// Notes that the page's image has been read into the frame, whose latch the caller holds and
    /// to which the map already points.
    fn loaded(&self, page: PageId, frame: &Frame, data: &mut FrameData) {
        data.hold(page);
        frame.reset();
        self.hook.tell(|| Event::PageLoaded {
            page,
            lsn: PageRef::new(&data.bytes).lsn(),
        });
    }

    fn not_loaded(&self, page: PageId, at: u32, data: RwLockWriteGuard<'_, FrameData>) {
        self.map.of_resident(page).store(ABSENT, Ordering::Release);
        drop(data);
        drop(FreeFrame::new(self, at));
    }

    /// Reads those of `pages` that are on the device only, in one batch, into free frames, as long
    /// as there are some. Pages that cannot be read are skipped: an access to them will get the
    /// error.
    pub(crate) fn load_ahead(&self, pages: &[PageId], store: &dyn PageStore) {
        let mut loads = Vec::with_capacity(pages.len());
        for page in pages {
            let absent = |entry: &AtomicU32| entry.load(Ordering::Acquire) == ABSENT;
            if !self.entry(*page).is_ok_and(absent) {
                continue;
            }
            let Some(free) = self.take_free() else { break };
            if let Some((at, data)) = self.enter(*page, free) {
                loads.push((*page, at, data));
            }
        }
        if loads.is_empty() {
            return;
        }
        let mut batch: Vec<_> = loads
            .iter_mut()
            .map(|(page, _, data)| (*page, &mut data.bytes[..]))
            .collect();
        let read = store.read_batch(&mut batch).is_ok();
        for (page, at, mut data) in loads {
            if read {
                let frame = &self.frames[at as usize];
                self.loaded(page, frame, &mut data);
                frame.set_ahead();
            } else {
                self.not_loaded(page, at, data);
            }
        }
    }

    /// Enters a page that is on the device only in the map, with a free frame, which is returned
    /// latched. Returns `None` if another thread was first.
    fn enter<'a>(
        &'a self,
        page: PageId,
        free: FreeFrame<'a>,
    ) -> Option<(u32, RwLockWriteGuard<'a, FrameData>)> {
        let data = self.frames[free.at() as usize].latch.write();
        debug_assert!(data.page.is_none(), "a free frame holds no page");
        let entry = self.map.of_resident(page);
        let to = free.at() + FIRST_FRAME;
        entry
            .compare_exchange(ABSENT, to, Ordering::AcqRel, Ordering::Acquire)
            .ok()
            .map(|_| (free.fill(), data))
    }

    /// Puts a page that has no image yet into an empty frame, latched for writing; the bytes are
    /// arbitrary. The caller owns the page's id and is the only one who knows it.
    pub(crate) fn create<'a>(
        &'a self,
        page: PageId,
        free: FreeFrame<'a>,
    ) -> Result<WriteGuard<'a>> {
        let entry = self.entry(page)?;
        let at = free.fill();
        let frame = &self.frames[at as usize];
        let mut data = frame.latch.write();
        debug_assert!(data.page.is_none(), "a free frame holds no page");
        let before = entry.swap(at + FIRST_FRAME, Ordering::AcqRel);
        debug_assert!(
            before < FIRST_FRAME,
            "{page} is new, yet in frame {}",
            before - FIRST_FRAME
        );
        data.hold(page);
        frame.reset();
        Ok(WriteGuard::new(data, frame, at, Latched::AtOnce))
    }

    /// Removes a latched page from the cache, with its changes. After that, the page is gone (or,
    /// in recovery, unknown).
    pub(crate) fn discard(&self, mut guard: WriteGuard<'_>, gone: bool) {
        let Some(page) = guard.data.page.take() else {
            return;
        };
        let at = guard.index;
        guard.frame.reset();
        let state = if gone { GONE } else { ABSENT };
        self.map.of_resident(page).store(state, Ordering::Release);
        drop(guard);
        drop(FreeFrame::new(self, at));
    }

    /// Evicts the clean page that `data` (the exclusively latched frame `at`) holds, and gives the
    /// frame to the caller.
    pub(crate) fn evict<'a>(
        &'a self,
        mut data: RwLockWriteGuard<'a, FrameData>,
        at: u32,
    ) -> Option<FreeFrame<'a>> {
        debug_assert!(
            !self.frames[at as usize].is_dirty(),
            "only clean pages are evicted"
        );
        let page = data.page.take()?;
        self.map.of_resident(page).store(ABSENT, Ordering::Release);
        drop(data);
        Some(FreeFrame::new(self, at))
    }

    /// Takes an empty frame, if there is one.
    pub(crate) fn take_free(&self) -> Option<FreeFrame<'_>> {
        let mut free = self.free.lock();
        let at = free.pop();
        self.free_len.store(free.len(), Ordering::Relaxed);
        at.map(|at| FreeFrame::new(self, at))
    }

    /// Takes an empty frame of those reserved for readers, if there is one.
    pub(crate) fn take_reserved(&self) -> Option<FreeFrame<'_>> {
        let at = self.reserved.lock().pop();
        at.map(|at| FreeFrame::new(self, at))
    }

    /// Puts an empty frame on the list that it belongs to.
    fn give_free(&self, at: u32) {
        if at as usize >= self.ordinary {
            self.reserved.lock().push(at);
            return;
        }
        let mut free = self.free.lock();
        free.push(at);
        self.free_len.store(free.len(), Ordering::Relaxed);
    }
}

/// Reads a page that must have an image. The page store has already checked the image (see
/// [`crate::pages::Versioned`]).
fn read_image(page: PageId, store: &dyn PageStore, buf: &mut [u8]) -> Result<()> {
    match store.read(page, buf)? {
        Found::Nothing => Err(Error::MissingPage { page }),
        Found::Image => Ok(()),
    }
}
