//! Compares Treering with other engines: one run, one machine, the same operations, every answer
//! checked.
//!
//! ```text
//!   parent     starts a new process for each durability, engine and number of threads
//!   child      loads, then runs each workload: warm-up, measurement, sync of the engine and
//!              of the file system, check of all records
//!   clients    are closed loops; each writes its own share of the keys and reads all of them
//!   judge      compares a read with what was acknowledged before it began and issued before
//!              it ended
//!   device     counts sectors written and read by the block device between two syncs
//! ```
//!
//! A wrong, missing or short answer voids its row: it has no figures, the reason is printed below
//! the table, and no mean includes it.

use std::path::PathBuf;

pub mod child;
pub mod data;
pub mod engines;
pub mod judge;
pub mod measure;
pub mod report;
pub mod run;
pub mod workload;

/// What ends a row or the run.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An engine failed, in its own words.
    #[error("{engine}: {why}")]
    Engine {
        /// The engine's name.
        engine: &'static str,
        /// Its error message.
        why: String,
    },
    /// An engine gave a wrong answer.
    #[error("wrong answer: {0}")]
    Wrong(String),
    /// A file or folder of the run itself failed.
    #[error("{}: {what}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// A child process failed.
    #[error("{0}")]
    Child(String),
}

/// The result type of this comparison.
pub type Result<T> = std::result::Result<T, Failure>;
