//! The engines that come with Treering, as the oracle sees them.

mod btree;

pub use btree::{BTree, Geometry};
