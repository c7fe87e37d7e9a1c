//! The map from page ids to frames: one word for each page.

use crate::pages::SlotMap;
use crate::sparse::Sparse;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::types::PageId;

pub(super) const GONE: u32 = 0;
pub(super) const ABSENT: u32 = 1;
pub(super) const FIRST_FRAME: u32 = 2;

/// The map from page ids to frames, allocated as ids are used.
pub(super) struct PageMap {
    /// A word that has not been made counts as `GONE`.
    words: Sparse<AtomicU32>,
    /// Until this is set, no page is gone: any page that the log names may be on the device.
    recovered: AtomicBool,
}

impl PageMap {
    /// Makes a map for page ids below `limit`. All pages are unknown: if they exist, they are on
    /// the device.
    pub(super) fn new(limit: u64) -> PageMap {
        PageMap {
            words: Sparse::new(limit),
            recovered: AtomicBool::new(false),
        }
    }

    /// The word of `page`; `None` if the id is out of range.
    #[inline]
    pub(super) fn entry(&self, page: PageId) -> Option<&AtomicU32> {
        let word = self.words.make(page.0)?;
        if !self.recovered.load(Ordering::Relaxed) {
            let _ = word.compare_exchange(GONE, ABSENT, Ordering::AcqRel, Ordering::Acquire);
        }
        Some(word)
    }

    /// The word of a page that is in a frame or being loaded. The lookup that led to this made the
    /// word.
    pub(super) fn of_resident(&self, page: PageId) -> &AtomicU32 {
        self.entry(page).expect("a page in a frame has a word")
    }

    /// After recovery: the pages of `live` are on the device or in frames; all others are gone.
    pub(super) fn set_live(&self, live: &SlotMap) {
        self.recovered.store(true, Ordering::Release);
        for (page, word) in self.words.iter() {
            if !live.contains(page) {
                word.store(GONE, Ordering::Release);
            }
        }
        for word in live.iter_taken().filter_map(|page| self.words.make(page)) {
            let _ = word.compare_exchange(GONE, ABSENT, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Bytes of memory that the map takes.
    pub(super) fn bytes(&self) -> u64 {
        self.words.bytes()
    }
}
