//! The progress of log cleaning.

use crate::pm::layout::Time;

/// A cleaning in progress.
pub(crate) struct Run {
    /// The log floor to be set when it is done.
    pub(super) floor: Time,
    /// The epoch that began with it.
    pub(super) epoch: u8,
    /// The fence from which to continue.
    pub(super) from: Vec<u8>,
    /// Whether a leaf was skipped because, for lack of space, it could be neither flushed nor
    /// copied.
    pub(super) passed: bool,
    /// How often leaves had lost keys when all were last visited in vain. Another attempt is
    /// useless until they have lost more.
    pub(super) vain_at: Option<u64>,
}
