//! What a concurrent run finds.

use std::fmt;
use std::time::Duration;

use crate::finding::{self, Check};
use crate::linear::Violation;

/// Something that must not be.
#[derive(Debug)]
pub enum Finding {
    /// No order of the calls explains the answers.
    Violation(Box<Violation>),
    /// A thread panicked in the engine.
    Panicked {
        /// Which thread.
        who: String,
        /// What it said.
        message: String,
    },
    /// A call that nothing should have stopped was answered with an error.
    Failed {
        /// Which thread.
        who: String,
        /// The error.
        error: treering_engine::Error,
    },
    /// Nothing happened for too long.
    NoProgress {
        /// For how long.
        patience: Duration,
        /// Threads that are still there, and what they are at.
        stuck: Vec<String>,
    },
    /// The closed store is damaged.
    Damaged(Vec<String>),
    /// After a power cut keys hold what they must not, one sentence each.
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
    /// The same in the words that all modes of the oracle share; `what` was run.
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
                "what threads were told before the power went, and of the rest no more than they wrote",
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
                writeln!(f, "no progress for {patience:?}; still there:")?;
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
