//! The envelope: the fields, owned by the page store, with which pages of all layouts begin. It
//! names the layout of the rest.
//!
//! | bytes | field |
//! |---|---|
//! | 0-7 | XXH3-64 of all bytes behind this field |
//! | 8-15 | page id, which reveals a misdirected write |
//! | 16-23 | LSN of the last log record applied |
//! | 24-25 | magic `TR` |
//! | 26 | layout and its version: [`PageLayout::number`] |
//! | 27 | log2 of the page size |
//!
//! Behind the envelope follow the layout's own header (see the layouts' modules) and its slots.
//! From the page's end downwards follow the lower fence, the upper fence and the payloads.

use std::ops::Range;

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
/// Returns whether `bytes` is a page size: a power of two from 4 KiB to 64 KiB.
#[must_use]
pub const fn is_page_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes >= MIN_PAGE_BYTES && bytes <= MAX_PAGE_BYTES
}

/// As [`is_page_size`], but also true for a page size plus an envelope: papers count a layout's
/// bytes without an envelope. No store has such pages.
#[inline]
pub(super) const fn is_page_len(bytes: usize) -> bool {
    // Tested first so that the compiler knows it: no access to a field of the header then needs a
    // bounds check.
    bytes >= MIN_PAGE_BYTES && (is_page_size(bytes) || is_enveloped_len(bytes))
}

#[inline]
const fn is_enveloped_len(bytes: usize) -> bool {
    is_page_size(bytes.wrapping_sub(ENVELOPE_BYTES)) && bytes < MAX_PAGE_BYTES
}

/// Length of the longest common prefix.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    // Sixteen bytes at a time first: fences may be kilobytes long, and every read of a page
    // compares them.
    let strides = a.chunks_exact(16).zip(b.chunks_exact(16));
    let same = strides.take_while(|(x, y)| x == y).count() * 16;
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(x, y)| x == y).count()
}

/// The length of the prefix that all keys in `[lower, upper)` share.
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

/// Writes `value` at `at` and returns the range that was written.
#[inline(always)]
pub(super) fn put_at<const N: usize>(page: &mut [u8], at: usize, value: [u8; N]) -> Range<usize> {
    page[at..at + N].copy_from_slice(&value);
    at..at + N
}

/// The checksum for the header. It covers everything behind the checksum field, including the page
/// id, and the store that the page belongs to.
pub(super) fn checksum(page: &[u8], store: StoreId) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&page[field::CHECKSUM + 8..]) ^ store.0
}

/// The key range that a page covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fences<'a> {
    pub(super) lower: &'a [u8],
    pub(super) upper: Option<&'a [u8]>,
}
