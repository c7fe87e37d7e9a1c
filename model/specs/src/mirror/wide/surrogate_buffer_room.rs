//! The sizes of a state of `SurrogateBuffer` for the recordings of a real engine, on a store of a
//! few leaves.

/// Numbers, values, versions, counts.
pub(crate) type N = u16;
/// A set of keys, slots, buffered pairs, clients or writes.
pub(crate) type Set = u64;

pub(crate) const CLIENTS: usize = 3;
/// The maximum number of keys, and so of pairs in a buffer.
pub(crate) const KEYS: usize = 56;
/// The maximum number of leaves, and so of inner nodes and of entries of an index.
pub(crate) const LEAVES: usize = 22;
/// Slots of a leaf.
pub(crate) const SLOTS: usize = 27;
/// The number of logs at a time: up to seven in each chunk.
pub(crate) const SPACES: usize = 112;
/// Entries of a log.
pub(crate) const ENTRIES: usize = 8;
/// Values of a word: those stored since it was last fenced, and the one before.
pub(crate) const VERSIONS: usize = 4;
/// As many sets as have a member for each entry.
pub(crate) const REPLAYED: usize = (SPACES * ENTRIES).div_ceil(Set::BITS as usize);
