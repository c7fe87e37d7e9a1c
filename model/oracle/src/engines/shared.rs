//! What the engines have in common.

use std::any::Any;
use std::sync::Arc;

use treering_engine::Kv;

use crate::random::Random;

/// So few entries per inner node that a tree of a few dozen leaves is several levels deep.
pub(super) const FEW_ENTRIES: usize = 4;

/// The most entries of an inner node, for one opening of a store.
pub(super) fn entries_again(most: usize, random: &mut Random) -> usize {
    [most, 3, 5, 9, 170][random.below(5) as usize]
}

/// The openings of one store that can have different options.
pub(super) const DRAWN_OPENINGS: u64 = 1_000_000;

/// The number of seeds for `options=N`.
pub(super) const DRAWS: u64 = 1_000;

/// Takes a store out of its `Arc`. `None`, and the reference is dropped, if there are others.
pub(super) fn owned<S: Kv>(store: Arc<dyn Kv>) -> Option<S> {
    let store: Arc<dyn Any + Send + Sync> = store;
    store.downcast::<S>().ok().and_then(Arc::into_inner)
}
