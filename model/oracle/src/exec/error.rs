//! What goes wrong with an adapter, each in one sentence.

use std::time::Duration;

use super::wire::Refusal;

/// Why a request to an adapter has no answer, or none that counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The command cannot be understood.
    #[error("--exec: expected a program and its arguments, found {0}")]
    Command(String),
    /// The program cannot be started.
    #[error("{program} cannot be started: {why}")]
    Start {
        /// The program.
        program: String,
        /// The system's reason.
        why: String,
    },
    /// The adapter breaks the protocol.
    #[error("{name}: line {line} of its output: expected {expected}, found {found}")]
    Broken {
        /// The adapter.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// What the protocol asks for.
        expected: String,
        /// What the line is.
        found: String,
    },
    /// The process ended although nobody asked for that.
    #[error("{name}: expected an answer to {request}, but the process ended ({status}){said}")]
    Died {
        /// The adapter.
        name: String,
        /// The oldest request without an answer.
        request: String,
        /// Its exit status.
        status: String,
        /// What it said last on standard error.
        said: String,
    },
    /// No answer came in time.
    #[error(
        "{name}: expected an answer to {request} within {} s, but none came (line {line} of its \
         output would be next)",
        after.as_secs_f64()
    )]
    Silent {
        /// The adapter.
        name: String,
        /// The oldest request without an answer.
        request: String,
        /// The time limit.
        after: Duration,
        /// The number of the line that did not come.
        line: u64,
    },
    /// The oracle killed the process.
    #[error("the process was killed")]
    Killed,
    /// The adapter answered with an error.
    #[error("{name}: {why}")]
    Answered {
        /// The adapter.
        name: String,
        /// Whether something has changed.
        refusal: Refusal,
        /// The reason in its words.
        why: String,
    },
}

impl ExecError {
    /// Whether the adapter broke the protocol, so that its answers say nothing about the engine.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(self, ExecError::Broken { .. } | ExecError::Command(_))
    }
}
