//! Conformance of the engine's leaves, which change their layout, to `LeafLayout`.
//!
//! Episodes ([`episode`]) drive a real [`treering_engine::Store`] from its first leaf on, on a
//! device that crashes. The events of refusals, conversions, splits and merges
//! ([`treering_engine::events::Leaf`]), of log, checkpoint, pages and clients, and the content of
//! the device after each end ([`found`]) are recorded and replayed on the mirror ([`judge`],
//! `power`). That mirror has the source whose graph equals TLC's, with room for a real engine
//! ([`crate::mirror::wide`]), and with the sizes of the engine's pages (`pages`): which record a
//! leaf refuses, and what is done then, must be the same in both, byte for byte and place for
//! place. The first event for which the mirror has no step, or another outcome, is refused. All
//! invariants are checked after each end, and regularly in between.
//!
//! What a page holds is compared after each change, after each record that redo applies to it, and
//! at each end on the device: layout, fences, and record by record.
//!
//! # How the spec maps to the engine
//!
//! Each item names a part of the spec, then what it is in an episode of the engine:
//!
//! - key *k*: `fixed` equal bytes and then *k*, four bytes; the least key as a fence: the empty one
//!   ([`setup`])
//! - page *n*: the page of the *n* - 1st split, whatever its id
//! - value *n*: that of the *n*-th write, which has the length that the client has chosen
//! - `RoomIn`, `RecordBytes`, `Places`, `RoomOfSemi`, `BesideInSemi`, `EndOfPartition`,
//!   `Separator`, `IsNearlyEmpty`: computed from the bytes of a page (`pages`)
//! - `Generals`: hints (`"general"`), and fingerprints (`"other"`) if leaves are adaptive
//! - `Choices`: each opening has options that allow dense leaves, or do not
//! - `Init`: a store that was just formatted. If its first leaf has fingerprints, an `Adapt` that
//!   is durable comes before
//! - `CallGet` .. `AnswerGet`, `Acknowledge`: recorded from the clients; a write is `put` or
//!   `delete` under `Deferred`
//! - `ReadLeaf`, `ChangeLeaf`: `PageRead`; `LogAppended` and `PageChanged`
//! - `LayOut`, `Adapt`, `Prepare`: `Converts`, of a leaf that refuses the write of its client; of a
//!   general one; of a dense one
//! - `Divide`, `Merge`: `Snapshot::Splits`, `Snapshot::Merges`
//! - `CommitLog`, `WritePage`: `LogFlushed`, `PageWritten`
//! - `Checkpoint`: `SuperblockFlushed`
//! - `Crash`: a new device that holds one legal outcome, read off it; the log is what a recovery of
//!   a copy reads
//! - `Restart`: the process ends between two requests, or at any event; taken at `RecoveryBegins`,
//!   behind the flush. A power failure before it is one of the life before
//! - `RedoRecord`, `FinishRedo`: `RecordRead`, `RedoEnds`. The engine redoes page by page
//!   afterwards: each `PageRedone` must be of a record that the mirror's page lacked, must leave
//!   what the mirror had then, and a page that is live must have had all of them
//!
//! What is announced before it is written, and what the end of a process cuts off then, has been
//! written exactly if it is on the device. A call that returns an error is refused.
//!
//! # Where the engine differs, and why that is accepted
//!
//! - *The redo start* is where the checkpoint began. The spec moves it as far as the pages allow;
//!   the engine may have written more of them since. It must not be further than that.
//! - *Flushes* for something else, above all of the journal: the mirror takes them
//!   (`(FlushDevice)`), so that it knows what a crash may undo.
//! - *The journal* restores a page to its home, if that holds no whole page (`(RestorePage)`).
//! - *A page that was merged away* leaves its place to others. Its image on the device is not
//!   compared any more, once the log says so, nor what redo makes of it: it is forgotten there.
//! - *When leaves are adapted and merged* is left open by the spec. The judge asks only whether the
//!   records fit.
//!
//! # What is left out, and why
//!
//! - *Failures of writes and flushes*: see [`super::cow`] and [`super::redo`].
//! - *The index, its snapshot, and places of pages*: see [`super::snapshot`].
//! - *Leaves that are split because writers wait*, and three leaves that become two when the store
//!   is full.
//! - *The cache.* It has room for all pages, as in the spec.

pub mod cover;
pub mod episode;
pub mod found;
pub mod judge;
mod pages;
mod power;
pub mod setup;
mod tla;

use treering_engine::Result;

pub use self::episode::run_episode;
use self::episode::run_until;
pub use self::judge::{Heard, Judge, Refusal};
pub use self::setup::{Setup, setups};
use super::{Budget, refused};
pub use crate::mirror::wide::leaf_layout::LABELS;

/// The result of episodes: the store and the seed of each.
pub type Report = refused::Report<(usize, u64), Refusal>;

/// The actions that episodes take: all.
#[must_use]
pub fn taken() -> Vec<&'static str> {
    LABELS.to_vec()
}

/// Runs episodes until the budget is used up or an event is refused.
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(seed: u64, budget: Budget) -> Result<Report> {
    run_on(&setups()?, seed, budget)
}

/// As [`run`], with stores that were built earlier: by an engine without the bug that is switched
/// on now, for example.
///
/// # Errors
/// As [`run`].
pub fn run_on(setups: &[Setup], seed: u64, budget: Budget) -> Result<Report> {
    Report::try_of(seed, budget, |n, seed, until| {
        let at = (n % setups.len() as u64) as usize;
        Ok(((at, seed), run_until(&setups[at], seed, until)?))
    })
}
