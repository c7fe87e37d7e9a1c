//! The sizes of a state of `LeafBuffering` for the bounded models, small and flat. A configuration
//! that needs more is refused.

/// Values, ticks, epochs, counts.
pub(crate) type N = u8;
/// Four of them.
pub(crate) type Bits = u32;
/// A set of slots, keys, leaves, chunks, clients or writes.
pub(crate) type Set = u16;

pub(crate) const CLIENTS: usize = 2;
pub(crate) const KEYS: usize = 5;
pub(crate) const LEAVES: usize = 4;
pub(crate) const SLOTS: usize = 4;
pub(crate) const CHUNKS: usize = 4;
pub(crate) const ENTRIES: usize = 2;
/// Slots of a buffer node.
pub(crate) const BATCH: usize = 2;
/// The maximum number of writes.
pub(crate) const WRITES: usize = 12;
/// Versions of a word: those stored since it was last fenced, and the one before.
pub(crate) const VERSIONS: usize = 4;
