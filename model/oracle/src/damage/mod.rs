//! Damage that no crash causes. A store is built and its medium damaged; then every read must
//! return what was acknowledged, or an error.
//!
//! | damage | what happened |
//! |---|---|
//! | flip | a bit flipped |
//! | zero | a block reads as zeros |
//! | old | a write was lost: the block has earlier content |
//! | swap | two writes went to each other's place |
//! | foreign | the block belongs to a store that used the device before |
//! | cut | the file was truncated |
//!
//! The store is either closed, or left by a power cut with a log beyond its last checkpoint. The
//! medium is in memory or in a real file, and its discards either work or do nothing, so that stale
//! data is there to be confused with live data.
//!
//! Right answers are allowed, and errors that report the damage. One case cannot be detected
//! (`engine/src/pages/versioned.rs` lists it): damage to the last flush of a log that was not
//! closed looks like a flush that the power cut interrupted. Records of that flush may then be
//! missing, those of a batch one by one: a page may have one of its changes already. In persistent
//! memory (`pm`) the papers' leaves have no checksums; wrong answers after damage to those are
//! counted, not reported. If no error was returned, the store is written to, crashed and read
//! again: damage must not show late. One store in three is written to, and checkpointed, before it
//! is read.

mod blocks;
mod harm;
mod judge;
mod pm;
mod state;
mod store;
mod tally;

pub use harm::{Harm, HarmKind};
pub use tally::Tally;

use crate::deadline::Deadline;
use crate::engine::{DiskKind, Engine};
use crate::finding::Finding;

/// Builds the store of a seed with `operations` operations, and damages it in a hundred ways, each
/// time from the same state.
///
/// # Errors
/// The first damage that led to a wrong answer, or to an error that does not report damage.
pub fn run(engine: &dyn Engine, seed: u64, operations: usize) -> Result<Tally, Box<Finding>> {
    run_until(engine, seed, operations, &Deadline::never())
}

/// As [`run`], but stops between two cases once `until` is over. Building the store gets a share of
/// that time, and stops early if necessary.
///
/// # Errors
/// As [`run`].
pub fn run_until(
    engine: &dyn Engine,
    seed: u64,
    operations: usize,
    until: &Deadline,
) -> Result<Tally, Box<Finding>> {
    match engine.disk() {
        DiskKind::Pm(bytes) => pm::run(engine, bytes, seed, operations, until),
        DiskKind::Blocks(_) | DiskKind::Folder => blocks::run(engine, seed, operations, until),
    }
}
