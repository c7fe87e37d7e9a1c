//! The slotted layout: heads of four bytes (B-Trees Are Back §3.2).
//!
//! | bytes | field |
//! |---|---|
//! | 28-29 | number of records |
//! | 30-31 | length of the prefix that the fences share |
//! | 32-33, 34-35 | lengths of lower and upper fence |
//! | 36 | 1 if there is an upper fence, 0 if the page is the rightmost one |
//! | 37-39 | zeros |
//! | 40-43 | where the lowest payload begins; the page size if the page holds nothing at all |
//! | 44-47 | live heap bytes: payloads and fences, holes left out |
//!
//! ```text
//!   slot (10 B):   | offset u16 | key len u16 | value len u16 | head u32 |        all integers little-endian
//! ```
//!
//! Packed: the two bytes of padding that would align the head cost more space than they save time (B-Trees Are Back §3.2, "Slot
//! Alignment"). Bounds that may equal the page size are 32 bits.

use std::ops::Range;

use super::format::{Format, LeafFormat, Slot, first_bytes, slots_of};
use super::layout::{PageLayout, put_at, u16_at, u32_at};

const COUNT: usize = 28;
const PREFIX_LEN: usize = 30;
const LOWER_LEN: usize = 32;
const UPPER_LEN: usize = 34;
const BOUNDED: usize = 36;
const RESERVED: Range<usize> = 37..40;
const HEAP_START: usize = 40;
const HEAP_USED: usize = 44;
const SLOTS: usize = 48;

/// See the module's story.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slotted;

impl Format for Slotted {
    type RawSlot = [u8; 10];
    const SLOTS_AT: usize = SLOTS;

    #[inline]
    fn slots(bytes: &[u8]) -> &[Self::RawSlot] {
        slots_of(bytes, SLOTS, Self::count(bytes))
    }

    #[inline]
    fn slot_in(bytes: &[u8]) -> Option<&Self::RawSlot> {
        bytes.first_chunk()
    }

    #[inline]
    fn decode(raw: &Self::RawSlot) -> Slot {
        Slot {
            offset: u16_at(raw, 0),
            key_len: u16_at(raw, 2),
            value_len: u16_at(raw, 4),
            head: Self::head_of(raw),
            kind: 0,
        }
    }

    #[inline]
    fn encode(slot: &Slot) -> Self::RawSlot {
        let mut raw = [0; 10];
        raw[0..2].copy_from_slice(&slot.offset.to_le_bytes());
        raw[2..4].copy_from_slice(&slot.key_len.to_le_bytes());
        raw[4..6].copy_from_slice(&slot.value_len.to_le_bytes());
        raw[6..10].copy_from_slice(&slot.head.to_le_bytes());
        raw
    }

    #[inline]
    fn head_of(raw: &Self::RawSlot) -> u32 {
        u32_at(raw, 6)
    }

    #[inline]
    fn head(suffix: &[u8]) -> u32 {
        u32::from_be_bytes(first_bytes(suffix))
    }

    #[inline]
    fn heap_start(bytes: &[u8]) -> usize {
        u32_at(bytes, HEAP_START) as usize
    }

    #[inline]
    fn heap_used(bytes: &[u8]) -> usize {
        u32_at(bytes, HEAP_USED) as usize
    }

    #[inline]
    fn tail_len(bytes: &[u8]) -> usize {
        Self::lower_len(bytes) + Self::upper_len(bytes)
    }

    #[inline]
    fn set_count(bytes: &mut [u8], count: usize) -> Range<usize> {
        put_at(bytes, COUNT, (count as u16).to_le_bytes())
    }

    #[inline]
    fn set_heap_start(bytes: &mut [u8], at: usize) -> Range<usize> {
        put_at(bytes, HEAP_START, (at as u32).to_le_bytes())
    }

    #[inline]
    fn set_heap_used(bytes: &mut [u8], used: usize) -> Range<usize> {
        put_at(bytes, HEAP_USED, (used as u32).to_le_bytes())
    }
}

impl LeafFormat for Slotted {
    const LAYOUT: PageLayout = PageLayout::Slotted;

    #[inline]
    fn count(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, COUNT))
    }

    #[inline]
    fn prefix_len(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, PREFIX_LEN))
    }

    #[inline]
    fn lower_len(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, LOWER_LEN))
    }

    #[inline]
    fn upper_len(bytes: &[u8]) -> usize {
        usize::from(u16_at(bytes, UPPER_LEN))
    }

    #[inline]
    fn bounded(bytes: &[u8]) -> u8 {
        bytes[BOUNDED]
    }

    fn reserved(bytes: &[u8]) -> &[u8] {
        &bytes[RESERVED]
    }

    fn set_fences(bytes: &mut [u8], prefix_len: usize, lower: usize, upper: Option<usize>) {
        put_at(bytes, PREFIX_LEN, (prefix_len as u16).to_le_bytes());
        put_at(bytes, LOWER_LEN, (lower as u16).to_le_bytes());
        put_at(bytes, UPPER_LEN, (upper.unwrap_or(0) as u16).to_le_bytes());
        bytes[BOUNDED] = u8::from(upper.is_some());
    }
}
