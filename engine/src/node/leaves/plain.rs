//! Slots without heads, in two layouts: the baseline (B-Trees Are Back §2) and prefix truncation
//! alone (§3.1).
//!
//! ```text
//!   slot (6 B):    | offset u16 | key len u16 | value len u16 |        all integers little-endian
//! ```
//!
//! The header is that of [`super::slotted`]. Baseline pages store whole keys: their prefix length
//! is 0. Every comparison of a search reads a key on the heap.

use super::slotted::{format_by_header, format_by_slots, header, leaf_format_by_header};
use crate::node::envelope::u16_at;
use crate::node::format::{Format, LeafFormat, Slot};
use crate::options::PageLayout;

/// Slots without heads: sorted in [`Plain`], unsorted in [`super::fingerprint`].
pub(in crate::node) mod headless {
    use super::{Slot, u16_at};

    pub(in crate::node) type Raw = [u8; 6];

    pub(in crate::node) const HEAD_BYTES: usize = 0;

    #[inline]
    pub(in crate::node) fn decode(raw: &Raw) -> Slot {
        Slot {
            offset: u16_at(raw, 0),
            key_len: u16_at(raw, 2),
            value_len: u16_at(raw, 4),
            head: 0,
            kind: 0,
        }
    }

    #[inline]
    pub(in crate::node) fn encode(slot: &Slot) -> Raw {
        let mut raw = [0; 6];
        raw[0..2].copy_from_slice(&slot.offset.to_le_bytes());
        raw[2..4].copy_from_slice(&slot.key_len.to_le_bytes());
        raw[4..6].copy_from_slice(&slot.value_len.to_le_bytes());
        raw
    }

    #[inline]
    pub(in crate::node) fn head_of(_: &Raw) -> u32 {
        0
    }

    #[inline]
    pub(in crate::node) fn head(_: &[u8]) -> u32 {
        0
    }
}

/// The layouts without heads, see the module documentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain<const TRUNCATED: bool>;

/// The layout that stores whole keys.
pub(crate) type Baseline = Plain<false>;
/// The layout that stores keys without the prefix that the fences share.
pub(crate) type Prefix = Plain<true>;

impl<const TRUNCATED: bool> Format for Plain<TRUNCATED> {
    format_by_header!();
    format_by_slots!(headless);
}

impl<const TRUNCATED: bool> LeafFormat for Plain<TRUNCATED> {
    const LAYOUT: PageLayout = match TRUNCATED {
        true => PageLayout::Prefix,
        false => PageLayout::Baseline,
    };
    const TRUNCATES: bool = TRUNCATED;
    leaf_format_by_header!();

    fn reserved(bytes: &[u8]) -> &[u8] {
        &bytes[header::RESERVED]
    }
}
