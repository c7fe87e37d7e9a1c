//! Conformance of the engine to its specs. This module holds the engine's log and recovery against
//! `WalRecovery`; [`ring`], [`mini`], [`shadow`] and [`cow`] do the same for the other protocols.
//!
//! An episode ([`episode`], [`threads`]) drives a real [`treering_engine::Store`] on a device that
//! crashes. The engine's protocol events ([`treering_engine::events`]), and the calls and answers
//! of clients, are recorded ([`record`]) and replayed on the mirror ([`judge`]). That mirror has
//! the source whose graph equals TLC's, with room for a real engine ([`crate::mirror::wide`]): more
//! clients, keys and writes than any bounded model, and any number of crashes. After each crash the
//! content of the device must be one of the outcomes that the mirror allows (`power`). The other
//! way round, [`cover`] leads the engine along the edges of the mirror's graph.
//!
//! What the other judges have in common is in [`led`]. An event that a mirror refuses is told as a
//! TLA+ behaviour that TLC rejects ([`behaviour`], and [`tla`] for `WalRecovery`).
//!
//! # How the spec maps to the engine
//!
//! Each item names a part of the spec, then what it is in an episode of the engine:
//!
//! - a page for each key: the tree is built before; the spec's key is the first record of each
//!   leaf, and nothing else is written
//! - records of one length, `PerBlock` to a block: every value is as long as makes its record fill
//!   a slot ([`scale`])
//! - position 0, epoch 1, an empty log: the epoch that the first opening began; page LSNs from
//!   before are 0
//! - write *n* puts *n*, or `Absent`: version *n*, or version 0, which is what the tree was built
//!   with: a delete's record is shorter than a slot, so none occurs
//! - a client's write: `put` under `Deferred`, then `sync` of its LSN
//! - `CallGet` .. `AnswerGet`: `get`; `ReadPage` under the page's latch
//! - `AppendLog`, `ChangePage`: `LogAppended`, `PageChanged`
//! - `FlushLog`, `CompleteFlush`: `LogFlushBegins`, `LogFlushed`; the leader is the thread's client
//!   if that waits, else one that does
//! - `FailFlush`: `LogFlushFailed`, `CheckpointFailed`
//! - `Acknowledge`, `ReportFailure`: `Acknowledged`; an error of `put` or `sync`
//! - `WriteBack`, `Reload`: `PageWritten`, or `PageWriting` if a crash comes before; `PageLoaded`
//! - `BeginCheckpoint` .. `TruncateLog`: `CheckpointBegins`, `PagesFlushed`, `SuperblockWriting`,
//!   `SuperblockFlushed`, `LogTruncated`
//! - `Crash`: a new device that holds one legal outcome; which one is read off it
//! - `Restart`: the same device, opened again
//! - `LoadSuperblock` .. `FinishRecovery`: `RecoveryBegins`, `RecordRead`, `RedoEnds`, `Opened`
//!
//! # What the engine has and the spec does not
//!
//! These take no step of the mirror. They need none, since without them the mirror may still do
//! everything that the engine does:
//!
//! - Device flushes of the page store (journal, table) and at the beginning of recovery. The mirror
//!   continues to assume that a crash may undo what these flushes have made durable.
//! - Failures of those flushes, and of page writes. The engine stops, and the mirror may stop but
//!   is not told. Calls in progress may still append to the buffer. An error that a client gets
//!   then is not an answer in the spec, whose client waits until the crash. Nor is an error for a
//!   write that is durable.
//! - The checkpoint of a log that has not grown; the snapshot, the page table and trims; the end of
//!   a log write; a pump's acknowledgement.
//! - Redo page by page: the mirror redoes a record when it is read, the engine later, but before
//!   the difference can be observed.
//!
//! Three differences of granularity, which only occur with threads, are accepted by rule and
//! counted:
//!
//! - *An older copy is written back.* The engine copies a page, releases its latch, and then writes
//!   the copy. The spec copies and writes in one step. If the page has changed in between, the copy
//!   reaches the device (under the WAL rule), and the page stays dirty from that change on
//!   (`(WriteBackCopy)` among the steps).
//! - *A page is written while a flush is in progress.* When the spec's flush completes, it makes
//!   everything durable that has been written. A device's flush covers only what was written before
//!   it began. For pages written between the flush's two events, the mirror also keeps the older
//!   versions (`(SparedByFlush)`).
//! - *A flush has no client waiting for it*, because the only record is that of a client that still
//!   holds its page's latch: see `Judge::leader`.
//!
//! One case was found and is excluded from the episodes: *a failed write is followed by a power
//! failure, never by a restart*. After a failed write the device reads back the old block, but the
//! new block may still be there after the next power failure. The spec's device reads back the new
//! block. Suppose that this is the block after the log's end. Then recovery does not write it
//! again, and a power failure before its checkpoint is recorded may bring back, to the next
//! recovery, records that this one had cut. No client has used the store in between, and what
//! remains is a prefix, so the contract holds. `StableInv`, which asks for more, would not hold.
//!
//! Not judged: splits and merges (an episode that makes one is refused); pages larger than a block;
//! `btree:cow-lazy`, whose pages become durable only with the table at a checkpoint, so that it is
//! not an instance of the spec's `WriteBack`.

