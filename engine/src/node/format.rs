//! The traits that describe the layouts of sorted slots over a heap: the fields of the header, the
//! bytes of a slot, the length of a slot's head.
//!
//! ```text
//!                      slots at                            heap start                heap end
//!   +-----------------+--------+--------+--------- ... ---+-------------------------+--------+
//!   | header          | slot 0 | slot 1 | ->          gap | <- payloads             | fences |
//!   +-----------------+--------+--------+--------- ... ---+-------------------------+--------+
//! ```
//!
//! [`super::body`] searches and changes everything that has a [`Format`]: leaf pages of every
//! layout, and mini-pages ([`crate::mini`]), which have no fences of their own. The code is
//! compiled once for each format, so no loop has to test the layout. Layouts without slots (dense
//! leaves) have their own code in [`super::dense`]. The macro `by_layout` of [`super::dispatch`]
//! chooses between the two.
//!
//! Behind its last slot, a format may keep an **index** of the slots, such as hints or
//! fingerprints, whose size depends on the number of slots alone. In this place it costs nothing
//! while there are few records, it moves with the end of the slots, and the slots begin at the same
//! byte with and without it.
//!
//! ```text
//!   | header | slot 0 | slot 1 | -> | index | gap
//! ```

use std::ops::Range;

use super::envelope::shared_prefix;
use crate::options::PageLayout;

/// One slot, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: u16,
    pub(crate) key_len: u16,
    pub(crate) value_len: u16,
    /// The first bytes of the key suffix, zero padded, as an integer with the same order. The
    /// format sets their number.
    pub(crate) head: u32,
    /// Two bits that a mini-page stores for each record; 0 in leaves.
    pub(crate) kind: u8,
}

impl Slot {
    /// Bytes of key suffix and value on the heap.
    #[inline]
    pub(crate) fn payload_len(&self) -> usize {
        usize::from(self.key_len) + usize::from(self.value_len)
    }
}

/// How a layout encodes its header and its slots. Damaged bytes give wrong numbers, but no method
/// panics on a slice of at least `SLOTS_AT` bytes.
///
/// Each setter writes a field and returns the range of its bytes. The number must fit the field, as
/// all lengths within a page do.
pub(crate) trait Format: Copy + 'static {
    /// A slot as stored in the page: an array of bytes.
    type RawSlot: Copy + AsRef<[u8]> + 'static;
    /// Bytes from the start of one slot to the start of the next.
    const STRIDE: usize = size_of::<Self::RawSlot>();
    /// Bytes that a record takes beside key suffix and value: its slot, and its own part of the
    /// index.
    const SLOT_BYTES: usize = Self::STRIDE;
    /// Bytes of the key that a slot's head holds; 0 if slots have no heads.
    const HEAD_BYTES: usize;
    /// Whether all slots are in key order, rather than only the first [`Format::in_order`].
    const SORTED: bool = true;
    /// Whether the format has an index.
    const INDEXED: bool = false;
    /// Bytes of the header, including everything before it.
    const SLOTS_AT: usize;

    /// The slots of all records; empty if a damaged header puts their end outside the page.
    fn slots(bytes: &[u8]) -> &[Self::RawSlot];
    /// The slot at the beginning of `bytes`.
    fn slot_in(bytes: &[u8]) -> Option<&Self::RawSlot>;
    fn decode(raw: &Self::RawSlot) -> Slot;
    fn encode(slot: &Slot) -> Self::RawSlot;
    /// The head stored in a slot, read without decoding the rest.
    fn head_of(raw: &Self::RawSlot) -> u32;
    /// The head of a key suffix.
    fn head(suffix: &[u8]) -> u32;

    /// The start of the lowest payload.
    fn heap_start(bytes: &[u8]) -> usize;
    /// Live bytes behind the slots: payloads and fences, without holes.
    fn heap_used(bytes: &[u8]) -> usize;
    /// The number of leading bytes that all stored keys share and that searches skip: heads begin
    /// behind them. 0 in leaves, which do not store shared bytes.
    #[inline]
    fn shared(_: &[u8]) -> usize {
        0
    }
    /// Bytes behind the payloads.
    fn tail_len(bytes: &[u8]) -> usize;
    fn set_count(bytes: &mut [u8], count: usize) -> Range<usize>;
    fn set_heap_start(bytes: &mut [u8], at: usize) -> Range<usize>;
    fn set_heap_used(bytes: &mut [u8], used: usize) -> Range<usize>;

    /// The start of slot `index`.
    #[inline]
    fn slot_at(index: usize) -> usize {
        Self::SLOTS_AT + index * Self::STRIDE
    }

    /// Bytes of the index for `_count` slots. Never decreases as the count grows.
    #[inline]
    fn index_bytes(_count: usize) -> usize {
        0
    }

    /// Bytes by which the index of more than `_count` slots may exceed both their
    /// [`Format::SLOT_BYTES`] and its present size.
    #[inline]
    fn index_to_come(_count: usize) -> usize {
        0
    }

    /// The end of `count` slots and their index.
    #[inline]
    fn slots_end(count: usize) -> usize {
        Self::slot_at(count) + Self::index_bytes(count)
    }

    /// A range of slots that contains the first slot whose head is not smaller than `_head`, and
    /// all slots with the same head.
    #[inline]
    fn narrow(_bytes: &[u8], count: usize, _head: u32) -> Range<usize> {
        0..count
    }

    /// The number of leading slots that are in key order.
    #[inline]
    fn in_order(_bytes: &[u8]) -> usize {
        usize::MAX
    }

    /// The slot of a key, in a format with unsorted slots.
    #[inline]
    fn find(_bytes: &[u8], _suffix: &[u8]) -> Option<usize> {
        None
    }

    /// Builds the index of `_count` slots from scratch.
    #[inline]
    fn build_index(_bytes: &mut [u8], _count: usize) {}

    /// Updates the index after a slot was inserted at `_slot`. There are now `_count` slots, and
    /// the index has already moved behind the last.
    #[inline]
    fn index_inserted(_bytes: &mut [u8], _count: usize, _slot: usize) {}

    /// Updates the index after the slot at `_slot` was removed. There are now `_count` slots, and
    /// the index has already moved behind the last.
    #[inline]
    fn index_removed(_bytes: &mut [u8], _count: usize, _slot: usize) {}
}

