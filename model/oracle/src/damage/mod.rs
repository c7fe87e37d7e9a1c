//! Damage that no crash leaves: a store is built, some of its medium is harmed, and whoever opens
//! it reads what was acknowledged, or is told.
//!
//! | harm | what happened |
//! |---|---|
//! | flip | a bit rotted |
//! | zero | a block was lost, or read as zeros |
//! | old | a write never reached the medium: the block is as it was at an earlier time |
//! | swap | a write, or two, went to the other's place |
//! | foreign | the block is that of another store, which had the device before |
//! | cut | the file is shorter than it was |
//!
//! The store is harmed at rest, after it was closed and opened some times, or behind a power cut,
//! with a log that goes on behind the last checkpoint; on a medium whose discards act, or on one
//! where they do nothing, in memory or in a real file, so that whatever was written once is there
//! to be taken for what is written now.
//!
//! Allowed are right answers, and errors that name the damage. One thing cannot be told
//! (`engine/src/pages/versioned.rs` has the table): where the log's last flush is harmed behind a
//! power cut, it looks like one that the cut made short. Then a record of that flush may be
//! missing, and all behind it. In persistent memory (`pm`) the papers' leaves have no checksums;
//! harm to them may end in a wrong answer, and is counted. What was not told of goes on to be
//! written, and is cut and read once more: damage must not come out late. One store in three is
//! written to, and checkpointed, before anybody reads it.

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

/// Builds the store of `seed` with so many operations, and harms it in a hundred ways.
///
/// # Errors
/// The first harm that was neither told nor harmless.
pub fn run(engine: &dyn Engine, seed: u64, operations: usize) -> Result<Tally, Box<Finding>> {
    run_until(engine, seed, operations, &Deadline::never())
}

/// As [`run`], but ends between two harms once `until` is over. Building the store has at most a
/// part of the time until then; one that is not through by then is harmed as it is.
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
