//! Event conformance of shadowed pages: what the engine's store does is what `PageShadowing`
//! allows.
//!
//! Episodes ([`episode`]) drive a real [`treering_engine::Store`] over shadowed pages, of two or
//! four blocks, with a modification log or without, on a device that crashes. What the store of
//! pages tells ([`treering_engine::events::Shadow`]), what log, recovery and clients tell, and what
//! a device holds after each end ([`found`]) is replayed on the mirror ([`judge`], `power`): the
//! source that is equal to TLC's graph, with room for an engine ([`crate::mirror::wide`]) and
//! without the model's bounds on who calls what, failures and crashes. The first event for which
//! the mirror has no step, or another outcome, is refused, and told with the state before it. After
//! each end, and every so many events, all invariants are looked at.
//!
//! # What stands for what
//!
//! | the spec | the engine in an episode |
//! |---|---|
//! | a page, a segment for each of its blocks | a leaf that is full, and one record in each of its blocks: nothing else is written ([`setup`]) |
//! | \|Δ\| segments, T of them | so many times Ds, for a record's value lies inside one of the engine's segments; the page's envelope does not count |
//! | `Init`, in which no page was ever written | the mirror's own steps lead from there to what the episode begins with: each leaf in one slot, alone |
//! | LSN *n* | the *n*-th record of the log, wherever it lies there |
//! | `CallGet`, `CallWrite`, `AnswerGet` | heard from the clients; a write is `put` under `Deferred` |
//! | `ReadPage`, `ChangePage`, `Acknowledge` | `PageRead`, `LogAppended`, `Acknowledged` (of its `sync`) |
//! | `CommitLog` | `LogFlushed`; the log shares the pages' device, so that a flush of it is a `FlushDevice`, too |
//! | `Load` .. `FlushDevice`, `FailFlush` | see the table at [`treering_engine::events::Shadow`] |
//! | `Checkpoint` | `SuperblockWriting`, if the superblock gets to the device: `SuperblockFlushed` says so, or the device after an end |
//! | `Crash` | a new device that holds one legal outcome; which version of which block that is, is read off it, and of the log what a recovery of a copy reads |
//! | `Restart` | all from an opening to `RecoveryBegins`; behind a crash, too, for the engine does not know whether the power went |
//! | `RedoRecord`, `FinishRedo` | `PageRedone`, `RedoEnds` |
//!
//! # What is left out, and why
//!
//! - *Threads.* The spec's flush is one step; a real one takes time, and does not cover what is
//!   written meanwhile. Writes are told before they begin, flushes when they are done, so with one
//!   thread for all clients nothing comes in between. That a page counts as durable only if its
//!   write had returned when the flush began is the matter of the store's unit tests.
//! - *Pages that come and go*: an episode in which a leaf is split or merged is refused. The spec
//!   has none of it.
//! - *A failed write is followed by a power cut*, as in [`super`] and for the same reason. A failed
//!   read ends a life, and is no event.
//! - *What a process does after a failure* is judged only as far as it writes: the spec's does
//!   nothing at all until the next start, the engine still reads, and may append to the buffer of a
//!   log that it never writes again.
//! - *Another trim.* A trim that is not durable may read as what was there before (`Read`); the
//!   device here returns zeros at once.
//! - *`bf`* over this store: mini-pages merge many records into a leaf in one change, the spec's
//!   pages change a record at a time. The store below is the same.
//!
//! Two steps of the mirror are finer than the spec's, and do less: a checkpoint may give up less of
//! the log than it could
//! ([`PageShadowing::try_checkpoint`](crate::mirror::wide::page_shadowing::PageShadowing::try_checkpoint)),
//! since the engine's redo start is where its checkpoint began, and redo goes page by page
//! ([`PageShadowing::try_redo`](crate::mirror::wide::page_shadowing::PageShadowing::try_redo)).
//!
//! Two of the paper's steps taken too early cannot be told here, since the engine never comes to
//! them: a page is written twice between two flushes of the device (`ping-pong-at-once`,
//! `delta-at-once`) only if its log is on another one (`specs/FINDINGS.md`, PageShadowing 2).

pub mod cover;
pub mod episode;
pub mod found;
pub mod judge;
mod power;
pub mod setup;

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
