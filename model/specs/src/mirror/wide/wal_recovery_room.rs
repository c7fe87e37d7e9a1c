//! The sizes of a state of `WalRecovery` for the recordings of a real engine.
//!
//! An episode must not write more than 65,535 records.

use std::hash::{Hash, Hasher};

/// Positions, LSNs, epochs, values, counts.
pub(crate) type N = u16;
/// A set of places, keys, clients or values.
pub(crate) type Set = u64;

pub(crate) const CLIENTS: usize = 8;
pub(crate) const KEYS: usize = 64;
/// The engine's minimum number of log blocks.
pub(crate) const PLACES: usize = 64;
pub(crate) const PER_BLOCK: usize = 8;
/// The largest value, and so the maximum number of writes.
pub(crate) const VALUES: N = N::MAX - 1;

/// Room for the versions of a place. A page is rarely written twice between two flushes, but a
/// flush may wait long for a processor.
pub(crate) const VERSIONS: usize = 24;
pub(crate) const BUFFER: usize = PLACES * PER_BLOCK;

/// A log record: key and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Record {
    /// Counted from 1. 0 means no record.
    key: u8,
    value: N,
}

impl Record {
    pub(super) fn new(key: u8, value: N) -> Self {
        Self {
            key: key + 1,
            value,
        }
    }

    pub(super) fn key(self) -> usize {
        usize::from(self.key) - 1
    }

    pub(super) fn value(self) -> N {
        self.value
    }

    pub(super) fn is_some(self) -> bool {
        self.key != 0
    }
}

/// An engine does more between two flushes than the mirror can keep.
pub(crate) fn no_room(what: &str, most: usize) -> ! {
    panic!("the recording has more than {most} {what}");
}

pub(super) fn hash_block(
    epoch: N,
    index: N,
    records: &[Record; PER_BLOCK],
    hasher: &mut impl Hasher,
) {
    (epoch, index, records).hash(hasher);
}

pub(super) fn hash_pair(pair: [N; 2], hasher: &mut impl Hasher) {
    pair.hash(hasher);
}

pub(super) fn hash_eight(numbers: [N; 8], hasher: &mut impl Hasher) {
    numbers.hash(hasher);
}
