//! Which layouts a tree's leaves have, and what to do with a leaf that refuses a record.
//!
//! A tree lays its leaves out in one way that takes any records and, if it is told to, as dense ones where their records allow it (B-Trees Are Back §3.5). A
//! leaf that must be split otherwise is looked at first:
//!
//! ```text
//!                    full, all keys and values of one length, near each other:  relayout
//!    any records  ----------------------------------------------------------------------->  dense
//!       |   ^                                                                             |  |
//!       |   +---- a record without a place, and with it all would fit: relayout ----------+  |
//!       v                                                                                    v
//!   split: where most can become dense, if that is half or more,           split: behind the last place, if the record belongs there,
//!   else at the middle                                                            else at the middle
//! ```
//!
//! - *Partition detection*: with ascending numbers in several ranges at once, a page at the end of one has the beginning of the next. Split at the end of the places that
//!   it would have as a fully dense one, it becomes that; split at the middle, one of its halves would hold both again.
//! - *Dense split*: no record moves. The page ends where its places end, and the new page behind it takes any records; when that one is full it may become dense itself.
//!   (The paper makes it dense at once if the record is not far away. It would be full of the same records in the end.)
//! - A fully dense page with hardly any records (three quarters unused) is laid out as before instead of split: else a few records far from each other could have a page each.
//!
//! What is decided here follows from the page and the record alone, but a tree logs it: redo must not depend on what the tree was told.

use super::change::ChangeMap;
use super::edit::PageMut;
use super::envelope::common_prefix;
use super::leaves::fully_dense::FullyDense;
use super::limit::Refused;
use super::places::places;
use super::split::SplitPlan;
use super::view::PageRef;
use crate::options::{LayoutChoice, PageLayout};

impl LayoutChoice {
    /// What to do with a page that has refused a record for want of room or place; `None` only on damage.
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
            plan.right = page.suited_layout();
        }
        Some(Remedy::Split(plan))
    }

    /// As [`LayoutChoice::remedy`], for whoever counts in bytes what is yet to come to a page (`bf`) and may find too few where a put would succeed. A page that has become dense
    /// for that must help: it takes the record, or it is split next. Else it would be laid out as before, for such a page has room for the record, and so on for ever.
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
            // There is a place for each key between the fences.
            _ => None,
        };
        let record = Some((key, value_len));
        match beyond.filter(|first| key >= &first[..]) {
            Some(separator) => {
                if page.is_three_quarters_free() && can_be(page, self.general(), record) {
                    return Some(Remedy::Relayout(self.general()));
                }
                Some(Remedy::Split(SplitPlan {
                    separator,
                    at: page.count(),
                    right: self.general(),
                }))
            }
            None if can_be(page, self.general(), record) => Some(Remedy::Relayout(self.general())),
            None => page.choose_separator().map(Remedy::Split),
        }
    }
}

/// What to do with a page that has refused a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Lay it out in this way, which will succeed, and try again.
    Relayout(PageLayout),
    /// Split it so, and try again.
    Split(SplitPlan),
}

/// Whether a record is like the first one of a page, as far as the dense layout cares.
fn resembles(page: &PageRef<'_>, key: &[u8], value_len: usize, dense: PageLayout) -> bool {
    let Some((suffix, value)) = page.iter().next() else {
        return false;
    };
    page.prefix().len() + suffix.len() == key.len()
        && (dense == PageLayout::SemiDense || value.len() == value_len)
}

impl PageRef<'_> {
    /// Whether [`PageMut::relayout`] would succeed.
    #[must_use]
    pub fn can_be(&self, layout: PageLayout) -> bool {
        can_be(self, layout, None)
    }
}

/// Whether the page can be laid out so, and then take this record.
fn can_be(page: &PageRef<'_>, layout: PageLayout, record: Option<(&[u8], usize)>) -> bool {
    let (mut copy, mut changes) = (page.bytes().to_vec(), ChangeMap::new());
    let mut copy = PageMut::new(&mut copy, &mut changes);
    if copy.relayout(layout).is_err() {
        return false;
    }
    record
        .is_none_or(|(key, value_len)| copy.put(key, &vec![0; value_len]) != Err(Refused::NoSpace))
}

/// Whether a page's first key and that of record `index` are too far apart for one dense page, whatever its fences. Most are, and then no copy is made to
/// find out.
fn are_apart(page: &PageRef<'_>, dense: PageLayout, index: usize) -> bool {
    let (first, other) = (page.suffix(0), page.suffix(index));
    let places = match dense {
        // A bit and a value each.
        PageLayout::FullyDense => 8 * page.page_size() / (8 * page.value(0).len() + 1),
        // An offset each.
        _ => page.page_size() / 2,
    };
    let Some(fixed) = (first.len() == other.len()).then(|| first.len().saturating_sub(8)) else {
        return true;
    };
    let number = |key: &[u8]| (key[fixed..].iter()).fold(0, |n, &byte| n << 8 | u64::from(byte));
    first[..fixed] != other[..fixed]
        || number(&other).saturating_sub(number(&first)) >= places as u64
}

/// A split of which the left side is as many records as a fully dense page could take, if these are half of them or more and not all.
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
    // A page of the first record alone says which keys have a place.
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
            // Where the places end, so that the left page has all of them; if the next key is in between, before it. Both sides fit if the separator
            // is no longer than the first right key ([`SplitPlan`]).
            let end = (places.end()).filter(|end| *end <= &key[..] && end.len() <= key.len());
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
