//! Chooses the code for a page by its layout. This is the one place that names every layout; each
//! of them is a file of [`super::leaves`].

use super::envelope::{MAX_PAGE_BYTES, field, shared_prefix};
use super::format::Format;
use super::leaves::{Baseline, CompactLeaf, Fingerprint, Hints, Prefix, Slotted};
use super::limit::{LARGEST_HEADER_BYTES, LARGEST_SLOT_BYTES};
use crate::options::PageLayout;

/// `$body` with `$format` standing for the format of `$layout`, or `$dense_body` with `$dense`, if it is dense: the one place where a page's layout is chosen,
/// so that what is inside is compiled for each of them.
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

/// As [`by_layout`], for the page that lies in `$page` and for what is done often: the layouts of trees as they are by default are told by one comparison each, and
/// the others by a call. `$body` must not return from where it stands, and works on copies: what a call refers to would have to be in memory for all.
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

/// Calls what is not to be a part of its caller.
#[inline(never)]
pub(super) fn apart<R>(rest: impl FnOnce() -> R) -> R {
    rest()
}

impl PageLayout {
    /// Bytes before the first slot or place, the envelope's included.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        match self {
            PageLayout::Compact => CompactLeaf::SLOTS_AT,
            _ => Slotted::SLOTS_AT,
        }
    }

    /// What a record costs beside its key suffix and value; nothing in dense layouts, where places cost and suffixes do not.
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

    /// What `records` records cost beside their key suffixes and values; nothing in dense layouts.
    #[must_use]
    pub fn slots_bytes(self, records: usize) -> usize {
        by_layout!(self, F => F::slots_end(records) - F::SLOTS_AT, D => 0)
    }

    /// What is left out of the keys of a page with these fences; in a dense page, more may be.
    #[must_use]
    pub fn prefix_bytes(self, lower: &[u8], upper: Option<&[u8]>) -> usize {
        match self {
            PageLayout::Baseline => 0,
            _ => shared_prefix(lower, upper),
        }
    }

    /// The layout of a page; of bytes that are none, any.
    #[inline]
    pub(super) fn of(page: &[u8]) -> PageLayout {
        Self::from_number(Self::number_in(page)).unwrap_or(PageLayout::Slotted)
    }

    /// What a page says that its layout is; of bytes that are none, anything.
    #[inline]
    pub(super) fn number_in(page: &[u8]) -> u8 {
        page[field::KIND]
    }
}

/// No layout takes more for a record than [`super::limits`] counts with.
const _: () = {
    let mut at = 0;
    while at < PageLayout::ALL.len() {
        let layout = PageLayout::ALL[at];
        assert!(layout.header_bytes() <= LARGEST_HEADER_BYTES);
        assert!(layout.slot_bytes() <= LARGEST_SLOT_BYTES);
        at += 1;
    }
};

/// Lengths and counts within a page fit 16 bits: lengths are below the page size less the header, and
/// at most 8,187 slots fit a page, so the count cannot overflow (redb e1ed56da).
const _: () = {
    let mut at = 0;
    while at < PageLayout::ALL.len() {
        let layout = PageLayout::ALL[at];
        assert!((MAX_PAGE_BYTES - layout.header_bytes()) <= u16::MAX as usize);
        at += 1;
    }
};
