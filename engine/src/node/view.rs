//! Reading a page.

use std::iter::FusedIterator;

use super::layout::{
    HEADER_BYTES, RawSlot, SLOT_BYTES, Slot, field, head, head_of, is_page_size, shared_prefix,
    slot_at, u16_at, u32_at, u64_at,
};
use super::records;
use crate::mutation;
use crate::types::{Lsn, PageId};

/// A page to read from. Cheap to make and to copy.
///
/// Meant for bytes that passed [`super::check`] or that a [`super::PageMut`] made. On others the answers are wrong,
/// but nothing panics: every access is clamped to the page.
#[derive(Clone, Copy, Debug)]
pub struct PageRef<'a> {
    bytes: &'a [u8],
}

impl<'a> PageRef<'a> {
    /// A view of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is not of a page size: a mistake of the caller, whatever the bytes hold.
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        assert!(is_page_size(bytes.len()), "not a page: {}", bytes.len());
        PageRef { bytes }
    }

    /// The bytes themselves.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Page size in bytes.
    #[must_use]
    #[inline]
    pub fn page_size(&self) -> usize {
        self.bytes.len()
    }

    /// The page's name.
    #[must_use]
    pub fn page_id(&self) -> PageId {
        PageId(u64_at(self.bytes, field::PAGE_ID))
    }

    /// LSN of the last log record applied to the page.
    #[must_use]
    pub fn lsn(&self) -> Lsn {
        Lsn(u64_at(self.bytes, field::LSN))
    }

    /// The smallest key the page may hold; `""` on the leftmost page.
    #[must_use]
    #[inline]
    pub fn lower_fence(&self) -> &'a [u8] {
        let end = self.bytes.len();
        self.range(end.saturating_sub(self.lower_len()), end)
    }

    /// The smallest key beyond the page, or `None` on the rightmost page.
    #[must_use]
    #[inline]
    pub fn upper_fence(&self) -> Option<&'a [u8]> {
        if self.bytes[field::BOUNDED] == 0 {
            return None;
        }
        let end = self.bytes.len().saturating_sub(self.lower_len());
        Some(self.range(end.saturating_sub(self.upper_len()), end))
    }

    /// Whether `key` belongs on this page: `lower fence <= key < upper fence`.
    #[must_use]
    #[inline]
    pub fn covers(&self, key: &[u8]) -> bool {
        key >= self.lower_fence() && self.upper_fence().is_none_or(|upper| key < upper)
    }

    /// Number of records.
    #[must_use]
    #[inline]
    pub fn count(&self) -> usize {
        self.slots().len()
    }

    /// Whether the page holds no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// What all keys of the page begin with; slots and payloads leave it out.
    #[must_use]
    #[inline]
    pub fn prefix(&self) -> &'a [u8] {
        let len = usize::from(u16_at(self.bytes, field::PREFIX_LEN));
        self.lower_fence().get(..len).unwrap_or_default()
    }

    /// Where `key` is (`Ok`) or would have to be inserted (`Err`). A key outside the fences is never found.
    ///
    /// # Errors
    /// The index of the first record with a greater key, if `key` is absent.
    #[inline]
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        match key.strip_prefix(prefix) {
            Some(suffix) => self.search_suffix(suffix),
            None if key < prefix => Err(0),
            None => Err(self.count()),
        }
    }

    /// As [`PageRef::search`], for what follows the page's prefix.
    #[inline]
    pub(super) fn search_suffix(&self, suffix: &[u8]) -> Result<usize, usize> {
        let slots = self.slots();
        let wanted = head(suffix);
        let first = slots.partition_point(|raw| head_of(raw) < wanted);
        let rest = &slots[first..];
        // Equal heads do not make equal keys (Bf-Tree issue 17, `test` and `teste`): compare in full.
        match rest.first() {
            Some(raw) if head_of(raw) == wanted => match self.suffix_of(raw).cmp(suffix) {
                _ if mutation::on("equal-heads-equal-keys") => return Ok(first),
                std::cmp::Ordering::Equal => return Ok(first),
                std::cmp::Ordering::Greater => return Err(first),
                std::cmp::Ordering::Less => {}
            },
            _ => return Err(first),
        }
        rest.binary_search_by(|raw| {
            (head_of(raw).cmp(&wanted)).then_with(|| self.suffix_of(raw).cmp(suffix))
        })
        .map(|i| first + i)
        .map_err(|i| first + i)
    }

    /// The value of `key`.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.search(key).ok().map(|index| self.value(index))
    }

    /// What follows the prefix in the key of record `index`; empty if there is no such record.
    #[must_use]
    pub fn suffix(&self, index: usize) -> &'a [u8] {
        self.slots()
            .get(index)
            .map_or(&[], |raw| self.suffix_of(raw))
    }

    /// The value of record `index`; empty if there is no such record.
    #[must_use]
    #[inline]
    pub fn value(&self, index: usize) -> &'a [u8] {
        self.slots()
            .get(index)
            .map_or(&[], |raw| self.value_of(raw))
    }

    /// Assembles the whole key of record `index` in `key` (cleared first).
    pub fn key_into(&self, index: usize, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.prefix());
        key.extend_from_slice(self.suffix(index));
    }

    /// The whole key of record `index`.
    #[must_use]
    pub fn key(&self, index: usize) -> Vec<u8> {
        [self.prefix(), self.suffix(index)].concat()
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
        Records {
            page: *self,
            slots: self.slots().get(first..).unwrap_or_default().iter(),
        }
    }

    /// The records from index `first` on with whole keys, in the coding of [`records`]: what a split or merge
    /// record of the log carries.
    #[must_use]
    pub fn encode_records(&self, first: usize) -> Vec<u8> {
        let prefix = self.prefix();
        let records = self.iter_at(first);
        records::encode_suffixes(prefix, records.len(), records)
    }

    /// Bytes in use: header, slots, live payloads, fences. What the page would take without holes.
    #[must_use]
    #[inline]
    pub fn used_bytes(&self) -> usize {
        slot_at(self.count()) + self.heap_used()
    }

    /// Bytes that records could still take (10 each for their slots included) after compaction.
    #[must_use]
    #[inline]
    pub fn free_bytes(&self) -> usize {
        self.bytes.len().saturating_sub(self.used_bytes())
    }

    /// Whether at least three quarters of the page are unused: merge it with a neighbour of which the same holds
    /// (B-Trees Are Back §2, "Remove").
    #[must_use]
    pub fn is_three_quarters_free(&self) -> bool {
        self.free_bytes() >= self.bytes.len() / 4 * 3
    }

    /// Bytes in use if this page took over all records and the upper fence of its right neighbour. The shared
    /// prefix may become shorter, so this can exceed the sum of both.
    #[must_use]
    pub fn absorbed_bytes(&self, right: &PageRef<'_>) -> usize {
        let prefix = shared_prefix(self.lower_fence(), right.upper_fence());
        let regrown = |page: &PageRef<'_>| {
            let records = page.used_bytes().saturating_sub(
                HEADER_BYTES + page.lower_fence().len() + page.upper_fence().map_or(0, <[u8]>::len),
            );
            records + page.count() * page.prefix().len().saturating_sub(prefix)
        };
        HEADER_BYTES
            + self.lower_fence().len()
            + right.upper_fence().map_or(0, <[u8]>::len)
            + regrown(self)
            + regrown(right)
    }

    /// Whether `right` is the right neighbour and its records fit here: [`super::PageMut::absorb`] would succeed.
    #[must_use]
    pub fn can_absorb(&self, right: &PageRef<'_>) -> bool {
        self.upper_fence() == Some(right.lower_fence())
            && self.absorbed_bytes(right) <= self.bytes.len()
    }

    #[inline]
    pub(super) fn slots(&self) -> &'a [RawSlot] {
        let count = usize::from(u16_at(self.bytes, field::COUNT));
        let end = HEADER_BYTES + count * SLOT_BYTES;
        let slots = self.bytes.get(HEADER_BYTES..end).unwrap_or_default();
        slots.as_chunks().0
    }

    #[inline]
    pub(super) fn suffix_of(&self, raw: &RawSlot) -> &'a [u8] {
        let slot = Slot::decode(raw);
        let start = usize::from(slot.offset);
        self.range(start, start + usize::from(slot.key_len))
    }

    #[inline]
    pub(super) fn value_of(&self, raw: &RawSlot) -> &'a [u8] {
        let slot = Slot::decode(raw);
        let start = usize::from(slot.offset) + usize::from(slot.key_len);
        self.range(start, start + usize::from(slot.value_len))
    }

    pub(super) fn lower_len(&self) -> usize {
        usize::from(u16_at(self.bytes, field::LOWER_LEN))
    }

    pub(super) fn upper_len(&self) -> usize {
        usize::from(u16_at(self.bytes, field::UPPER_LEN))
    }

    /// Where the lowest payload begins, never outside the page.
    #[inline]
    pub(super) fn heap_start(&self) -> usize {
        (u32_at(self.bytes, field::HEAP_START) as usize).min(self.bytes.len())
    }

    #[inline]
    pub(super) fn heap_used(&self) -> usize {
        (u32_at(self.bytes, field::HEAP_USED) as usize).min(self.bytes.len())
    }

    /// Bytes between slots and heap: what fits without compaction.
    #[inline]
    pub(super) fn gap(&self) -> usize {
        self.heap_start().saturating_sub(slot_at(self.count()))
    }

    /// Bytes `start..end`, or none at all where a damaged page points outside.
    #[inline]
    fn range(&self, start: usize, end: usize) -> &'a [u8] {
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// Records of a page as (key suffix, value), in key order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    page: PageRef<'a>,
    slots: std::slice::Iter<'a, RawSlot>,
}

impl<'a> Iterator for Records<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let raw = self.slots.next()?;
        Some((self.page.suffix_of(raw), self.page.value_of(raw)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl DoubleEndedIterator for Records<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let raw = self.slots.next_back()?;
        Some((self.page.suffix_of(raw), self.page.value_of(raw)))
    }
}

impl ExactSizeIterator for Records<'_> {}
impl FusedIterator for Records<'_> {}
