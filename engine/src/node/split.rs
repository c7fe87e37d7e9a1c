//! Changes of the range that a page covers: separator choice, split, merge.

use super::body::Body;
use super::change::ChangeMap;
use super::dense::{Dense, DenseFormat};
use super::dense_image::{self, Empty};
use super::dispatch::by_layout;
use super::edit::PageMut;
use super::envelope::Fences;
use super::envelope::common_prefix;
use super::format::{Format, LeafFormat};
use super::image::Image;
use super::limit::Refused;
use super::view::PageRef;
use crate::mutation;
use crate::options::PageLayout;
use crate::types::PageId;

/// A plan of where to split a page. Made by [`PageRef::choose_separator`].
///
/// *Rule* (B-Trees Are Back §2, "Separator Selection"). The middle is the record boundary at which
/// the bytes on both sides differ least: the median by bytes, which for records of one size is the
/// paper's median by count. Take the `max(count / 16, 2)` keys around the middle and their longest
/// common prefix. The first key that differs from the lowest one in the byte behind that prefix
/// begins the right side. The separator is that key, cut behind that byte: the shortest string with
/// every left key < separator <= every right key.
///
/// *Both sides are non-empty*: the first key of the range stays left, and one of the others begins
/// the right side.
///
/// *Both sides fit the page size* whatever the record sizes. Let `p` be the old prefix length, and
/// `s` and `t` the last left and the first right key. The records that leave a side free at least
/// one slot (of `l` bytes) and one key suffix. Left: the new upper fence is a prefix of `t`, so it
/// is at most `p + |suffix(t)|` long. It replaces an upper fence of at least `p` bytes (`p = 0`
/// without one), and `l + |suffix(t)|` bytes leave: at least `l` bytes are gained. Right: the
/// separator is at most one byte longer than `s`. It replaces a lower fence of at least `p` bytes,
/// and `l + |suffix(s)|` bytes leave: at least `l - 1` are gained. Prefixes only grow, which saves
/// more.
///
/// ```
/// use treering_engine::PageId;
/// use treering_engine::node::{ChangeMap, PageLayout, PageMut, Refused};
///
/// let (mut bytes, mut changes) = (vec![0; 4096], ChangeMap::new());
/// let mut left = PageMut::new(&mut bytes, &mut changes);
/// left.init(PageLayout::Slotted, PageId(1), b"", None)?;
/// for key in ["apple", "fig", "kiwi", "pear"] {
///     left.put(key.as_bytes(), b"fruit")?;
/// }
/// let plan = left.view().choose_separator().expect("more than one record");
/// assert_eq!((&plan.separator[..], plan.at), (&b"k"[..], 2));
///
/// let (mut bytes, mut changes) = (vec![0; 4096], ChangeMap::new());
/// let mut right = PageMut::new(&mut bytes, &mut changes);
/// left.split_into(&mut right, PageId(2), &plan)?;
/// assert_eq!((left.view().count(), right.view().count()), (2, 2));
/// assert_eq!(left.view().upper_fence(), Some(&b"k"[..]));
/// # Ok::<(), Refused>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPlan {
    /// The upper fence of the left page and lower fence of the right one.
    pub separator: Vec<u8>,
    /// Index of the first record that moves right: at least 1 and below the count, except at a
    /// dense split, which moves no record.
    pub at: usize,
    /// The layout of the right page.
    pub right: PageLayout,
}

impl PageRef<'_> {
    /// Chooses where to split this page. Returns `None` if it holds fewer than two records.
    #[must_use]
    pub fn choose_separator(&self) -> Option<SplitPlan> {
        by_layout!(
            self.layout(),
            F => self.body::<F>().choose_separator(),
            D => self.dense::<D>().choose_separator()
        )
    }
}

