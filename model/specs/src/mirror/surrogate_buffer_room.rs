//! Room in a state of `SurrogateBuffer`: for the bounded models, small and flat. A configuration
//! that needs more is refused.

/// Numbers, values, versions, counts.
pub(crate) type N = u8;
/// A set of keys, slots, buffered pairs, entries, clients or writes.
pub(crate) type Set = u16;

pub(crate) const CLIENTS: usize = 2;
/// Also the most pairs of a buffer, which has a key once.
pub(crate) const KEYS: usize = 3;
/// Also the most inner nodes, and the most entries of an index.
pub(crate) const LEAVES: usize = 4;
/// Slots of a leaf.
pub(crate) const SLOTS: usize = 2;
/// Logs at a time.
pub(crate) const SPACES: usize = 4;
/// Entries of a log.
pub(crate) const ENTRIES: usize = 2;
/// Values that a word has between two fences: two, and with a seeded bug that splits a word in two
/// or leaves a fence out, two more.
pub(crate) const VERSIONS: usize = 4;
