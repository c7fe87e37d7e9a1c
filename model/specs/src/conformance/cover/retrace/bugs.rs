//! The seeded bugs of the spec beside those of the engine.

use super::super::rig::{Rig, Step};
use crate::mirror::wal_recovery::{Action, Bug, State};

/// What the engine has for a seeded bug of the spec.
pub(super) struct Seeded {
    /// The engine's seeded bug.
    pub(super) engine: Option<&'static str>,
    /// What the engine does without it, as a clause about "the engine".
    pub(super) instead: &'static str,
    bug: Bug,
}

impl Seeded {
    pub(super) fn of(bug: Bug) -> Seeded {
        let (engine, instead) = match bug {
            Bug::PageBeforeLog => (
                Some("page-before-log"),
                "refuses to write a page before its log record",
            ),
            Bug::CleanWithoutWrite => (
                Some("clean-without-write"),
                "counts a page as clean only when it is written",
            ),
            Bug::KeepsEpoch => (
                Some("log-keeps-epoch"),
                "begins a new epoch with each recovery",
            ),
            Bug::RetriesFailedFlush => (
                Some("log-retries-failed-flush"),
                "acknowledges nothing after a failed flush",
            ),
            // The engine's seeded bug acknowledges a write while its record is being written.
            Bug::AcksBeforeFlush => (None, "acknowledges a write only when its record is flushed"),
            Bug::TruncatesEarly => (
                Some("truncate-before-superblock"),
                "frees the log only when the superblock is durable",
            ),
            // One for each kind of block: see `Seeded::on`.
            Bug::TrustsWhatItReads => (
                Some("restart-trusts-log"),
                "makes durable what a restart reads before it builds on it",
            ),
            Bug::AcksWhenPoisoned => (None, "acknowledges nothing after a failed flush"),
            Bug::RefusedShows => (None, "refuses only a write that it has not logged"),
            Bug::EvictsDirty => (None, "keeps a page in memory until it is written"),
            Bug::AcksWhatCameLater => (None, "acknowledges only what a flush covers"),
            Bug::OverrunsLog => (None, "never overwrites a log block that it still needs"),
            Bug::DirtiedMoves => (None, "remembers the first change that dirtied a page"),
            Bug::SkipsQuiesce => (
                None,
                "waits for writes in progress when a checkpoint begins",
            ),
            Bug::RedoStartsLate => (None, "notes where redo begins when a checkpoint begins"),
            Bug::CheckpointSkipsFlush | Bug::RecoverySkipsFlush => {
                (None, "flushes its pages before it writes the superblock")
            }
            Bug::StopsBeforeLast => (None, "reads the log to its last block"),
            Bug::ReadsPastHole => (None, "stops reading the log at a hole"),
            Bug::ReplaysOldLap => (None, "does not read blocks of an earlier lap"),
            Bug::StopsRedoEarly => (None, "redoes all records"),
            Bug::None
            | Bug::PublishedRedoAlways
            | Bug::SleepsThrough
            | Bug::WaitsForFullBuffer
            | Bug::QuiescesWhoWaitsForRoom => (None, "does something else"),
        };
        Seeded {
            engine,
            instead,
            bug,
        }
    }

    /// The seeded bug of the engine that takes these steps.
    pub(super) fn on(&self, way: &[(State, Action)]) -> Option<&'static str> {
        let restart = |(_, action): &&(State, Action)| matches!(action, Action::Restart);
        match (self.bug, way.iter().find(restart)) {
            (Bug::TrustsWhatItReads, Some((from, _))) => Some(match from.forgotten() {
                (true, ..) => "restart-trusts-log",
                (_, true, _) => "restart-trusts-homes",
                _ => "restart-trusts-superblock",
            }),
            _ => self.engine,
        }
    }

    /// Whether the engine waits, instead of taking this step.
    pub(super) fn waits(&self, from: &State, action: Action) -> bool {
        let begin = from.checkpoint().1;
        self.bug == Bug::SkipsQuiesce
            && action == Action::FlushPages
            && from.logged().any(|(_, lsn)| lsn <= begin)
    }

    /// Whether the engine with this bug has the spec's epoch in its superblock.
    #[cfg(feature = "mutations")]
    pub(super) fn compares_epochs(&self) -> bool {
        self.bug != Bug::KeepsEpoch
    }

    /// How many of the next steps the engine with this bug takes at once.
    pub(super) fn together(&self, way: &[(State, Action)]) -> usize {
        match (self.bug, way) {
            // The failed flush is taken for a successful one.
            (Bug::RetriesFailedFlush, [(_, Action::FailFlush), (_, Action::CompleteFlush), ..]) => {
                2
            }
            _ => 1,
        }
    }

    /// Takes such steps, which lead to the state `to`.
    pub(super) fn take(&self, rig: &mut Rig<'_>, to: &State) -> Step {
        rig.flush_fails_unnoticed(to)
    }
}