impl PageRef<'_> {
    /// Plans a contention split: halfway between the records of two keys that are written often, so
    /// that each gets its own page. The split point depends on where writers meet, not on bytes
    /// (B-Trees Are Back §7.3, after Alhomssi and Leis, CIDR 2021). The separator is as short as
    /// possible. Returns `None` if the two keys cannot be separated.
    ///
    /// O(log n) comparisons; a dense page is also copied.
    #[must_use]
    pub fn split_between(&self, one: &[u8], other: &[u8]) -> Option<SplitPlan> {
        if !self.covers(one) || !self.covers(other) {
            return None;
        }
        let rank = |key| self.search(key).unwrap_or_else(|rank| rank);
        let (low, high) = (rank(one).min(rank(other)), rank(one).max(rank(other)));
        let high = high.min(self.count().checked_sub(1)?);
        if low >= high {
            return None;
        }
        let at = low + (high - low).div_ceil(2);
        let plan = self.split_before(at)?;
        (!self.layout().is_dense() || self.can_be_split(&plan)).then_some(plan)
    }

    /// Plans a split of a dense page that takes no more of its kind: at its middle, or at the first
    /// record behind it where both sides fit. The right page becomes dense, too, or else `general`.
    ///
    /// The middle alone does not suffice. The separator may be longer than the lower fence of this
    /// page, by as many bytes as the numeric part has. A fully dense right page then has fewer
    /// places, as many as fit into these bytes, and its first place is further on by at least one
    /// place for each record that stays. With short values and few records, the last record may
    /// have no place any more. Further to the right, either the places suffice again, or the
    /// records that move are so few that they fit any layout. The left page keeps its places.
    ///
    /// Returns `None` if the page has fewer than two records.
    #[must_use]
    pub(super) fn split_dense(&self, general: PageLayout) -> Option<SplitPlan> {
        let middle = self.choose_separator()?;
        let behind = (middle.at + 1..self.count()).filter_map(|at| self.split_before(at));
        let mut plans = std::iter::once(middle).chain(behind).flat_map(|plan| {
            let right = general;
            [plan.clone(), SplitPlan { right, ..plan }]
        });
        plans.find(|plan| self.can_be_split(plan))
    }

    /// The split before record `at`, with the shortest separator.
    fn split_before(&self, at: usize) -> Option<SplitPlan> {
        let (left, right) = (self.key(at.checked_sub(1)?), self.key(at));
        Some(SplitPlan {
            separator: right.get(..=common_prefix(&left, &right))?.to_vec(),
            at,
            right: self.layout(),
        })
    }

    /// Returns whether [`PageMut::split_into`] would succeed. In a dense page, longer fences take
    /// the room of places, so a side with nearly all records may have too few; in another layout
    /// than the page's, records may take more room.
    pub(super) fn can_be_split(&self, plan: &SplitPlan) -> bool {
        let (mut left, mut changes) = (self.bytes().to_vec(), ChangeMap::new());
        let (mut right, mut other_changes) = (vec![0; left.len()], ChangeMap::new());
        let mut right = PageMut::new(&mut right, &mut other_changes);
        let mut left = PageMut::new(&mut left, &mut changes);
        left.split_into(&mut right, self.page_id(), plan).is_ok()
    }
}

impl<F: LeafFormat> Body<'_, F> {
    fn choose_separator(self) -> Option<SplitPlan> {
        let slots = self.ordered();
        let suffix = |index: usize| self.suffix_of(&slots[index]);
        let middle = byte_median::<F>(&slots)?;
        let keys = (slots.len() / 16).max(2);
        let first = middle.saturating_sub(keys / 2);
        let end = (first + keys).min(slots.len());
        let lowest = suffix(first);
        let shared = common_prefix(lowest, suffix(end - 1));
        let at = (first + 1..end).find(|&i| suffix(i).get(shared) != lowest.get(shared))?;
        let cut = suffix(at).get(..=shared)?;
        Some(SplitPlan {
            separator: [self.prefix(), cut].concat(),
            at,
            right: F::LAYOUT,
        })
    }
}

