//! Which of two layouts suits the keys of a leaf and what is done with them (B-Trees Are Back §5.1).
//!
//! Leaves with hints find a key by its head, leaves with fingerprints by a byte of hash. Hints are better where heads tell keys apart and where scans are common; else
//! fingerprints are.
//!
//! ```text
//!                    good heads, or scans common (counter >= 2 at splits and merges, = 3 at once)
//!     fingerprints  ------------------------------------------------------------------------------>  hints  <---> fully dense
//!                   <------------------------------------------------------------------------------                 where it can be
//!                    bad heads, and scans rare (counter < 2 at splits and merges, = 0 at once)
//! ```
//!
//! - **Key adaption**, at splits and merges: heads are *good* if no more than a sixteenth of the records have the head of the one before them.
//! - **Operation adaption**: a byte in the page counts from 0 to 3, up with 15 % of the scans, down with 5 % of the point operations, so that scans are common if there
//!   is one for three of those. 255 says that heads are good, so that nobody counts.
//!
//! The counter is a guess and not data: it is not logged, changing it makes no page dirty, and 0, as new pages have it, is taken for "scans are rare".

use super::edit::PageMut;
use super::format::{LeafFormat, first_bytes};
use super::leaves::hints::Hints;
use super::leaves::slotted::{Slotted, header};
use super::suffix::Suffix;
use super::view::PageRef;
use crate::options::PageLayout;

/// Records for each neighbour of equal head that good heads may have.
pub const RECORDS_A_COLLISION: usize = 16;
/// The greatest count: scans are common.
const MOST: u8 = 3;
/// From this count on scans are common enough at splits and merges.
const COMMON: u8 = 2;
/// Heads are good: nobody counts.
const OFF: u8 = 255;

/// Scans of a hundred that count.
pub const SCANS_PERCENT: u64 = 15;
/// Point operations of a hundred that count.
pub const POINTS_PERCENT: u64 = 5;

/// What is done with a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A get or put.
    Point,
    /// A scan that visits the leaf.
    Scan,
}

impl Use {
    /// Whether the use of this number counts: a matter of chance, the same in every run.
    #[must_use]
    #[inline]
    pub fn counts(self, number: u64) -> bool {
        let percent = match self {
            Use::Point => POINTS_PERCENT,
            Use::Scan => SCANS_PERCENT,
        };
        (scattered(number) * 100) >> 32 < percent
    }
}

/// 32 bits as good as drawn by lot, the same for the same number.
#[inline]
pub(crate) fn scattered(number: u64) -> u64 {
    // The golden ratio's multiples are spread evenly, and the upper half of their square is scattered.
    let step = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (step ^ (step >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}

/// Whether a page may have this counter.
pub(super) fn is_counter(byte: u8) -> bool {
    byte <= MOST || byte == OFF
}

/// Whether pages of this layout count.
fn counts(layout: PageLayout) -> bool {
    matches!(layout, PageLayout::Hints | PageLayout::Fingerprint)
}

/// Whether heads, in the order of their keys, are good for so many records. Bad ones are told by the first few.
fn tell_apart(heads: impl Iterator<Item = u32> + Clone, records: usize) -> bool {
    let pairs = heads.clone().zip(heads.skip(1));
    let mut same = pairs.filter(|(a, b)| a == b);
    same.nth(records / RECORDS_A_COLLISION).is_none()
}

fn heads_in<F: LeafFormat>(page: PageRef<'_>) -> impl Iterator<Item = u32> + Clone {
    page.body::<F>().slots().iter().map(F::head_of)
}

impl PageRef<'_> {
    /// Whether the first four bytes behind the prefix tell the keys of a page apart.
    #[must_use]
    pub fn has_good_heads(&self) -> bool {
        let count = self.count();
        match self.layout() {
            // They are at hand.
            PageLayout::Hints => tell_apart(heads_in::<Hints>(*self), count),
            PageLayout::Slotted => tell_apart(heads_in::<Slotted>(*self), count),
            _ => {
                let head = |(suffix, _): (Suffix<'_>, _)| u32::from_be_bytes(first_bytes(&suffix));
                tell_apart(self.iter().map(head), count)
            }
        }
    }

    /// How common scans are, from 0 to 3; 255 if nobody counts, here or in this layout.
    #[must_use]
    pub fn scans(&self) -> u8 {
        match counts(self.layout()) {
            true => self.bytes()[header::SCANS],
            false => OFF,
        }
    }

    /// The layout that this page, or what it is split into, should have as its keys and uses are: hints or fingerprints.
    #[must_use]
    pub fn suited_layout(&self) -> PageLayout {
        let scans = self.scans();
        // Nobody has counted where heads were good.
        let rare = scans < COMMON || scans == OFF && counts(self.layout());
        match rare && !self.has_good_heads() {
            true => PageLayout::Fingerprint,
            false => PageLayout::Hints,
        }
    }
}

impl PageRef<'_> {
    /// Key adaption, to be asked for after a split or merge: the layout that this page should be given, if that is another one and its records fit.
    #[must_use]
    pub fn better_layout(&self) -> Option<PageLayout> {
        let suited = self.suited_layout();
        let other = !self.layout().is_dense() && suited != self.layout();
        (other && self.can_be(suited)).then_some(suited)
    }
}

impl PageMut<'_> {
    /// Begins to count uses where they matter, or ends it: to be called after a split or merge. No log record is needed, and the page need not be written.
    pub fn judge_heads(&mut self) {
        let page = self.view();
        if !counts(page.layout()) {
            return;
        }
        let to = match (page.has_good_heads(), page.scans()) {
            (true, _) => OFF,
            (false, OFF) => 0,
            (false, scans) => scans,
        };
        self.set_scans(to);
    }

    /// Counts one use, of those that count; says which layout the page should be given at once, if another one.
    pub fn count_use(&mut self, used: Use) -> Option<PageLayout> {
        let page = self.view();
        let (layout, before) = (page.layout(), page.scans());
        let now = match used {
            // Off is greater than all.
            Use::Scan if before < MOST => before + 1,
            Use::Point if (1..=MOST).contains(&before) => before - 1,
            Use::Scan | Use::Point => before,
        };
        let wanted = match (layout, now) {
            (PageLayout::Fingerprint, MOST) => PageLayout::Hints,
            (PageLayout::Hints, 0) => PageLayout::Fingerprint,
            _ => layout,
        };
        let differs = wanted != layout;
        if differs && page.has_good_heads() {
            // It was never judged.
            self.set_scans(OFF);
            return (layout == PageLayout::Fingerprint).then_some(PageLayout::Hints);
        }
        if now != before {
            self.set_scans(now);
        }
        differs.then_some(wanted)
    }

    /// The page had this counter in another layout.
    pub(super) fn keep_scans(&mut self, scans: u8) {
        if counts(self.view().layout()) && is_counter(scans) {
            self.set_scans(scans);
        }
    }

    fn set_scans(&mut self, scans: u8) {
        self.set(header::SCANS, [scans]);
    }
}
