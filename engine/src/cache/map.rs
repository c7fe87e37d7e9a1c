//! Where each page is: the word of the cache's map that belongs to its name.

use crate::pages::SlotMap;
use crate::sparse::Sparse;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::types::PageId;

pub(super) const GONE: u32 = 0;
pub(super) const ABSENT: u32 = 1;
pub(super) const FIRST_FRAME: u32 = 2;

/// The map, made as names are used.
pub(super) struct PageMap {
    /// A word that nobody has made is `GONE`.
    words: Sparse<AtomicU32>,
    /// Until then no page is gone: whatever the log names may be on the device.
    recovered: AtomicBool,
}

impl PageMap {
    /// Pages named below `limit`, all of them unknown: on the device, if anywhere.
    pub(super) fn new(limit: u64) -> PageMap {
        PageMap {
            words: Sparse::new(limit),
            recovered: AtomicBool::new(false),
        }
    }

    /// The word of `page`; `None` if there can be no such page.
    #[inline]
    pub(super) fn entry(&self, page: PageId) -> Option<&AtomicU32> {
        let word = self.words.make(page.0)?;
        if !self.recovered.load(Ordering::Relaxed) {
            let _ = word.compare_exchange(GONE, ABSENT, Ordering::AcqRel, Ordering::Acquire);
        }
        Some(word)
    }

    /// The word of a page that is in a frame, or on its way there: it was made when that was looked
    /// for.
    pub(super) fn of_resident(&self, page: PageId) -> &AtomicU32 {
        self.entry(page).expect("a page in a frame has a word")
    }

    /// After recovery: the pages of `live` are on the device or in frames, all others are gone.
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

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.words.bytes()
    }
}
