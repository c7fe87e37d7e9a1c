//! The sizes of a state of `MiniPage` for the recordings of a real engine, on a tree of a few
//! leaves.

use std::hash::{Hash, Hasher};

/// A set of clients, one bit each.
pub(crate) type Set = u16;
/// A set of pages, one bit each.
pub(crate) type Pages = u32;
/// A record: kind and reference bit in the low four bits, then the value.
pub(crate) type Packed = u16;
/// A row of a scan: key and value.
pub(crate) type Row = (u8, u8);

/// The maximum number of keys, and so of pages.
pub(crate) const KEYS: usize = 24;
/// One of the clients stands for readers and maintenance that the engine's events do not attribute
/// to a client.
pub(crate) const CLIENTS: usize = 9;
/// The result of a read that has not happened yet: more than any value.
pub(crate) const PENDING: u8 = 0xff;

/// No row.
pub(crate) const NO_ROW: Row = (0, 0);

pub(super) fn row(key: u8, value: u8) -> Row {
    (key, value)
}

/// Key and value.
pub(super) fn parts(row: Row) -> (u8, u8) {
    row
}

pub(super) fn hash_rows(rows: &[Row; 2 * KEYS], hasher: &mut impl Hasher) {
    rows.hash(hasher);
}

pub(super) fn hash_page(
    head: (u8, u8, u8, Set),
    leaf: &[u8; KEYS],
    mini: (u8, bool, [Packed; KEYS]),
    hasher: &mut impl Hasher,
) {
    (head, leaf, mini).hash(hasher);
}