/// A format of leaf pages, which have fences and follow the envelope.
pub(crate) trait LeafFormat: Format {
    const LAYOUT: PageLayout;
    /// Whether the header has a byte that counts how common scans are.
    const ADAPTS: bool = false;
    /// Whether payloads leave out the common prefix of the fences.
    const TRUNCATES: bool = true;

    /// The number of leading key bytes that payloads leave out.
    #[inline]
    fn truncated(lower: &[u8], upper: Option<&[u8]>) -> usize {
        if Self::TRUNCATES {
            shared_prefix(lower, upper)
        } else {
            0
        }
    }

    /// Number of records according to the header.
    fn count(bytes: &[u8]) -> usize;
    fn prefix_len(bytes: &[u8]) -> usize;
    fn lower_len(bytes: &[u8]) -> usize;
    fn upper_len(bytes: &[u8]) -> usize;
    /// 1 if there is an upper fence, 0 if the page is the rightmost one; anything else is damage.
    fn bounded(bytes: &[u8]) -> u8;
    /// The header bytes that must be zero.
    fn reserved(bytes: &[u8]) -> &[u8];
    fn set_fences(bytes: &mut [u8], prefix_len: usize, lower: usize, upper: Option<usize>);
}

/// The first `N` bytes of a key suffix, zero padded.
#[inline]
pub(super) fn first_bytes<const N: usize>(suffix: &[u8]) -> [u8; N] {
    match suffix.first_chunk::<N>() {
        Some(first) => *first,
        None => {
            let mut padded = [0; N];
            padded[..suffix.len()].copy_from_slice(suffix);
            padded
        }
    }
}

/// The `count` slots of `N` bytes that begin at `at`.
#[inline]
pub(super) fn slots_of<const N: usize>(bytes: &[u8], at: usize, count: usize) -> &[[u8; N]] {
    let slots = bytes.get(at..at + count * N).unwrap_or_default();
    slots.as_chunks().0
}
