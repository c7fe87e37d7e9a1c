//! Sorted slots over a heap, in any [`Format`]: searches, and accounting of bytes.
//!
//! Every access is clamped to the page. Damaged bytes give wrong answers, but never a panic.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::marker::PhantomData;

use super::format::{Format, LeafFormat, Slot};
use crate::mutation;

/// A read-only view of a page or mini-page in format `F`. Its keys are suffixes: the part of a key
/// behind the page's prefix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a, F> {
    bytes: &'a [u8],
    format: PhantomData<F>,
}

impl<'a, F: Format> Body<'a, F> {
    /// Creates a view of `bytes`, which must have at least `F::SLOTS_AT` of them.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Body {
            bytes,
            format: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(crate) fn slots(self) -> &'a [F::RawSlot] {
        F::slots(self.bytes)
    }

    /// Number of records.
    #[inline]
    pub(crate) fn count(self) -> usize {
        self.slots().len()
    }

    #[inline]
    pub(crate) fn slot(self, index: usize) -> Option<Slot> {
        self.slots().get(index).map(F::decode)
    }

    /// The part of a stored key behind the bytes that all stored keys share.
    #[inline]
    fn rest_of(self, raw: &F::RawSlot) -> &'a [u8] {
        let shared = F::shared(self.bytes);
        self.suffix_of(raw).get(shared..).unwrap_or_default()
    }

    /// Compares a stored key with a suffix of the same head. Heads are padded with zeros. So if
    /// both keys fit the head, the shorter one is smaller and the payload need not be read.
    #[inline]
    fn compare_tied(self, raw: &F::RawSlot, suffix: &[u8]) -> Ordering {
        let len = usize::from(F::decode(raw).key_len).saturating_sub(F::shared(self.bytes));
        match len.max(suffix.len()) <= F::HEAD_BYTES {
            true => len.cmp(&suffix.len()),
            false => self.rest_of(raw).cmp(suffix),
        }
    }

    /// Finds the first record whose key is not smaller than `suffix`, which starts behind the bytes
    /// that all stored keys share. Returns `Ok` if the keys are equal.
    #[inline]
    pub(crate) fn search(self, suffix: &[u8]) -> Result<usize, usize> {
        let slots = self.slots();
        if !self.is_in_order() {
            return self.rank(suffix);
        }
        if F::HEAD_BYTES == 0 {
            return slots.binary_search_by(|raw| self.rest_of(raw).cmp(suffix));
        }
        let wanted = F::head(suffix);
        let within = F::narrow(self.bytes, slots.len(), wanted);
        let from = within.start;
        let slots = &slots[..within.end];
        let first = from + slots[from..].partition_point(|raw| F::head_of(raw) < wanted);
        let rest = &slots[first..];
        // Equal heads do not imply equal keys (Bf-Tree issue 17, `test` and `teste`): compare in
        // full.
        match rest.first() {
            Some(raw) if F::head_of(raw) == wanted => match self.compare_tied(raw, suffix) {
                _ if mutation::on("equal-heads-equal-keys") => return Ok(first),
                Ordering::Equal => return Ok(first),
                Ordering::Greater => return Err(first),
                Ordering::Less => {}
            },
            _ => return Err(first),
        }
        rest.binary_search_by(|raw| {
            (F::head_of(raw).cmp(&wanted)).then_with(|| self.compare_tied(raw, suffix))
        })
        .map(|i| first + i)
        .map_err(|i| first + i)
    }

    /// As [`Body::search`], for unsorted slots: counts the smaller keys.
    #[cold]
    fn rank(self, suffix: &[u8]) -> Result<usize, usize> {
        let mut smaller = 0;
        let mut found = false;
        for raw in self.slots() {
            match self.rest_of(raw).cmp(suffix) {
                Ordering::Less => smaller += 1,
                Ordering::Equal => found = true,
                Ordering::Greater => {}
            }
        }
        if found { Ok(smaller) } else { Err(smaller) }
    }

    /// Finds the slot of a key. `Err` is the slot at which to insert the key.
    #[inline]
    pub(crate) fn place(self, suffix: &[u8]) -> Result<usize, usize> {
        if F::SORTED {
            self.search(suffix)
        } else {
            F::find(self.bytes, suffix).ok_or(self.count())
        }
    }

    /// Returns whether all slots are in key order.
    #[inline]
    pub(super) fn is_in_order(self) -> bool {
        F::SORTED || F::in_order(self.bytes) >= self.count()
    }

    /// The slots in key order.
    #[inline]
    pub(super) fn ordered(self) -> Cow<'a, [F::RawSlot]> {
        let slots = self.slots();
        if self.is_in_order() {
            return Cow::Borrowed(slots);
        }
        let mut ordered = slots.to_vec();
        ordered.sort_by(|a, b| self.suffix_of(a).cmp(self.suffix_of(b)));
        Cow::Owned(ordered)
    }

    #[inline]
    pub(crate) fn suffix_of(self, raw: &F::RawSlot) -> &'a [u8] {
        suffix(self.bytes, &F::decode(raw))
    }

    #[inline]
    pub(crate) fn value_of(self, raw: &F::RawSlot) -> &'a [u8] {
        value(self.bytes, &F::decode(raw))
    }

    /// The key suffix of record `index` in key order; empty if there is no such record.
    #[inline]
    pub(crate) fn suffix(self, index: usize) -> &'a [u8] {
        let slots = self.ordered();
        let raw = slots.get(index);
        raw.map_or(&[], |raw| self.suffix_of(raw))
    }

    /// The value of record `index` in key order; empty if there is no such record.
    #[inline]
    pub(crate) fn value(self, index: usize) -> &'a [u8] {
        let slots = self.ordered();
        let raw = slots.get(index);
        raw.map_or(&[], |raw| self.value_of(raw))
    }

    /// The start of the lowest payload, clamped to the page.
    #[inline]
    pub(crate) fn heap_start(self) -> usize {
        F::heap_start(self.bytes).min(self.bytes.len())
    }

    /// The end of the last payload, clamped to the page.
    #[inline]
    pub(crate) fn heap_end(self) -> usize {
        (self.bytes.len()).saturating_sub(F::tail_len(self.bytes))
    }

    #[inline]
    pub(crate) fn heap_used(self) -> usize {
        F::heap_used(self.bytes).min(self.bytes.len())
    }

    /// Bytes between slots and heap: the room for records without compaction.
    #[inline]
    pub(crate) fn gap(self) -> usize {
        (self.heap_start()).saturating_sub(F::slots_end(self.count()))
    }

    /// Bytes in use: header, slots, live payloads, fences.
    #[inline]
    pub(crate) fn used_bytes(self) -> usize {
        F::slots_end(self.count()) + self.heap_used()
    }

    /// Unused bytes, which are available to payloads and slots. Every further record needs at least
    /// one slot.
    #[inline]
    pub(crate) fn free_bytes(self) -> usize {
        self.bytes.len().saturating_sub(self.used_bytes())
    }

    /// Bytes by which the slots and their index grow if one record is added.
    #[inline]
    pub(super) fn growth(self) -> usize {
        let count = self.count();
        F::slots_end(count + 1) - F::slots_end(count)
    }
}

