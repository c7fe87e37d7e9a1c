//! Why a drive cannot be served, or a recording cannot be read.

use std::io;
use std::path::PathBuf;

/// The error of everything in this crate.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Something that the machine must have is missing.
    #[error("{what}: not found; {needed}")]
    Missing {
        /// What is missing, for example `/dev/fuse`.
        what: String,
        /// What it is needed for, and how to get it.
        needed: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried, with the name of the file.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {place}: expected {expected}, found {found}", file.display())]
    Bad {
        /// The file.
        file: PathBuf,
        /// Where in it.
        place: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A trace could not be written.
    #[error(transparent)]
    Trace(#[from] treering_traces::TraceError),
    /// A parameter is out of range.
    #[error("{name}: {why}")]
    Parameter {
        /// The parameter, as the flag is named without dashes.
        name: &'static str,
        /// What was expected and found.
        why: String,
    },
}

impl DriveError {
    /// Wraps the error of a system call.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> DriveError {
        let what = what.into();
        move |source| DriveError::System { what, source }
    }
}
