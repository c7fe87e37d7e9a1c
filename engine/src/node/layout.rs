//! What pages of all layouts begin with: the page store's envelope. It says which layout the rest has.
//!
//! | bytes | field |
//! |---|---|
//! | 0-7 | XXH3-64 of all bytes behind this field |
//! | 8-15 | page id: a misdirected write is noticed by it |
//! | 16-23 | LSN of the last log record applied |
//! | 24-25 | magic `TR` |
//! | 26 | layout and its version: [`PageLayout::number`] |
//! | 27 | log2 of the page size |
//!
//! Behind it the layout's own header, see the layouts' modules, and its slots; from the page's end downwards lower fence, upper fence, payloads.

use std::ops::Range;

use super::format::Format;
use super::{Baseline, CompactLeaf, Fingerprint, Hints, Prefix, Slotted};
use crate::types::StoreId;

/// Bytes of the envelope.
pub const ENVELOPE_BYTES: usize = 28;
/// The smallest page in bytes.
pub const MIN_PAGE_BYTES: usize = 4 << 10;
/// The largest page in bytes.
pub const MAX_PAGE_BYTES: usize = 64 << 10;

/// Where each field of the envelope begins.
pub(super) mod field {
    pub(in crate::node) const CHECKSUM: usize = 0;
    pub(in crate::node) const PAGE_ID: usize = 8;
    pub(in crate::node) const LSN: usize = 16;
    pub(in crate::node) const MAGIC: usize = 24;
    pub(in crate::node) const KIND: usize = 26;
    pub(in crate::node) const SIZE_LOG2: usize = 27;
}

/// Marks bytes as a tree page: "TR".
pub(super) const MAGIC: u16 = u16::from_le_bytes(*b"TR");
/// The numbers of layouts in their first versions. Other layouts and later versions take other numbers.
pub(super) const KIND_SLOTTED_V1: u8 = 1;
pub(super) const KIND_COMPACT_V1: u8 = 2;
const KIND_BASELINE_V1: u8 = 3;
const KIND_PREFIX_V1: u8 = 4;
const KIND_HINTS_V1: u8 = 5;
const KIND_FINGERPRINT_V1: u8 = 6;
const KIND_SEMI_DENSE_V1: u8 = 7;
const KIND_FULLY_DENSE_V1: u8 = 8;

/// What dense pages are when they cannot be dense.
pub(super) const GENERAL: PageLayout = PageLayout::Hints;

