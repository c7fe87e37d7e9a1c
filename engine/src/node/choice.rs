//! Chooses the layouts of a tree's leaves, and decides what to do with a leaf that refuses a
//! record.
//!
//! A tree has one general layout for its leaves, which takes any record. If asked to, it also uses
//! a dense layout where the records allow it (B-Trees Are Back §3.5). Before a leaf is split, the
//! tree checks whether another layout would do:
//!
//! ```text
//!               full, all keys and values of one length, keys close together: relayout
//! any records  ----------------------------------------------------------------------->  dense
//!    |   ^                                                                              |  |
//!    |   +---- a record without a place, but all records would fit: relayout -----------+  |
//!    v                                                                                     v
//! split: before the first record that cannot              split: behind the last place, if the
//! become dense, if half or more can,                      record belongs there,
//! else at the middle                                      else at the middle, or the first
//!                                                         record behind it where both sides fit
//! ```
//!
//! - *Partition detection*: when ascending numbers are inserted in several ranges at once, a page
//!   at the end of one range also holds the beginning of the next. If such a page is split where
//!   its places as a fully dense page would end, its left half can become fully dense. A split at
//!   the middle would leave one half with records of both ranges again.
//! - *Dense split*: no record moves. The page ends where its places end, and the new page behind it
//!   takes any records; once full, that page may become dense itself. (The paper makes it dense at
//!   once if the record is close. The result would be a page full of the same records.)
//! - A fully dense page that is three quarters empty is converted back to the general layout
//!   instead of being split. Otherwise a few records far from each other could each occupy a page.
//!
//! Each decision depends on the page and the record alone. A tree logs it nevertheless, because
//! redo must not depend on the tree's options.

use super::change::ChangeMap;
use super::edit::PageMut;
use super::envelope::common_prefix;
use super::leaves::fully_dense::FullyDense;
use super::limit::Refused;
use super::places::places;
use super::split::SplitPlan;
use super::view::PageRef;
use crate::mutation;
use crate::options::{LayoutChoice, PageLayout};

impl LayoutChoice {
    /// Decides what to do with a page that has refused a record for want of room or of a place.
    /// Returns `None` only on damage.
    #[must_use]
    pub fn remedy(self, page: &PageRef<'_>, key: &[u8], value_len: usize) -> Option<Remedy> {
        if page.layout().is_dense() {
            return self.remedy_for_dense(page, key, value_len);
        }
        if let Some(dense) = self.dense() {
            let may = page.layout() != PageLayout::Fingerprint || !self.is_adaptive();
            if may
                && resembles(page, key, value_len, dense)
                && page
                    .count()
                    .checked_sub(1)
                    .is_some_and(|last| !are_apart(page, dense, last))
                && can_be(page, dense, None)
            {
                return Some(Remedy::Relayout(dense));
            }
            if dense == PageLayout::FullyDense
                && let Some(plan) = partition(page)
            {
                return Some(Remedy::Split(plan));
            }
        }
        let mut plan = page.choose_separator()?;
        if self.is_adaptive() {
            // Slots differ in length between layouts. The separator may be left of the middle, and
            // then the right side may have nearly all bytes of the page.
            let right = page.suited_layout();
            let suited = SplitPlan {
                right,
                ..plan.clone()
            };
            let fits = right == plan.right || page.can_be_split(&suited);
            if fits || mutation::on("adaptive-split-unfit") {
                plan = suited;
            }
        }
        Some(Remedy::Split(plan))
    }

    /// As [`LayoutChoice::remedy`], for a caller (`bf`) that counts in bytes what is still to come
    /// to a page, and so may find too few bytes where a put would succeed. A page that was made
    /// dense for such a caller must either take the record or be split next. Otherwise it would be
    /// converted back, since it has room for the record, and so on forever.
    #[must_use]
    pub fn remedy_in_bytes(
        self,
        page: &PageRef<'_>,
        key: &[u8],
        value_len: usize,
    ) -> Option<Remedy> {
        let remedy = self.remedy(page, key, value_len)?;
        let Remedy::Relayout(dense) = remedy else {
            return Some(remedy);
        };
        if page.layout().is_dense() {
            return Some(remedy);
        }
        let (mut copy, mut changes) = (page.bytes().to_vec(), ChangeMap::new());
        PageMut::new(&mut copy, &mut changes).relayout(dense).ok()?;
        let copy = PageRef::new(&copy);
        let needs = (key.len() + value_len) as isize + isize::from(copy.bytes_beside());
        let takes = copy.has_place(key, value_len) && needs <= copy.room_bytes() as isize;
        match takes || matches!(self.remedy(&copy, key, value_len), Some(Remedy::Split(_))) {
            true => Some(remedy),
            false => page.choose_separator().map(Remedy::Split),
        }
    }

