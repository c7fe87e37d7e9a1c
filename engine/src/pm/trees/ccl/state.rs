//! How far a cleaning of the log has got.

use crate::pm::layout::Time;

/// A cleaning under way.
pub(crate) struct Run {
    /// The log floor when it is done.
    pub(super) floor: Time,
    /// The epoch that began with it.
    pub(super) epoch: u8,
    /// The fence to go on from.
    pub(super) from: Vec<u8>,
    /// A leaf was passed that can be neither flushed nor copied for want of room.
    pub(super) passed: bool,
    /// How often leaves had lost keys when all were visited in vain: before they lose more there is
    /// no use in it.
    pub(super) vain_at: Option<u64>,
}
