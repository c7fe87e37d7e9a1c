//! The sizes of a state of `LeafBuffering` for the recordings of a real engine, on a store of a few
//! leaves.

/// Values, ticks, epochs, counts.
pub(crate) type N = u16;
/// Four of them.
pub(crate) type Bits = u64;
/// A set of slots, keys, leaves, chunks, clients or writes.
pub(crate) type Set = u64;

/// Two real clients and the pump, each with two workers that merge and flush on its behalf.
pub(crate) const CLIENTS: usize = 9;
pub(crate) const KEYS: usize = 56;
pub(crate) const LEAVES: usize = 16;
pub(crate) const SLOTS: usize = 14;
pub(crate) const CHUNKS: usize = 14;
/// Entries of 24 bytes in a chunk of 1 KiB.
pub(crate) const ENTRIES: usize = 42;
/// Slots of a buffer node.
pub(crate) const BATCH: usize = 6;
/// The maximum number of writes that a configuration may plan. The judge plans none.
pub(crate) const WRITES: usize = 1;
/// Versions of a word: those stored since it was last fenced, and the one before.
pub(crate) const VERSIONS: usize = 6;
