//! The slotted layout, which has heads of four bytes (B-Trees Are Back §3.2). Its header is shared
//! by the layouts with other slots or with an index of them ([`super::plain`], [`super::hints`],
//! [`super::fingerprint`]).
//!
//! | bytes | field |
//! |---|---|
//! | 28-29 | number of records |
//! | 30-31 | length of the prefix that the fences share |
//! | 32-33, 34-35 | lengths of lower and upper fence |
//! | 36 | 1 if there is an upper fence, 0 if the page is the rightmost one |
//! | 37 | in adaptive layouts, the counter of scans ([`crate::node::adapt`]); else zero |
//! | 38-39 | with fingerprints, the number of leading slots in key order; else zeros |
//! | 40-43 | start of the lowest payload; the page size if the page holds nothing at all |
//! | 44-47 | live heap bytes: payloads and fences, without holes |
//!
//! ```text
//!   slot (10 B):   | offset u16 | key len u16 | value len u16 | head u32 |
//!   all integers little-endian
//! ```
//!
//! Slots are packed: the two bytes of padding that would align the head cost more space than they
//! save time (B-Trees Are Back §3.2, "Slot Alignment"). Fields that may equal the page size have 32
//! bits.

use crate::node::envelope::{u16_at, u32_at};
use crate::node::format::{Format, LeafFormat, Slot, first_bytes};
use crate::options::PageLayout;

/// Where each field of the header begins.
pub(in crate::node) mod header {
    use std::ops::Range;

    pub(in crate::node) const COUNT: usize = 28;
    pub(in crate::node) const PREFIX_LEN: usize = 30;
    pub(in crate::node) const LOWER_LEN: usize = 32;
    pub(in crate::node) const UPPER_LEN: usize = 34;
    pub(in crate::node) const BOUNDED: usize = 36;
    pub(in crate::node) const RESERVED: Range<usize> = 37..40;
    /// In adaptive layouts: the counter of scans ([`crate::node::adapt`]).
    pub(in crate::node) const SCANS: usize = 37;
    pub(in crate::node) const IN_ORDER: usize = 38;
    pub(in crate::node) const HEAP_START: usize = 40;
    pub(in crate::node) const HEAP_USED: usize = 44;
    pub(in crate::node) const END: usize = 48;
}

/// Implements the part of a [`Format`] that is in the header.
macro_rules! format_by_header {
    () => {
        const SLOTS_AT: usize = $crate::node::leaves::slotted::header::END;

        #[inline]
        fn slots(bytes: &[u8]) -> &[Self::RawSlot] {
            let count =
                $crate::node::envelope::u16_at(bytes, $crate::node::leaves::slotted::header::COUNT);
            $crate::node::format::slots_of(bytes, Self::SLOTS_AT, usize::from(count))
        }

        #[inline]
        fn slot_in(bytes: &[u8]) -> Option<&Self::RawSlot> {
            bytes.first_chunk()
        }

        #[inline]
        fn heap_start(bytes: &[u8]) -> usize {
            $crate::node::envelope::u32_at(bytes, $crate::node::leaves::slotted::header::HEAP_START)
                as usize
        }

        #[inline]
        fn heap_used(bytes: &[u8]) -> usize {
            $crate::node::envelope::u32_at(bytes, $crate::node::leaves::slotted::header::HEAP_USED)
                as usize
        }

        #[inline]
        fn tail_len(bytes: &[u8]) -> usize {
            use $crate::node::format::LeafFormat;
            Self::lower_len(bytes) + Self::upper_len(bytes)
        }

        #[inline]
        fn set_count(bytes: &mut [u8], count: usize) -> std::ops::Range<usize> {
            let at = $crate::node::leaves::slotted::header::COUNT;
            $crate::node::envelope::put_at(bytes, at, (count as u16).to_le_bytes())
        }

        #[inline]
        fn set_heap_start(bytes: &mut [u8], start: usize) -> std::ops::Range<usize> {
            let at = $crate::node::leaves::slotted::header::HEAP_START;
            $crate::node::envelope::put_at(bytes, at, (start as u32).to_le_bytes())
        }

        #[inline]
        fn set_heap_used(bytes: &mut [u8], used: usize) -> std::ops::Range<usize> {
            let at = $crate::node::leaves::slotted::header::HEAP_USED;
            $crate::node::envelope::put_at(bytes, at, (used as u32).to_le_bytes())
        }
    };
}

