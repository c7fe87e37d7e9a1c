//! A test oracle for key-value engines: it runs programs against any [`treering_engine::Kv`] and judges every answer.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | how an engine is opened and what it promises |
//! | [`value`] | values that say which write they come from |
//! | [`engines`] | our own engines |
//! | [`events`] | whether what our engine does is what its spec allows |

pub mod engine;
pub mod engines;
pub mod events;
pub mod value;

pub use engine::{Disk, DiskKind, Engine, Limits, Promise};
