//! Treering beside other people's engines: one run, one machine, the same operations, every answer checked.
//!
//! ```text
//!   parent     for each durability, engine and number of threads: a fresh process
//!   child      load, then each workload: warm-up · measured · the engine's sync and the file system's · look at all records
//!   clients    closed loops; each writes its own share of the keys and reads all of them
//!   judge      a read is held against what was acknowledged before it began and issued before it ended
//!   device     sectors that the block device wrote and read, between two syncs
//! ```
//!
//! A wrong, missing or short answer voids its row: it has no figures, its reason stands below the table, and no mean counts it.

use std::path::PathBuf;

pub mod child;
pub mod data;
pub mod engines;
pub mod judge;
pub mod measure;
pub mod report;
pub mod run;
pub mod workload;

/// What stops a row, or the run.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An engine failed, in its own words.
    #[error("{engine}: {why}")]
    Engine {
        /// Its name.
        engine: &'static str,
        /// What it said.
        why: String,
    },
    /// An engine gave a wrong answer.
    #[error("wrong answer: {0}")]
    Wrong(String),
    /// A file or folder of the run's own.
    #[error("{}: {what}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What could not be done.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A child process did not do its part.
    #[error("{0}")]
    Child(String),
}

/// A result of this comparison.
pub type Result<T> = std::result::Result<T, Failure>;
