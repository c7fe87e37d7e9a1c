//! Leaves with fingerprints: one byte of hash for each record, searched many at a time (B-Trees Are
//! Back §3.4, after FPTree).
//!
//! ```text
//!   | header | slot 0 ... | ... slot count-1 | f0 f1 ... f(count-1) | gap
//!              in order     as they came       f: one byte of XXH3-64 of the key suffix
//! ```
//!
//! The header is that of [`super::slotted`], and the slots have no heads, as in [`super::plain`]. A
//! get hashes the key, compares sixteen fingerprints with one instruction where the target has one,
//! and then reads only the keys with an equal fingerprint. Of the other keys, one in 256 has an
//! equal one by chance.
//!
//! - **Two ranges.** A new record is appended. The header counts the leading slots that are in key
//!   order; the slots behind are in order of arrival. As long as keys arrive in order, all slots
//!   are in the first range (the paper always appends to the second).
//! - **Lazy sort.** Sorting is left to code that needs the order. It calls [`super::PageMut::sort`]
//!   before a scan, which changes no record. A reader that must not change the page sorts a copy of
//!   the slots. Splits and merges write their pages in order.
//! - **Prefix.** The prefix is not hashed, so fingerprints are computed again when it changes: at
//!   splits and merges, which rewrite pages anyway.
//!
//! *Difference from the paper.* The paper keeps the array on the heap, with spare capacity, and
//! moves it to grow. Here it stands behind the slots and is exactly as long as needed, so inserting
//! a record moves one byte for each record present.

use super::plain::headless;
use super::slotted::{format_by_header, format_by_slots, header, leaf_format_by_header};
use crate::node::body::Body;
use crate::node::envelope::{put_at, u16_at};
use crate::node::format::{Format, LeafFormat};
use crate::options::PageLayout;

/// The fingerprint layout, see the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprint;

/// The fingerprint of a key without the page's prefix.
#[inline]
pub(in crate::node) fn fingerprint(suffix: &[u8]) -> u8 {
    xxhash_rust::xxh3::xxh3_64(suffix) as u8
}

/// Returns a mask of the bytes that equal `wanted`: bit *i* for byte *i*.
#[cfg(target_arch = "x86_64")]
#[inline]
fn equal_in(bytes: &[u8; 16], wanted: u8) -> u16 {
    // SAFETY: every x86-64 has SSE2.
    unsafe { equal_with_sse2(bytes, wanted) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn equal_with_sse2(bytes: &[u8; 16], wanted: u8) -> u16 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let both = u128::from_le_bytes(*bytes);
    let bytes = _mm_set_epi64x((both >> 64) as i64, both as i64);
    _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(wanted as i8))) as u16
}

/// Returns a mask of the bytes that equal `wanted`: bit *i* for byte *i*.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn equal_in(bytes: &[u8; 16], wanted: u8) -> u16 {
    equal_portably(bytes, wanted)
}

/// As [`equal_in`], without vector instructions.
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "the tests compare"))]
#[inline]
fn equal_portably(bytes: &[u8; 16], wanted: u8) -> u16 {
    (bytes.iter().enumerate()).fold(0, |mask, (i, byte)| mask | u16::from(*byte == wanted) << i)
}

impl Fingerprint {
    /// The fingerprints of the records; empty if a damaged header puts their end outside the page.
    #[inline]
    fn prints(bytes: &[u8], count: usize) -> &[u8] {
        let at = Self::slot_at(count);
        bytes.get(at..at + count).unwrap_or_default()
    }

    #[inline]
    fn set_in_order(bytes: &mut [u8], slots: usize) {
        put_at(bytes, header::IN_ORDER, (slots as u16).to_le_bytes());
    }

    /// Returns whether slot `at` and the one before it are in key order; true for the first slot.
    #[inline]
    fn follows(bytes: &[u8], at: usize) -> bool {
        let page = Body::<Self>::new(bytes);
        let suffix = |raw: Option<&headless::Raw>| raw.map(|raw| page.suffix_of(raw));
        let slot = |at: usize| Self::slot_in(bytes.get(Self::slot_at(at)..)?);
        match at.checked_sub(1) {
            Some(before) => suffix(slot(before)) < suffix(slot(at)),
            None => true,
        }
    }
}

