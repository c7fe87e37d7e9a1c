//! The progress of a LodgeTree's background work: cleaning its logs and merging its leaves.

use crate::pm::layout::Time;

/// A cleaning in progress.
pub(crate) struct Run {
    /// Pairs numbered below this are flushed.
    pub(super) floor: Time,
    /// The node from which to continue.
    pub(super) from: Vec<u8>,
    /// Whether everything was flushed so far.
    pub(super) whole: bool,
}

/// A walk over all nodes.
pub(crate) struct Sweep {
    /// The node from which to continue.
    pub(super) from: Vec<u8>,
    /// The number of keys that two leaves may have together to be merged, and whether one of them
    /// must be sparse.
    pub(super) most: usize,
    pub(super) only_sparse: bool,
}
