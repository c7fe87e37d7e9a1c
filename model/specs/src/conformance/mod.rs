//! Event conformance: what the engine does is what `WalRecovery` allows.
//!
//! Episodes ([`episode`], [`threads`]) drive a real [`treering_engine::Store`] on a device that crashes. Its protocol events
//! ([`treering_engine::events`]) and what clients ask and hear are recorded ([`record`]) and replayed on the mirror ([`judge`]), which is
//! the very source that is equal to TLC's graph, with room for an engine ([`crate::mirror::wide`]): more clients, keys and writes than any
//! bounded model, and no bound on crashes. After each crash the device itself is looked at: what is on it must be one of the outcomes that
//! the mirror has (`power`), and the contract must allow it.
//!
//! # What stands for what
//!
//! | the spec | the engine in an episode |
//! |---|---|
//! | a page for each key | the tree is built before; the spec's key is the first record of each leaf, and nothing else is written |
//! | records of one length, `PerBlock` to a block | every value is as long as makes its record fill a slot ([`scale`]) |
//! | position 0, epoch 1, an empty log | the epoch that the first opening began; page LSNs from before are 0 |
//! | write *n* puts *n*, or `Absent` | version *n*, or version 0, which is what the tree was built with: a delete's record is shorter than a slot, so none occurs |
//! | a client's write | `put` under `Deferred`, then `sync` of its LSN |
//! | `CallGet` .. `AnswerGet` | `get`; `ReadPage` under the page's latch |
//! | `AppendLog`, `ChangePage` | `LogAppended`, `PageChanged` |
//! | `FlushLog`, `CompleteFlush` | `LogFlushBegins`, `LogFlushed`; the leader is the thread's client if that waits, else one that does |
//! | `FailFlush` | `LogFlushFailed`, `CheckpointFailed` |
//! | `Acknowledge`, `ReportFailure` | `Acknowledged`; an error of `put` or `sync` |
//! | `WriteBack`, `Reload` | `PageWritten`, or `PageWriting` if a crash comes before; `PageLoaded` |
//! | `BeginCheckpoint` .. `TruncateLog` | `CheckpointBegins`, `PagesFlushed`, `SuperblockWriting`, `SuperblockFlushed`, `LogTruncated` |
//! | `Crash` | a new device that holds one legal outcome; which one is read off it |
//! | `Restart` | the same device, opened again |
//! | `LoadSuperblock` .. `FinishRecovery` | `RecoveryBegins`, `RecordRead`, `RedoEnds`, `Opened` |
//!
//! # What the engine has and the spec has not
//!
//! No step of the mirror, and none is needed, for the mirror may do all that the engine does without them:
//!
//! - device flushes of the page store (journal, table) and of recovery's beginning: the mirror goes on believing that a crash may take
//!   back what it cannot;
//! - failures of those, and of page writes: the engine stops, the mirror merely may not go on (it is not told); what is under way may still
//!   append to the buffer;
//!   an error that a client gets then is no answer in the spec, whose client waits until the crash; nor is one for a write that is durable;
//! - the checkpoint of a log that has not grown; snapshot, page table, trims; the log write's end; a pump's acknowledgement;
//! - redo page by page: the mirror redoes a record when it is read, the engine later, before anything can tell.
//!
//! Three differences of grain, met with threads only, are accepted by rule and counted:
//!
//! - *an older copy is written back*: the engine copies a page, lets go of it, and writes; the spec writes what it copies in one step.
//!   If the page has changed in between the copy reaches the device, under the WAL rule, and the page stays dirty from that change on
//!   (`(WriteBackCopy)` among the steps);
//! - *a page written while a flush is on its way*: the spec's flush makes all that was ever written durable, when it completes; a device's
//!   what was written before it began. Of pages that are written between the two words for that, the mirror keeps the older versions, too
//!   (`(SparedByFlush)`);
//! - *a flush with nobody waiting*, for the only record is of a client that still holds its page's latch: see `Judge::leader`.
//!
//! Found, and kept out of the episodes: *a failed write is followed by a power cut, never by a restart*. The device reads back what was there
//! before it and may yet hold what was to be written after the next power cut; the spec's reads back the new. If that is the block behind the
//! log's end, recovery does not write it again, and a power cut before its checkpoint is recorded may bring back, to the
//! next recovery, records that this one had cut. Nobody has seen the store in between and what is left is a prefix, so
//! the contract is kept; `StableInv`, which asks for more, would not be.
//!
//! Not judged: splits and merges (an episode that makes one is refused); pages larger than a block; `btree:cow-lazy`, whose pages reach the
//! device for good only with the table at a checkpoint, and which is therefore no instance of the spec's `WriteBack`.

