//! The engines that come with Treering, as the oracle sees them.

use std::any::Any;
use std::sync::Arc;

use treering_engine::Kv;

mod btree;
mod pm;

pub use btree::{BTree, Geometry, VARIATIONS};
pub use pm::PmTree;

/// The store itself, for a call that takes it; `None` if somebody else has it, too, which is then let
/// go of.
fn owned<S: Kv>(store: Arc<dyn Kv>) -> Option<S> {
    let store: Arc<dyn Any + Send + Sync> = store;
    store.downcast::<S>().ok().and_then(Arc::into_inner)
}
