//! Dense leaves: keys that are numbers are not stored but follow from a record's position (B-Trees
//! Are Back §3.5).
//!
//! All keys of a dense page have one length, and differ in their last four bytes at most. These
//! bytes are the *numeric part*, read as a big-endian number. The bytes before are the *fixed
//! part*, which the lower fence contains. A key's place is its number minus the *reference*: the
//! number of the smallest key of this length that is not below the lower fence.
//!
//! ```text
//!   key  w i k i 0 0 1 7        fixed part: wiki      place: 0x0017 - reference
//!        |fixed| |numeric
//! ```
//!
//! | bytes | field |
//! |---|---|
//! | 28-29 | number of records |
//! | 30-31 | length of all keys |
//! | 32-33, 34-35 | lengths of lower and upper fence |
//! | 36 | 1 if there is an upper fence, 0 if the page is the rightmost one |
//! | 37 | zero |
//! | 38-39 | fully dense: length of all values; semi-dense: bytes from lowest value to end |
//! | 40-43 | the reference |
//! | 44-45 | number of places |
//! | 46-47 | fully dense: zeros; semi-dense: live heap bytes |
//!
//! This module has what both kinds share; [`super::leaves::fully_dense`] and
//! [`super::leaves::semi_dense`] store the values. Neither compares keys: a search is a
//! subtraction.
//!
//! A record that does not fit such a page (its length differs, or its number lies beyond the
//! places) is refused with [`Refused::Unfit`]. The caller then decides whether to convert the page
//! or to split it ([`super::choice`]).

use std::marker::PhantomData;
use std::ops::Range;

use super::change::Track;
use super::envelope::Fences;
use super::envelope::{put_at, u16_at, u32_at};
use super::limit::{Refused, limits};
use super::suffix::Suffix;
use crate::mutation;
use crate::options::PageLayout;

/// Where each field of the header begins.
pub(super) mod header {
    pub(in crate::node) const COUNT: usize = 28;
    pub(in crate::node) const KEY_LEN: usize = 30;
    pub(in crate::node) const LOWER_LEN: usize = 32;
    pub(in crate::node) const UPPER_LEN: usize = 34;
    pub(in crate::node) const BOUNDED: usize = 36;
    pub(in crate::node) const RESERVED: usize = 37;
    pub(in crate::node) const VALUE: usize = 38;
    pub(in crate::node) const REFERENCE: usize = 40;
    pub(in crate::node) const PLACES: usize = 44;
    pub(in crate::node) const USED: usize = 46;
    pub(in crate::node) const END: usize = 48;
}

/// The longest numeric part.
const NUMERIC: usize = size_of::<u32>();

/// How a dense page stores its values. Damaged bytes give wrong answers, but never a panic.
pub(crate) trait DenseFormat: Copy + 'static {
    const LAYOUT: PageLayout;
    /// Bytes of [`DenseFormat::used_bytes`] that a record takes beside its value. The key takes
    /// none.
    const BESIDE: usize;
    /// Whether all values of a page have the same length.
    const ONE_LENGTH: bool;

    /// Bytes behind the values: the fences, and room for one fence.
    fn tail_len(bytes: &[u8]) -> usize;
    /// Returns whether the place has a record.
    fn has(bytes: &[u8], place: usize) -> bool;
    /// The first place from `from` on that has a record.
    fn next(bytes: &[u8], from: usize) -> Option<usize>;
    /// Counts the places in the range that have a record.
    fn taken(bytes: &[u8], places: Range<usize>) -> usize;
    /// The value at a place; empty if the place has no record.
    fn value(bytes: &[u8], place: usize) -> &[u8];
    /// Bytes in use: all that further records cannot take.
    fn used_bytes(bytes: &[u8]) -> usize;
    /// The number of places that an empty page gets. All other fields of its header are set; keys
    /// between its fences have `keys` numbers from the reference on.
    ///
    /// # Errors
    /// [`Refused::Unfit`] if no page can be made of these.
    fn places(bytes: &[u8], keys: u64) -> Result<usize, Refused>;
    /// The length of all values, where they have one.
    fn value_len(bytes: &[u8]) -> usize;
    /// Initialises an empty page whose number of places is set.
    fn init(bytes: &mut [u8]);
    /// Sets the value at a place.
    ///
    /// # Errors
    /// [`Refused::Unfit`] for a value of the wrong length, [`Refused::NoSpace`] if the value does
    /// not fit.
    fn put(
        bytes: &mut [u8],
        place: usize,
        value: &[u8],
        track: &mut impl Track,
    ) -> Result<(), Refused>;
    /// Removes the record at a place, which must have one.
    fn remove(bytes: &mut [u8], place: usize, track: &mut impl Track);
    /// Checks the layout. An error is a triple of what, expected and found.
    fn check(bytes: &[u8]) -> Result<(), (String, String, String)>;
}

