//! The sizes of a state of `SurrogateBuffer` for the bounded models, small and flat. A
//! configuration that needs more is refused.

/// Numbers, values, versions, counts.
pub(crate) type N = u8;
/// A set of keys, slots, buffered pairs, entries, clients or writes.
pub(crate) type Set = u16;

pub(crate) const CLIENTS: usize = 2;
/// The maximum number of keys, and so of pairs in a buffer.
pub(crate) const KEYS: usize = 4;
/// The maximum number of leaves, and so of inner nodes and of entries of an index.
pub(crate) const LEAVES: usize = 4;
/// Slots of a leaf.
pub(crate) const SLOTS: usize = 3;
/// The number of logs at a time.
pub(crate) const SPACES: usize = 4;
/// Entries of a log.
pub(crate) const ENTRIES: usize = 2;
/// Values of a word between two fences: two, and two more with a seeded bug that splits a word or
/// omits a fence.
pub(crate) const VERSIONS: usize = 4;
/// As many sets as have a member for each entry.
pub(crate) const REPLAYED: usize = (SPACES * ENTRIES).div_ceil(Set::BITS as usize);
