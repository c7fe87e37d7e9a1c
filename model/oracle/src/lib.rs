//! A test oracle for key-value engines: it runs programs against any [`treering_engine::Kv`] and judges every answer.
//!
//! | module | what |
//! |---|---|
//! | [`engine`], [`engines`] | how an engine is opened and what it promises; our own |
//! | [`program`], [`generate`], [`shrink`] | programs as people read them; at random; as small as they can be |
//! | [`edges`] | the lengths at which formats change, and which of them were met |
//! | [`value`], [`reference`](mod@reference) | values that say which write they come from, and the map that says what must be there |
//! | [`medium`] | the devices that crash, behind one face |
//! | [`session`], [`differential`] | a store beside the reference map |
//! | [`crash`] | every way in which a power cut could have ended a program |
//! | [`damage`] | a medium that is harmed in ways that no crash leaves |
//! | [`history`], [`linear`], [`concurrent`] | what threads did and saw; whether one order of it all explains that; runs of real threads |
//! | [`campaign`], [`deadline`] | many programs on a few threads; when one has to stop |
//! | [`random`] | seeded chance |
//! | [`finding`] | what is said when something is wrong |

pub mod campaign;
pub mod concurrent;
pub mod crash;
pub mod damage;
pub mod deadline;
pub mod differential;
pub mod edges;
pub mod engine;
pub mod engines;
pub mod finding;
pub mod generate;
pub mod history;
pub mod linear;
pub mod medium;
pub mod panics;
mod point;
pub mod program;
pub mod random;
pub mod reach;
pub mod reference;
pub mod session;
pub mod shrink;
pub mod system;
pub mod value;

pub use deadline::Deadline;
pub use engine::{Disk, DiskKind, Engine, Limits, LongValues, Promise, Write};
pub use finding::{Check, Finding};
pub use program::{CrashPoint, Keep, KeyNo, Op, Program};
pub use reference::Reference;
pub use session::{Tally, execute};