/// A read-only view of a dense page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dense<'a, D> {
    bytes: &'a [u8],
    format: PhantomData<D>,
}

/// The number that the `len` bytes of a numeric part encode. Fewer bytes are read as if they ended
/// in zeros.
#[inline]
fn number(bytes: &[u8], len: usize) -> u32 {
    if let (Some(all), NUMERIC) = (bytes.first_chunk::<NUMERIC>(), len) {
        return u32::from_be_bytes(*all);
    }
    let mut padded = [0; NUMERIC];
    let from = NUMERIC - len;
    let given = bytes.len().min(len);
    padded[from..from + given].copy_from_slice(&bytes[..given]);
    u32::from_be_bytes(padded)
}

/// The length of the numeric part of keys of this length.
#[inline]
fn numeric_len(key_len: usize) -> usize {
    key_len.min(NUMERIC)
}

/// Iterator over the records of a dense page as (key suffix, value).
#[derive(Clone, Debug)]
pub(super) struct DenseRecords<'a, D> {
    page: Dense<'a, D>,
    places: Range<usize>,
    left: usize,
}

impl<'a, D: DenseFormat> DenseRecords<'a, D> {
    pub(super) fn new(page: Dense<'a, D>, rank: usize) -> Self {
        let places = page.places_from(rank);
        let left = D::taken(page.bytes, places.clone());
        DenseRecords { page, places, left }
    }

    pub(super) fn len(&self) -> usize {
        self.left
    }

    fn record(&mut self, place: usize) -> (Suffix<'a>, &'a [u8]) {
        self.left = self.left.saturating_sub(1);
        (self.page.suffix_at(place), self.page.value_at(place))
    }