impl<D: DenseFormat> Dense<'_, D> {
    /// The rule for pages with slots, applied to records of one size.
    fn choose_separator(self) -> Option<SplitPlan> {
        let count = D::taken(self.bytes(), 0..self.places());
        if count < 2 {
            return None;
        }
        let middle = (count / 2).clamp(1, count - 1);
        let keys = (count / 16).max(2);
        let first = middle.saturating_sub(keys / 2);
        let end = (first + keys).min(count);
        let lowest = self.suffix(first);
        let shared = common_prefix(&lowest, &self.suffix(end - 1));
        let at = (first + 1..end).find(|&i| self.suffix(i).get(shared) != lowest.get(shared))?;
        Some(SplitPlan {
            separator: [self.prefix(), self.suffix(at).get(..=shared)?].concat(),
            at,
            right: D::LAYOUT,
        })
    }
}

/// The number of records left of the boundary at which the bytes on both sides differ least.
fn byte_median<F: Format>(slots: &[F::RawSlot]) -> Option<usize> {
    let count = slots.len();
    if count < 2 {
        return None;
    }
    let cost = |raw| F::SLOT_BYTES + F::decode(raw).payload_len();
    let total: usize = slots.iter().map(cost).sum();
    let mut left = 0;
    for (index, raw) in slots.iter().enumerate() {
        let more = left + cost(raw);
        if 2 * more > total {
            let closer_without = total - 2 * left <= 2 * more - total;
            let middle = if closer_without { index } else { index + 1 };
            return Some(middle.clamp(1, count - 1));
        }
        left = more;
    }
    Some(count - 1)
}

