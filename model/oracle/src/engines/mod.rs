//! The engines that come with Treering, as the oracle sees them.

mod btree;
mod pm;
mod shared;

pub use btree::{BTree, Geometry, VARIATIONS};
pub use pm::PmTree;
