//! Selects the code for a page by its layout. This module alone names every layout; each layout is
//! a file of [`super::leaves`].

use super::envelope::{MAX_PAGE_BYTES, field, shared_prefix};
use super::format::Format;
use super::leaves::{Baseline, CompactLeaf, Fingerprint, Hints, Prefix, Slotted};
use super::limit::{LARGEST_HEADER_BYTES, LARGEST_SLOT_BYTES};
use crate::options::PageLayout;

/// Expands to `$body` with `$format` as the format of `$layout` or, for a dense layout, to
/// `$dense_body` with `$dense`. Every choice by layout goes through this macro, so the code inside
/// is compiled once for each layout.
macro_rules! by_layout {
    ($layout:expr, $format:ident => $body:expr, $dense:ident => $dense_body:expr) => {
        match $layout {
            $crate::options::PageLayout::SemiDense => {
                #[allow(dead_code, reason = "not all ask for it")]
                type $dense = $crate::node::leaves::SemiDense;
                $dense_body
            }
            $crate::options::PageLayout::FullyDense => {
                #[allow(dead_code, reason = "not all ask for it")]
                type $dense = $crate::node::leaves::FullyDense;
                $dense_body
            }
            $crate::options::PageLayout::Slotted => {
                type $format = $crate::node::leaves::Slotted;
                $body
            }
            $crate::options::PageLayout::Compact => {
                type $format = $crate::node::leaves::CompactLeaf;
                $body
            }
            $crate::options::PageLayout::Baseline => {
                type $format = $crate::node::leaves::Baseline;
                $body
            }
            $crate::options::PageLayout::Prefix => {
                type $format = $crate::node::leaves::Prefix;
                $body
            }
            $crate::options::PageLayout::Hints => {
                type $format = $crate::node::leaves::Hints;
                $body
            }
            $crate::options::PageLayout::Fingerprint => {
                type $format = $crate::node::leaves::Fingerprint;
                $body
            }
        }
    };
}
pub(super) use by_layout;

/// As [`by_layout`], for the page in `$page`, on hot paths. The layouts that trees use by default
/// cost one comparison each; the others cost a call. `$body` must not return from the enclosing
/// function, and works on copies: anything that the call refers to would have to be in memory for
/// every layout.
macro_rules! by_layout_often {
    ($page:expr, $format:ident => $body:expr, $dense:ident => $dense_body:expr) => {
        match $crate::options::PageLayout::number_in($page) {
            $crate::options::layout::KIND_SLOTTED_V1 => {
                type $format = $crate::node::leaves::Slotted;
                $body
            }
            $crate::options::layout::KIND_COMPACT_V1 => {
                type $format = $crate::node::leaves::CompactLeaf;
                $body
            }
            other => $crate::node::dispatch::apart(move || {
                let layout = $crate::options::PageLayout::from_number(other).unwrap_or($crate::options::PageLayout::Slotted);
                $crate::node::dispatch::by_layout!(layout, $format => $body, $dense => $dense_body)
            }),
        }
    };
}
pub(super) use by_layout_often;

/// Calls a closure that must not be inlined into the caller.
#[inline(never)]
pub(super) fn apart<R>(rest: impl FnOnce() -> R) -> R {
    rest()
}

impl PageLayout {
    /// Bytes before the first slot or place, including the envelope.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        match self {
            PageLayout::Compact => CompactLeaf::SLOTS_AT,
            _ => Slotted::SLOTS_AT,
        }
    }

    /// Bytes that a record takes beside its key suffix and value. 0 in dense layouts, where places
    /// take bytes and suffixes do not.
    #[must_use]
    pub const fn slot_bytes(self) -> usize {
        match self {
            PageLayout::Slotted => Slotted::SLOT_BYTES,
            PageLayout::Compact => CompactLeaf::SLOT_BYTES,
            PageLayout::Baseline => Baseline::SLOT_BYTES,
            PageLayout::Prefix => Prefix::SLOT_BYTES,
            PageLayout::Hints => Hints::SLOT_BYTES,
            PageLayout::Fingerprint => Fingerprint::SLOT_BYTES,
            PageLayout::SemiDense | PageLayout::FullyDense => 0,
        }
    }

    /// Bytes that `records` records take beside their key suffixes and values. 0 in dense layouts.
    #[must_use]
    pub fn slots_bytes(self, records: usize) -> usize {
        by_layout!(self, F => F::slots_end(records) - F::SLOTS_AT, D => 0)
    }

    /// The number of leading key bytes that a page with these fences leaves out. A dense page may
    /// leave out more.
    #[must_use]
    pub fn prefix_bytes(self, lower: &[u8], upper: Option<&[u8]>) -> usize {
        match self {
            PageLayout::Baseline => 0,
            _ => shared_prefix(lower, upper),
        }
    }

    /// The layout of a page. Bytes that are not a page give an arbitrary layout.
    #[inline]
    pub(super) fn of(page: &[u8]) -> PageLayout {
        Self::from_number(Self::number_in(page)).unwrap_or(PageLayout::Slotted)
    }

    /// The layout number in a page's header. Bytes that are not a page give an arbitrary number.
    #[inline]
    pub(super) fn number_in(page: &[u8]) -> u8 {
        page[field::KIND]
    }
}

/// No layout needs more bytes for a record than [`super::limits`] assumes.
const _: () = {
    let mut at = 0;
    while at < PageLayout::ALL.len() {
        let layout = PageLayout::ALL[at];
        assert!(layout.header_bytes() <= LARGEST_HEADER_BYTES);
        assert!(layout.slot_bytes() <= LARGEST_SLOT_BYTES);
        at += 1;
    }
};

/// Lengths and counts within a page fit 16 bits: lengths are below the page size minus the header,
/// and a page has at most 8,187 slots, so the count cannot overflow (redb e1ed56da).
const _: () = {
    let mut at = 0;
    while at < PageLayout::ALL.len() {
        let layout = PageLayout::ALL[at];
        assert!((MAX_PAGE_BYTES - layout.header_bytes()) <= u16::MAX as usize);
        at += 1;
    }
};
