//! Why a replay could not be done.

use crate::drive::DriveError;

/// Why a replay could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace is at fault.
    #[error(transparent)]
    Trace(#[from] treering_traces::TraceError),
    /// An operation of the trace cannot be done on a store like this.
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
    #[error("{trace}: the trace has no operation; expected one or more")]
    Empty {
        /// The trace's file.
        trace: String,
    },
    /// A setting cannot work.
    #[error("--{flag}: {why}")]
    Setting {
        /// The flag.
        flag: &'static str,
        /// What was found and what is expected.
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
    /// The simulated drive cannot be built like this.
    #[error(transparent)]
    Drive(DriveError),
    /// The simulated persistent memory cannot be built like this.
    #[error(transparent)]
    Pm(#[from] crate::pm::PmError),
    /// Engine and drive disagree about what was written: a bug in one of them.
    #[error(
        "the engine counted {engine} bytes of class {class}, the drive {drive}: please report this"
    )]
    CountersDiffer {
        /// `log`, `page` or `extra`.
        class: &'static str,
        /// By the engine.
        engine: u64,
        /// By the drive.
        drive: u64,
    },
}

/// A flag that cannot be as it is.
pub(super) fn setting(flag: &'static str, why: impl Into<String>) -> ReplayError {
    ReplayError::Setting {
        flag,
        why: why.into(),
    }
}

/// What ends a run: the engine's errors are kept apart until the device's name can be added.
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
