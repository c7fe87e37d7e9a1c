//! What a concurrent run does, and why it could not begin.

use std::time::Duration;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Decides what each client does.
    pub seed: u64,
    /// Threads that call.
    pub clients: u32,
    /// Threads that do background work.
    pub pumps: u32,
    /// Calls of a history, all clients together.
    pub calls: u64,
    /// The number of the first history.
    pub first: u64,
    /// Most histories. Each is on a store of its own.
    pub histories: u64,
    /// Every so many-th history ends in a power cut, where the power can be cut; 0: none.
    pub cut_every: u64,
    /// Whether each history has options of its own, see [`Engine::vary`].
    pub vary: bool,
    /// No history begins after this time.
    pub budget: Option<Duration>,
    /// The clients of a history that is under way after so long, from the beginning of all, make no
    /// more calls; what they made is judged.
    pub at_most: Option<Duration>,
    /// How long nothing may happen before it is called a hang.
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

/// A run that could not be.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The engine did not open an empty store.
    #[error("{engine} does not open an empty store: {error}")]
    Open {
        /// Its name.
        engine: String,
        /// Why.
        error: treering_engine::Error,
    },
    /// There is no folder to put a store in, or no thread to be had.
    #[error("cannot run: {0}")]
    System(#[from] std::io::Error),
    /// The plan makes no sense.
    #[error("{0} must be at least 1")]
    Plan(&'static str),
}
