//! What all operations of a program have in common.

use super::trouble::Faults;
use super::vocabulary::Vocabulary;

/// What all operations of a program have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(super) vocabulary: Vocabulary,
    /// So many keys, at least 2.
    pub(super) keys: u16,
    /// The longest value, in 255ths of what fits.
    pub(super) longest: u8,
    pub(super) faults: Faults,
    /// Phases of growth alternate with phases of shrinking: operations of one.
    pub(super) phase: u16,
    /// Of 100 writes, how many are puts while it grows, and while it shrinks.
    pub(super) puts: (u32, u32),
    /// How many of 64 operations are syncs.
    pub(super) syncs: u8,
    /// Whether anybody does background work; or all of it is left to those who write.
    pub(super) pumps: bool,
    /// Decides what patterns phases have.
    pub(super) salt: u64,
    /// Operations so far.
    pub(super) step: u32,
}

/// So many keys fit every store, however large what they hold.
pub(super) const FEW_KEYS: u16 = 160;

/// So many, with values as long as may be, fit no store that has hardly room.
pub(super) const FILLING_KEYS: u16 = 240;