mod at_rest;
pub mod behaviour;
pub mod case;
mod claim;
pub mod cover;
pub mod cow;
pub mod episode;
mod fate;
pub mod finding;
pub mod judge;
pub mod layout;
pub mod leaf;
pub mod led;
pub mod lodge;
pub mod mini;
pub mod module;
mod mortal;
mod paged;
pub mod persistent;
mod power;
pub mod record;
mod recorder;
pub mod redo;
pub mod refused;
pub mod retrace;
pub mod ring;
pub mod scale;
pub mod setup;
pub mod shadow;
mod shortest;
pub mod situations;
pub mod snapshot;
mod steps;
mod tears;
pub mod threads;
pub mod tla;
mod trap;

use std::time::{Duration, Instant};

use treering_engine::Result;

use self::episode::Episode;
pub use self::episode::Length;
pub use self::judge::{Judge, Refusal, Tally};
pub use self::record::{Entry, Heard, Recorder};
pub use self::setup::{Setup, Variant};
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;

/// How many episodes to run, or for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// This many episodes.
    Episodes(u64),
    /// Episodes until this many events have been accepted.
    Events(u64),
    /// A number of episodes or a time, whichever ends first.
    Within {
        /// The most episodes.
        episodes: u64,
        /// No episode starts after this time.
        begins_for: Duration,
        /// An episode still running after this time is interrupted.
        at_most: Duration,
    },
}

impl Budget {
    /// Episodes that begin within this time. One that is still running then may be interrupted.
    #[must_use]
    pub fn of_time(limit: Duration) -> Budget {
        Budget::Within {
            episodes: u64::MAX,
            begins_for: limit,
            at_most: limit,
        }
    }

    /// Whether this many episodes and accepted events use up the budget of a run that `began` then.
    fn is_used_up(self, episodes: u64, events: u64, began: Instant) -> bool {
        match self {
            Budget::Episodes(n) => episodes >= n,
            Budget::Events(n) => events >= n,
            Budget::Within {
                episodes: n,
                begins_for,
                ..
            } => episodes >= n || began.elapsed() >= begins_for,
        }
    }

    /// The budget that is left after `spent` time. It is always enough to start one episode.
    #[must_use]
    pub fn less(self, spent: Duration) -> Budget {
        match self {
            Budget::Within {
                episodes,
                begins_for,
                at_most,
            } => Budget::Within {
                episodes,
                begins_for: begins_for
                    .saturating_sub(spent)
                    .max(Duration::from_millis(1)),
                at_most: at_most.saturating_sub(spent),
            },
            all => all,
        }
    }

    /// The deadline of the episodes of a run that `began` then.
    fn deadline(self, began: Instant) -> Deadline {
        match self {
            Budget::Episodes(_) | Budget::Events(_) => Deadline::never(),
            Budget::Within { at_most, .. } => Deadline::at(Some(began + at_most)),
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Episodes that started.
    pub episodes: u64,
    /// Episodes that the budget interrupted.
    pub interrupted: u64,
    /// The events that the mirror accepted, and the steps that it took.
    pub tally: Tally,
    /// The first event that the mirror refused, with the seed of its episode.
    pub refusal: Option<(u64, Box<Refusal>)>,
    /// The store of the last episode, by its place in the list of stores.
    pub setup: usize,
    /// Whether the last episode had threads.
    pub threads: bool,
}

impl Report {
    /// The number of accepted events.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.tally.heard.values().sum()
    }

    /// Kinds of events that episodes can have, and that never occurred.
    #[must_use]
    pub fn never_heard(&self) -> Vec<&'static str> {
        let kinds = Heard::KINDS.into_iter();
        kinds
            .filter(|kind| *kind != "StructureAppended" && !self.tally.heard.contains_key(kind))
            .collect()
    }

