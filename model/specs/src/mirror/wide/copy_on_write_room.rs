//! The sizes of a state of `CopyOnWrite` for the recordings of a real engine, on its smallest store.
//!
//! An episode must not write more than [`LOG`] records, including those that created its pages.

/// LSNs, values, numbers of superblocks, counts.
pub(crate) type N = u16;
/// A set of clients, pages, blocks or writes.
pub(crate) type Set = u64;
/// A set of slots.
pub(crate) type SlotSet = u64;

pub(crate) const CLIENTS: usize = 4;
/// Most of the pages of the episodes; the others are never written.
pub(crate) const PAGES: usize = 32;
pub(crate) const BLOCKS: usize = 1;
/// The number of slots of the engine's smallest store.
pub(crate) const SLOTS: usize = 64;
pub(crate) const LOG: usize = 2048;
/// Versions of a slot, a table block or a superblock between two flushes. After a failed flush,
/// the versions that it forgot remain until the place is written again.
pub(crate) const VERSIONS: usize = 24;
