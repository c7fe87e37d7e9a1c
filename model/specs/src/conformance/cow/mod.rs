//! Conformance of the engine's copy-on-write store to `CopyOnWrite`.
//!
//! Episodes ([`episode`]) drive a real [`treering_engine::Store`] on a device that crashes, with a
//! page table that is written for each page or at checkpoints. The events of the store of pages
//! ([`treering_engine::events::Cow`]), of log, checkpoint, recovery and clients, and the content of
//! the device after each end ([`found`]) are recorded and replayed on the mirror ([`judge`],
//! `power`). That mirror has the source whose graph equals TLC's, with room for a real engine
//! ([`crate::mirror::wide`]). The first event for which the mirror has no step, or another outcome,
//! is refused. All invariants are checked after each end, and regularly in between. At each power
//! cut both superblocks, the page table, and every slot that a recovery may need must be one of the
//! mirror's versions.
//!
//! # How the spec maps to the engine
//!
//! Each item names a part of the spec, then what it is in an episode of the engine:
//!
//! - a page with one key: a leaf, of which one record is written; the other leaves of the store
//!   only take room
//! - slot *n*: the engine's slot *n* - 1; block 1 of the table: the engine's only one
//! - the number of a superblock: the engine's, less a constant
//! - `Init`: the mirror's own steps lead from there to the store that the episode begins with
//! - `CallGet`, `CallWrite`, `AnswerGet`, `FailCall`: recorded from the clients; a write is `put`
//!   under `Deferred`
//! - `ReadPage`, `ChangePage`, `Acknowledge`, `CommitLog`: `PageRead`, `LogAppended`,
//!   `Acknowledged`, `LogFlushed`
//! - `WriteImage` .. `FinishTable`: see the table at [`treering_engine::events::Cow`]
//! - `WriteSnapshot`: `WritesChunk`
//! - `FlushDevice`, `FailFlush`: `DeviceFlushed`, `DeviceFlushFailed`
//! - `BeginCheckpoint`, `PersistTable`, `WriteSuper`, `FinishCheckpoint`: `CheckpointBegins`,
//!   `PagesWritten`, `SuperblockWriting`, `SuperblockFlushed`
//! - `Crash`: a new device that holds one legal outcome, read off it; the log is what a recovery of
//!   a copy reads
//! - `Restart`: everything from an opening to `RecoveryBegins`; after a crash too, since the engine
//!   does not know whether the power failed
//! - `RedoRecord`, `FinishRedo`: `PageRedone`, `RedoEnds`; `Open`: the next checkpoint begins
//!
//! The spec's steps that write behind a flush contain it. Here the flush must have come before:
//! otherwise they are refused.
//!
//! # What is left out, and why
//!
//! - *Pages that come and go* (`BuildPage` after the beginning, `DropPage`, `FreePage`): an episode
//!   in which a leaf is split or merged is refused, since the events do not name the pages.
//! - *Batches.* A page is written alone (`write_batch_pages` is 1), because the spec has no batch.
//! - *A second block of the table.* The engine's smallest stores have one.
//! - *Torn images.* Pages are of one block.
//! - *Threads*, and *what a process does after a failure*: as in [`super::shadow`].

pub mod cover;
pub mod episode;
pub mod found;
pub mod judge;
mod power;
pub mod setup;
mod tla;

use treering_engine::Result;

pub use self::episode::run_episode;
use self::episode::run_until;
pub use self::judge::{Heard, Judge, Refusal};
pub use self::setup::{Setup, Variant};
use super::{Budget, refused};
pub use crate::mirror::wide::copy_on_write::LABELS;

/// The result of episodes: the seed of each.
pub type Report = refused::Report<u64, Refusal>;

/// The actions that no episode takes once it has begun.
pub const NEVER: [&str; 2] = ["DropPage", "FreePage"];

/// Runs episodes until the budget is used up or an event is refused.
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(variant: Variant, seed: u64, budget: Budget) -> Result<Report> {
    run_on(&Setup::new(variant)?, seed, budget)
}

/// As [`run`], with a store that was built earlier: by an engine without the bug that is switched
/// on now, for example.
///
/// # Errors
/// As [`run`].
pub fn run_on(setup: &Setup, seed: u64, budget: Budget) -> Result<Report> {
    Report::try_of(seed, budget, |_, seed, until| {
        Ok((seed, run_until(setup, seed, until)?))
    })
}
