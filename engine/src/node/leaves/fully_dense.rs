//! Fully dense leaves: an array of values of one length, and a bitmap of the places that have a
//! record (B-Trees Are Back §3.5, "Fully Dense Leaves").
//!
//! ```text
//!   48                 48 + places/8                               page size
//!   +----------------+--------------+---------+- ... -+-----+-----------------------+-------+
//!   | header         | bitmap       | value 0 | value 1 ->  | room for an upper fence | lower |
//!   +----------------+--------------+---------+- ... -+-----+-----------------------+-------+
//! ```
//!
//! The page has as many places as fit, whether or not their keys lie between the fences. With
//! 8-byte values and 4-byte keys, that is 500 places in 4 KiB behind an envelope. A page of a small
//! range therefore wastes room that another layout would use. A page whose range exceeds its places
//! ends its range there: a *dense split* moves no record. The page gets a new upper fence, for
//! which room of a key's length is always reserved, and the rest of the range goes to a new page.
//! Ascending keys fill page after page to the last place.

use std::ops::Range;

use crate::mutation;
use crate::node::change::Track;
use crate::node::dense::{DenseFormat, header, need};
use crate::node::envelope::u16_at;
use crate::node::limit::Refused;
use crate::options::PageLayout;

/// The fully dense layout, see the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullyDense;

#[inline]
fn u16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16_at(bytes, at))
}

impl FullyDense {
    #[inline]
    fn bitmap_end(bytes: &[u8]) -> usize {
        header::END + u16(bytes, header::PLACES).div_ceil(8)
    }

    #[inline]
    fn range(bytes: &[u8], place: usize) -> Range<usize> {
        let len = u16(bytes, header::VALUE);
        let start = Self::bitmap_end(bytes) + place * len;
        start..start + len
    }

    /// The number of places that fit before byte `end`.
    fn fitting(end: usize, value_len: usize) -> usize {
        let bits = 8 * end.saturating_sub(header::END);
        let mut places = bits / (8 * value_len + 1);
        // The last byte of the bitmap may be partly used.
        while places > 0 && header::END + places.div_ceil(8) + places * value_len > end {
            places -= 1;
        }
        places.min(u16::MAX.into())
    }
}

impl DenseFormat for FullyDense {
    const LAYOUT: PageLayout = PageLayout::FullyDense;
    const BESIDE: usize = 0;
    const ONE_LENGTH: bool = true;

    #[inline]
    fn tail_len(bytes: &[u8]) -> usize {
        let upper = u16(bytes, header::UPPER_LEN).max(u16(bytes, header::KEY_LEN));
        u16(bytes, header::LOWER_LEN) + upper
    }

    #[inline]
    fn has(bytes: &[u8], place: usize) -> bool {
        place < u16(bytes, header::PLACES)
            && (bytes.get(header::END + place / 8)).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
    }

    #[inline]
    fn next(bytes: &[u8], from: usize) -> Option<usize> {
        let bitmap = bytes.get(header::END + from / 8..Self::bitmap_end(bytes))?;
        let (first, rest) = bitmap.split_first()?;
        let place = match first >> (from % 8) {
            // The rest of this byte is empty: go on by eight places at a time.
            0 => {
                let (skipped, bits) = rest.iter().enumerate().find(|(_, bits)| **bits != 0)?;
                (from / 8 + 1 + skipped) * 8 + bits.trailing_zeros() as usize
            }
            bits => from + bits.trailing_zeros() as usize,
        };
        (place < u16(bytes, header::PLACES)).then_some(place)
    }

    fn taken(bytes: &[u8], places: Range<usize>) -> usize {
        let end = places.end.min(u16(bytes, header::PLACES));
        let (whole, rest) = (end / 8, end % 8);
        let bitmap = bytes.get(header::END..header::END + end.div_ceil(8));
        let bitmap = bitmap.unwrap_or_default();
        let ones: u32 = bitmap
            .iter()
            .take(whole)
            .map(|byte| byte.count_ones())
            .sum();
        let last = bitmap.get(whole).map_or(0, |byte| byte & ((1 << rest) - 1));
        let all = (ones + last.count_ones()) as usize;
        match places.start {
            0 => all,
            start => all.saturating_sub(Self::taken(bytes, 0..start)),
        }
    }

