//! Builds dense pages from scratch, as [`super::image`] does for pages with slots. The caller then
//! copies the segments that differ.

use super::change::Untracked;
use super::dense::{Dense, DenseFormat, header, numbers, put};
use super::envelope::Fences;
use super::envelope::{MAGIC, field, put_at};
use super::limit::{Refused, limits};
use crate::types::{Lsn, PageId};

/// Describes the empty dense page that [`empty`] makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Empty<'a> {
    pub(super) size: usize,
    pub(super) id: PageId,
    pub(super) lsn: Lsn,
    pub(super) fences: Fences<'a>,
    /// The length of all keys.
    pub(super) key_len: usize,
    /// The length of all values, where they have one.
    pub(super) value_len: usize,
}

impl<'a> Empty<'a> {
    /// Describes a page whose key and value lengths will come from its records.
    pub(super) fn of(id: PageId, lsn: Lsn, size: usize, fences: Fences<'a>) -> Empty<'a> {
        Empty {
            size,
            id,
            lsn,
            fences,
            key_len: 0,
            value_len: 0,
        }
    }
}

/// Makes an empty page with these fences, for keys of this length. Its checksum is zero.
///
/// # Errors
/// [`Refused::Unfit`] if the lower fence does not contain the fixed part of such keys, or the page
/// would have no place.
pub(super) fn empty<D: DenseFormat>(empty: Empty<'_>) -> Result<Vec<u8>, Refused> {
    let Empty {
        size,
        fences: Fences { lower, upper },
        key_len,
        ..
    } = empty;
    let upper_bytes = upper.unwrap_or_default();
    let max_key = limits(size).max_key;
    if lower.len().max(upper_bytes.len()) > max_key {
        return Err(Refused::TooLarge);
    }
    if upper.is_some_and(|upper| lower >= upper) {
        return Err(Refused::NotCovered);
    }
    if key_len == 0 || key_len > max_key || empty.value_len > limits(size).max_record {
        return Err(Refused::Unfit);
    }
    let numbers = numbers(empty.fences, key_len)?;
    let mut bytes = vec![0; size];
    put_at(&mut bytes, field::PAGE_ID, empty.id.0.to_le_bytes());
    put_at(&mut bytes, field::LSN, empty.lsn.0.to_le_bytes());
    put_at(&mut bytes, field::MAGIC, MAGIC.to_le_bytes());
    bytes[field::KIND] = D::LAYOUT.number();
    bytes[field::SIZE_LOG2] = size.ilog2() as u8;
    let mut set = |at, number: usize| put_at(&mut bytes, at, (number as u16).to_le_bytes());
    set(header::KEY_LEN, key_len);
    set(header::LOWER_LEN, lower.len());
    set(header::UPPER_LEN, upper_bytes.len());
    set(header::VALUE, empty.value_len);
    bytes[header::BOUNDED] = u8::from(upper.is_some());
    // The reference fits 32 bits, because a number at or above it exists.
    let reference = numbers.start as u32;
    put_at(&mut bytes, header::REFERENCE, reference.to_le_bytes());
    bytes[size - lower.len()..].copy_from_slice(lower);
    let tail = size
        .checked_sub(D::tail_len(&bytes))
        .ok_or(Refused::Unfit)?;
    if tail < header::END {
        return Err(Refused::Unfit);
    }
    bytes[tail..tail + upper_bytes.len()].copy_from_slice(upper_bytes);
    let places = D::places(&bytes, numbers.end - numbers.start)?;
    put_at(&mut bytes, header::PLACES, (places as u16).to_le_bytes());
    D::init(&mut bytes);
    Ok(bytes)
}

/// Makes a copy of a page with other fences, and with only those records whose keys lie below
/// `end`.
///
/// # Errors
/// As [`empty`] and [`put`].
pub(super) fn narrowed<D: DenseFormat>(
    page: Dense<'_, D>,
    shape: Empty<'_>,
    end: &[u8],
) -> Result<Vec<u8>, Refused> {
    let mut bytes = empty::<D>(Empty {
        key_len: page.key_len(),
        value_len: D::value_len(page.bytes()),
        ..shape
    })?;
    for place in (0..page.first_place(end)).filter(|&place| D::has(page.bytes(), place)) {
        let key = [page.prefix(), &page.suffix_at(place)].concat();
        put::<D>(&mut bytes, &key, page.value_at(place), &mut Untracked)?;
    }
    Ok(bytes)
}

/// Makes a page as [`empty`] does and fills it with `records`, whose keys must ascend strictly.
///
/// # Errors
/// As [`empty`] and [`put`]; also [`Refused::NotCovered`] and [`Refused::OutOfOrder`].
pub(super) fn build<D: DenseFormat, K: AsRef<[u8]>, V: AsRef<[u8]>>(
    shape: Empty<'_>,
    records: impl IntoIterator<Item = (K, V)>,
) -> Result<Vec<u8>, Refused> {
    let mut records = records.into_iter().peekable();
    let first = records.peek().ok_or(Refused::Unfit)?;
    let shape = Empty {
        key_len: first.0.as_ref().len(),
        value_len: first.1.as_ref().len(),
        ..shape
    };
    let mut bytes = empty::<D>(shape)?;
    let mut last = None;
    for (key, value) in records {
        let (key, value) = (key.as_ref(), value.as_ref());
        let page = Dense::<D>::new(&bytes);
        if !page.covers(key) {
            return Err(Refused::NotCovered);
        }
        let place = page.place(key).ok_or(Refused::Unfit)?;
        if last.is_some_and(|last| last >= place) {
            return Err(Refused::OutOfOrder);
        }
        last = Some(place);
        put::<D>(&mut bytes, key, value, &mut Untracked)?;
    }
    Ok(bytes)
}
