//! A frame of the cache: a page's bytes behind a latch, and the frame's flags.

use super::contention::{Contention, Latched};
use crate::device::AlignedBuf;
use crate::held::{Held, Kind};
use crate::node::{ChangeMap, PageMut, PageRef};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::types::{Lsn, PageId};

/// The data that the latch protects.
pub(crate) struct FrameData {
    /// The page in this frame; `None` in a free frame.
    pub(crate) page: Option<PageId>,
    pub(crate) bytes: AlignedBuf,
    /// The changes since the page was last written.
    pub(crate) changes: ChangeMap,
    /// How often writers had to wait here.
    contention: Contention,
}

impl FrameData {
    /// Notes that the frame holds, or is about to hold, another page.
    pub(super) fn hold(&mut self, page: PageId) {
        self.page = Some(page);
        self.changes.clear();
        self.contention.clear();
    }
}

/// A frame of the cache. The flags are set under the latch. The clock hand reads them without it,
/// and checks again once it has the latch.
pub(crate) struct Frame {
    pub(crate) latch: RwLock<FrameData>,
    referenced: AtomicBool,
    /// The page was loaded ahead of need and has not been accessed yet.
    ahead: AtomicBool,
    /// LSN of the first change since the page was last written; [`CLEAN`] if there was none.
    rec_lsn: AtomicU64,
}

/// The LSN of a clean page: later than all real ones.
const CLEAN: u64 = u64::MAX;

impl Frame {
    /// Makes an empty frame with this buffer.
    pub(crate) fn new(bytes: AlignedBuf) -> Frame {
        let data = FrameData {
            page: None,
            bytes,
            changes: ChangeMap::default(),
            contention: Contention::default(),
        };
        Frame {
            latch: RwLock::new(data),
            referenced: AtomicBool::new(false),
            ahead: AtomicBool::new(false),
            rec_lsn: AtomicU64::new(CLEAN),
        }
    }

    /// Sets the reference bit. A bit that is already set is not written again, to spare the cache
    /// line.
    pub(crate) fn set_referenced(&self) {
        if !self.referenced.load(Ordering::Relaxed) {
            self.referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Clears the reference bit and returns its previous value.
    pub(crate) fn take_referenced(&self) -> bool {
        let was = self.referenced.load(Ordering::Relaxed);
        if was {
            self.referenced.store(false, Ordering::Relaxed);
        }
        was
    }

    pub(crate) fn is_referenced(&self) -> bool {
        self.referenced.load(Ordering::Relaxed)
    }

    pub(crate) fn set_ahead(&self) {
        self.ahead.store(true, Ordering::Relaxed);
    }

    /// Returns whether this is the first access to a page that was loaded ahead of need.
    pub(crate) fn take_ahead(&self) -> bool {
        self.ahead.load(Ordering::Relaxed) && self.ahead.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.rec_lsn.load(Ordering::Acquire) != CLEAN
    }

    /// LSN of the first change since the page was last written; later than all others if there was
    /// none.
    pub(crate) fn rec_lsn(&self) -> Lsn {
        Lsn(self.rec_lsn.load(Ordering::Acquire))
    }

    /// Marks the page as differing from its image on the device since `lsn`, or earlier if it is
    /// dirty already. Called under the exclusive latch, or by write-back after its write of an
    /// older state failed.
    pub(crate) fn set_dirty(&self, lsn: Lsn) {
        // A page that changes often is usually dirty: then its cache line is not written.
        if lsn.0 < self.rec_lsn.load(Ordering::Relaxed) {
            self.rec_lsn.fetch_min(lsn.0, Ordering::AcqRel);
        }
    }

    /// Marks the page as clean. Called under the exclusive latch by write-back, whose copy of the
    /// page will become the device's image.
    pub(crate) fn set_clean(&self) {
        self.rec_lsn.store(CLEAN, Ordering::Release);
    }

    /// Resets all flags, because the frame holds another page or none. Called under the exclusive
    /// latch.
    pub(crate) fn reset(&self) {
        self.referenced.store(false, Ordering::Relaxed);
        self.ahead.store(false, Ordering::Relaxed);
        self.set_clean();
    }
}

/// A page latched for reading.
pub(crate) struct ReadGuard<'a> {
    data: RwLockReadGuard<'a, FrameData>,
    _held: Held,
}

impl<'a> ReadGuard<'a> {
    pub(crate) fn new(data: RwLockReadGuard<'a, FrameData>) -> Self {
        let _held = Held::new(Kind::Latch);
        ReadGuard { data, _held }
    }

    pub(crate) fn view(&self) -> PageRef<'_> {
        PageRef::new(&self.data.bytes)
    }
}

/// A page latched for writing: the only way to change one.
pub(crate) struct WriteGuard<'a> {
    pub(crate) data: RwLockWriteGuard<'a, FrameData>,
    pub(crate) frame: &'a Frame,
    pub(crate) index: u32,
    latched: Latched,
    _held: Held,
}

impl<'a> WriteGuard<'a> {
    pub(crate) fn new(
        data: RwLockWriteGuard<'a, FrameData>,
        frame: &'a Frame,
        index: u32,
        latched: Latched,
    ) -> Self {
        WriteGuard {
            data,
            frame,
            index,
            latched,
            _held: Held::new(Kind::Latch),
        }
    }

    /// Returns whether the latch had to be waited for.
    pub(crate) fn latched(&self) -> Latched {
        self.latched
    }

    /// Counts a sampled write of `key`; see [`Contention::sample`].
    pub(crate) fn sample_write(&mut self, key: &[u8], period: u16) -> Option<Vec<u8>> {
        let latched = self.latched;
        self.data.contention.sample(key, latched, period)
    }

    pub(crate) fn view(&self) -> PageRef<'_> {
        PageRef::new(&self.data.bytes)
    }

    /// The page, to change. Call [`WriteGuard::changed`] afterwards.
    pub(crate) fn edit(&mut self) -> PageMut<'_> {
        let FrameData { bytes, changes, .. } = &mut *self.data;
        PageMut::new(bytes, changes)
    }

    /// Notes that the log record at `lsn` has been applied to this page.
    pub(crate) fn changed(&mut self, lsn: Lsn) {
        self.changed_since(lsn, lsn);
    }

    /// Notes that the log records behind `first` and up to `last` have been applied to this page.
    pub(crate) fn changed_since(&mut self, first: Lsn, last: Lsn) {
        self.edit().set_lsn(last);
        self.frame.set_dirty(first);
    }
}