    pub(super) fn fold<B>(
        mut self,
        mut b: B,
        mut f: impl FnMut(B, (Suffix<'a>, &'a [u8])) -> B,
    ) -> B {
        while let Some(record) = self.next() {
            b = f(b, record);
        }
        b
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<(Suffix<'a>, &'a [u8])> {
        let bytes = self.page.bytes;
        let place = self.places.find(|&place| D::has(bytes, place))?;
        Some(self.record(place))
    }

    #[inline]
    pub(super) fn next_back(&mut self) -> Option<(Suffix<'a>, &'a [u8])> {
        let bytes = self.page.bytes;
        let place = self.places.rfind(|&place| D::has(bytes, place))?;
        Some(self.record(place))
    }
}

/// The number of the first key of length `key_len` that is not below `bound`, which contains the
/// fixed part. If there is none, one more than the greatest number.
fn first_from(bound: &[u8], key_len: usize) -> u64 {
    let numeric = numeric_len(key_len);
    let rest = bound.get(key_len - numeric..).unwrap_or_default();
    u64::from(number(rest, numeric)) + u64::from(rest.len() > numeric)
}

/// The range of numbers, from the reference on, that keys of this length have between these fences.
///
/// # Errors
/// [`Refused::Unfit`] if the lower fence does not contain the fixed part, or the range is empty.
pub(super) fn numbers(fences: Fences<'_>, key_len: usize) -> Result<Range<u64>, Refused> {
    let numeric = numeric_len(key_len);
    let fixed = key_len - numeric;
    let in_lower = fences.lower.get(..fixed).ok_or(Refused::Unfit)?;
    let reference = first_from(fences.lower, key_len);
    let all = 1 << (8 * numeric);
    let end = match fences.upper {
        Some(upper) if upper.starts_with(in_lower) => first_from(upper, key_len),
        // Also if the upper fence has another fixed part, which is then a greater one.
        _ => all,
    };
    if reference < end.min(all) {
        Ok(reference..end.min(all))
    } else {
        Err(Refused::Unfit)
    }
}

impl<'a, D: DenseFormat> Dense<'a, D> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Dense {
            bytes,
            format: PhantomData,
        }
    }

    #[inline]
    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn u16(self, at: usize) -> usize {
        usize::from(u16_at(self.bytes, at))
    }

    /// Number of records.
    #[inline]
    pub(super) fn count(self) -> usize {
        self.u16(header::COUNT)
    }

    #[inline]
    pub(super) fn key_len(self) -> usize {
        self.u16(header::KEY_LEN)
    }

    #[inline]
    fn reference(self) -> u32 {
        u32_at(self.bytes, header::REFERENCE)
    }

    #[inline]
    pub(super) fn places(self) -> usize {
        self.u16(header::PLACES)
    }

    #[inline]
    fn fixed_len(self) -> usize {
        self.key_len() - numeric_len(self.key_len())
    }

    #[inline]
    pub(super) fn lower_fence(self) -> &'a [u8] {
        let end = self.bytes.len();
        let start = end.saturating_sub(self.u16(header::LOWER_LEN));
        self.bytes.get(start..end).unwrap_or_default()
    }

    #[inline]
    pub(super) fn upper_fence(self) -> Option<&'a [u8]> {
        if self.bytes[header::BOUNDED] == 0 {
            return None;
        }
        let start = self.bytes.len().saturating_sub(D::tail_len(self.bytes));
        let end = start + self.u16(header::UPPER_LEN);
        Some(self.bytes.get(start..end).unwrap_or_default())
    }

    #[inline]
    pub(super) fn covers(self, key: &[u8]) -> bool {
        key >= self.lower_fence() && self.upper_fence().is_none_or(|upper| key < upper)
    }

    /// The fixed part.
    #[inline]
    pub(super) fn prefix(self) -> &'a [u8] {
        let fence = self.lower_fence();
        fence.get(..self.fixed_len()).unwrap_or_default()
    }

    /// The place of a key, if this page has one for it.
    #[inline]
    pub(super) fn place(self, key: &[u8]) -> Option<usize> {
        let (len, fixed) = (self.key_len(), self.fixed_len());
        // Without a fixed part, do not read the fence at the page's other end.
        if key.len() != len || len == 0 || (fixed > 0 && key.get(..fixed)? != self.prefix()) {
            return None;
        }
        let numeric = key.get(fixed..)?;
        let place = number(numeric, numeric.len()).checked_sub(self.reference())? as usize;
        (place < self.places()).then_some(place)
    }

    #[inline]
    pub(super) fn get(self, key: &[u8]) -> Option<&'a [u8]> {
        let place = self.place(key)?;
        D::has(self.bytes, place).then(|| D::value(self.bytes, place))
    }

    /// The first place whose key is not smaller than `key`, or the number of places if there is
    /// none.
    pub(super) fn first_place(self, key: &[u8]) -> usize {
        let prefix = self.prefix();
        if !key.starts_with(prefix) {
            return if key < prefix { 0 } else { self.places() };
        }
        let from = first_from(key, self.key_len());
        let place = from.saturating_sub(self.reference().into());
        usize::try_from(place).map_or(self.places(), |place| place.min(self.places()))
    }

    #[inline]
    pub(super) fn search_key(self, key: &[u8]) -> Result<usize, usize> {
        let place = self.first_place(key);
        let rank = D::taken(self.bytes, 0..place);
        match self.place(key) {
            Some(at) if D::has(self.bytes, at) => Ok(rank),
            _ => Err(rank),
        }
    }

    /// The range of places that starts with the record of this rank.
    pub(super) fn places_from(self, rank: usize) -> Range<usize> {
        let mut first = 0;
        if rank > 0 {
            let mut left = rank;
            while first < self.places() && left > 0 {
                left -= usize::from(D::has(self.bytes, first));
                first += 1;
            }
        }
        first..self.places()
    }

    fn place_of(self, rank: usize) -> Option<usize> {
        (self.places_from(rank)).find(|&place| D::has(self.bytes, place))
    }

    /// The numeric part of the key at a place.
    #[inline]
    pub(super) fn suffix_at(self, place: usize) -> Suffix<'a> {
        let number = self.reference().wrapping_add(place as u32);
        Suffix::number(number, numeric_len(self.key_len()))
    }

    #[inline]
    pub(super) fn value_at(self, place: usize) -> &'a [u8] {
        D::value(self.bytes, place)
    }

    pub(super) fn suffix(self, rank: usize) -> Suffix<'a> {
        match self.place_of(rank) {
            Some(place) => self.suffix_at(place),
            None => Suffix::stored(&[]),
        }
    }

    pub(super) fn value(self, rank: usize) -> &'a [u8] {
        self.place_of(rank)
            .map_or(&[], |place| self.value_at(place))
    }

    #[inline]
    pub(super) fn used_bytes(self) -> usize {
        D::used_bytes(self.bytes)
    }

    #[inline]
    pub(super) fn free_bytes(self) -> usize {
        self.bytes.len().saturating_sub(self.used_bytes())
    }

    /// Bytes of keys and values in a page with slots that leaves out the first `prefix` bytes of
    /// each key.
    pub(super) fn payload_bytes(self, prefix: usize) -> usize {
        let places = (0..self.places()).filter(|&place| D::has(self.bytes, place));
        let key = self.key_len().saturating_sub(prefix);
        places.map(|place| key + self.value_at(place).len()).sum()
    }

    /// The first key behind the places, if its number exists.
    pub(super) fn end(self) -> Option<Vec<u8>> {
        let numeric = numeric_len(self.key_len());
        let next = u64::from(self.reference()) + self.places() as u64;
        let next = u32::try_from(next).ok()?;
        (u64::from(next) < 1 << (8 * numeric))
            .then(|| [self.prefix(), &next.to_be_bytes()[NUMERIC - numeric..]].concat())
    }

    /// The key of [`Dense::end`], if it lies below the upper fence.
    pub(super) fn beyond(self) -> Option<Vec<u8>> {
        self.end().filter(|key| self.covers(key))
    }

    /// Checks the header. An error is a triple of what, expected and found. Later checks rely on
    /// earlier ones.
    pub(super) fn check_numbers(self) -> Result<(), (String, String, String)> {
        let size = self.bytes.len();
        need(
            self.bytes[header::BOUNDED] <= 1,
            "upper-fence flag",
            "0 or 1",
            self.bytes[header::BOUNDED].into(),
        )?;
        let stray = usize::from(self.bytes[header::RESERVED]);
        need(stray == 0, "sum of the reserved header bytes", "0", stray)?;
        let upper = self.u16(header::UPPER_LEN);
        let none = self.bytes[header::BOUNDED] == 1 || upper == 0;
        need(
            none,
            "upper-fence length",
            "0 without an upper fence",
            upper,
        )?;
        let room = size - header::END;
        let tail = D::tail_len(self.bytes);
        need(tail <= room, "fence lengths", "within the page", tail)?;
        let ordered = self.upper_fence().is_none_or(|u| self.lower_fence() < u);
        need(ordered, "upper fence", "above the lower fence", upper)?;
        let len = self.key_len();
        let most = limits(size).max_key;
        need(
            (1..=most).contains(&len),
            "key length",
            "from 1 to the longest key allowed",
            len,
        )?;
        let fences = Fences {
            lower: self.lower_fence(),
            upper: self.upper_fence(),
        };
        let numbers = numbers(fences, len).unwrap_or_default();
        let reference = u64::from(self.reference());
        let same = numbers.start == reference && !numbers.is_empty();
        need(
            same,
            "reference",
            "the first number from the lower fence on",
            reference as usize,
        )?;
        let places = self.places();
        let all = u64::from(self.reference()) + places as u64;
        let within = places >= 1 && all <= 1 << (8 * numeric_len(len));
        need(
            within,
            "number of places",
            "at least 1, at most all numbers",
            places,
        )?;
        need(
            self.used_bytes() <= size,
            "used bytes",
            "within the page",
            self.used_bytes(),
        )
    }

    /// Checks everything behind the header. An error is a triple of what, expected and found.
    pub(super) fn check_records(self) -> Result<(), (String, String, String)> {
        D::check(self.bytes)?;
        let taken = D::taken(self.bytes, 0..self.places());
        need(
            self.count() == taken,
            "number of records",
            "the number of places taken",
            self.count(),
        )?;
        let last = (0..self.places())
            .rev()
            .find(|&place| D::has(self.bytes, place));
        let key = last.map(|place| [self.prefix(), &self.suffix_at(place)].concat());
        let covered = key.is_none_or(|key| self.covers(&key));
        need(
            covered,
            "last record",
            "one within the fences",
            last.unwrap_or(0),
        )
    }
}

