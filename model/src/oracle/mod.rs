//! A test oracle for key-value engines: it runs programs against any [`treering_engine::Kv`] and judges every answer.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | how an engine is opened and what it promises |
//! | [`value`] | values that say which write they come from |
//! | [`engines`] | our own engines |
//! | [`history`] | what concurrent clients did, and when |
//! | [`linear`] | whether a history is linearizable, and if not, why |
//! | [`concurrent`] | runs of real threads on one store |
//! | [`random`] | seeded chance |

pub mod concurrent;
pub mod engine;
pub mod engines;
pub mod history;
pub mod linear;
pub mod random;
pub mod value;

pub use engine::{Disk, DiskKind, Engine, Limits, Promise};