pub mod cover;
pub mod episode;
mod fate;
pub mod judge;
pub mod mini;
mod power;
pub mod record;
mod recorder;
pub mod refused;
pub mod ring;
pub mod scale;
pub mod setup;
pub mod shadow;
pub mod situations;
mod steps;
pub mod threads;
pub mod tla;

use std::time::{Duration, Instant};

use treering_engine::Result;

use self::episode::Episode;
pub use self::episode::Length;
pub use self::judge::{Judge, Refusal, Tally};
pub use self::record::{Entry, Heard, Recorder};
pub use self::setup::{Setup, Variant};
use treering_oracle::deadline::Deadline;
use treering_oracle::random::Random;

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// So many episodes.
    Episodes(u64),
    /// Until so many events are accepted.
    Events(u64),
    /// So many episodes, or so long, whichever is less.
    Within {
        /// At most so many.
        episodes: u64,
        /// After this none is begun.
        begins_for: Duration,
        /// After this the one that is under way is cut short.
        at_most: Duration,
    },
}

impl Budget {
    /// Whether so many episodes and accepted events, since then, are enough.
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

    /// What is left of it when so much time was spent on something else; at least the first episode
    /// may begin.
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

    /// Until when an episode may take, of a run that began then.
    fn deadline(self, began: Instant) -> Deadline {
        match self {
            Budget::Episodes(_) | Budget::Events(_) => Deadline::never(),
            Budget::Within { at_most, .. } => Deadline::at(Some(began + at_most)),
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Episodes begun.
    pub episodes: u64,
    /// Episodes that the budget cut short.
    pub interrupted: u64,
    /// What was accepted.
    pub tally: Tally,
    /// The first refusal, with the seed of its episode.
    pub refusal: Option<(u64, Box<Refusal>)>,
}

impl Report {
    /// Events accepted.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.tally.heard.values().sum()
    }

    /// Kinds of events that were never heard, though episodes have them.
    #[must_use]
    pub fn never_heard(&self) -> Vec<&'static str> {
        let kinds = Heard::KINDS.into_iter();
        kinds
            .filter(|kind| *kind != "StructureAppended" && !self.tally.heard.contains_key(kind))
            .collect()
    }

    /// Actions of the spec that were never taken.
    #[must_use]
    pub fn never_taken(&self) -> Vec<&'static str> {
        let labels = crate::mirror::wide::wal_recovery::LABELS.into_iter();
        labels
            .filter(|label| !self.tally.taken.contains_key(label))
            .collect()
    }
}

/// Who acts in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// One thread for all: everything follows from the seed.
    OneThread,
    /// A thread for each client and one that pumps.
    Threads,
    /// One episode in so many with threads.
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

/// Runs episodes until the budget is used up or something is refused.
///
/// # Errors
/// The engine's own, where a store is built or a device looked at.
pub fn run(variant: Variant, cast: Cast, seed: u64, budget: Budget) -> Result<Report> {
    run_on(&setups(variant)?, cast, seed, budget)
}

/// The stores that episodes of a variant begin with.
///
/// # Errors
/// The engine's own.
pub fn setups(variant: Variant) -> Result<Vec<Setup>> {
    let per_block = [4, 8].into_iter();
    per_block.map(|n| Setup::new(variant, n)).collect()
}

/// As [`run`], with stores that were built before, by an engine that need not have the bug that this one has.
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
        let setup = &setups[report.episodes as usize % setups.len()];
        report.episodes += 1;
        let until = budget.deadline(began);
        let (tally, refusal) = one(setup, cast.has_threads(report.episodes), seed, &until)?;
        report.interrupted += u64::from(until.has_struck());
        report.tally.add(&tally);
        report.refusal = refusal.map(|refusal| (seed, refusal));
    }
}

/// The judge of one short episode on one thread, with every step kept: for [`tla`].
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
