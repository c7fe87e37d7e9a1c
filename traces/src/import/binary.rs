//! Fields of a binary record. All read at an offset that the record's length, fixed by its format,
//! covers.

/// The `N` bytes at `at`.
#[inline]
pub(super) fn bytes<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

/// A little-endian number of 16 bits.
#[inline]
pub(super) fn u16_le(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(record, at))
}

/// A little-endian number of 32 bits.
#[inline]
pub(super) fn u32_le(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(record, at))
}

/// A little-endian number of 64 bits.
#[inline]
pub(super) fn u64_le(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(record, at))
}
