//! The hint array: heads at even distances, which narrow down a search (B-Trees Are Back §3.3).
//!
//! ```text
//!   | header | slot 0 ... slot count-1 | hint 0 ... hint 15 | gap
//!                                        hint (4 B): a head, little-endian
//!
//!   d = count / 17;   hint i = head of slot d (i + 1);   partitions of d slots between them
//! ```
//!
//! Slots and header are those of [`super::slotted`]. The sixteen hints lie in at most two cache
//! lines. One pass over them, which compilers vectorise, leaves one partition (or a few, if heads
//! are equal) to the binary search.
//!
//! *After a change*, only the hints of slots from the changed one on are copied again, unless d has
//! changed.
//!
//! *Difference from the paper.* The paper always has the hints in the header. Here they stand
//! behind the slots, and only from 33 records on; the paper does not use them with fewer records,
//! either. So a page of few large records keeps all its room, and [`super::limits`] are the same
//! for all layouts. The hints, 64 bytes, move with the end of the slots.

use std::ops::Range;

use super::slotted::{format_by_header, format_by_slots, headed, header, leaf_format_by_header};
use crate::node::format::{Format, LeafFormat};
use crate::options::PageLayout;

/// Number of hints.
const HINTS: usize = 16;
/// Bytes of all hints.
const BYTES: usize = HINTS * size_of::<u32>();
/// A page with at most this many records has no hints.
const TOO_FEW: usize = 2 * HINTS;

/// Slots from one hint to the next.
#[inline]
fn distance(count: usize) -> usize {
    count / (HINTS + 1)
}

/// The layout with hints, see the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hints;

impl Hints {
    /// Copies the heads of their slots to the hints from `from` on.
    #[inline]
    fn copy_heads(bytes: &mut [u8], count: usize, from: usize) {
        if count <= TOO_FEW {
            return;
        }
        let distance = distance(count);
        let Some((slots, index)) = bytes.split_at_mut_checked(Self::slot_at(count)) else {
            return;
        };
        let Some(hints) = index.first_chunk_mut::<BYTES>() else {
            return;
        };
        let slots = slots[Self::SLOTS_AT..].as_chunks::<{ Self::STRIDE }>().0;
        let hints = hints.as_chunks_mut::<4>().0.iter_mut().skip(from);
        let of = slots.iter().skip(distance * (from + 1)).step_by(distance);
        for (hint, slot) in hints.zip(of) {
            *hint = headed::head_of(slot).to_le_bytes();
        }
    }

    /// The first hint whose slot is `slot` or a later one.
    #[inline]
    fn first_from(slot: usize, distance: usize) -> usize {
        slot.div_ceil(distance).saturating_sub(1)
    }
}

impl Format for Hints {
    const INDEXED: bool = true;
    format_by_header!();
    format_by_slots!(headed);

    #[inline]
    fn index_bytes(count: usize) -> usize {
        if count > TOO_FEW { BYTES } else { 0 }
    }

    #[inline]
    fn index_to_come(count: usize) -> usize {
        BYTES - Self::index_bytes(count)
    }

    #[inline]
    fn narrow(bytes: &[u8], count: usize, head: u32) -> Range<usize> {
        let at = Self::slot_at(count);
        let hints = bytes
            .get(at..)
            .and_then(|index| index.first_chunk::<BYTES>());
        let Some(hints) = hints.filter(|_| count > TOO_FEW) else {
            return 0..count;
        };
        // The hints are sorted, so counting the smaller ones finds the place. It takes no branch,
        // and few instructions where vector instructions exist.
        let below = |hint: &[u8; 4]| u32::from(u32::from_le_bytes(*hint) < head);
        let hints = hints.as_chunks::<4>().0;
        let smaller = hints.iter().map(below).sum::<u32>() as usize;
        let distance = distance(count);
        // The partitions of hints with an equal head must be searched, too.
        let equal = hints[smaller..]
            .iter()
            .take_while(|hint| u32::from_le_bytes(**hint) == head);
        let end = match smaller + equal.count() {
            HINTS => count,
            not_greater => distance * (not_greater + 1),
        };
        distance * smaller..end
    }

    #[inline]
    fn build_index(bytes: &mut [u8], count: usize) {
        Self::copy_heads(bytes, count, 0);
    }

    #[inline]
    fn index_inserted(bytes: &mut [u8], count: usize, slot: usize) {
        let now = distance(count);
        let same = count > TOO_FEW + 1 && distance(count - 1) == now;
        let from = if same { Self::first_from(slot, now) } else { 0 };
        Self::copy_heads(bytes, count, from);
    }

    #[inline]
    fn index_removed(bytes: &mut [u8], count: usize, slot: usize) {
        let now = distance(count);
        let same = count > TOO_FEW && distance(count + 1) == now;
        let from = if same { Self::first_from(slot, now) } else { 0 };
        Self::copy_heads(bytes, count, from);
    }
}

impl LeafFormat for Hints {
    const LAYOUT: PageLayout = PageLayout::Hints;
    const ADAPTS: bool = true;
    leaf_format_by_header!();

    fn reserved(bytes: &[u8]) -> &[u8] {
        &bytes[header::RESERVED][1..]
    }
}
