//! The sizes of a state of `WalRecovery` for the bounded models, small and flat. A configuration
//! that needs more is refused.
//!
//! The mirror's source is compiled twice, here and in [`super::wide`]; only the sizes in this file
//! differ.

use std::hash::Hasher;

pub(crate) use super::no_room::refuse as no_room;

/// Positions, LSNs, epochs, values, counts.
pub(crate) type N = u8;
/// A set of places, keys, clients or values.
pub(crate) type Set = u8;

pub(crate) const CLIENTS: usize = 2;
pub(crate) const KEYS: usize = 2;
pub(crate) const PLACES: usize = 2;
pub(crate) const PER_BLOCK: usize = 2;
/// The largest value, and so the maximum number of writes.
pub(crate) const VALUES: N = 6;

/// Room for the versions of a place. The protocol leaves at most two versions of a log block and of
/// the superblock. A page may have one more than the log has records, since each record may be
/// redone and the page written after it.
pub(crate) const VERSIONS: usize = 5;
pub(crate) const BUFFER: usize = PLACES * PER_BLOCK;

/// A log record: key and value. Never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Record(u8);

impl Record {
    pub(super) fn new(key: u8, value: N) -> Self {
        Self(0x80 | key << 4 | value)
    }

    pub(super) fn key(self) -> usize {
        usize::from(self.0 >> 4 & 7)
    }

    pub(super) fn value(self) -> N {
        self.0 & 0xf
    }

    pub(super) fn is_some(self) -> bool {
        self.0 != 0
    }
}

pub(super) fn hash_block(
    epoch: N,
    index: N,
    records: &[Record; PER_BLOCK],
    hasher: &mut impl Hasher,
) {
    let [a, b] = *records;
    hasher.write_u32(u32::from_le_bytes([epoch, index, a.0, b.0]));
}

pub(super) fn hash_pair(pair: [N; 2], hasher: &mut impl Hasher) {
    hasher.write_u16(u16::from_le_bytes(pair));
}

pub(super) fn hash_eight(numbers: [N; 8], hasher: &mut impl Hasher) {
    hasher.write_u64(u64::from_le_bytes(numbers));
}
