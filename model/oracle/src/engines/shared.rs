//! What the engines have in common: how options are drawn, and how a store is got out of its `Arc`.

use std::any::Any;
use std::sync::Arc;

use treering_engine::Kv;

use crate::random::Random;

/// Entries of an inner node, so that a tree of a few dozen leaves is several levels deep.
pub(super) const FEW_ENTRIES: usize = 4;

/// Entries of an inner node at most, at the `opening`-th opening.
pub(super) fn entries_again(most: usize, random: &mut Random) -> usize {
    [most, 3, 5, 9, 170][random.below(5) as usize]
}

/// So many openings of a store have options of their own.
pub(super) const DRAWN_OPENINGS: u64 = 1_000_000;

/// Draws of options there are.
pub(super) const DRAWS: u64 = 1_000;

/// The store itself, for a call that takes it; `None` if somebody else has it, too, which is then
/// let go of.
pub(super) fn owned<S: Kv>(store: Arc<dyn Kv>) -> Option<S> {
    let store: Arc<dyn Any + Send + Sync> = store;
    store.downcast::<S>().ok().and_then(Arc::into_inner)
}
