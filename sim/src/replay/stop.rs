//! Telling a replay to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A replay ends after the operation at hand once the flag is set, and reports what it did so far.
#[derive(Clone, Debug, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    /// Stops once `flag` is set.
    #[must_use]
    pub fn when(flag: Arc<AtomicBool>) -> Stop {
        Stop(Some(flag))
    }

    pub(super) fn is_set(&self) -> bool {
        (self.0.as_ref()).is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// When to stop is no setting of a replay: all are equal.
impl PartialEq for Stop {
    fn eq(&self, _: &Stop) -> bool {
        true
    }
}
