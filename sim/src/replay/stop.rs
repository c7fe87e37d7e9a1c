//! A flag that stops a replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Once the flag is set, a replay ends after the current operation and reports what it did.
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

/// A stop flag is not a setting of a replay, so all are equal.
impl PartialEq for Stop {
    fn eq(&self, _: &Stop) -> bool {
        true
    }
}
