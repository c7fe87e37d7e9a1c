//! Checking without a process for each state.
//!
//! Most checkers spend more time on starting than on looking. One that can stay for many states
//! may say of each whether it is good. What it does not like is checked once more by the command,
//! in a process of its own, and that verdict counts: so nothing that a checker has kept from an
//! earlier state becomes a finding.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A checker that stays.
pub trait Quick: Send {
    /// Whether the state in a directory is good, given the lines that were acknowledged. Nothing of
    /// the state may be open afterwards.
    fn is_good(&mut self, dir: &Path, acks: &[u8]) -> bool;

    /// Ends whatever has stayed: something of a state was open after all.
    fn forget(&mut self);
}

/// Makes a checker for each job.
#[derive(Clone)]
pub struct QuickMaker(Arc<dyn Fn() -> Box<dyn Quick> + Send + Sync>);

impl QuickMaker {
    /// Makes them by a function.
    pub fn new(make: impl Fn() -> Box<dyn Quick> + Send + Sync + 'static) -> QuickMaker {
        QuickMaker(Arc::new(make))
    }

    pub(super) fn make(&self) -> Box<dyn Quick> {
        (self.0)()
    }
}

impl fmt::Debug for QuickMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuickMaker")
    }
}
