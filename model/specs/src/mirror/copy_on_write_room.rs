//! The sizes of a state of `CopyOnWrite` for the bounded models, small and flat. A configuration
//! that needs more is refused.
//!
//! The mirror's source is compiled twice, here and in [`super::wide`]; only the sizes in this file
//! differ.

/// LSNs, values, numbers of superblocks, counts.
pub(crate) type N = u8;
/// A set of clients, pages, blocks or writes.
pub(crate) type Set = u8;
/// A set of slots.
pub(crate) type SlotSet = u8;

pub(crate) const CLIENTS: usize = 2;
pub(crate) const PAGES: usize = 2;
pub(crate) const BLOCKS: usize = 2;
pub(crate) const SLOTS: usize = 6;
pub(crate) const LOG: usize = 5;
/// Versions of a slot, a table block or a superblock between two flushes, including the durable
/// one.
pub(crate) const VERSIONS: usize = 8;
