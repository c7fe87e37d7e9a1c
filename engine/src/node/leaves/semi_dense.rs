//! Semi-dense leaves: an offset for every possible key, which points to a value of any length or to
//! none (B-Trees Are Back §3.5, "Semi Dense Leaves").
//!
//! ```text
//!   48        48 + 2 places                                           page size
//!   +--------+----------+- ... -+-----+----------------+-------+-------+
//!   | header | offsets  | ->    | gap | <- len, value  | upper | lower |
//!   +--------+----------+- ... -+-----+----------------+-------+-------+
//!
//!   offset (2 B): points to a value's length (2 B), which its bytes follow; 0: no record
//! ```
//!
//! Every key between the fences has a place, so the upper fence must have the fixed part, too, and
//! every key of the right length that belongs to the page has a place. A vacant place costs two
//! bytes: with 8-byte values and one key in five present, such a page holds about as many records
//! as a page with slots. Splits are at the median.

use std::ops::Range;

use crate::mutation;
use crate::node::change::{Track, Untracked};
use crate::node::dense::{DenseFormat, header, need};
use crate::node::envelope::{put_at, u16_at};
use crate::node::limit::Refused;
use crate::options::PageLayout;

/// The semi-dense layout, see the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SemiDense;

/// Bytes of the length before a value.
const LEN: usize = size_of::<u16>();

#[inline]
fn u16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16_at(bytes, at))
}

impl SemiDense {
    #[inline]
    fn offset_at(place: usize) -> usize {
        header::END + place * LEN
    }

    /// The offset of a place's value, which begins with its length; 0 if the place has no record.
    #[inline]
    fn offset(bytes: &[u8], place: usize) -> usize {
        if place >= u16(bytes, header::PLACES) {
            return 0;
        }
        let at = Self::offset_at(place);
        (bytes.get(at..at + LEN)).map_or(0, |_| u16(bytes, at))
    }

    /// The range of the value's bytes at a place; `None` if the place has no record.
    #[inline]
    fn range(bytes: &[u8], place: usize) -> Option<Range<usize>> {
        let offset = Self::offset(bytes, place);
        if offset == 0 || offset + LEN > bytes.len() {
            return None;
        }
        let start = offset + LEN;
        let end = start + u16(bytes, offset);
        (end <= bytes.len()).then_some(start..end)
    }

    /// The start of the lowest value.
    fn heap_start(bytes: &[u8]) -> usize {
        bytes.len().saturating_sub(u16(bytes, header::VALUE))
    }

    fn offsets_end(bytes: &[u8]) -> usize {
        Self::offset_at(u16(bytes, header::PLACES))
    }

    fn set(bytes: &mut [u8], at: usize, number: usize, track: &mut impl Track) {
        track.mark(put_at(bytes, at, (number as u16).to_le_bytes()));
    }

    /// Moves all values together, up to the fences.
    fn compact(bytes: &mut [u8], track: &mut impl Track) {
        let old = bytes.to_vec();
        let mut start = bytes.len().saturating_sub(Self::tail_len(bytes));
        let low = Self::offsets_end(bytes).min(start);
        bytes[low..start].fill(0);
        for place in 0..u16(&old, header::PLACES) {
            let Some(range) = Self::range(&old, place) else {
                continue;
            };
            let value = &old[range.start - LEN..range.end];
            // On damaged bytes, values may overlap and not fit.
            let Some(lower) = start.checked_sub(value.len()).filter(|&at| at >= low) else {
                return;
            };
            start = lower;
            bytes[start..start + value.len()].copy_from_slice(value);
            Self::set(bytes, Self::offset_at(place), start, &mut Untracked);
        }
        let heap = bytes.len() - start;
        Self::set(bytes, header::VALUE, heap, &mut Untracked);
        track.mark(0..bytes.len());
    }
}

impl DenseFormat for SemiDense {
    const LAYOUT: PageLayout = PageLayout::SemiDense;
    const BESIDE: usize = LEN;
    const ONE_LENGTH: bool = false;

    #[inline]
    fn tail_len(bytes: &[u8]) -> usize {
        u16(bytes, header::LOWER_LEN) + u16(bytes, header::UPPER_LEN)
    }

    #[inline]
    fn has(bytes: &[u8], place: usize) -> bool {
        Self::offset(bytes, place) != 0
    }

    #[inline]
    fn next(bytes: &[u8], from: usize) -> Option<usize> {
        let offsets = bytes.get(Self::offset_at(from)..Self::offsets_end(bytes))?;
        let mut offsets = offsets.as_chunks::<LEN>().0.iter();
        Some(from + offsets.position(|offset| *offset != [0; LEN])?)
    }

