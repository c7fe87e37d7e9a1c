//! Reading of pages.

use std::borrow::Cow;
use std::iter::FusedIterator;

use super::body::{self, Body};
use super::dense::{Dense, DenseFormat, DenseRecords};
use super::dispatch::{apart, by_layout, by_layout_often};
use super::envelope::{field, is_page_len, u64_at};
use super::format::{Format, LeafFormat, Slot};
use super::leaves::{
    Baseline, CompactLeaf, Fingerprint, FullyDense, Hints, Prefix, SemiDense, Slotted,
};
use super::records;
use super::suffix::Suffix;
use crate::options::{PageLayout, layout::GENERAL};
use crate::types::{Lsn, PageId};

/// A read-only view of a page. Cheap to make and to copy.
///
/// Meant for bytes that passed [`super::check`] or that a [`super::PageMut`] made. Other bytes give
/// wrong answers, but never a panic: every access is clamped to the page.
#[derive(Clone, Copy, Debug)]
pub struct PageRef<'a> {
    bytes: &'a [u8],
}

impl<'a> PageRef<'a> {
    /// Creates a view of `bytes`.
    ///
    /// # Panics
    /// If the length of `bytes` is neither a page size nor the sum of a page size and an envelope.
    /// This is a mistake of the caller, whatever the bytes hold.
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        assert!(
            is_page_len(bytes.len()),
            "{} bytes are not a page",
            bytes.len()
        );
        PageRef { bytes }
    }

    /// The bytes of the page.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records in format `F`, which must be that of the page's layout.
    #[inline]
    pub(super) fn body<F: LeafFormat>(&self) -> Body<'a, F> {
        debug_assert_eq!(F::LAYOUT, self.layout());
        Body::new(self.bytes)
    }

    /// The records in dense format `D`, which must be that of the page's layout.
    #[inline]
    pub(super) fn dense<D: DenseFormat>(&self) -> Dense<'a, D> {
        debug_assert_eq!(D::LAYOUT, self.layout());
        Dense::new(self.bytes)
    }

    /// Page size in bytes.
    #[must_use]
    #[inline]
    pub fn page_size(&self) -> usize {
        self.bytes.len()
    }

    /// The checksum stored in the page, right or wrong.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        u64_at(self.bytes, field::CHECKSUM)
    }

    /// The page's id.
    #[must_use]
    pub fn page_id(&self) -> PageId {
        PageId(u64_at(self.bytes, field::PAGE_ID))
    }

    /// The LSN of the last log record applied to the page.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        Lsn(u64_at(self.bytes, field::LSN))
    }

    /// The page's layout.
    #[must_use]
    #[inline]
    pub fn layout(&self) -> PageLayout {
        PageLayout::of(self.bytes)
    }

    /// The smallest key the page may hold; `""` on the leftmost page.
    #[must_use]
    #[inline]
    pub fn lower_fence(&self) -> &'a [u8] {
        let page = *self;
        by_layout_often!(page.bytes, F => page.body::<F>().lower_fence(), D => page.dense::<D>().lower_fence())
    }

    /// The smallest key beyond the page, or `None` on the rightmost page.
    #[must_use]
    #[inline]
    pub fn upper_fence(&self) -> Option<&'a [u8]> {
        let page = *self;
        by_layout_often!(page.bytes, F => page.body::<F>().upper_fence(), D => page.dense::<D>().upper_fence())
    }

    /// Returns whether `key` belongs on this page: `lower fence <= key < upper fence`.
    #[must_use]
    #[inline]
    pub fn covers(&self, key: &[u8]) -> bool {
        let page = *self;
        by_layout_often!(page.bytes, F => page.body::<F>().covers(key), D => page.dense::<D>().covers(key))
    }

    /// Number of records.
    #[must_use]
    #[inline]
    pub fn count(&self) -> usize {
        let page = *self;
        by_layout_often!(page.bytes, F => page.body::<F>().count(), D => page.dense::<D>().count())
    }

    /// Returns whether the page holds no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns whether the slots are in key order, which makes scans cheap
    /// ([`super::PageMut::sort`]).
    #[must_use]
    #[inline]
    pub fn is_in_order(&self) -> bool {
        let page = *self;
        by_layout_often!(page.bytes, F => page.body::<F>().is_in_order(), D => true)
    }

    /// The prefix that all keys of the page share; slots and payloads leave it out.
    #[must_use]
    #[inline]
    pub fn prefix(&self) -> &'a [u8] {
        let page = *self;
        by_layout_often!(page.bytes, F => page.body::<F>().prefix(), D => page.dense::<D>().prefix())
    }

    /// Finds the index of `key` (`Ok`), or the index at which to insert it (`Err`). A key outside
    /// the fences is never found.
    ///
    /// # Errors
    /// The index of the first record with a greater key, if `key` is absent.
    #[inline]
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let page = *self;
        by_layout_often!(page.bytes, F => page.body::<F>().search_key(key), D => page.dense::<D>().search_key(key))
    }

    /// The value of `key`.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        let page = *self;
        by_layout_often!(page.bytes, F => page.body::<F>().get(key), D => page.dense::<D>().get(key))
    }

    /// The part of record `index`'s key behind the prefix; empty if there is no such record.
    #[must_use]
    pub fn suffix(&self, index: usize) -> Suffix<'a> {
        by_layout!(
            self.layout(),
            F => Suffix::stored(self.body::<F>().suffix(index)),
            D => self.dense::<D>().suffix(index)
        )
    }

    /// The value of record `index`; empty if there is no such record.
    #[must_use]
    #[inline]
    pub fn value(&self, index: usize) -> &'a [u8] {
        by_layout!(self.layout(), F => self.body::<F>().value(index), D => self.dense::<D>().value(index))
    }

    /// Writes the whole key of record `index` to `key`, which is cleared first.
    pub fn key_into(&self, index: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        key.extend_from_slice(&self.suffix(index));
    }

    /// The whole key of record `index`.
    #[must_use]
    pub fn key(&self, index: usize) -> Vec<u8> {
        [self.prefix(), &self.suffix(index)].concat()
    }

    /// All records as (key suffix, value), in key order.
    #[must_use]
    pub fn iter(&self) -> Records<'a> {
        self.iter_at(0)
    }

    /// The records with keys at or after `key`, as (key suffix, value), in key order.
    #[must_use]
    pub fn iter_from(&self, key: &[u8]) -> Records<'a> {
        let (Ok(index) | Err(index)) = self.search(key);
        self.iter_at(index)
    }

    /// The records from index `first` on, as (key suffix, value), in key order.
    #[must_use]
    pub fn iter_at(&self, first: usize) -> Records<'a> {
        let bytes = self.bytes;
        let slots = match self.layout() {
            PageLayout::Slotted => Slots::Headed(slots_from::<Slotted>(bytes, first).iter()),
            PageLayout::Hints => Slots::Headed(slots_from::<Hints>(bytes, first).iter()),
            PageLayout::Compact => Slots::Compact(slots_from::<CompactLeaf>(bytes, first).iter()),
            PageLayout::Baseline => Slots::Plain(slots_from::<Baseline>(bytes, first).iter()),
            PageLayout::Prefix => Slots::Plain(slots_from::<Prefix>(bytes, first).iter()),
            PageLayout::Fingerprint => match self.body::<Fingerprint>().ordered() {
                Cow::Borrowed(slots) => Slots::Plain(slots.get(first..).unwrap_or_default().iter()),
                Cow::Owned(mut slots) => {
                    slots.drain(..first.min(slots.len()));
                    Slots::Sorted(slots.into_iter())
                }
            },
            PageLayout::SemiDense => Slots::Semi(DenseRecords::new(self.dense(), first)),
            PageLayout::FullyDense => Slots::Fully(DenseRecords::new(self.dense(), first)),
        };
        Records { bytes, slots }
    }

    /// Encodes the records from index `first` on with whole keys as [`records`] does, for a split
    /// or merge record of the log.
    #[must_use]
    pub fn encode_records(&self, first: usize) -> Vec<u8> {
        let prefix = self.prefix();
        let records = self.iter_at(first);
        records::encode_suffixes(prefix, records.len(), records)
    }

    /// Bytes in use: header, slots, live payloads, fences. This is the size of the page after
    /// compaction.
    #[must_use]
    #[inline]
    pub fn used_bytes(&self) -> usize {
        by_layout!(self.layout(), F => self.body::<F>().used_bytes(), D => self.dense::<D>().used_bytes())
    }

    /// Bytes available to records, including their slots, after compaction.
    #[must_use]
    #[inline]
    pub fn free_bytes(&self) -> usize {
        by_layout!(self.layout(), F => self.body::<F>().free_bytes(), D => self.dense::<D>().free_bytes())
    }

    /// Bytes available to any number of further records, each of which takes
    /// [`PageLayout::slot_bytes`] beside key suffix and value.
    #[must_use]
    #[inline]
    pub fn room_bytes(&self) -> usize {
        let layout = self.layout();
        by_layout!(layout, F => {
            let page = self.body::<F>();
            page.free_bytes().saturating_sub(F::index_to_come(page.count()))
        }, D => self.dense::<D>().free_bytes())
    }

    /// Returns whether at least three quarters of the page are unused. Such a page is merged with a
    /// neighbour that is as empty (B-Trees Are Back §2, "Remove").
    #[must_use]
    pub fn is_three_quarters_free(&self) -> bool {
        // A dense page's places take the same room whether or not they have records, so count the
        // records as if they had slots.
        let free = match self.layout().is_dense() {
            true => {
                let fences = self.lower_fence().len() + self.upper_fence().map_or(0, <[u8]>::len);
                let payload = self.payload_bytes(self.prefix().len());
                let used = fences + payload + GENERAL.slots_bytes(self.count());
                (self.bytes.len() - GENERAL.header_bytes()).saturating_sub(used)
            }
            false => self.free_bytes(),
        };
        free >= self.bytes.len() / 4 * 3
    }

    /// The bytes in use if this page absorbed its right neighbour's records and upper fence. The
    /// shared prefix may become shorter, so this can exceed the sum of both pages.
    #[must_use]
    pub fn absorbed_bytes(&self, right: &PageRef<'_>) -> usize {
        self.joined_bytes(right, self.layout())
    }

    /// As [`PageRef::absorbed_bytes`], for a page of this layout.
    fn joined_bytes(&self, right: &PageRef<'_>, layout: PageLayout) -> usize {
        let prefix = layout.prefix_bytes(self.lower_fence(), right.upper_fence());
        layout.header_bytes()
            + layout.slots_bytes(self.count() + right.count())
            + self.lower_fence().len()
            + right.upper_fence().map_or(0, <[u8]>::len)
            + self.payload_bytes(prefix)
            + right.payload_bytes(prefix)
    }

    /// Live bytes of keys and values if each key left out its first `prefix` bytes, which must be
    /// no more than it leaves out now.
    pub(super) fn payload_bytes(&self, prefix: usize) -> usize {
        by_layout!(self.layout(), F => {
            let page = self.body::<F>();
            let fences = self.lower_fence().len() + self.upper_fence().map_or(0, <[u8]>::len);
            let longer = page.prefix().len().saturating_sub(prefix);
            page.heap_used().saturating_sub(fences) + page.count() * longer
        }, D => self.dense::<D>().payload_bytes(prefix))
    }

    /// Returns whether `right` is the right neighbour and its records fit here, so that
    /// [`super::PageMut::absorb`] would succeed. Always false on a dense page.
    #[must_use]
    pub fn can_absorb(&self, right: &PageRef<'_>) -> bool {
        !self.layout().is_dense() && self.could_absorb(right)
    }

    /// As [`PageRef::can_absorb`], but as if a dense page were first converted to the general
    /// layout.
    #[must_use]
    pub fn could_absorb(&self, right: &PageRef<'_>) -> bool {
        let layout = match self.layout().is_dense() {
            true => GENERAL,
            false => self.layout(),
        };
        self.upper_fence() == Some(right.lower_fence())
            && self.joined_bytes(right, layout) <= self.bytes.len()
    }
}