    #[inline]
    fn value(bytes: &[u8], place: usize) -> &[u8] {
        bytes.get(Self::range(bytes, place)).unwrap_or_default()
    }

    #[inline]
    fn used_bytes(bytes: &[u8]) -> usize {
        let values = u16(bytes, header::COUNT) * u16(bytes, header::VALUE);
        Self::bitmap_end(bytes) + values + Self::tail_len(bytes)
    }

    fn places(bytes: &[u8], keys: u64) -> Result<usize, Refused> {
        let end = bytes.len() - Self::tail_len(bytes);
        let fitting = Self::fitting(end, u16(bytes, header::VALUE));
        // Keys behind the upper fence have places, too, but keys whose number does not exist have
        // none.
        let numeric = u16(bytes, header::KEY_LEN).min(4);
        let reference = u64::from(crate::node::envelope::u32_at(bytes, header::REFERENCE));
        let all = (1 << (8 * numeric)) - reference;
        match fitting.min(usize::try_from(all).unwrap_or(usize::MAX)) {
            0 => Err(Refused::Unfit),
            _ if keys == 0 => Err(Refused::Unfit),
            places => Ok(places),
        }
    }

    fn value_len(bytes: &[u8]) -> usize {
        u16(bytes, header::VALUE)
    }

    fn init(_: &mut [u8]) {}

    #[inline]
    fn put(
        bytes: &mut [u8],
        place: usize,
        value: &[u8],
        track: &mut impl Track,
    ) -> Result<(), Refused> {
        let range = Self::range(bytes, place);
        let value = match mutation::on("dense-cuts-value") {
            true => value.get(..range.len()).unwrap_or(value),
            false => value,
        };
        if value.len() != range.len() {
            return Err(Refused::Unfit);
        }
        let bit = header::END + place / 8;
        if bit >= bytes.len() {
            return Err(Refused::Unfit);
        }
        let Some(old) = bytes.get_mut(range.clone()) else {
            return Err(Refused::Unfit);
        };
        if old != value {
            old.copy_from_slice(value);
            track.mark(range);
        }
        let with = bytes[bit] | 1 << (place % 8);
        if bytes[bit] != with {
            bytes[bit] = with;
            track.mark(bit..bit + 1);
        }
        Ok(())
    }

    fn remove(bytes: &mut [u8], place: usize, track: &mut impl Track) {
        let range = Self::range(bytes, place);
        if let Some(old) = bytes.get_mut(range.clone()) {
            old.fill(0);
            track.mark(range);
        }
        let bit = header::END + place / 8;
        if let Some(byte) = bytes.get_mut(bit) {
            *byte &= !(1 << (place % 8));
            track.mark(bit..bit + 1);
        }
    }

    fn check(bytes: &[u8]) -> Result<(), (String, String, String)> {
        let end = bytes.len() - Self::tail_len(bytes);
        let places = u16(bytes, header::PLACES);
        let most = Self::fitting(end, u16(bytes, header::VALUE));
        need(places <= most, "number of places", "as many as fit", places)?;
        let stray = u16(bytes, header::USED);
        need(stray == 0, "sum of the reserved header bytes", "0", stray)?;
        let beyond = (places..places.next_multiple_of(8))
            .filter(|place| bytes[header::END + place / 8] >> (place % 8) & 1 == 1);
        need(beyond.count() == 0, "bits beyond the places", "0", 1)?;
        let vacant = (0..places).filter(|&place| !Self::has(bytes, place));
        let stale = vacant.filter(|&place| Self::value(bytes, place).iter().any(|&b| b != 0));
        let stale = stale.count();
        need(
            stale == 0,
            "places that are vacant and hold a value",
            "0",
            stale,
        )
    }
}
