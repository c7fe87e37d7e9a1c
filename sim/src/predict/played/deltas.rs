//! The modification logs of a played run (B⁻-tree §3.2): which segments of each page differ from
//! its image, and what a write-back does about it.
//!
//! A record has a fixed place on its page until the page is laid out again ([`super::bodies`]), so
//! an update of a record that was updated before dirties nothing new: that is what independent draws
//! of segments miss.
//!
//! A page written whole is written whole again until a flush of the device has made that image
//! durable (`engine/src/pages/mod_log/behind.rs`): only then may a log block be over it.

use std::ops::Range;

use treering_engine::ModLog;

use super::blocks::InUse;
use super::bodies::{Bodies, Touched};
use crate::predict::mod_log::most_segments;

/// Marks a page that was never written.
const NEVER: u64 = u64::MAX;

/// What a write-back writes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// All of it, with this in it.
    Whole(InUse),
    /// Its log block.
    Delta(Marked),
}

/// The segments in a log block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marked {
    /// Those with the header or slots.
    pub(super) slots: usize,
    /// Those with records that were laid there.
    pub(super) laid: usize,
    /// The others, which values were written into.
    pub(super) heap: usize,
}

/// Segments that differ from the images of their pages.
#[derive(Debug)]
struct Dirty {
    segment: usize,
    segments: usize,
    /// Words per page.
    words: usize,
    bits: Vec<u64>,
    /// Those into which whole records were laid.
    laid: Vec<u64>,
}

impl Marked {
    fn count(&self) -> usize {
        self.slots + self.laid + self.heap
    }
}

impl Dirty {
    fn words_of(&self, page: u32) -> Range<usize> {
        let from = page as usize * self.words;
        from..from + self.words
    }

    fn clear(&mut self, page: u32) {
        let words = self.words_of(page);
        self.bits[words.clone()].fill(0);
        self.laid[words].fill(0);
    }

    fn mark(&mut self, page: u32, range: &Range<usize>, is_laid: bool) {
        if range.is_empty() {
            return;
        }
        let last = ((range.end - 1) / self.segment).min(self.segments - 1);
        for segment in range.start / self.segment..=last {
            let (word, bit) = (
                page as usize * self.words + segment / 64,
                1 << (segment % 64),
            );
            self.bits[word] |= bit;
            self.laid[word] |= if is_laid { bit } else { 0 };
        }
    }

    /// The segments that begin before `slots_end`, and the others.
    fn marked(&self, page: u32, slots_end: usize) -> Marked {
        let slots = slots_end.div_ceil(self.segment);
        let mut marked = Marked::default();
        for (i, at) in self.words_of(page).enumerate() {
            let (word, laid) = (self.bits[at], self.laid[at]);
            let all = word.count_ones() as usize;
            let before = slots.saturating_sub(i * 64).min(64);
            let mask = if before == 64 {
                u64::MAX
            } else {
                (1 << before) - 1
            };
            let low = (word & mask).count_ones() as usize;
            let laid = (laid & !mask).count_ones() as usize;
            marked.slots += low;
            marked.laid += laid;
            marked.heap += all - low - laid;
        }
        marked
    }
}

/// The segments of one page.
struct OfPage<'d> {
    dirty: &'d mut Dirty,
    page: u32,
}

impl Touched for OfPage<'_> {
    #[inline]
    fn touch(&mut self, range: Range<usize>) {
        self.dirty.mark(self.page, &range, false);
    }

    #[inline]
    fn lay(&mut self, range: Range<usize>) {
        self.dirty.mark(self.page, &range, true);
    }
}

/// The state of all pages.
pub(super) struct Deltas<'a> {
    bodies: Bodies<'a>,
    rule: Option<Rule>,
    dirty: Dirty,
    /// When each page was last written whole, in flushes of the device.
    written: Vec<u64>,
    /// Segments in each page's log block.
    held: Vec<u16>,
    flushes: u64,
}

/// When a log block is written.
#[derive(Clone, Copy, Debug)]
struct Rule {
    most: usize,
    /// Whether pages written whole are flushed on the way.
    flushes_before: bool,
}

