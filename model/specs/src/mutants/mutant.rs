//! A mutant, and what may go wrong.

use crate::check::configs::SpecsError;
use crate::check::tools::Missing;

/// A change of one definition of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Its name: `Module:line:column:operator`.
    pub name: String,
    /// The spec.
    pub spec: String,
    /// The module that has the change.
    pub module: String,
    /// The changed definition.
    pub definition: String,
    /// What kind of change it is.
    pub operator: &'static str,
    /// The changed text, with single spaces.
    pub before: String,
    /// What it becomes.
    pub after: String,
    /// The changed lines of the module, before.
    pub lines_before: String,
    /// The same lines of the mutant.
    pub lines_after: String,
    /// The whole text of the mutated module.
    pub(super) text: String,
}

impl Mutant {
    /// What stays the same if the definition moves to another line.
    pub(super) fn key(&self) -> String {
        let (definition, operator) = (&self.definition, self.operator);
        let (module, before, after) = (&self.module, &self.before, &self.after);
        format!("{module}\t{definition}\t{operator}\t{before}\t{after}")
    }
}

/// Why mutants cannot be made or run.
#[derive(Debug, thiserror::Error)]
pub enum MutantsError {
    /// A module cannot be parsed.
    #[error("{module}, line {line}, column {column}: {why}")]
    Syntax {
        /// The module.
        module: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What was expected and what was found.
        why: String,
    },
    /// A spec does not have what is needed to mutate it.
    #[error("{spec}: {why}")]
    Spec {
        /// The spec.
        spec: String,
        /// What is missing.
        why: String,
    },
    /// There is no spec or mutant of this name.
    #[error("{0}")]
    Unknown(String),
    /// The folder of the specs cannot be used.
    #[error(transparent)]
    Specs(#[from] SpecsError),
    /// `tla-mc` is missing.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A line of `survivors.tsv` is malformed.
    #[error("survivors.tsv, line {line}: {why}")]
    Survivors {
        /// The line, from 1.
        line: usize,
        /// What was expected and what was found.
        why: String,
    },
    /// A file cannot be read or written, or `tla-mc` cannot be run.
    #[error("{what}: {source}")]
    Io {
        /// The file or the program.
        what: String,
        /// The cause.
        source: std::io::Error,
    },
}
