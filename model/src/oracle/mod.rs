//! A test oracle for key-value engines: it runs programs against any [`treering_engine::Kv`] and judges every answer.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | how an engine is opened and what it promises |
//! | [`value`] | values that say which write they come from |
//! | [`engines`] | our own engines |
//! | [`events`] | whether what our engine does is what its spec allows |

pub mod campaign;
pub mod crash;
pub mod differential;
pub mod engine;
pub mod engines;
pub mod events;
pub mod finding;
pub mod generate;
pub mod panics;
pub mod program;
pub mod reference;
pub mod session;
pub mod shrink;
pub mod value;

pub use engine::{Disk, DiskKind, Engine, Limits, Promise};
pub use finding::{Check, Finding};
pub use program::{CrashPoint, Keep, KeyNo, Op, Program};
pub use reference::Reference;
pub use session::{Tally, execute};