    fn remedy_for_dense(self, page: &PageRef<'_>, key: &[u8], value_len: usize) -> Option<Remedy> {
        let beyond = match page.layout() {
            PageLayout::FullyDense => page.dense::<FullyDense>().beyond(),
            // A semi-dense page has a place for each key between its fences.
            _ => None,
        };
        let record = Some((key, value_len));
        match beyond.filter(|first| key >= &first[..]) {
            Some(separator) => {
                let may = page.is_three_quarters_free() && !mutation::on("dense-never-back");
                if may && can_be(page, self.general(), record) {
                    return Some(Remedy::Relayout(self.general()));
                }
                Some(Remedy::Split(SplitPlan {
                    separator,
                    at: page.count(),
                    right: self.general(),
                }))
            }
            None if can_be(page, self.general(), record) => Some(Remedy::Relayout(self.general())),
            None if mutation::on("dense-split-unfit") => page.choose_separator().map(Remedy::Split),
            None => page.split_dense(self.general()).map(Remedy::Split),
        }
    }
}

/// What to do with a page that has refused a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Convert the page to this layout, which will succeed, and try again.
    Relayout(PageLayout),
    /// Split the page at this point, and try again.
    Split(SplitPlan),
}

/// Returns whether a record has the same lengths as the page's first one, as far as the dense
/// layout requires.
fn resembles(page: &PageRef<'_>, key: &[u8], value_len: usize, dense: PageLayout) -> bool {
    let Some((suffix, value)) = page.iter().next() else {
        return false;
    };
    page.prefix().len() + suffix.len() == key.len()
        && (dense == PageLayout::SemiDense || value.len() == value_len)
}

impl PageRef<'_> {
    /// Returns whether [`PageMut::relayout`] would succeed.
    #[must_use]
    pub fn can_be(&self, layout: PageLayout) -> bool {
        can_be(self, layout, None)
    }
}

/// Returns whether the page can be converted to this layout and then take this record.
fn can_be(page: &PageRef<'_>, layout: PageLayout, record: Option<(&[u8], usize)>) -> bool {
    let (mut copy, mut changes) = (page.bytes().to_vec(), ChangeMap::new());
    let mut copy = PageMut::new(&mut copy, &mut changes);
    if copy.relayout(layout).is_err() {
        return false;
    }
    record
        .is_none_or(|(key, value_len)| copy.put(key, &vec![0; value_len]) != Err(Refused::NoSpace))
}

/// Returns whether the keys of the first record and of record `index` are too far apart for one
/// dense page, whatever its fences. This is true of most pages, and saves the copy that a full test
/// needs.
fn are_apart(page: &PageRef<'_>, dense: PageLayout, index: usize) -> bool {
    let (first, other) = (page.suffix(0), page.suffix(index));
    let places = match dense {
        // One bit and one value for each place.
        PageLayout::FullyDense => 8 * page.page_size() / (8 * page.value(0).len() + 1),
        // One offset for each place.
        _ => page.page_size() / 2,
    };
    let Some(fixed) = (first.len() == other.len()).then(|| first.len().saturating_sub(8)) else {
        return true;
    };
    let number = |key: &[u8]| (key[fixed..].iter()).fold(0, |n, &byte| n << 8 | u64::from(byte));
    first[..fixed] != other[..fixed]
        || number(&other).saturating_sub(number(&first)) >= places as u64
}

/// Plans a split whose left side can become a fully dense page. Returns `None` if that would be
/// fewer than half of the records, or all of them.
fn partition(page: &PageRef<'_>) -> Option<SplitPlan> {
    // The record in the middle must have a place.
    let middle = (page.count() / 2).checked_sub(1)?;
    if are_apart(page, PageLayout::FullyDense, middle) {
        return None;
    }
    let (lower, prefix) = (page.lower_fence(), page.prefix());
    let mut records = page.iter();
    let (suffix, value) = records.next()?;
    let mut last = [prefix, &suffix].concat();
    // A page that holds the first record alone tells which keys would have a place.
    let upper = [&last[..], &[0]].concat();
    let fences = (lower, Some(&upper[..]));
    let (full, size) = (PageLayout::FullyDense, page.page_size());
    let places = places(full, size, fences, last.len(), value.len()).ok()?;
    if !places.has(&last) {
        return None;
    }
    for (at, (suffix, next)) in (1..).zip(records) {
        let key = [prefix, &suffix].concat();
        if next.len() != value.len() || !places.has(&key) {
            // Split where the places end, so that the left page has all of them. If the next key
            // lies before that point, split before the next key. Both sides fit if the separator is
            // no longer than the first key on the right ([`SplitPlan`]).
            let end = (places.end()).filter(|end| *end <= &key[..] && end.len() <= key.len());
            let end = end.filter(|_| !mutation::on("partition-leaves-places"));
            let separator = match end {
                Some(end) => end.to_vec(),
                None => key.get(..=common_prefix(&last, &key))?.to_vec(),
            };
            let plan = SplitPlan {
                separator,
                at,
                right: page.layout(),
            };
            return (at >= page.count() / 2).then_some(plan);
        }
        last = key;
    }
    None
}