/// Returns an error (what, expected, found) unless `holds`.
pub(super) fn need(
    holds: bool,
    what: &str,
    expected: &str,
    found: usize,
) -> Result<(), (String, String, String)> {
    if holds {
        Ok(())
    } else {
        Err((what.into(), expected.into(), found.to_string()))
    }
}

/// Puts a record into a page. Returns whether the key is new.
///
/// # Errors
/// [`Refused::Unfit`] if the page has no place for the key or the value has the wrong length,
/// [`Refused::NoSpace`] if the value does not fit.
pub(super) fn put<D: DenseFormat>(
    bytes: &mut [u8],
    key: &[u8],
    value: &[u8],
    track: &mut impl Track,
) -> Result<bool, Refused> {
    let page = Dense::<D>::new(bytes);
    let place = page.place(key).ok_or(Refused::Unfit)?;
    let (new, count) = (!D::has(bytes, place), page.count());
    D::put(bytes, place, value, track)?;
    if new {
        track.mark(put_at(
            bytes,
            header::COUNT,
            (count as u16 + 1).to_le_bytes(),
        ));
    }
    Ok(new)
}

/// Removes a key. Returns whether it was present.
pub(super) fn delete<D: DenseFormat>(bytes: &mut [u8], key: &[u8], track: &mut impl Track) -> bool {
    let page = Dense::<D>::new(bytes);
    let Some(place) = page.place(key).filter(|&place| D::has(bytes, place)) else {
        return false;
    };
    let count = page.count().saturating_sub(1) as u16;
    if !mutation::on("dense-delete-keeps-bit") {
        D::remove(bytes, place, track);
    }
    track.mark(put_at(bytes, header::COUNT, count.to_le_bytes()));
    true
}
