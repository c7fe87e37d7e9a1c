//! Why the table of promises cannot be made.

use std::path::PathBuf;

use crate::check::configs::SpecsError;
use crate::check::manifest::ManifestError;

/// The table cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PromisesError {
    /// `promises.toml` cannot be read, or is malformed.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        why: String,
    },
    /// A report cannot be read, or is of another kind.
    #[error("{name}: {why}")]
    Report {
        /// The file.
        name: String,
        /// What was found and what was expected.
        why: String,
    },
    /// The models cannot be read.
    #[error(transparent)]
    Specs(#[from] SpecsError),
    /// The manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}
