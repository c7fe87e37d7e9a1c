//! A trace through the real engine on a device.

mod config;
pub mod values;

pub use config::{Acknowledge, Oversize, Precondition, ReplayConfig, Size, Target};

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
    Ssd(#[from] crate::ssd::SsdError),
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

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Looking through the trace: operations so far, of so many.
    Analyse(u64, u64),
    /// Replaying: operations so far, of so many.
    Replay(u64, u64),
}

/// Replays a trace. `progress` is called every few ten thousand operations.
///
/// # Errors
/// [`ReplayError`].
pub fn run(
    config: &ReplayConfig,
    progress: &mut dyn FnMut(Progress),
) -> Result<crate::report::ReplayReport, ReplayError> {
    let _ = (config, progress);
    Err(ReplayError::Setting {
        flag: "device",
        why: "not built yet".into(),
    })
}
