//! Adaptive leaves: choosing between hints and fingerprints by a leaf's keys and its use (B-Trees
//! Are Back §5.1).
//!
//! A leaf with hints finds a key by its head; a leaf with fingerprints finds it by one byte of its
//! hash. Hints are better where heads tell the keys apart or where scans are common. Fingerprints
//! are better everywhere else.
//!
//! ```text
//!                good heads, or scans common (counter >= 2 at splits and merges, = 3 at once)
//! fingerprints  ----------------------------------------------------->  hints  <--->  fully dense
//!               <-----------------------------------------------------               if possible
//!                bad heads, and scans rare (counter < 2 at splits and merges, = 0 at once)
//! ```
//!
//! - **Key adaption** happens at splits and merges. Heads are *good* if at most one record in
//!   sixteen has the same head as the record before it.
//! - **Operation adaption** uses a counter from 0 to 3, one byte in the page. 15 % of the scans
//!   increment it and 5 % of the point operations decrement it, so scans count as common once there
//!   is one scan for every three point operations. The value 255 means that heads are good and that
//!   nothing is counted.
//!
//! The counter is a guess, not data: it is not logged, and changing it does not make the page
//! dirty. New pages start with 0, which means "scans are rare".

use super::edit::PageMut;
use super::format::{LeafFormat, first_bytes};
use super::leaves::hints::Hints;
use super::leaves::slotted::{Slotted, header};
use super::suffix::Suffix;
use super::view::PageRef;
use crate::options::PageLayout;

/// Heads are good if at most one record in this many has the same head as its predecessor.
pub const RECORDS_A_COLLISION: usize = 16;
/// The greatest count: scans are common.
const MOST: u8 = 3;
/// At splits and merges, scans count as common from this count on.
const COMMON: u8 = 2;
/// The counter's value where heads are good and nothing is counted.
const OFF: u8 = 255;

/// The percentage of scans that are counted.
pub const SCANS_PERCENT: u64 = 15;
/// The percentage of point operations that are counted.
pub const POINTS_PERCENT: u64 = 5;

/// A way in which a leaf is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A get or put.
    Point,
    /// A scan that visits the leaf.
    Scan,
}

impl Use {
    /// Returns whether use number `number` is counted. The choice is pseudo-random, and the same in
    /// every run.
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

/// Returns 32 pseudo-random bits that depend on `number` alone.
#[inline]
pub(crate) fn scattered(number: u64) -> u64 {
    // Multiples of the golden ratio are spread evenly; the multiplication then scatters the bits.
    let step = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (step ^ (step >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}

/// Returns whether `byte` is a valid value of the counter.
pub(super) fn is_counter(byte: u8) -> bool {
    byte <= MOST || byte == OFF
}

/// Returns whether pages of this layout have the counter.
fn counts(layout: PageLayout) -> bool {
    matches!(layout, PageLayout::Hints | PageLayout::Fingerprint)
}

/// Returns whether the heads of `records` records, in key order, are good. Bad heads are recognised
/// after the first few.
fn tell_apart(heads: impl Iterator<Item = u32> + Clone, records: usize) -> bool {
    let pairs = heads.clone().zip(heads.skip(1));
    let mut same = pairs.filter(|(a, b)| a == b);
    same.nth(records / RECORDS_A_COLLISION).is_none()
}

fn heads_in<F: LeafFormat>(page: PageRef<'_>) -> impl Iterator<Item = u32> + Clone {
    page.body::<F>().slots().iter().map(F::head_of)
}

impl PageRef<'_> {
    /// Returns whether the first four bytes behind the prefix tell the page's keys apart.
    #[must_use]
    pub fn has_good_heads(&self) -> bool {
        let count = self.count();
        match self.layout() {
            // The slots store these heads.
            PageLayout::Hints => tell_apart(heads_in::<Hints>(*self), count),
            PageLayout::Slotted => tell_apart(heads_in::<Slotted>(*self), count),
            _ => {
                let head = |(suffix, _): (Suffix<'_>, _)| u32::from_be_bytes(first_bytes(&suffix));
                tell_apart(self.iter().map(head), count)
            }
        }
    }

    /// The counter of scans: from 0 (rare) to 3 (common). 255 if scans are not counted, either
    /// because heads are good or because the layout has no counter.
    #[must_use]
    pub fn scans(&self) -> u8 {
        match counts(self.layout()) {
            true => self.bytes()[header::SCANS],
            false => OFF,
        }
    }

    /// The layout, hints or fingerprints, that suits the keys and the use of this page, or of the
    /// pages that it is split into.
    #[must_use]
    pub fn suited_layout(&self) -> PageLayout {
        let scans = self.scans();
        // 255 in a layout with a counter means that heads were good, so scans were not counted.
        let rare = scans < COMMON || scans == OFF && counts(self.layout());
        match rare && !self.has_good_heads() {
            true => PageLayout::Fingerprint,
            false => PageLayout::Hints,
        }
    }
}

impl PageRef<'_> {
    /// Key adaption: the layout that this page should get after a split or merge. `None` if it has
    /// that layout already or if its records would not fit.
    #[must_use]
    pub fn better_layout(&self) -> Option<PageLayout> {
        let suited = self.suited_layout();
        let other = !self.layout().is_dense() && suited != self.layout();
        (other && self.can_be(suited)).then_some(suited)
    }
}

impl PageMut<'_> {
    /// Starts or stops counting the uses of this page, depending on its heads. Call it after a
    /// split or merge. It needs no log record, and the page need not be written.
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

    /// Counts one of the uses that [`Use::counts`] selects. Returns a layout if the page should be
    /// converted to it at once.
    pub fn count_use(&mut self, used: Use) -> Option<PageLayout> {
        let page = self.view();
        let (layout, before) = (page.layout(), page.scans());
        let now = match used {
            // `OFF` is greater than `MOST`, so it is left alone.
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
            // The heads were never judged.
            self.set_scans(OFF);
            return (layout == PageLayout::Fingerprint).then_some(PageLayout::Hints);
        }
        if now != before {
            self.set_scans(now);
        }
        differs.then_some(wanted)
    }

    /// Restores the counter that the page had before it changed its layout.
    pub(super) fn keep_scans(&mut self, scans: u8) {
        if counts(self.view().layout()) && is_counter(scans) {
            self.set_scans(scans);
        }
    }

    fn set_scans(&mut self, scans: u8) {
        self.set(header::SCANS, [scans]);
    }
}
