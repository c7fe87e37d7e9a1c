//! Stores looked at from outside: what a device holds, whether a store is sound, and what can be
//! saved of a damaged one.

pub(crate) mod repair;
pub(crate) mod survey;
pub(crate) mod verify;
