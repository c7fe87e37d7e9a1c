//! What layouts of sorted slots over a heap differ in: the fields of the header, the bytes of a slot, the length of its head.
//!
//! ```text
//!                       slots at                                      heap start                    heap end
//!   +------------------+---------+-------+-------------+------- ... -+-----------------------------+--------+
//!   | header           | slot 0  | slot 1| ->          | gap         | <- payloads                 | fences |
//!   +------------------+---------+-------+-------------+------- ... -+-----------------------------+--------+
//! ```
//!
//! [`super::body`] searches and changes whatever has a [`Format`]: leaf pages of every layout, and mini-pages, which have no fences of their own
//! ([`crate::mini`]). It is compiled for each format, so no loop asks for the layout. A layout without slots (dense leaves) takes
//! another body, beside this one; what chooses between them is [`super::layout::by_layout`].
//!
//! Behind its last slot a format may keep an **index** of the slots, as long as it follows from their number alone: hints, fingerprints. There it costs
//! nothing while there are few records, moves with the slots, and leaves every slot where it is without one.
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
    /// The first bytes of the key suffix, zero padded, as an integer that orders like them; how many is up to the format.
    pub(crate) head: u32,
    /// Two bits that a mini-page has for each record; 0 in leaves.
    pub(crate) kind: u8,
}

impl Slot {
    /// Bytes of key suffix and value on the heap.
    #[inline]
    pub(crate) fn payload_len(&self) -> usize {
        usize::from(self.key_len) + usize::from(self.value_len)
    }
}

/// The bytes of header and slots. On damaged bytes numbers are wrong, but nothing panics on a slice of at least `SLOTS_AT` bytes.
///
/// The setters write a field and say which bytes that are. Numbers must fit, as all lengths within a page do.
pub(crate) trait Format: Copy + 'static {
    /// A slot as it lies in the page: an array of bytes.
    type RawSlot: Copy + AsRef<[u8]> + 'static;
    /// Bytes from slot to slot.
    const STRIDE: usize = size_of::<Self::RawSlot>();
    /// What a record takes beside key suffix and value: its slot, and its own part of the index.
    const SLOT_BYTES: usize = Self::STRIDE;
    /// Bytes of a key that a slot's head has; 0: slots have none.
    const HEAD_BYTES: usize;
    /// Whether all slots are in the order of their keys, not just the first [`Format::in_order`].
    const SORTED: bool = true;
    /// Whether there is an index.
    const INDEXED: bool = false;
    /// Bytes of the header, all that is before it included.
    const SLOTS_AT: usize;

    /// The slots of all records; none where a damaged header has them end outside.
    fn slots(bytes: &[u8]) -> &[Self::RawSlot];
    /// The slot that `bytes` begin with.
    fn slot_in(bytes: &[u8]) -> Option<&Self::RawSlot>;
    fn decode(raw: &Self::RawSlot) -> Slot;
    fn encode(slot: &Slot) -> Self::RawSlot;
    /// The head stored in a slot, without decoding the rest.
    fn head_of(raw: &Self::RawSlot) -> u32;
    /// The head of a key suffix.
    fn head(suffix: &[u8]) -> u32;

    /// Where the lowest payload begins.
    fn heap_start(bytes: &[u8]) -> usize;
    /// Live bytes behind the slots: payloads and fences, holes left out.
    fn heap_used(bytes: &[u8]) -> usize;
    /// So many first bytes are the same in all stored keys, and searches know of them: heads begin behind. 0 in leaves, which do not store them.
    #[inline]
    fn shared(_: &[u8]) -> usize {
        0
    }
    /// Bytes behind the payloads.
    fn tail_len(bytes: &[u8]) -> usize;
    fn set_count(bytes: &mut [u8], count: usize) -> Range<usize>;
    fn set_heap_start(bytes: &mut [u8], at: usize) -> Range<usize>;
    fn set_heap_used(bytes: &mut [u8], used: usize) -> Range<usize>;

    /// Where slot `index` begins.
    #[inline]
    fn slot_at(index: usize) -> usize {
        Self::SLOTS_AT + index * Self::STRIDE
    }

    /// Bytes of the index of so many slots: never fewer for more of them.
    #[inline]
    fn index_bytes(_count: usize) -> usize {
        0
    }

    /// What the index of more than `count` slots may take beyond their [`Format::SLOT_BYTES`] and what it takes now.
    #[inline]
    fn index_to_come(_count: usize) -> usize {
        0
    }

    /// Where `count` slots and their index end.
    #[inline]
    fn slots_end(count: usize) -> usize {
        Self::slot_at(count) + Self::index_bytes(count)
    }

    /// Among which of `count` slots the first whose head is not smaller than this one is found, and all whose head is the same.
    #[inline]
    fn narrow(_bytes: &[u8], count: usize, _head: u32) -> Range<usize> {
        0..count
    }

    /// So many first slots are in the order of their keys.
    #[inline]
    fn in_order(_bytes: &[u8]) -> usize {
        usize::MAX
    }

    /// The slot of a key, where slots are in no order.
    #[inline]
    fn find(_bytes: &[u8], _suffix: &[u8]) -> Option<usize> {
        None
    }

    /// Makes the index of `count` slots, whatever there was.
    #[inline]
    fn build_index(_bytes: &mut [u8], _count: usize) {}

    /// Corrects the index, which has moved behind the last of now `count` slots, after one was put in at `slot`.
    #[inline]
    fn index_inserted(_bytes: &mut [u8], _count: usize, _slot: usize) {}

    /// Corrects the index, which has moved behind the last of now `count` slots, after the one at `slot` was taken out.
    #[inline]
    fn index_removed(_bytes: &mut [u8], _count: usize, _slot: usize) {}
}

/// A format of leaf pages: with fences, behind the envelope.
pub(crate) trait LeafFormat: Format {
    const LAYOUT: PageLayout;
    /// Whether a byte of the header says how common scans are.
    const ADAPTS: bool = false;
    /// Whether payloads leave out what the fences share.
    const TRUNCATES: bool = true;

    /// How much the payloads leave out.
    #[inline]
    fn truncated(lower: &[u8], upper: Option<&[u8]>) -> usize {
        if Self::TRUNCATES {
            shared_prefix(lower, upper)
        } else {
            0
        }
    }

    /// Number of records that the header claims.
    fn count(bytes: &[u8]) -> usize;
    fn prefix_len(bytes: &[u8]) -> usize;
    fn lower_len(bytes: &[u8]) -> usize;
    fn upper_len(bytes: &[u8]) -> usize;
    /// 1 if there is an upper fence, 0 if the page is the rightmost one; anything else is damage.
    fn bounded(bytes: &[u8]) -> u8;
    /// Header bytes that are zero.
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

/// The `count` slots of `N` bytes from `at` on.
#[inline]
pub(super) fn slots_of<const N: usize>(bytes: &[u8], at: usize, count: usize) -> &[[u8; N]] {
    let slots = bytes.get(at..at + count * N).unwrap_or_default();
    slots.as_chunks().0
}
