//! The inductive invariants: no step leads out of them, seeded bugs do, conjuncts are needed, and
//! TLA+ and Rust say the same.

mod leaf_buffering;
mod page_shadowing;
mod support;
mod surrogate_buffer;
mod wal_recovery;
