//! Runs the checkers and compares them.

pub mod cpu;
pub mod mirrors;
