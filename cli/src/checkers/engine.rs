//! What an engine of the table is, and what its module is given.

use std::path::{Path, PathBuf};

use crate::acks::Content;
use crate::failure::Failure;

/// The tool that was built for a campaign.
pub(super) const TOOL: &str = "TREERING_TOOL";
/// Set if the program says what it tries, at some time.
pub(super) const TRIES: &str = "TREERING_TRIES";
/// The folder that an adapter's command is relative to.
pub(super) const HERE: &str = "TREERING_HERE";

/// An engine that can be checked.
#[derive(Debug)]
pub(super) struct Engine {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// Programs that must be there, and the Debian packages that have them.
    pub(super) tools: &'static [(&'static str, &'static str)],
    /// The command that tells the tool's version; what is built tells its own.
    pub(super) version: &'static [&'static str],
    /// Builds what no package has, in a folder. Returns the program.
    pub(super) build: Option<Build>,
    /// Finds the store in a directory: its file or folder. `None` if there is none, or an empty one.
    pub(super) find: fn(&Path, Option<&Path>) -> Result<Option<PathBuf>, Trouble>,
    /// Verifies the store and returns its records.
    pub(super) read: fn(&Place<'_>) -> Result<Content, Trouble>,
}

/// Builds a program in a folder.
pub(super) type Build = fn(&Path) -> Result<PathBuf, Failure>;

/// A store in a state.
pub(super) struct Place<'a> {
    /// The engine's name.
    pub(super) engine: &'static str,
    /// The directory that is left.
    pub(super) dir: &'a Path,
    /// The store's file or folder.
    pub(super) store: PathBuf,
    /// Whether the program has not yet said that it tries something, but will.
    pub(super) is_early: bool,
}

/// Why a store has no content to be compared.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The state is one that the engine does not promise.
    State(String),
    /// The checker itself has failed.
    Failure(Failure),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        Trouble::Failure(failure)
    }
}