/// `$body` with `$format` standing for the format of `$layout`, or `$dense_body` with `$dense`, if it is dense: the one place where a page's layout is chosen,
/// so that what is inside is compiled for each of them.
macro_rules! by_layout {
    ($layout:expr, $format:ident => $body:expr, $dense:ident => $dense_body:expr) => {
        match $layout {
            $crate::node::PageLayout::SemiDense => {
                #[allow(dead_code, reason = "not all ask for it")]
                type $dense = $crate::node::SemiDense;
                $dense_body
            }
            $crate::node::PageLayout::FullyDense => {
                #[allow(dead_code, reason = "not all ask for it")]
                type $dense = $crate::node::FullyDense;
                $dense_body
            }
            $crate::node::PageLayout::Slotted => {
                type $format = $crate::node::Slotted;
                $body
            }
            $crate::node::PageLayout::Compact => {
                type $format = $crate::node::CompactLeaf;
                $body
            }
            $crate::node::PageLayout::Baseline => {
                type $format = $crate::node::Baseline;
                $body
            }
            $crate::node::PageLayout::Prefix => {
                type $format = $crate::node::Prefix;
                $body
            }
            $crate::node::PageLayout::Hints => {
                type $format = $crate::node::Hints;
                $body
            }
            $crate::node::PageLayout::Fingerprint => {
                type $format = $crate::node::Fingerprint;
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
        match $crate::node::PageLayout::number_in($page) {
            $crate::node::layout::KIND_SLOTTED_V1 => {
                type $format = $crate::node::Slotted;
                $body
            }
            $crate::node::layout::KIND_COMPACT_V1 => {
                type $format = $crate::node::CompactLeaf;
                $body
            }
            other => $crate::node::layout::apart(move || {
                let layout = $crate::node::PageLayout::from_number(other).unwrap_or($crate::node::PageLayout::Slotted);
                $crate::node::layout::by_layout!(layout, $format => $body, $dense => $dense_body)
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

/// How a page lays out its records. Each page says it itself; a store's first page has that of the tree which made the store, and what is split off
/// a page has that page's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageLayout {
    /// Slots of 10 bytes with heads of 4 (B-Trees Are Back §3.2).
    Slotted = KIND_SLOTTED_V1,
    /// A header of 12 bytes, slots of 8 with heads of 2 (Bf-Tree §3.2, §3.5).
    Compact = KIND_COMPACT_V1,
    /// Slots of 6 bytes, whole keys (B-Trees Are Back §2).
    Baseline = KIND_BASELINE_V1,
    /// Slots of 6 bytes, keys without what the fences share (B-Trees Are Back §3.1).
    Prefix = KIND_PREFIX_V1,
    /// As `Slotted`, and 16 hints where to search (B-Trees Are Back §3.3).
    Hints = KIND_HINTS_V1,
    /// Slots of 6 bytes in no order, and a byte of hash for each (B-Trees Are Back §3.4).
    Fingerprint = KIND_FINGERPRINT_V1,
    /// An offset for each key that may come, keys being numbers; values of any length (B-Trees Are Back §3.5).
    SemiDense = KIND_SEMI_DENSE_V1,
    /// An array of values of one length, keys being numbers (B-Trees Are Back §3.5).
    FullyDense = KIND_FULLY_DENSE_V1,
}

impl PageLayout {
    /// Every layout whose pages take any records.
    pub const ALL: [PageLayout; 6] = [
        PageLayout::Slotted,
        PageLayout::Compact,
        PageLayout::Baseline,
        PageLayout::Prefix,
        PageLayout::Hints,
        PageLayout::Fingerprint,
    ];
    /// The layouts whose pages take only keys of one length that are numbers near each other.
    pub const DENSE: [PageLayout; 2] = [PageLayout::SemiDense, PageLayout::FullyDense];

    /// Whether it is one of [`PageLayout::DENSE`].
    #[must_use]
    #[inline]
    pub const fn is_dense(self) -> bool {
        matches!(self, PageLayout::SemiDense | PageLayout::FullyDense)
    }

    /// Its name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PageLayout::Slotted => "slotted",
            PageLayout::Compact => "compact",
            PageLayout::Baseline => "baseline",
            PageLayout::Prefix => "prefix",
            PageLayout::Hints => "hints",
            PageLayout::Fingerprint => "fingerprint",
            PageLayout::SemiDense => "semi-dense",
            PageLayout::FullyDense => "fully-dense",
        }
    }

    /// Its number in pages and log records.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The layout of this number, if there is one.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Option<PageLayout> {
        Some(match number {
            KIND_SLOTTED_V1 => PageLayout::Slotted,
            KIND_COMPACT_V1 => PageLayout::Compact,
            KIND_BASELINE_V1 => PageLayout::Baseline,
            KIND_PREFIX_V1 => PageLayout::Prefix,
            KIND_HINTS_V1 => PageLayout::Hints,
            KIND_FINGERPRINT_V1 => PageLayout::Fingerprint,
            KIND_SEMI_DENSE_V1 => PageLayout::SemiDense,
            KIND_FULLY_DENSE_V1 => PageLayout::FullyDense,
            _ => return None,
        })
    }

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

/// Whether pages of `bytes` bytes exist: powers of two from 4 KiB to 64 KiB.
#[must_use]
pub const fn is_page_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes >= MIN_PAGE_BYTES && bytes <= MAX_PAGE_BYTES
}

/// As [`is_page_size`]; or so many bytes behind an envelope, which is how papers count what a layout takes. No store has such pages.
#[inline]
pub(super) const fn is_page_len(bytes: usize) -> bool {
    // First, for compilers to know it: no field of the header needs a check then.
    bytes >= MIN_PAGE_BYTES && (is_page_size(bytes) || is_enveloped_len(bytes))
}

#[inline]
const fn is_enveloped_len(bytes: usize) -> bool {
    is_page_size(bytes.wrapping_sub(ENVELOPE_BYTES)) && bytes < MAX_PAGE_BYTES
}

/// Length of the longest common prefix.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    // Sixteen at a time first: fences may be kilobytes long, and each read of a page compares them.
    let strides = a.chunks_exact(16).zip(b.chunks_exact(16));
    let same = strides.take_while(|(x, y)| x == y).count() * 16;
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(x, y)| x == y).count()
}

/// The prefix that all keys in `[lower, upper)` share.
pub(super) fn shared_prefix(lower: &[u8], upper: Option<&[u8]>) -> usize {
    upper.map_or(0, |upper| common_prefix(lower, upper))
}

#[inline]
pub(super) fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

#[inline]
pub(super) fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

#[inline]
pub(super) fn u64_at(page: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Writes `value` at `at` and says where that is.
#[inline(always)]
pub(super) fn put_at<const N: usize>(page: &mut [u8], at: usize, value: [u8; N]) -> Range<usize> {
    page[at..at + N].copy_from_slice(&value);
    at..at + N
}

/// The checksum that belongs into the header: everything behind the checksum field, page id
/// included, and whose page it is.
pub(super) fn checksum(page: &[u8], store: StoreId) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&page[field::CHECKSUM + 8..]) ^ store.0
}
