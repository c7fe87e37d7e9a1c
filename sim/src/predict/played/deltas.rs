//! The modification logs of a played run (B⁻-tree §3.2): which segments of each page differ from
//! its image, and what a write-back does about it.
//!
//! A record has a fixed place on its page until the page is rewritten, so an update of a record
//! that was updated before dirties nothing new: that is what independent draws of segments miss.
//! Which segments records lie in is not played byte by byte. A record's first segment is drawn, by
//! hash, from those where a sample of pages has records, and its number of segments from the same
//! sample ([`crate::predict::content`]).

use treering_engine::{BLOCK_SIZE, ModLog};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::predict::mod_log::most_segments;

/// Which segments updates touch, from a sample of pages.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Places {
    /// Segments in which records lie: from this one on, so many.
    pub(super) first: usize,
    pub(super) count: usize,
    /// Cumulative shares of updates that touch at most 1, 2, … segments.
    pub(super) lengths: Vec<f64>,
}

/// The state of all pages.
#[derive(Debug)]
pub(super) struct Deltas {
    segments: usize,
    most: usize,
    places: Places,
    /// Words per page.
    words: usize,
    /// Segments that differ from the image.
    dirty: Vec<u64>,
    /// Whether the page has no image that a log block could be over.
    whole: Vec<bool>,
}

impl Deltas {
    pub(super) fn new(rule: &ModLog, page_size: usize, places: Places, pages: usize) -> Deltas {
        let segments = page_size / rule.segment as usize;
        let words = segments.div_ceil(64);
        debug_assert!(page_size >= BLOCK_SIZE);
        Deltas {
            segments,
            most: most_segments(rule, page_size),
            places,
            words,
            dirty: vec![0; words * pages],
            whole: vec![true; pages],
        }
    }

    fn mark(&mut self, page: u32, segment: usize) {
        let segment = segment.min(self.segments - 1);
        self.dirty[page as usize * self.words + segment / 64] |= 1 << (segment % 64);
    }

    fn marked(&self, page: u32) -> usize {
        let from = page as usize * self.words;
        let words = &self.dirty[from..from + self.words];
        words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// A record of the page is put; `new` if it had none.
    pub(super) fn put(&mut self, page: u32, key: u32, _value: u32, _new: bool, _records: u32) {
        self.touch(page, key);
    }

    /// A record of the page is deleted.
    pub(super) fn delete(&mut self, page: u32, key: u32) {
        self.touch(page, key);
    }

    fn touch(&mut self, page: u32, key: u32) {
        let hash = xxh3_64_with_seed(&key.to_le_bytes(), 0);
        let first = self.places.first + ((hash >> 32) * self.places.count as u64 >> 32) as usize;
        let share = (hash & u64::from(u32::MAX)) as f64 / f64::from(u32::MAX);
        let len = 1 + self.places.lengths.partition_point(|upto| *upto < share);
        (first..first + len).for_each(|segment| self.mark(page, segment));
    }

    /// All of the page changes.
    pub(super) fn rewrite(&mut self, page: u32) {
        let from = page as usize * self.words;
        self.dirty[from..from + self.words].fill(u64::MAX);
    }

    /// The page is written: returns the number of segments that go to its log block, or `None` if
    /// the page is written whole.
    pub(super) fn write(&mut self, page: u32) -> Option<u32> {
        let marked = self.marked(page);
        let whole = std::mem::replace(&mut self.whole[page as usize], false);
        if !whole && marked <= self.most {
            return Some(marked as u32);
        }
        let from = page as usize * self.words;
        self.dirty[from..from + self.words].fill(0);
        None
    }

    /// Mean number of segments that differ from a page's image.
    pub(super) fn held(&self) -> f64 {
        let pages = self.whole.iter().filter(|whole| !**whole).count();
        let marked: u32 = self.dirty.iter().map(|word| word.count_ones()).sum();
        f64::from(marked) / pages.max(1) as f64
    }
}
