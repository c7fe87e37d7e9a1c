//! The bytes of a page: field positions, slots, heads. Everything else goes through here.
//!
//! | bytes | field |
//! |---|---|
//! | 0-7 | XXH3-64 of all bytes behind this field |
//! | 8-15 | page id: a misdirected write is noticed by it |
//! | 16-23 | LSN of the last log record applied |
//! | 24-25 | magic `TR` |
//! | 26 | layout and its version: 1 = slotted |
//! | 27 | log2 of the page size |
//! | 28-29 | number of records |
//! | 30-31 | length of the prefix that the fences share |
//! | 32-33, 34-35 | lengths of lower and upper fence |
//! | 36 | 1 if there is an upper fence, 0 if the page is the rightmost one |
//! | 37-39 | zeros |
//! | 40-43 | where the lowest payload begins; the page size if the page holds nothing at all |
//! | 44-47 | live heap bytes: payloads and fences, holes left out |
//!
//! Then the slots; from the page's end downwards lower fence, upper fence, payloads.

/// Bytes of the page header.
pub const HEADER_BYTES: usize = 48;
/// Bytes of one slot: what a record costs beside its key suffix and value.
pub const SLOT_BYTES: usize = 10;
/// The smallest page in bytes.
pub const MIN_PAGE_BYTES: usize = 4 << 10;
/// The largest page in bytes.
pub const MAX_PAGE_BYTES: usize = 64 << 10;

/// Where each header field begins.
pub(super) mod field {
    pub(in crate::node) const CHECKSUM: usize = 0;
    pub(in crate::node) const PAGE_ID: usize = 8;
    pub(in crate::node) const LSN: usize = 16;
    pub(in crate::node) const MAGIC: usize = 24;
    pub(in crate::node) const KIND: usize = 26;
    pub(in crate::node) const SIZE_LOG2: usize = 27;
    pub(in crate::node) const COUNT: usize = 28;
    pub(in crate::node) const PREFIX_LEN: usize = 30;
    pub(in crate::node) const LOWER_LEN: usize = 32;
    pub(in crate::node) const UPPER_LEN: usize = 34;
    pub(in crate::node) const BOUNDED: usize = 36;
    pub(in crate::node) const RESERVED: std::ops::Range<usize> = 37..40;
    pub(in crate::node) const HEAP_START: usize = 40;
    pub(in crate::node) const HEAP_USED: usize = 44;
}

/// Marks bytes as a tree page: "TR".
pub(super) const MAGIC: u16 = u16::from_le_bytes(*b"TR");
/// The slotted layout, first version. Other layouts and later versions take other numbers.
pub(super) const KIND_SLOTTED_V1: u8 = 1;

/// Whether pages of `bytes` bytes exist: powers of two from 4 KiB to 64 KiB.
#[must_use]
pub const fn is_page_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes >= MIN_PAGE_BYTES && bytes <= MAX_PAGE_BYTES
}

/// One slot, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) offset: u16,
    pub(super) key_len: u16,
    pub(super) value_len: u16,
    pub(super) head: u32,
}

/// One slot as it lies in the page. Packed: the two bytes of padding that would align the head cost more
/// space than they save time (B-Trees Are Back §3.2, "Slot Alignment").
pub(super) type RawSlot = [u8; SLOT_BYTES];

impl Slot {
    #[inline]
    pub(super) fn decode(raw: &RawSlot) -> Slot {
        Slot {
            offset: u16::from_le_bytes([raw[0], raw[1]]),
            key_len: u16::from_le_bytes([raw[2], raw[3]]),
            value_len: u16::from_le_bytes([raw[4], raw[5]]),
            head: head_of(raw),
        }
    }

    #[inline]
    pub(super) fn encode(&self) -> RawSlot {
        let mut raw = [0; SLOT_BYTES];
        raw[0..2].copy_from_slice(&self.offset.to_le_bytes());
        raw[2..4].copy_from_slice(&self.key_len.to_le_bytes());
        raw[4..6].copy_from_slice(&self.value_len.to_le_bytes());
        raw[6..10].copy_from_slice(&self.head.to_le_bytes());
        raw
    }

    /// Bytes of key suffix and value on the heap.
    #[inline]
    pub(super) fn payload_len(&self) -> usize {
        usize::from(self.key_len) + usize::from(self.value_len)
    }
}

/// The head stored in a slot, without decoding the rest.
#[inline]
pub(super) fn head_of(raw: &RawSlot) -> u32 {
    u32::from_le_bytes([raw[6], raw[7], raw[8], raw[9]])
}

/// The first four bytes of a key suffix, zero padded, as an integer that orders like them.
#[inline]
pub(super) fn head(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(first) => u32::from_be_bytes(*first),
        None => {
            let mut padded = [0; 4];
            padded[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(padded)
        }
    }
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

/// Where slot `index` begins.
#[inline]
pub(super) fn slot_at(index: usize) -> usize {
    HEADER_BYTES + index * SLOT_BYTES
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

/// The checksum that belongs into the header: everything behind the checksum field, page id included.
pub(super) fn checksum(page: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&page[field::CHECKSUM + 8..])
}
