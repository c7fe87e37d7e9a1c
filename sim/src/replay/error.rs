//! Errors of replays.

use crate::drive::DriveError;

/// Reasons why a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace is invalid.
    #[error(transparent)]
    Trace(#[from] treering_traces::TraceError),
    /// An operation of the trace cannot be done on this store.
    #[error("{trace}, operation {op}: {why}")]
    Operation {
        /// The trace file.
        trace: String,
        /// The operation's number, from 1.
        op: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The trace has nothing to replay.
    #[error("{trace}: the trace has no operations; expected at least one")]
    Empty {
        /// The trace's file.
        trace: String,
    },
    /// A setting is invalid.
    #[error("--{flag}: {why}")]
    Setting {
        /// The flag.
        flag: &'static str,
        /// What was found and what was expected.
        why: String,
    },
    /// The store failed.
    #[error("{device}: {source}")]
    Engine {
        /// The device's name, or the file.
        device: String,
        /// The cause.
        source: treering_engine::Error,
    },
    /// The simulated drive cannot be built.
    #[error(transparent)]
    Drive(DriveError),
    /// The simulated persistent memory cannot be built.
    #[error(transparent)]
    Pm(#[from] crate::pm::PmError),
    /// Engine and drive count different bytes: a bug in one of them.
    #[error(
        "the engine counted {engine} bytes of class {class}, but the drive {drive}: please report this bug"
    )]
    CountersDiffer {
        /// `log`, `page` or `extra`.
        class: &'static str,
        /// The engine's count.
        engine: u64,
        /// The drive's count.
        drive: u64,
    },
}

/// The error for an invalid flag.
pub(super) fn setting(flag: &'static str, why: impl Into<String>) -> ReplayError {
    ReplayError::Setting {
        flag,
        why: why.into(),
    }
}

/// What ends a run. Engine errors are kept separate until the device's name can be added.
pub(super) enum Failure {
    Replay(ReplayError),
    Engine(treering_engine::Error),
}

impl Failure {
    pub(super) fn on(self, device: &str) -> ReplayError {
        match self {
            Failure::Replay(e) => e,
            Failure::Engine(source) => ReplayError::Engine {
                device: device.into(),
                source,
            },
        }
    }
}

impl From<treering_engine::Error> for Failure {
    fn from(e: treering_engine::Error) -> Self {
        Failure::Engine(e)
    }
}

impl From<ReplayError> for Failure {
    fn from(e: ReplayError) -> Self {
        Failure::Replay(e)
    }
}

impl From<treering_traces::TraceError> for Failure {
    fn from(e: treering_traces::TraceError) -> Self {
        Failure::Replay(e.into())
    }
}
