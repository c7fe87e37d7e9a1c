//! Conformance of the engine's redo log to `RedoLog`.
//!
//! Episodes ([`episode`], [`threads`]) drive a real [`treering_engine::Store`] on a device that
//! crashes. The events of its log, of checkpoints, recovery and clients, and the content of the
//! log's region after each end are recorded and replayed on the mirror ([`judge`], `power`). The
//! mirror is the one whose graph equals TLC's; nothing bounds it here
//! ([`crate::mirror::redo_log::unbounded`]). The first event for which it has no step, or another
//! outcome, is refused, and reported with the state before it. All invariants are checked after
//! each end, and regularly in between.
//!
//! # How the spec maps to the engine
//!
//! Each item names a part of the spec, then what it is in an episode of the engine:
//!
//! - a unit: 509 bytes, an eighth of a block's payload. Every record is a put that is a whole number
//!   of units long, and each unit says which part of which record it is ([`setup`]). So the content
//!   of a block is compared unit by unit
//! - `Ring`: the smallest log that the store may have, 24 to 192 blocks, with records of up to 2 to
//!   16 units. Most episodes write it several times over
//! - position 0, epoch 1, a log of zeros: the epoch that the first opening begins. The log is empty
//!   then, and its blocks are zeroed
//! - `Packings`: each opening chooses a form ([`Variant::Mixed`])
//! - `Tears = "sector"`: the device tears a block of the sparse log between two units
//!   ([`Variant::Torn`]). A real sector has 512 bytes
//! - `CallAppend`, `Leave`: recorded from the clients
//! - `AppendRecord`, `WriteLog`, `CompleteFlush`, `Acknowledge`: `LogAppended`, `LogFlushBegins`,
//!   `LogFlushed`, `Acknowledged`. The header of each block that a flush writes must be the mirror's
//!   (`WritesBlock`)
//! - `FailFlush`: the failure of any flush, or of a write of the log or a superblock
//! - `FailWrite`: the failure of a write of a flush of the log, or of the witness, if the next process
//!   then reads blocks that are older
//! - `FailCall`: an error of `put` or `sync` that says that the device has failed. It must have
//! - `RefuseAppend`: an error that says that the log is full. It must be
//! - `BeginCheckpoint`, `WriteSuper`, `FinishCheckpoint`: `CheckpointBegins`, `SuperblockWriting`,
//!   `SuperblockFlushed`
//! - `WriteWitness`, `Close`: `WritesWitness`, `WitnessWritten`. A store that is dropped in order
//!   must leave a witness if the spec's store can
//! - `Crash`: a new device that holds one legal outcome. Every block of the log, and the superblock,
//!   must be versions of the mirror, and a block passes its checksum exactly if the mirror's is whole
//! - `Restart`: the same device, opened again. All it reads must be what was written last
//! - `OpenLog` .. `Open`: `Read`, `RecoveryBegins`, and the superblock of the checkpoint at the end
//!   of recovery. Where the log begins and ends, its last flush, epoch and records must be what the
//!   mirror reads, an end mark must be written if and where the mirror writes one (`MarksEnd`), and
//!   redo must read the same records once more (`RecordRead`)
//!
//! # What is left out, and why
//!
//! - *`Rot`.* Nothing decays in an episode. `treering oracle --mode damage` does that.
//! - *`RefuseAppend`.* A store makes room in the log by a checkpoint before it appends. That every
//!   append has room is judged.
//! - *Splits, merges and batches.* The store has one leaf, with room for the longest value of every
//!   key. A record's kind makes no difference to the log, but batches do: recovery may continue the
//!   log before the parts of an intent (`WriteBatch`).
//! - *A device without room*, to which the same buffer is written again.
//! - *A restart after a failed write*, other than one of a flush of the log: see [`super`].
//!
//! Three steps are not the spec's. They are counted in parentheses:
//!
//! - `(DropCheckpoint)`: a store is dropped while a checkpoint has begun, and nothing of it is
//!   written. The spec closes a store only between two checkpoints.
//! - `(FailCall)`: a client gets an error because a page could not be read or written. The spec
//!   has no pages, and no failure before a flush fails. The device must have failed a request of
//!   this life. A call that is refused for any other reason is a refusal of the judge.
//! - `(Torn)`: a block that a crash has torn. It is part of `Crash`.
//!
//! A block that the spec has given up may be trimmed on the device. Nobody can tell it from zeros,
//! and neither is part of the log. A flush of the device for something else, such as pages, takes
//! no step: the mirror continues to assume that a crash may undo what it has made durable.
//!
//! With threads, nothing fails while they run, and the power fails only when they are done. The
//! spec writes the blocks of a flush at once when the leader takes the buffer, and the engine writes
//! them later: in between, the two devices may differ.

pub mod cover;
pub mod episode;
pub mod judge;
mod power;
pub mod setup;
pub mod threads;
mod tla;

use treering_engine::{BLOCK_SIZE, Result};

pub use self::episode::run_episode;
use self::episode::run_until;
pub use self::judge::{Heard, Judge, Refusal};
pub use self::setup::{Setup, Variant};
use super::{Budget, refused};
pub use crate::mirror::redo_log::LABELS;

/// Actions that episodes do not take: nothing decays, and a store makes room in the log by a
/// checkpoint before it appends.
pub const NEVER: [&str; 2] = ["Rot", "RefuseAppend"];

/// The actions that episodes take.
#[must_use]
pub fn taken() -> Vec<&'static str> {
    let labels = LABELS.iter().copied();
    labels.filter(|label| !NEVER.contains(label)).collect()
}

/// The result of episodes: the number of the setup, and the seed.
pub type Report = refused::Report<(usize, u64), Refusal>;

/// Builds the stores that episodes of a variant begin with.
///
/// # Errors
/// The engine's own.
pub fn setups(variant: Variant) -> Result<Vec<Setup>> {
    let pages = [1, 4, 8].into_iter();
    pages
        .map(|blocks| Setup::new(variant, blocks * BLOCK_SIZE))
        .collect()
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

/// As [`run_on`], with a thread for each client, and one for background work. The order of the
/// threads is not the seed's.
///
/// # Errors
/// As [`run`].
pub fn run_threads_on(setups: &[Setup], seed: u64, budget: Budget) -> Result<Report> {
    Report::try_of(seed, budget, |n, seed, until| {
        let which = n as usize % setups.len();
        Ok(((which, seed), threads::run(&setups[which], seed, until)?))
    })
}
