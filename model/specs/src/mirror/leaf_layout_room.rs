//! The sizes of a state of `LeafLayout` for the bounded models, small and flat. A configuration that
//! needs more is refused.
//!
//! The mirror's source is compiled twice, here and in [`super::wide`]; only the sizes in this file
//! differ.

/// LSNs, values, keys, counts.
pub(crate) type N = u8;
/// Values.
pub(crate) type V = u8;
/// A set of clients, keys or writes.
pub(crate) type Set = u8;

pub(crate) const CLIENTS: usize = 2;
pub(crate) const KEYS: usize = 6;
pub(crate) const PAGES: usize = 3;
/// The maximum number of writes.
pub(crate) const WRITES: usize = 6;
/// The maximum number of log records: writes, conversions, merges and splits. Conversions and
/// merges are bounded by `MaxLog`, splits by the number of pages.
pub(crate) const LOG: usize = 17;
/// Versions of a page between two flushes: redo may write it after each record.
pub(crate) const VERSIONS: usize = LOG + 1;
