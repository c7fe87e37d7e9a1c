//! The sizes of a state of `MiniPage` for the bounded models, small and flat. A configuration that
//! needs more is refused.
//!
//! The mirror's source is compiled twice, here and in [`super::wide`]; only the sizes in this file
//! differ.

use std::hash::Hasher;

/// A set of clients, one bit each.
pub(crate) type Set = u8;
/// A set of pages, one bit each.
pub(crate) type Pages = u8;
/// A record: kind and reference bit in the low four bits, then the value.
pub(crate) type Packed = u8;
/// A row of a scan: key in the low half, value in the high one.
pub(crate) type Row = u8;

/// The maximum number of keys, and so of pages.
pub(crate) const KEYS: usize = 4;
pub(crate) const CLIENTS: usize = 3;
/// The result of a read that has not happened yet: more than any value.
pub(crate) const PENDING: u8 = 0xf;

/// No row.
pub(crate) const NO_ROW: Row = 0;

pub(super) fn row(key: u8, value: u8) -> Row {
    key | value << 4
}

/// Key and value.
pub(super) fn parts(row: Row) -> (u8, u8) {
    (row & 0xf, row >> 4)
}

pub(super) fn hash_rows(rows: &[Row; 2 * KEYS], hasher: &mut impl Hasher) {
    hasher.write_u64(u64::from_le_bytes(*rows));
}

/// Gives the hasher two words instead of two dozen bytes.
pub(super) fn hash_page(
    (low, high, writer, readers): (u8, u8, u8, Set),
    leaf: &[u8; KEYS],
    (size, mirror, records): (u8, bool, [Packed; KEYS]),
    hasher: &mut impl Hasher,
) {
    let mirror = u8::from(mirror);
    hasher.write_u64(u64::from_le_bytes([
        low, high, writer, readers, size, mirror, 0, 0,
    ]));
    let [a, b, c, d] = *leaf;
    let [e, f, g, h] = records;
    hasher.write_u64(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
}
