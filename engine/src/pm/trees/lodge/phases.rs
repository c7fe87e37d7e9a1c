//! How far background work of a LodgeTree has got: cleaning its logs, merging its leaves.

use crate::pm::layout::Time;

/// A cleaning under way.
pub(crate) struct Run {
    /// What is numbered below is flushed.
    pub(super) floor: Time,
    /// The node to go on from.
    pub(super) from: Vec<u8>,
    /// Whether all of it was flushed so far.
    pub(super) whole: bool,
}

/// A walk over all nodes.
pub(crate) struct Sweep {
    /// The node to go on from.
    pub(super) from: Vec<u8>,
    /// Keys that two leaves may have together to be merged, and whether one of them must be sparse.
    pub(super) most: usize,
    pub(super) only_sparse: bool,
}