impl PageMut<'_> {
    /// Moves the records from the separator on to `right`, which becomes page `right_id` with this
    /// page's LSN and the plan's layout, and cuts this page at the separator.
    ///
    /// Live code and redo may instead apply the two halves separately, in any order:
    /// [`PageMut::build`] makes the right side, [`PageMut::truncate_to`] the left one. The
    /// resulting bytes are the same.
    ///
    /// # Errors
    /// [`Refused::NotCovered`] if the plan does not match the page as it is now.
    pub fn split_into(
        &mut self,
        right: &mut PageMut<'_>,
        right_id: PageId,
        plan: &SplitPlan,
    ) -> Result<(), Refused> {
        let page = self.view();
        let (Ok(at) | Err(at)) = page.search(&plan.separator);
        if at != plan.at || !page.covers(&plan.separator) {
            return Err(Refused::NotCovered);
        }
        let fences = Fences {
            lower: &plan.separator,
            upper: page.upper_fence(),
        };
        let size = right.view().page_size();
        let moved = at..page.count();
        let bytes = by_layout!(plan.right, F => {
            let mut image = Image::<F>::new(size, right_id, page.lsn(), fences)?;
            if page.layout() == plan.right {
                copy_narrowed(page, moved, &mut image)?;
            } else {
                for index in moved {
                    image.push_checked(fences, &page.key(index), page.value(index))?;
                }
            }
            image.finish()
        }, D => {
            let records = moved.map(|index| (page.key(index), page.value(index)));
            dense_image::build::<D, _, _>(Empty::of(right_id, page.lsn(), size, fences), records)?
        });
        self.truncate_to(&plan.separator)?;
        right.adopt_new(&bytes);
        Ok(())
    }

    /// Removes the records from `separator` on and makes `separator` the upper fence. This is how
    /// the left side of a split is made, both live and in redo. The page is compacted, and its
    /// prefix may grow.
    ///
    /// # Errors
    /// [`Refused::NotCovered`] unless `lower fence < separator < upper fence`.
    pub fn truncate_to(&mut self, separator: &[u8]) -> Result<(), Refused> {
        let page = self.view();
        if !page.covers(separator) {
            return Err(Refused::NotCovered);
        }
        let fences = Fences {
            lower: page.lower_fence(),
            upper: Some(separator),
        };
        let (Ok(at) | Err(at)) = page.search(separator);
        let (size, id, lsn) = (page.page_size(), page.page_id(), page.lsn());
        by_layout!(page.layout(), F => {
            let mut image = Image::<F>::new(size, id, lsn, fences)?;
            copy_narrowed(page, 0..at, &mut image)?;
            self.adopt(image.finish());
        }, D => {
            let shape = Empty::of(id, lsn, size, fences);
            let bytes = dense_image::narrowed(page.dense::<D>(), shape, separator)?;
            self.adopt(bytes);
        });
        Ok(())
    }

    /// Absorbs the right neighbour: its records (whole keys, strictly ascending) and its upper
    /// fence. This is how the left side of a merge is made, both live and in redo. The page is
    /// compacted, and its prefix may shrink.
    ///
    /// # Errors
    /// [`Refused::NoSpace`] if the records do not fit ([`PageRef::can_absorb`] tells beforehand),
    /// [`Refused::NotCovered`] if `upper` is not beyond the present upper fence or a record lies
    /// outside, [`Refused::OutOfOrder`], [`Refused::TooLarge`]; [`Refused::Unfit`] on a dense page,
    /// which must be converted first.
    pub fn absorb<K, V>(
        &mut self,
        upper: Option<&[u8]>,
        records: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), Refused>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let page = self.view();
        let old_upper = page.upper_fence().ok_or(Refused::NotCovered)?;
        if upper.is_some_and(|upper| upper <= old_upper) {
            return Err(Refused::NotCovered);
        }
        let fences = Fences {
            lower: page.lower_fence(),
            upper,
        };
        let right = Fences {
            lower: old_upper,
            upper,
        };
        let (size, id, lsn) = (page.page_size(), page.page_id(), page.lsn());
        by_layout!(page.layout(), F => {
            let mut image = Image::<F>::new(size, id, lsn, fences)?;
            let regrown = page.prefix().get(image.prefix_len()..).unwrap_or_default();
            for (suffix, value) in page.iter() {
                image.push(0, regrown, &suffix, value)?;
            }
            for (key, value) in records {
                image.push_checked(right, key.as_ref(), value.as_ref())?;
            }
            self.adopt(image.finish());
        }, D => return Err(Refused::Unfit));
        Ok(())
    }

    /// Converts the page to another layout with the same records. A page that already has the
    /// layout stays as it is.
    ///
    /// # Errors
    /// [`Refused::NoSpace`] if the records do not fit. [`Refused::Unfit`] if the layout does not
    /// take such records, or if it is dense and the page has no record from which to tell the
    /// lengths of keys and values.
    pub fn relayout(&mut self, layout: PageLayout) -> Result<(), Refused> {
        let page = self.view();
        if page.layout() == layout {
            return Ok(());
        }
        let fences = Fences {
            lower: page.lower_fence(),
            upper: page.upper_fence(),
        };
        let (size, id, lsn) = (page.page_size(), page.page_id(), page.lsn());
        let prefix = page.prefix();
        let dropped = usize::from(mutation::on("conversion-drops-record"));
        let kept = page.count().saturating_sub(dropped);
        let records =
            (page.iter().take(kept)).map(|(suffix, value)| ([prefix, &suffix].concat(), value));
        let bytes = by_layout!(layout, F => {
            let mut image = Image::<F>::new(size, id, lsn, fences)?;
            for (key, value) in records {
                image.push_checked(fences, &key, value)?;
            }
            image.finish()
        }, D => dense_image::build::<D, _, _>(Empty::of(id, lsn, size, fences), records)?);
        let scans = page.scans();
        self.adopt(bytes);
        self.keep_scans(scans);
        Ok(())
    }
}

/// Copies records into a page with a narrower range, whose prefix is therefore at least as long.
fn copy_narrowed<F: LeafFormat>(
    page: PageRef<'_>,
    records: std::ops::Range<usize>,
    image: &mut Image<F>,
) -> Result<(), Refused> {
    let longer = image.prefix_len().saturating_sub(page.prefix().len());
    for (suffix, value) in page.iter_at(records.start).take(records.len()) {
        let suffix = suffix.get(longer..).unwrap_or_default();
        image.push(0, &[], suffix, value)?;
    }
    Ok(())
}
