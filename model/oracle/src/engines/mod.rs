//! Treering's own engines, as the oracle tests them: page trees and trees in persistent memory.

mod btree;
mod pm;
mod recipes;
mod shared;

pub use btree::{BTree, Geometry, VARIATIONS};
pub use pm::PmTree;
