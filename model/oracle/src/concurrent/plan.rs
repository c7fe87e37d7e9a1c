//! What a concurrent run does.

use std::time::Duration;

/// What a concurrent run does, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Decides what each client does.
    pub seed: u64,
    /// Client threads.
    pub clients: u32,
    /// Threads for background work.
    pub pumps: u32,
    /// Calls of one history, all clients together.
    pub calls: u64,
    /// The number of the first history.
    pub first: u64,
    /// The most histories. Each has its own store.
    pub histories: u64,
    /// Every n-th history ends in a power cut, if the disk can crash. 0 means none.
    pub cut_every: u64,
    /// Whether each history has its own options; see [`Engine::vary`](crate::Engine::vary).
    pub vary: bool,
    /// No history starts after this time.
    pub budget: Option<Duration>,
    /// The time, from the start of the run, after which the clients of a running history make no
    /// more calls. Their calls so far are judged.
    pub at_most: Option<Duration>,
    /// If nothing happens for this long, the run reports a hang.
    pub patience: Duration,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            seed: 0,
            clients: 4,
            pumps: 1,
            calls: 40_000,
            first: 0,
            histories: 3,
            cut_every: 2,
            vary: true,
            budget: None,
            at_most: None,
            patience: Duration::from_secs(30),
        }
    }
}

/// A run that was impossible.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The engine could not open an empty store.
    #[error("{engine} does not open an empty store: {error}")]
    Open {
        /// The engine's name.
        engine: String,
        /// The engine's error.
        error: treering_engine::Error,
    },
    /// A folder or a thread could not be created.
    #[error("cannot run: {0}")]
    System(#[from] std::io::Error),
    /// The plan makes no sense.
    #[error("{0} must be at least 1")]
    Plan(&'static str),
}