impl<'a> Deltas<'a> {
    /// `flushes_before` says that a batch of whole pages flushes the device before the images are
    /// at their places. Without a rule, pages are always written whole.
    pub(super) fn new(
        rule: Option<&ModLog>,
        page_size: usize,
        bodies: Bodies<'a>,
        (pages, flushes_before): (usize, bool),
    ) -> Deltas<'a> {
        let segment = rule.map_or(page_size, |rule| rule.segment as usize);
        let segments = page_size / segment;
        let words = match rule {
            Some(_) => segments.div_ceil(64),
            None => 1,
        };
        Deltas {
            bodies,
            rule: rule.map(|rule| Rule {
                most: most_segments(rule, page_size),
                flushes_before,
            }),
            dirty: Dirty {
                segment,
                segments,
                words,
                bits: vec![0; words * pages],
                laid: vec![0; words * pages],
            },
            written: vec![NEVER; pages],
            held: vec![0; pages],
            flushes: 0,
        }
    }

    /// A record of the page is put.
    pub(super) fn put(&mut self, page: u32, key: u32, value: usize) {
        let dirty = &mut self.dirty;
        self.bodies
            .put(page, key, value, &mut OfPage { dirty, page });
    }

    /// A record of the page is deleted.
    pub(super) fn delete(&mut self, page: u32, key: u32) {
        let dirty = &mut self.dirty;
        self.bodies.delete(page, key, &mut OfPage { dirty, page });
    }

    /// A scan reads the page.
    pub(super) fn scan(&mut self, page: u32) {
        self.bodies.scan(page);
    }

    /// The page is read from the device.
    pub(super) fn load(&mut self, page: u32) {
        self.bodies.load(page);
    }

    /// A page is split; `right` is new.
    pub(super) fn split(&mut self, left: u32, right: u32) {
        let dirty = &mut self.dirty;
        let mut touched = OfPage { dirty, page: left };
        self.bodies.split(left, right, &mut touched);
    }

    /// A page absorbs its right neighbour.
    pub(super) fn merge(&mut self, left: u32, right: u32) {
        let dirty = &mut self.dirty;
        let mut touched = OfPage { dirty, page: left };
        self.bodies.merge(left, right, &mut touched);
        self.dirty.clear(right);
        self.written[right as usize] = NEVER;
        self.held[right as usize] = 0;
    }

    /// The device is flushed.
    pub(super) fn flushed(&mut self) {
        self.flushes += 1;
    }

    /// A batch of pages is written.
    pub(super) fn write(&mut self, pages: impl Iterator<Item = u32> + Clone) -> Vec<Written> {
        for page in pages.clone() {
            let dirty = &mut self.dirty;
            self.bodies.write(page, &mut OfPage { dirty, page });
        }
        let all: Vec<Written> = pages.clone().map(|page| self.plan(page)).collect();
        let whole = |written: &Written| matches!(written, Written::Whole(_));
        if self.rule.is_some_and(|rule| rule.flushes_before) && all.iter().any(whole) {
            self.flushes += 1;
        }
        for (page, written) in pages.zip(&all) {
            self.held[page as usize] = match written {
                Written::Delta(marked) => marked.count() as u16,
                Written::Whole(_) => {
                    self.dirty.clear(page);
                    self.written[page as usize] = self.flushes;
                    0
                }
            };
        }
        all
    }

    fn plan(&self, page: u32) -> Written {
        let (used, slots_end) = self.bodies.used(page);
        let is_base = |rule: &Rule| {
            let written = self.written[page as usize];
            let marked = self.dirty.marked(page, slots_end);
            let few = marked.count() <= rule.most;
            // `NEVER` is not below any number of flushes.
            (few && written < self.flushes).then_some(marked)
        };
        match self.rule.as_ref().and_then(is_base) {
            Some(marked) => Written::Delta(marked),
            None => Written::Whole(used),
        }
    }

    /// Mean number of segments in a page's log block.
    pub(super) fn held(&self) -> f64 {
        let pages = self.written.iter().filter(|at| **at != NEVER).count();
        let held: f64 = self.held.iter().map(|held| f64::from(*held)).sum();
        held / pages.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use treering_engine::ResetRule;
    use treering_engine::node::{LayoutChoice, PageLayout};
    use treering_traces::generate::{GenParams, Workload as Kind, build};

    use super::*;
    use crate::predict::leaf::LeafLevel;
    use crate::predict::workload::{Span, Workload};

    fn is_delta(deltas: &mut Deltas<'_>) -> bool {
        matches!(deltas.write([0].into_iter())[..], [Written::Delta(_)])
    }

    #[test]
    fn a_page_is_written_whole_until_its_image_is_durable_and_when_too_much_differs() {
        let (header, mut source) = build(&GenParams::new(Kind::Zipf, 30)).expect("good parameters");
        let span = Span::after(header.warmup_ops);
        let workload = Workload::analyze(&mut *source, span).expect("a trace");
        let level = LeafLevel::grow(&workload, 8192, LayoutChoice::of(PageLayout::Slotted));
        let bodies = Bodies::new((&workload, &level), 8192, PageLayout::Slotted);
        let rule = ModLog {
            threshold: 1024,
            segment: 128,
            reset: ResetRule::AtThreshold,
        };
        let mut deltas = Deltas::new(Some(&rule), 8192, bodies, (1, false));
        (0..30).for_each(|key| deltas.put(0, key, 100));
        assert!(!is_delta(&mut deltas), "it has no image");
        deltas.put(0, 3, 100);
        assert!(!is_delta(&mut deltas), "its image is not durable");
        deltas.flushed();
        deltas.put(0, 3, 100);
        assert!(is_delta(&mut deltas));
        let held = deltas.held();
        deltas.put(0, 3, 100);
        assert!(is_delta(&mut deltas));
        assert!(
            (deltas.held() - held).abs() < 1e-9,
            "the record has its place"
        );
        (0..30).for_each(|key| deltas.put(0, key, 100));
        assert!(
            !is_delta(&mut deltas),
            "more differs than a log block takes"
        );
        assert!(deltas.held().abs() < 1e-9);
    }
}
