//! The description of an adapter.

use treering_oracle::Engine;

/// The adapter of one engine in this build.
pub(crate) struct Adapter {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What can be judged of the engine and what cannot, in one line.
    pub(crate) judged: &'static str,
    /// Creates the engine.
    pub(crate) engine: fn() -> Box<dyn Engine>,
}
