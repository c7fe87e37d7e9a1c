//! The compact layout of the Bf-Tree, for leaf pages and mini-pages: a node header of 12 bytes, KV
//! metadata of 8 bytes, heads ("look-ahead bytes") of 2 bytes (Bf-Tree §3.2, §3.5).
//!
//! | bytes | field of the header |
//! |---|---|
//! | 0-1 | number of records |
//! | 2-3 | leaf: length of the fences' common prefix, which the stored keys leave out |
//! | | mini-page: 15 bits for the length that its keys share, and one bit of its own |
//! | 4-5 | leaf: length of the lower fence; mini-page: its own use |
//! | 6-7 | leaf: 15 bits for the length of the upper fence, and one bit if there is one |
//! | | mini-page: its own use |
//! | 8-9 | bytes from the lowest payload to the end (its position may need 17 bits) |
//! | 10-11 | live heap bytes: payloads and fences, without holes |
//!
//! ```text
//!   slot (8 B):   | offset u16 | kind 2 bits, key len 14 bits | value len u16 | head u16 |
//!   all integers little-endian
//! ```
//!
//! The header follows what the owner needs: the store's envelope ([`crate::node::envelope`]) in a
//! leaf page, an LSN in a mini-page. The paper's header also has node size, page type and split
//! flag. Size and type are in our envelope, and whether a page is full follows from its bytes.
//! Reference bits, which readers set, belong to the ring (`Marks` of [`crate::mini`]). The fences
//! are at the page's end rather than among the records, so no flag needs to tell them apart.

use std::ops::Range;

use crate::node::envelope::{ENVELOPE_BYTES, put_at, u16_at};
use crate::node::format::{Format, LeafFormat, Slot, first_bytes, slots_of};
use crate::options::PageLayout;

/// Bytes of the node header.
pub(crate) const NODE_BYTES: usize = 12;

/// Where each field of the node header begins.
pub(crate) mod field {
    pub(in crate::node) const COUNT: usize = 0;
    pub(crate) const PREFIX_LEN: usize = 2;
    pub(crate) const LOWER_LEN: usize = 4;
    pub(crate) const UPPER_LEN: usize = 6;
    pub(in crate::node) const HEAP: usize = 8;
    pub(in crate::node) const HEAP_USED: usize = 10;
}

/// The flag that the page has an upper fence. It shares 16 bits with the length: fences are at most
/// 8 KiB long.
const BOUNDED: u16 = 1 << 15;
/// A flag of mini-pages beside their prefix length.
pub(crate) const WHOLE: u16 = 1 << 15;
/// The longest key: its length shares 16 bits with the kind.
pub(crate) const MAX_KEY_BYTES: usize = (1 << 14) - 1;

/// The compact layout with its node header at byte `AT`. A leaf has fences behind its payloads. See
/// the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compact<const AT: usize, const LEAF: bool>;

/// The compact layout of leaf pages.
pub(crate) type CompactLeaf = Compact<ENVELOPE_BYTES, true>;

impl<const AT: usize, const LEAF: bool> Format for Compact<AT, LEAF> {
    type RawSlot = [u8; 8];
    const HEAD_BYTES: usize = 2;
    const SLOTS_AT: usize = AT + NODE_BYTES;

    #[inline]
    fn slots(bytes: &[u8]) -> &[Self::RawSlot] {
        let count = u16_at(bytes, AT + field::COUNT);
        slots_of(bytes, Self::SLOTS_AT, usize::from(count))
    }

    #[inline]
    fn slot_in(bytes: &[u8]) -> Option<&Self::RawSlot> {
        bytes.first_chunk()
    }

    #[inline]
    fn decode(raw: &Self::RawSlot) -> Slot {
        let key = u16_at(raw, 2);
        Slot {
            offset: u16_at(raw, 0),
            key_len: key & MAX_KEY_BYTES as u16,
            value_len: u16_at(raw, 4),
            head: Self::head_of(raw),
            kind: (key >> 14) as u8,
        }
    }

    #[inline]
    fn encode(slot: &Slot) -> Self::RawSlot {
        debug_assert!(usize::from(slot.key_len) <= MAX_KEY_BYTES);
        let key = slot.key_len | u16::from(slot.kind) << 14;
        let mut raw = [0; 8];
        raw[0..2].copy_from_slice(&slot.offset.to_le_bytes());
        raw[2..4].copy_from_slice(&key.to_le_bytes());
        raw[4..6].copy_from_slice(&slot.value_len.to_le_bytes());
        raw[6..8].copy_from_slice(&(slot.head as u16).to_le_bytes());
        raw
    }

    #[inline]
    fn head_of(raw: &Self::RawSlot) -> u32 {
        u16_at(raw, 6).into()
    }

    #[inline]
    fn head(suffix: &[u8]) -> u32 {
        u16::from_be_bytes(first_bytes(suffix)).into()
    }

    #[inline]
    fn heap_start(bytes: &[u8]) -> usize {
        let heap = u16_at(bytes, AT + field::HEAP);
        bytes.len().saturating_sub(heap.into())
    }

    #[inline]
    fn heap_used(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, AT + field::HEAP_USED))
    }

    #[inline]
    fn shared(bytes: &[u8]) -> usize {
        if LEAF {
            0
        } else {
            usize::from(u16_at(bytes, AT + field::PREFIX_LEN) & !WHOLE)
        }
    }

    #[inline]
    fn tail_len(bytes: &[u8]) -> usize {
        if LEAF {
            CompactLeaf::lower_len(bytes) + CompactLeaf::upper_len(bytes)
        } else {
            0
        }
    }

    #[inline]
    fn set_count(bytes: &mut [u8], count: usize) -> Range<usize> {
        put_at(bytes, AT + field::COUNT, (count as u16).to_le_bytes())
    }

    #[inline]
    fn set_heap_start(bytes: &mut [u8], at: usize) -> Range<usize> {
        let heap = bytes.len() - at;
        put_at(bytes, AT + field::HEAP, (heap as u16).to_le_bytes())
    }

    #[inline]
    fn set_heap_used(bytes: &mut [u8], used: usize) -> Range<usize> {
        put_at(bytes, AT + field::HEAP_USED, (used as u16).to_le_bytes())
    }
}

impl LeafFormat for CompactLeaf {
    const LAYOUT: PageLayout = PageLayout::Compact;

    #[inline]
    fn count(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, ENVELOPE_BYTES + field::COUNT))
    }

    #[inline]
    fn prefix_len(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, ENVELOPE_BYTES + field::PREFIX_LEN))
    }

    #[inline]
    fn lower_len(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, ENVELOPE_BYTES + field::LOWER_LEN))
    }

    #[inline]
    fn upper_len(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, ENVELOPE_BYTES + field::UPPER_LEN) & !BOUNDED)
    }

    #[inline]
    fn bounded(bytes: &[u8]) -> u8 {
        (u16_at(bytes, ENVELOPE_BYTES + field::UPPER_LEN) >> 15) as u8
    }

    fn reserved(_: &[u8]) -> &[u8] {
        &[]
    }

    fn set_fences(bytes: &mut [u8], prefix_len: usize, lower: usize, upper: Option<usize>) {
        let upper = upper.map_or(0, |len| len as u16 | BOUNDED);
        let at = |field| ENVELOPE_BYTES + field;
        put_at(
            bytes,
            at(field::PREFIX_LEN),
            (prefix_len as u16).to_le_bytes(),
        );
        put_at(bytes, at(field::LOWER_LEN), (lower as u16).to_le_bytes());
        put_at(bytes, at(field::UPPER_LEN), upper.to_le_bytes());
    }
}
