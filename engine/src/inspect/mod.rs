//! Tools that examine a store from outside: what a device holds, whether a store is sound, and what
//! can be salvaged from a damaged one.

pub(crate) mod repair;
pub(crate) mod survey;
pub(crate) mod verify;
