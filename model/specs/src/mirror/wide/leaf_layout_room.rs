//! The sizes of a state of `LeafLayout` for the recordings of a real engine.
//!
//! An episode must not write more than [`LOG`] records, nor split leaves more than [`PAGES`] times.

/// LSNs, keys, bytes, counts. A key is a number of four bytes.
pub(crate) type N = u32;
/// Values.
pub(crate) type V = u16;
/// A set of clients, keys or writes.
pub(crate) type Set = u64;

pub(crate) const CLIENTS: usize = 4;
pub(crate) const KEYS: usize = 104;
pub(crate) const PAGES: usize = 56;
/// The maximum number of writes that a configuration plans. A recording plans none.
pub(crate) const WRITES: usize = 6;
pub(crate) const LOG: usize = 640;
/// Versions of a page between two flushes, including the durable one.
pub(crate) const VERSIONS: usize = 8;
