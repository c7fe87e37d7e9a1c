//! The sizes of a state of `IndexSnapshot` for the bounded models, small and flat. A configuration
//! that needs more is refused.
//!
//! The mirror's source is compiled twice, here and in [`super::wide`]; only the sizes in this file
//! differ.

/// LSNs, values, numbers of superblocks, counts.
pub(crate) type N = u8;
/// A set of slots, keys, clients or writes.
pub(crate) type Set = u8;

pub(crate) const CLIENTS: usize = 2;
pub(crate) const KEYS: usize = 4;
pub(crate) const SLOTS: usize = 8;
/// The maximum number of log records: writes, splits and merges.
pub(crate) const LOG: usize = 8;
/// Versions of a slot or superblock between two flushes, including the durable one. A page has no
/// more than records, and its slot may be trimmed and belong to a chunk then.
pub(crate) const VERSIONS: usize = 8;