/// What leaf pages have besides: fences, and the prefix that the fences share.
impl<'a, F: LeafFormat> Body<'a, F> {
    #[inline]
    pub(super) fn lower_fence(self) -> &'a [u8] {
        let end = self.bytes.len();
        range(
            self.bytes,
            end.saturating_sub(F::lower_len(self.bytes)),
            end,
        )
    }

    #[inline]
    pub(super) fn upper_fence(self) -> Option<&'a [u8]> {
        if F::bounded(self.bytes) == 0 {
            return None;
        }
        let end = (self.bytes.len()).saturating_sub(F::lower_len(self.bytes));
        let start = end.saturating_sub(F::upper_len(self.bytes));
        Some(range(self.bytes, start, end))
    }

    #[inline]
    pub(super) fn covers(self, key: &[u8]) -> bool {
        key >= self.lower_fence() && self.upper_fence().is_none_or(|upper| key < upper)
    }

    #[inline]
    pub(super) fn prefix(self) -> &'a [u8] {
        let len = F::prefix_len(self.bytes);
        self.lower_fence().get(..len).unwrap_or_default()
    }

    /// As [`Body::search`], for a whole key. A key outside the fences is never found.
    #[inline]
    pub(super) fn search_key(self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        match key.strip_prefix(prefix) {
            Some(suffix) => self.search(suffix),
            None if key < prefix => Err(0),
            None => Err(self.count()),
        }
    }

    #[inline]
    pub(super) fn get(self, key: &[u8]) -> Option<&'a [u8]> {
        if F::SORTED {
            let index = self.search_key(key).ok()?;
            return self.slots().get(index).map(|raw| self.value_of(raw));
        }
        let slot = F::find(self.bytes, key.strip_prefix(self.prefix())?)?;
        self.slots().get(slot).map(|raw| self.value_of(raw))
    }

    /// As [`Body::place`], for a whole key.
    #[inline]
    pub(super) fn place_key(self, key: &[u8]) -> Option<usize> {
        self.place(key.strip_prefix(self.prefix())?).ok()
    }
}

/// The key suffix that a slot names.
#[inline]
pub(super) fn suffix<'a>(bytes: &'a [u8], slot: &Slot) -> &'a [u8] {
    let start = usize::from(slot.offset);
    range(bytes, start, start + usize::from(slot.key_len))
}

/// The value that a slot names.
#[inline]
pub(super) fn value<'a>(bytes: &'a [u8], slot: &Slot) -> &'a [u8] {
    let start = usize::from(slot.offset) + usize::from(slot.key_len);
    range(bytes, start, start + usize::from(slot.value_len))
}

/// Returns bytes `start..end`, or an empty slice if a damaged page points outside.
#[inline]
fn range(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    bytes.get(start..end).unwrap_or_default()
}