    /// Actions of the spec that never occurred.
    #[must_use]
    pub fn never_taken(&self) -> Vec<&'static str> {
        let labels = crate::mirror::wide::wal_recovery::LABELS.iter().copied();
        labels
            .filter(|label| !self.tally.taken.contains_key(label))
            .collect()
    }
}

/// Which threads an episode has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// One thread plays all clients, so the seed decides everything.
    OneThread,
    /// One thread for each client, and one for background work.
    Threads,
    /// Threads in one episode of this many.
    Mixed(u64),
}

impl Cast {
    fn has_threads(self, episode: u64) -> bool {
        match self {
            Cast::OneThread => false,
            Cast::Threads => true,
            Cast::Mixed(n) => episode.is_multiple_of(n),
        }
    }
}

/// Runs episodes until the budget is used up or the mirror refuses an event.
///
/// ```
/// use treering_specs::conformance::{Budget, Cast, Variant, run};
///
/// let report = run(Variant::InPlace, Cast::OneThread, 1, Budget::Episodes(2)).unwrap();
/// assert!(report.refusal.is_none());
/// assert!(report.accepted() > 100);
/// ```
///
/// # Errors
/// The engine's own, while a store is built or a device is read.
pub fn run(variant: Variant, cast: Cast, seed: u64, budget: Budget) -> Result<Report> {
    run_on(&setups(variant)?, cast, seed, budget)
}

/// Builds the stores that episodes of a variant begin with.
///
/// # Errors
/// The engine's own.
pub fn setups(variant: Variant) -> Result<Vec<Setup>> {
    let per_block = [4, 8].into_iter();
    per_block.map(|n| Setup::new(variant, n)).collect()
}

/// As [`run`], with stores that were built earlier: by an engine without the bug that is switched
/// on now, for example.
///
/// # Errors
/// As [`run`].
pub fn run_on(setups: &[Setup], cast: Cast, seed: u64, budget: Budget) -> Result<Report> {
    let began = Instant::now();
    let mut seeds = Random::new(seed);
    let mut report = Report::default();
    loop {
        if budget.is_used_up(report.episodes, report.accepted(), began) || report.refusal.is_some()
        {
            return Ok(report);
        }
        let seed = seeds.word();
        report.setup = report.episodes as usize % setups.len();
        let setup = &setups[report.setup];
        report.episodes += 1;
        report.threads = cast.has_threads(report.episodes);
        let until = budget.deadline(began);
        let (tally, refusal) = one(setup, report.threads, seed, &until)?;
        report.interrupted += u64::from(until.has_struck());
        report.tally.add(&tally);
        report.refusal = refusal.map(|refusal| (seed, refusal));
    }
}

/// Runs a short episode on one thread and returns its judge, which has kept every step; for
/// [`tla`].
///
/// # Errors
/// As [`run`].
pub fn traced(setup: &Setup, seed: u64, length: Length) -> Result<(Judge, Option<Box<Refusal>>)> {
    let mut judge = Judge::new(
        usize::from(episode::CLIENTS),
        setup.pages.clone(),
        setup.scale,
    );
    judge.keep_trace();
    let mut refusal = None;
    Episode::new(setup, seed, length).run(&Deadline::never(), &mut |entries| {
        refusal = judge.hear(entries).err();
        refusal.is_none()
    })?;
    Ok((judge, refusal))
}

fn one(
    setup: &Setup,
    threads: bool,
    seed: u64,
    until: &Deadline,
) -> Result<(Tally, Option<Box<Refusal>>)> {
    let mut judge = Judge::new(
        usize::from(episode::CLIENTS),
        setup.pages.clone(),
        setup.scale,
    );
    let mut refusal = None;
    let mut hear = |entries| {
        refusal = judge.hear(entries).err();
        refusal.is_none()
    };
    if threads {
        threads::run(setup, seed, until, &mut hear)?;
    } else {
        Episode::new(setup, seed, Length::default()).run(until, &mut hear)?;
    }
    Ok((judge.tally().clone(), refusal))
}
