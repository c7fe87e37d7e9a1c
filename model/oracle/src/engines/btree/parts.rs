//! Options that only the oracle uses.

use treering_engine::{Durability, ModLog, Nanos, ResetRule};

/// The log is flushed after this many readings of the test clock. Each write reads it once.
pub(super) const GROUPED: Durability = Durability::Grouped(Nanos(6));

/// So small that a few operations fill a log block.
pub(super) const SMALL_MOD_LOG: ModLog = ModLog {
    threshold: 1_024,
    segment: 64,
    reset: ResetRule::AtThreshold,
};