/// Implements the part of a [`LeafFormat`] that is in the header.
macro_rules! leaf_format_by_header {
    () => {
        #[inline]
        fn count(bytes: &[u8]) -> usize {
            usize::from($crate::node::envelope::u16_at(
                bytes,
                $crate::node::leaves::slotted::header::COUNT,
            ))
        }

        #[inline]
        fn prefix_len(bytes: &[u8]) -> usize {
            usize::from($crate::node::envelope::u16_at(
                bytes,
                $crate::node::leaves::slotted::header::PREFIX_LEN,
            ))
        }

        #[inline]
        fn lower_len(bytes: &[u8]) -> usize {
            usize::from($crate::node::envelope::u16_at(
                bytes,
                $crate::node::leaves::slotted::header::LOWER_LEN,
            ))
        }

        #[inline]
        fn upper_len(bytes: &[u8]) -> usize {
            usize::from($crate::node::envelope::u16_at(
                bytes,
                $crate::node::leaves::slotted::header::UPPER_LEN,
            ))
        }

        #[inline]
        fn bounded(bytes: &[u8]) -> u8 {
            bytes[$crate::node::leaves::slotted::header::BOUNDED]
        }

        fn set_fences(bytes: &mut [u8], prefix_len: usize, lower: usize, upper: Option<usize>) {
            use $crate::node::envelope::put_at;
            use $crate::node::leaves::slotted::header;
            put_at(bytes, header::PREFIX_LEN, (prefix_len as u16).to_le_bytes());
            put_at(bytes, header::LOWER_LEN, (lower as u16).to_le_bytes());
            put_at(
                bytes,
                header::UPPER_LEN,
                (upper.unwrap_or(0) as u16).to_le_bytes(),
            );
            bytes[header::BOUNDED] = u8::from(upper.is_some());
        }
    };
}

/// Implements the part of a [`Format`] that is in the slots, from a module with functions like
/// those of [`headed`].
macro_rules! format_by_slots {
    ($slots:ident) => {
        type RawSlot = $slots::Raw;
        const HEAD_BYTES: usize = $slots::HEAD_BYTES;

        #[inline]
        fn decode(raw: &Self::RawSlot) -> $crate::node::format::Slot {
            $slots::decode(raw)
        }

        #[inline]
        fn encode(slot: &$crate::node::format::Slot) -> Self::RawSlot {
            $slots::encode(slot)
        }

        #[inline]
        fn head_of(raw: &Self::RawSlot) -> u32 {
            $slots::head_of(raw)
        }

        #[inline]
        fn head(suffix: &[u8]) -> u32 {
            $slots::head(suffix)
        }
    };
}

pub(in crate::node) use {format_by_header, format_by_slots, leaf_format_by_header};

/// Slots with heads, which [`Slotted`] uses and [`super::hints`] indexes.
pub(in crate::node) mod headed {
    use super::{Slot, first_bytes, u16_at, u32_at};

    pub(in crate::node) type Raw = [u8; 10];

    pub(in crate::node) const HEAD_BYTES: usize = 4;

    #[inline]
    pub(in crate::node) fn decode(raw: &Raw) -> Slot {
        Slot {
            offset: u16_at(raw, 0),
            key_len: u16_at(raw, 2),
            value_len: u16_at(raw, 4),
            head: head_of(raw),
            kind: 0,
        }
    }

    #[inline]
    pub(in crate::node) fn encode(slot: &Slot) -> Raw {
        let mut raw = [0; 10];
        raw[0..2].copy_from_slice(&slot.offset.to_le_bytes());
        raw[2..4].copy_from_slice(&slot.key_len.to_le_bytes());
        raw[4..6].copy_from_slice(&slot.value_len.to_le_bytes());
        raw[6..10].copy_from_slice(&slot.head.to_le_bytes());
        raw
    }

    #[inline]
    pub(in crate::node) fn head_of(raw: &Raw) -> u32 {
        u32_at(raw, 6)
    }

    #[inline]
    pub(in crate::node) fn head(suffix: &[u8]) -> u32 {
        u32::from_be_bytes(first_bytes::<HEAD_BYTES>(suffix))
    }
}

/// The slotted layout, see the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slotted;

impl Format for Slotted {
    format_by_header!();
    format_by_slots!(headed);
}

impl LeafFormat for Slotted {
    const LAYOUT: PageLayout = PageLayout::Slotted;
    leaf_format_by_header!();

    fn reserved(bytes: &[u8]) -> &[u8] {
        &bytes[header::RESERVED]
    }
}
