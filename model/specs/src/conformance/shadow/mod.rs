//! Conformance of the engine's store of shadowed pages to `PageShadowing`.
//!
//! Episodes ([`episode`]) drive a real [`treering_engine::Store`] over shadowed pages on a device
//! that crashes. Pages have two or four blocks, with or without a modification log. The events of
//! the store of pages ([`treering_engine::events::Shadow`]), of log, recovery and clients, and the
//! content of the device after each end ([`found`]) are recorded and replayed on the mirror
//! ([`judge`], `power`). That mirror has the source whose graph equals TLC's, with room for a real
//! engine ([`crate::mirror::wide`]) and without the model's bounds on clients, failures and
//! crashes. The first event for which the mirror has no step, or another outcome, is refused, and
//! reported with the state before it. All invariants are checked after each end, and regularly in
//! between.
//!
//! # How the spec maps to the engine
//!
//! Each item names a part of the spec, then what it is in an episode of the engine:
//!
//! - a page, a segment for each of its blocks: a leaf that is full, and one record in each of its
//!   blocks: nothing else is written ([`setup`])
//! - |Δ| segments, T of them: that many times Ds, since a record's value lies inside one of the
//!   engine's segments; the page's envelope does not count
//! - `Init`, in which no page was ever written: the mirror's own steps lead from there to the
//!   beginning of the episode: each leaf in one slot, alone
//! - LSN *n*: the *n*-th record of the log, wherever it lies there
//! - `CallGet`, `CallWrite`, `AnswerGet`: recorded from the clients; a write is `put` under
//!   `Deferred`
//! - `ReadPage`, `ChangePage`, `Acknowledge`: `PageRead`, `LogAppended`, `Acknowledged` (of its
//!   `sync`)
//! - `CommitLog`: `LogFlushed`; the log shares the pages' device, so a flush of it is a
//!   `FlushDevice` too
//! - `Load` .. `FlushDevice`, `FailFlush`: see the table at [`treering_engine::events::Shadow`]
//! - `Checkpoint`: `SuperblockWriting`, if the superblock reaches the device: `SuperblockFlushed`
//!   tells, or the device after an end
//! - `Crash`: a new device that holds one legal outcome; the version of each block is read off it,
//!   and the log is what a recovery of a copy reads
//! - `Restart`: everything from an opening to `RecoveryBegins`; after a crash too, since the engine
//!   does not know whether the power failed
//! - `RedoRecord`, `FinishRedo`: `PageRedone`, `RedoEnds`
//!
//! # What is left out, and why
//!
//! - *Threads.* The spec's flush is one step. A real flush takes time, and does not cover what is
//!   written meanwhile. Writes are reported before they begin and flushes when they are done, so
//!   with one thread for all clients nothing comes in between. The rule that a page counts as
//!   durable only if its write had returned when the flush began is tested by the store's unit
//!   tests.
//! - *Pages that come and go.* An episode in which a leaf is split or merged is refused. The spec
//!   has no splits or merges.
//! - *A restart after a failed write.* A failed write is followed by a power failure, as in
//!   [`super`] and for the same reason. A failed read ends a life, and is not an event.
//! - *What a process does after a failure* is judged only as far as it writes. The spec's process
//!   does nothing at all until the next start. The engine still reads, and may append to the buffer
//!   of a log that it never writes again.
//! - *A trim that takes effect late.* A trim that is not durable may read as what was there before
//!   (`Read`). The device here returns zeros at once.
//! - *`bf`* over this store. Mini-pages merge many records into a leaf in one change, and the
//!   spec's pages change one record at a time. The store of pages is the same.
//!
//! Two steps of the mirror are finer than the spec's, and do less. A checkpoint may free less of
//! the log than it could ([`try_checkpoint`]), since the engine's redo start is where its
//! checkpoint began. And redo goes page by page ([`try_redo`]).
//!
//! [`try_checkpoint`]: crate::mirror::wide::page_shadowing::PageShadowing::try_checkpoint
//! [`try_redo`]: crate::mirror::wide::page_shadowing::PageShadowing::try_redo
//!
//! Episodes cannot reveal two of the paper's steps that are taken too early, since the engine never
//! gets into that situation: a page is written twice between two flushes of the device
//! (`ping-pong-at-once`, `delta-at-once`) only if its log is on another device
//! (`specs/FINDINGS.md`, PageShadowing 2).

pub mod cover;
pub mod episode;
pub mod found;
pub mod judge;
mod power;
pub mod setup;
mod tla;

use treering_engine::{ResetRule, Result};

pub use self::episode::run_episode;
use self::episode::run_until;
pub use self::judge::{Heard, Judge, Refusal};
pub use self::setup::{Setup, Variant};
use super::{Budget, refused};
pub use crate::mirror::wide::page_shadowing::LABELS;
use crate::mirror::wide::page_shadowing::unbounded::InMemory;

/// The result of episodes: the number of the setup, and the seed.
pub type Report = refused::Report<(usize, u64), Refusal>;

/// Builds the stores that episodes of a variant begin with.
///
/// # Errors
/// The engine's own.
pub fn setups(variant: Variant) -> Result<Vec<Setup>> {
    let small = Setup::new(variant, 2, ResetRule::AtThreshold)?;
    let large = Setup::new(variant, 4, ResetRule::AboveThreshold)?;
    Ok(vec![small, large])
}

/// Runs episodes until the budget is used up or an event is refused.
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(variant: Variant, seed: u64, budget: Budget) -> Result<Report> {
    run_on(&setups(variant)?, seed, budget)
}

/// As [`run`], with stores that were built earlier: by an engine without the bug that is switched
/// on now, for example.
///
/// # Errors
/// As [`run`].
pub fn run_on(setups: &[Setup], seed: u64, budget: Budget) -> Result<Report> {
    Report::try_of(seed, budget, |n, seed, until| {
        let which = n as usize % setups.len();
        Ok(((which, seed), run_until(&setups[which], seed, until)?))
    })
}
