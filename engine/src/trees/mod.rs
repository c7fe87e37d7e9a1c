//! The trees, each a composition of the parts below it.

pub(crate) mod btree;
