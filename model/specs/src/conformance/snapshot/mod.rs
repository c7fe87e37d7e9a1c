//! Conformance of the engine's tree, and of the snapshot of its index, to `IndexSnapshot`.
//!
//! Episodes ([`episode`]) drive a real [`treering_engine::Store`] from its first leaf on, on a
//! device that crashes and may lose writes. The events of splits, merges, the snapshot and recovery
//! ([`treering_engine::events::Snapshot`]), of log, checkpoint, pages and clients, and the content
//! of the device after each end ([`found`]) are recorded and replayed on the mirror ([`judge`],
//! `checkpoints`, `power`). That mirror has the source whose graph equals TLC's, with room for a
//! real engine ([`crate::mirror::wide`]). The first event for which the mirror has no step, or
//! another outcome, is refused. All invariants are checked after each end, and regularly in
//! between. At each end, every slot of the device, and the superblock that counts, must be one of
//! the mirror's versions: leaves record by record and fence by fence, chunks entry by entry.
//!
//! Checkpoints run on a thread of their own, in turns with everything else (`drive`): while one
//! reads the index, leaves are split, merged, written and freed. The seed decides all of that.
//!
//! # How the spec maps to the engine
//!
//! Each item names a part of the spec, then what it is in an episode of the engine:
//!
//! - key *k*: 490 bytes, so that a chunk has room for 8 entries; key 1 as a fence: the empty one
//!   ([`setup`])
//! - page and slot *n*: the engine's *n* - 1, in a store that writes pages in place
//! - the number of a superblock: that of its snapshot, less 1, since a new store's first superblock
//!   is written twice
//! - `Room`: the most records that any leaf has room for. First and last leaves have room for
//!   fewer, and are split earlier, as the spec allows
//! - `Init`: a store that was just formatted
//! - `CallGet` .. `CallWrite`, `Answer`, `Acknowledge`: recorded from the clients; a write is `put`
//!   or `delete` under `Deferred`, and a scan fetches some records at a time
//! - `Descend`: taken when the leaf is read or changed. Under the leaf's latch, a descent leads
//!   there
//! - `ReadLeaf`, `CopyLeaf`, `CopyBack`, `ChangeLeaf`: `PageRead`, `Copies`, `LogAppended`
//! - `AppendSplit`, `AppendMerge`, `ChangeLeaves`, `UpdateIndex`: `Splits`, `Merges`, the last
//!   `PageChanged` of the leaves, `Indexed`
//! - `CommitLog`, `WritePage`, `FreePage`: `LogFlushed`, `PageWritten`, `FreesPage`
//! - `BeginCheckpoint` .. `FinishCheckpoint`: see the table at
//!   [`treering_engine::events::Snapshot`]. The sum in a superblock is that of the chunks that were
//!   announced
//! - `MayLose`: the device reports a write of a page or chunk as done, and loses it, in one episode
//!   of four
//! - `Crash`: a new device that holds one legal outcome, read off it; the log is what a recovery of
//!   a copy reads
//! - `Restart`: the process ends between two requests, or at any event; taken at `RecoveryBegins`,
//!   behind the flush. A power failure before it is one of the life before
//! - `RedoRecord`, `FinishRedo`: `RecordRead`, `RedoEnds`. The engine redoes page by page
//!   afterwards: each `PageRedone` must be of a record that the mirror's page lacked, and a page
//!   that is live must have had all of them
//! - `FindDamage`: the store refuses to open
//!
//! What is announced before it is written, and what the end of a process cuts off then, has been
//! written exactly if it is on the device.
//!
//! # Where the engine differs, and why that is accepted
//!
//! - *It reads the index in parts of up to 256 entries*, and adds the entries one by one. The spec
//!   reads each when it comes to it. If the index has changed in between, the fence must have been
//!   the next one when the part was read (`(ReadEarlier)`). Versions are read one by one in both.
//! - *Flushes* for something else, above all of the journal: the mirror takes them
//!   (`(FlushDevice)`), so that it knows what a crash may undo. The spec's steps that write behind
//!   a flush contain it. Here the flush must have come before: otherwise they are refused.
//! - *The journal* restores a page to its home, if that holds no whole page and the journal's image
//!   is newer than the checkpoint (`(RestorePage)`). Here the home must hold a chunk that no
//!   superblock names: the page was freed, and a checkpoint that did not end took its slot.
//! - *The process ends between the announcement of a trim and the trim* (`(NotTrimmed)`).
//! - *A page that was lost is found when it is read.* The spec's recovery reads all pages. If redo
//!   ends and the mirror misses a page, the episode ends, whether the engine opens or not.
//!
//! # What is left out, and why
//!
//! - *`DescendAgain`.* With one thread for the clients, no leaf moves from under a descent.
//! - *Two changes of the structure at the same time*: the spec has none either.
//! - *Failures of writes and flushes*: see [`super::cow`] and [`super::redo`].
//! - *Pages that move* (copy-on-write), *two slots of a page* (shadowing), and trees that buffer
//!   changes: their checkpoints are the same code, but page *n* is not in slot *n*.
//! - *The cache.* It has room for all pages, as in the spec.
//! - *The bit of an entry that says that a leaf may have pointers to long values* (`Overflow`).

mod checkpoints;
pub mod cover;
mod drive;
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
pub use self::setup::Setup;
use super::{Budget, refused};
pub use crate::mirror::wide::index_snapshot::LABELS;

/// The result of episodes: the seed of each, and how many writes its device loses.
pub type Report = refused::Report<(u64, Option<u64>), Refusal>;

/// The actions that no episode takes: with one thread, no leaf moves from under a descent.
pub const NEVER: [&str; 1] = ["DescendAgain"];

/// In this many episodes, the device of one loses writes.
const LOSSES: u64 = 4;

/// The actions that episodes take.
#[must_use]
pub fn taken() -> Vec<&'static str> {
    let labels = LABELS.iter().copied();
    labels.filter(|label| !NEVER.contains(label)).collect()
}

/// Runs episodes until the budget is used up or an event is refused.
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(seed: u64, budget: Budget) -> Result<Report> {
    run_on(&Setup::new()?, seed, budget)
}

/// As [`run`], with a store that was built earlier: by an engine without the bug that is switched
/// on now, for example.
///
/// # Errors
/// As [`run`].
pub fn run_on(setup: &Setup, seed: u64, budget: Budget) -> Result<Report> {
    Report::try_of(seed, budget, |n, seed, until| {
        let of = (seed, losses(n));
        Ok((of, run_until(setup, of, until)?))
    })
}

/// As [`run_on`], with devices that all lose one in `losses` writes of pages, and more of chunks.
///
/// # Errors
/// As [`run`].
pub fn run_losing_on(setup: &Setup, seed: u64, losses: u64, budget: Budget) -> Result<Report> {
    Report::try_of(seed, budget, |_, seed, until| {
        let of = (seed, Some(losses));
        Ok((of, run_until(setup, of, until)?))
    })
}

/// How often the device of an episode loses a write.
fn losses(episode: u64) -> Option<u64> {
    (episode % LOSSES == LOSSES - 1).then_some(30)
}