impl Format for Fingerprint {
    const SLOT_BYTES: usize = Self::STRIDE + 1;
    const SORTED: bool = false;
    const INDEXED: bool = true;
    format_by_header!();
    format_by_slots!(headless);

    #[inline]
    fn index_bytes(count: usize) -> usize {
        count
    }

    #[inline]
    fn in_order(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, header::IN_ORDER))
    }

    #[inline]
    fn find(bytes: &[u8], suffix: &[u8]) -> Option<usize> {
        let page = Body::<Self>::new(bytes);
        let slots = page.slots();
        let is_it = |at: usize| {
            let raw = slots.get(at)?;
            (page.suffix_of(raw) == suffix).then_some(at)
        };
        let wanted = fingerprint(suffix);
        let (groups, rest) = Self::prints(bytes, slots.len()).as_chunks::<16>();
        for (group, prints) in groups.iter().enumerate() {
            let mut equal = equal_in(prints, wanted);
            while equal != 0 {
                if let Some(at) = is_it(group * 16 + equal.trailing_zeros() as usize) {
                    return Some(at);
                }
                equal &= equal - 1;
            }
        }
        let first = groups.len() * 16;
        let candidates = rest
            .iter()
            .enumerate()
            .filter(|(_, print)| **print == wanted);
        candidates.map(|(at, _)| first + at).find_map(is_it)
    }

    fn build_index(bytes: &mut [u8], count: usize) {
        let mut in_order = None;
        for at in 0..count {
            let page = Body::<Self>::new(bytes);
            let slot = Self::slot_in(bytes.get(Self::slot_at(at)..).unwrap_or_default());
            let print = slot.map_or(0, |raw| fingerprint(page.suffix_of(raw)));
            if in_order.is_none() && !Self::follows(bytes, at) {
                in_order = Some(at);
            }
            if let Some(place) = bytes.get_mut(Self::slot_at(count) + at) {
                *place = print;
            }
        }
        Self::set_in_order(bytes, in_order.unwrap_or(count));
    }

    #[inline]
    fn index_inserted(bytes: &mut [u8], count: usize, slot: usize) {
        let page = Body::<Self>::new(bytes);
        let raw = Self::slot_in(bytes.get(Self::slot_at(slot)..).unwrap_or_default());
        let print = raw.map_or(0, |raw| fingerprint(page.suffix_of(raw)));
        let at = Self::slot_at(count);
        let Some(prints) = bytes.get_mut(at..at + count) else {
            return;
        };
        prints.copy_within(slot..count - 1, slot + 1);
        prints[slot] = print;
        // All slots were in order, and the new last one is greater.
        if Self::in_order(bytes) == count - 1 && slot == count - 1 && Self::follows(bytes, slot) {
            Self::set_in_order(bytes, count);
        }
    }

    #[inline]
    fn index_removed(bytes: &mut [u8], count: usize, slot: usize) {
        let at = Self::slot_at(count);
        if let Some(prints) = bytes.get_mut(at..at + count + 1) {
            prints.copy_within(slot + 1.., slot);
        }
        let in_order = Self::in_order(bytes);
        if slot < in_order {
            Self::set_in_order(bytes, in_order - 1);
        }
    }
}

impl LeafFormat for Fingerprint {
    const LAYOUT: PageLayout = PageLayout::Fingerprint;
    const ADAPTS: bool = true;
    leaf_format_by_header!();

    fn reserved(bytes: &[u8]) -> &[u8] {
        &bytes[header::RESERVED][..0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_comparisons_find_the_same_bytes() {
        let mut bytes = [0; 16];
        for seed in 0..=u8::MAX {
            for (i, byte) in bytes.iter_mut().enumerate() {
                *byte = seed.wrapping_mul(31).wrapping_add((i * i) as u8) % 7;
            }
            for wanted in 0..8 {
                let expected = equal_portably(&bytes, wanted);
                assert_eq!(equal_in(&bytes, wanted), expected, "{wanted} in {bytes:?}");
                let count = bytes.iter().filter(|byte| **byte == wanted).count();
                assert_eq!(expected.count_ones() as usize, count);
            }
        }
    }
}
