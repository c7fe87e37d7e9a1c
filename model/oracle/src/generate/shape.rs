//! What all operations of a program have in common.

use super::trouble::Faults;
use super::vocabulary::Vocabulary;

/// What all operations of a program have in common: the kind of keys, the lengths of values, the
/// mix of operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(super) vocabulary: Vocabulary,
    /// The number of keys, at least 2.
    pub(super) keys: u16,
    /// The longest value, in 255ths of the engine's limit.
    pub(super) longest: u8,
    pub(super) faults: Faults,
    /// Operations of one phase. Phases of growth and of shrinkage alternate.
    pub(super) phase: u16,
    /// How many of 100 writes are puts, in a phase of growth and in one of shrinkage.
    pub(super) puts: (u32, u32),
    /// How many of 64 operations are syncs.
    pub(super) syncs: u8,
    /// Whether the program does background work. If not, all of it is left to writers.
    pub(super) pumps: bool,
    /// A seed for the pattern of each phase.
    pub(super) salt: u64,
    /// Operations made so far.
    pub(super) step: u32,
}

impl Shape {
    /// How many of 1,000 operations are batches. Few, but in one program in eight many.
    pub(super) fn batches(&self) -> u32 {
        match self.salt >> 40 & 7 {
            0 => 120,
            _ => 15,
        }
    }
}

/// This many keys fit every store, whatever their values.
pub(super) const FEW_KEYS: u16 = 160;

/// This many keys with the longest values fill a small store.
pub(super) const FILLING_KEYS: u16 = 240;