    fn taken(bytes: &[u8], places: Range<usize>) -> usize {
        let end = places.end.min(u16(bytes, header::PLACES));
        let range = Self::offset_at(places.start.min(end))..Self::offset_at(end);
        let offsets = bytes.get(range).unwrap_or_default().as_chunks::<LEN>().0;
        offsets.iter().filter(|offset| **offset != [0; LEN]).count()
    }

    #[inline]
    fn value(bytes: &[u8], place: usize) -> &[u8] {
        Self::range(bytes, place).map_or(&[], |range| &bytes[range])
    }

    #[inline]
    fn used_bytes(bytes: &[u8]) -> usize {
        Self::offsets_end(bytes) + u16(bytes, header::USED)
    }

    fn places(bytes: &[u8], keys: u64) -> Result<usize, Refused> {
        let end = bytes.len() - Self::tail_len(bytes);
        let most = (end - header::END) / LEN;
        // Without an upper fence, every number would need a place.
        usize::try_from(keys)
            .ok()
            .filter(|&keys| keys <= most)
            .ok_or(Refused::Unfit)
    }

    fn value_len(_: &[u8]) -> usize {
        0
    }

    fn init(bytes: &mut [u8]) {
        let tail = Self::tail_len(bytes);
        Self::set(bytes, header::VALUE, tail, &mut Untracked);
        Self::set(bytes, header::USED, tail, &mut Untracked);
    }

    fn put(
        bytes: &mut [u8],
        place: usize,
        value: &[u8],
        track: &mut impl Track,
    ) -> Result<(), Refused> {
        if Self::offset_at(place) + LEN > bytes.len() {
            return Err(Refused::Unfit);
        }
        let old = Self::range(bytes, place);
        if let Some(range) = old.clone().filter(|range| range.len() == value.len()) {
            if bytes[range.clone()] != *value {
                bytes[range.clone()].copy_from_slice(value);
                track.mark(range);
            }
            return Ok(());
        }
        let counts = mutation::on("semi-dense-counts-the-old");
        let gone = old.filter(|_| !counts).map_or(0, |range| LEN + range.len());
        let used = u16(bytes, header::USED);
        let (need, used) = (LEN + value.len(), used.saturating_sub(gone));
        if Self::offsets_end(bytes) + used + need > bytes.len() {
            return Err(Refused::NoSpace);
        }
        let gap = |bytes: &[u8]| Self::heap_start(bytes).saturating_sub(Self::offsets_end(bytes));
        if gap(bytes) < need {
            // The old value will be replaced, so compaction may drop it.
            Self::set(bytes, Self::offset_at(place), 0, track);
            Self::compact(bytes, track);
        }
        if gap(bytes) < need {
            // The numbers in the header are damaged.
            return Err(Refused::NoSpace);
        }
        let start = Self::heap_start(bytes) - need;
        put_at(bytes, start, (value.len() as u16).to_le_bytes());
        bytes[start + LEN..start + need].copy_from_slice(value);
        track.mark(start..start + need);
        let heap = bytes.len() - start;
        Self::set(bytes, header::VALUE, heap, track);
        Self::set(bytes, header::USED, used + need, track);
        Self::set(bytes, Self::offset_at(place), start, track);
        Ok(())
    }

    fn remove(bytes: &mut [u8], place: usize, track: &mut impl Track) {
        let gone = Self::range(bytes, place).map_or(0, |range| LEN + range.len());
        let used = u16(bytes, header::USED).saturating_sub(gone);
        Self::set(bytes, Self::offset_at(place), 0, track);
        Self::set(bytes, header::USED, used, track);
    }

    fn check(bytes: &[u8]) -> Result<(), (String, String, String)> {
        let end = bytes.len() - Self::tail_len(bytes);
        let (start, low) = (Self::heap_start(bytes), Self::offsets_end(bytes));
        need(
            low <= start && start <= end,
            "heap start",
            "between offsets and fences",
            start,
        )?;
        let mut extents = Vec::new();
        for place in 0..u16(bytes, header::PLACES) {
            if Self::offset(bytes, place) == 0 {
                continue;
            }
            let range = Self::range(bytes, place).unwrap_or_default();
            let within = range.start >= start + LEN && range.end <= end;
            need(
                within,
                "value of a record",
                "within the heap",
                Self::offset(bytes, place),
            )?;
            extents.push((range.start - LEN, range.end));
        }
        extents.sort_unstable();
        let apart = extents.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        need(apart, "values", "without overlaps", extents.len())?;
        let live: usize = extents.iter().map(|(start, end)| end - start).sum();
        let used = u16(bytes, header::USED);
        need(
            used == live + Self::tail_len(bytes),
            "used heap bytes",
            "values and fences",
            used,
        )
    }
}
