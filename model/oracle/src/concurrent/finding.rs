//! What a concurrent run can find.

use std::fmt;
use std::time::Duration;

use crate::finding::{self, Check};
use crate::linear::Violation;

/// Something wrong with the engine.
#[derive(Debug)]
pub enum Finding {
    /// No order of the calls explains the answers.
    Violation(Box<Violation>),
    /// A thread panicked in the engine.
    Panicked {
        /// The thread.
        who: String,
        /// The panic message.
        message: String,
    },
    /// A call failed although nothing had gone wrong.
    Failed {
        /// The thread.
        who: String,
        /// The error.
        error: treering_engine::Error,
    },
    /// The engine hangs.
    NoProgress {
        /// How long nothing happened.
        patience: Duration,
        /// The threads that are stuck, and in which call.
        stuck: Vec<String>,
    },
    /// The structure check of the closed store found damage.
    Damaged(Vec<String>),
    /// Keys with a wrong content after a power cut, one sentence each.
    Lost(Vec<String>),
}

impl Finding {
    /// Its name in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Finding::Violation(violation) => violation.kind.name(),
            Finding::Panicked { .. } => "panicked",
            Finding::Failed { .. } => "failed",
            Finding::NoProgress { .. } => "no-progress",
            Finding::Damaged(_) => "damaged",
            Finding::Lost(_) => "lost",
        }
    }
}

impl Finding {
    /// The same as a finding of the oracle, in the terms that all modes share; `what` was run.
    #[must_use]
    pub fn in_words(&self, what: &str) -> finding::Finding {
        let (check, expected) = match self {
            Finding::Violation(_) => (
                Check::Linearizability,
                "answers that one order of the calls explains",
            ),
            Finding::Panicked { .. } => (Check::Panic, "an answer"),
            Finding::Failed { .. } => (Check::Error, "no error"),
            Finding::NoProgress { .. } => (Check::Progress, "calls that end"),
            Finding::Damaged(_) => (Check::Structure, "a store without damage"),
            Finding::Lost(_) => (
                Check::Crash,
                "every write that was acknowledged as durable, and nothing that was never written",
            ),
        };
        finding::Finding {
            check,
            operation: None,
            what: what.to_owned(),
            expected: expected.to_owned(),
            found: self.to_string(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Violation(violation) => violation.fmt(f),
            Finding::Panicked { who, message } => writeln!(f, "{who} panicked: {message}"),
            Finding::Failed { who, error } => writeln!(f, "{who} failed: {error}"),
            Finding::NoProgress { patience, stuck } => {
                writeln!(f, "no progress for {patience:?}; stuck:")?;
                stuck.iter().try_for_each(|who| writeln!(f, "  {who}"))
            }
            Finding::Damaged(damage) => {
                writeln!(f, "the closed store is damaged:")?;
                damage.iter().try_for_each(|what| writeln!(f, "  {what}"))
            }
            Finding::Lost(keys) => {
                writeln!(f, "after the power cut:")?;
                let shown = keys.iter().take(4);
                shown.clone().try_for_each(|what| writeln!(f, "  {what}"))?;
                match keys.len() - shown.len() {
                    0 => Ok(()),
                    more => writeln!(f, "  and {more} more"),
                }
            }
        }
    }
}
