//! What an adapter says of its engine.

use treering_oracle::Engine;

/// One engine of this build.
pub(crate) struct Adapter {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What of it can be judged and what cannot, in one line.
    pub(crate) judged: &'static str,
    /// Makes it.
    pub(crate) engine: fn() -> Box<dyn Engine>,
}