/// The slots from index `first` on.
#[inline]
fn slots_from<F: Format>(bytes: &[u8], first: usize) -> &[F::RawSlot] {
    F::slots(bytes).get(first..).unwrap_or_default()
}

/// The slots still to visit.
#[derive(Clone, Debug)]
enum Slots<'a> {
    Headed(std::slice::Iter<'a, <Slotted as Format>::RawSlot>),
    Compact(std::slice::Iter<'a, <CompactLeaf as Format>::RawSlot>),
    Plain(std::slice::Iter<'a, <Prefix as Format>::RawSlot>),
    /// A sorted copy, because the page's slots are unsorted.
    Sorted(std::vec::IntoIter<<Fingerprint as Format>::RawSlot>),
    Semi(DenseRecords<'a, SemiDense>),
    Fully(DenseRecords<'a, FullyDense>),
}

/// Records of a page as (key suffix, value), in key order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    slots: Slots<'a>,
}

#[inline]
fn record<'a>(bytes: &'a [u8], slot: &Slot) -> (Suffix<'a>, &'a [u8]) {
    (
        Suffix::stored(body::suffix(bytes, slot)),
        body::value(bytes, slot),
    )
}

impl<'a> Iterator for Records<'a> {
    type Item = (Suffix<'a>, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let slot = match &mut self.slots {
            Slots::Headed(slots) => Slotted::decode(slots.next()?),
            Slots::Compact(slots) => CompactLeaf::decode(slots.next()?),
            Slots::Plain(slots) => Prefix::decode(slots.next()?),
            Slots::Sorted(slots) => Fingerprint::decode(&slots.next()?),
            Slots::Semi(records) => return apart(|| records.next()),
            Slots::Fully(records) => return apart(|| records.next()),
        };
        Some(record(self.bytes, &slot))
    }

    /// Selects the layout once rather than for each record: `for_each` is faster than `for`.
    #[inline]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, mut f: F) -> B {
        let bytes = self.bytes;
        let mut with = |b: B, slot: Slot| f(b, record(bytes, &slot));
        match self.slots {
            Slots::Headed(slots) => slots.fold(init, |b, raw| with(b, Slotted::decode(raw))),
            Slots::Compact(slots) => slots.fold(init, |b, raw| with(b, CompactLeaf::decode(raw))),
            Slots::Plain(slots) => slots.fold(init, |b, raw| with(b, Prefix::decode(raw))),
            Slots::Sorted(slots) => slots.fold(init, |b, raw| with(b, Fingerprint::decode(&raw))),
            Slots::Semi(records) => records.fold(init, f),
            Slots::Fully(records) => records.fold(init, f),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.slots {
            Slots::Headed(slots) => slots.size_hint(),
            Slots::Compact(slots) => slots.size_hint(),
            Slots::Plain(slots) => slots.size_hint(),
            Slots::Sorted(slots) => slots.size_hint(),
            Slots::Semi(records) => (records.len(), Some(records.len())),
            Slots::Fully(records) => (records.len(), Some(records.len())),
        }
    }
}

impl DoubleEndedIterator for Records<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let slot = match &mut self.slots {
            Slots::Headed(slots) => Slotted::decode(slots.next_back()?),
            Slots::Compact(slots) => CompactLeaf::decode(slots.next_back()?),
            Slots::Plain(slots) => Prefix::decode(slots.next_back()?),
            Slots::Sorted(slots) => Fingerprint::decode(&slots.next_back()?),
            Slots::Semi(records) => return records.next_back(),
            Slots::Fully(records) => return records.next_back(),
        };
        Some(record(self.bytes, &slot))
    }
}

impl ExactSizeIterator for Records<'_> {}
impl FusedIterator for Records<'_> {}
