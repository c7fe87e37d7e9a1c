//! The sizes of a state of `Overflow` for the bounded models, small and flat. A configuration that
//! needs more is refused.

/// LSNs, values, names, counts.
pub(crate) type N = u8;
/// A set of blocks, clients, keys or writes.
pub(crate) type Set = u8;

pub(crate) const CLIENTS: usize = 2;
pub(crate) const KEYS: usize = 2;
pub(crate) const BLOCKS: usize = 4;
/// The maximum number of blocks of a value.
pub(crate) const PARTS: usize = 2;
/// The maximum number of writes, and so of log records.
pub(crate) const LOG: usize = 5;
/// Versions of a block between two flushes, including the durable one. A value's block is trimmed
/// after a flush, and written once more before the next. With a seeded bug each write may have a
/// trim.
pub(crate) const VERSIONS: usize = 2 * LOG + 1;
/// Versions of a leaf: redo may write it after each record.
pub(crate) const LEAF_VERSIONS: usize = LOG + 1;
