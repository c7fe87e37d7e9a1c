//! The sizes of a state of `IndexSnapshot` for the recordings of a real engine, on its smallest
//! store.
//!
//! An episode must not write more than [`LOG`] records.

/// LSNs, values, numbers of superblocks, counts.
pub(crate) type N = u16;
/// A set of slots, keys, clients or writes.
pub(crate) type Set = u64;

pub(crate) const CLIENTS: usize = 4;
pub(crate) const KEYS: usize = 24;
/// The number of slots of the engine's smallest store.
pub(crate) const SLOTS: usize = 64;
pub(crate) const LOG: usize = 1536;
/// Versions of a slot or superblock between two flushes, including the durable one.
pub(crate) const VERSIONS: usize = 12;
