//! One frame of the cache: a page's bytes behind a latch, and its flags.

use super::contention::{Contention, Latched};
use crate::device::AlignedBuf;
use crate::held::{Held, Kind};
use crate::node::{ChangeMap, PageMut, PageRef};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::types::{Lsn, PageId};

/// What the latch protects.
pub(crate) struct FrameData {
    /// The page that is here; `None` in a free frame.
    pub(crate) page: Option<PageId>,
    pub(crate) bytes: AlignedBuf,
    /// What changed since the page was last written.
    pub(crate) changes: ChangeMap,
    /// What writers met here.
    contention: Contention,
}

impl FrameData {
    /// Another page is, or is about to be, here.
    pub(super) fn hold(&mut self, page: PageId) {
        self.page = Some(page);
        self.changes.clear();
        self.contention.clear();
    }
}

/// A frame. The flags are set under the latch and read without it by the sweeping hand, which looks again once it holds the
/// latch.
pub(crate) struct Frame {
    pub(crate) latch: RwLock<FrameData>,
    referenced: AtomicBool,
    /// Loaded ahead of need: nobody has asked for it yet.
    ahead: AtomicBool,
    /// LSN of the first change since the page was last written; [`CLEAN`] if there was none.
    rec_lsn: AtomicU64,
}

/// No change: later than all there are.
const CLEAN: u64 = u64::MAX;

impl Frame {
    /// An empty one of so many bytes.
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

    /// Sets the reference bit; a bit that is set already is not written again, to spare the cache line.
    pub(crate) fn set_referenced(&self) {
        if !self.referenced.load(Ordering::Relaxed) {
            self.referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Clears the reference bit and says what it was.
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

    /// Whether this is the first access to a page that was loaded ahead of need.
    pub(crate) fn take_ahead(&self) -> bool {
        self.ahead.load(Ordering::Relaxed) && self.ahead.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.rec_lsn.load(Ordering::Acquire) != CLEAN
    }

    /// LSN of the first change since the page was last written; later than all if there was none.
    pub(crate) fn rec_lsn(&self) -> Lsn {
        Lsn(self.rec_lsn.load(Ordering::Acquire))
    }

    /// The page differs from its image on the device since `lsn`, or for longer if it is dirty
    /// already. Under the exclusive latch, or by write-back, whose write of an older state failed.
    pub(crate) fn set_dirty(&self, lsn: Lsn) {
        // A page that is changed often is dirty mostly: then its cache line is not written.
        if lsn.0 < self.rec_lsn.load(Ordering::Relaxed) {
            self.rec_lsn.fetch_min(lsn.0, Ordering::AcqRel);
        }
    }

    /// Under the exclusive latch, by write-back: its copy of the page will be the device's image.
    pub(crate) fn set_clean(&self) {
        self.rec_lsn.store(CLEAN, Ordering::Release);
    }

    /// Under the exclusive latch: the frame holds another page, or none.
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

    /// Whether somebody was in the way.
    pub(crate) fn latched(&self) -> Latched {
        self.latched
    }

    /// Counts a write of `key`, which was sampled; see [`Contention::sample`].
    pub(crate) fn sample_write(&mut self, key: &[u8], period: u16) -> Option<Vec<u8>> {
        let latched = self.latched;
        self.data.contention.sample(key, latched, period)
    }

    pub(crate) fn view(&self) -> PageRef<'_> {
        PageRef::new(&self.data.bytes)
    }

    /// The page, for changing. Follow up with [`WriteGuard::changed`].
    pub(crate) fn edit(&mut self) -> PageMut<'_> {
        let FrameData { bytes, changes, .. } = &mut *self.data;
        PageMut::new(bytes, changes)
    }

    /// Says that the record at `lsn` has been applied to this page.
    pub(crate) fn changed(&mut self, lsn: Lsn) {
        self.changed_since(lsn, lsn);
    }

    /// Says that records behind `first` and up to the one at `last` have been applied to this page.
    pub(crate) fn changed_since(&mut self, first: Lsn, last: Lsn) {
        self.edit().set_lsn(last);
        self.frame.set_dirty(first);
    }
}
