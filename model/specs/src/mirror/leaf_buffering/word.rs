//! The words of the persistent memory, packed.

#![allow(clippy::useless_conversion)] // Numbers have other sizes in the wide form.

use super::room::{Bits, N, Set};

/// A point in time: the epoch first, then the tick.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    bitcode::Encode,
    bitcode::Decode,
)]
pub struct Time {
    /// The epoch.
    pub epoch: N,
    /// The tick. It starts again when the store does.
    pub tick: N,
}

/// A key and its value. Key 0 means nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Kv {
    /// The key, from 1.
    pub key: u8,
    /// Its value; 0 is a tombstone.
    pub value: N,
}

/// A word of persistent memory. The default is zero.
///
/// ```text
/// first, chunk  an epoch
/// header        the next leaf, the bitmap
/// timestamp     a time
/// slot, kv      a key and its value
/// time          a time, and the key and value that its checksum vouches for
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Word(Bits);

impl Word {
    fn pair(high: N, low: N) -> Bits {
        Bits::from(high) << N::BITS | Bits::from(low)
    }

    pub(super) fn number(n: N) -> Self {
        Self(n.into())
    }

    pub(super) fn header(live: Set, next: u8) -> Self {
        Self(Self::pair(next.into(), live as N))
    }

    pub(super) fn time(time: Time) -> Self {
        Self(Self::pair(time.epoch, time.tick))
    }

    pub(super) fn kv(kv: Kv) -> Self {
        Self(Self::pair(kv.key.into(), kv.value))
    }

    pub(super) fn stamped(time: Time, kv: Kv) -> Self {
        Self(Self::time(time).0 << (2 * N::BITS) | Self::kv(kv).0)
    }

    pub(super) fn as_number(self) -> N {
        self.0 as N
    }

    pub(super) fn live(self) -> Set {
        Set::from(self.0 as N)
    }

    pub(super) fn next(self) -> u8 {
        (self.0 >> N::BITS) as u8
    }

    pub(super) fn as_time(self) -> Time {
        Time {
            epoch: (self.0 >> N::BITS) as N,
            tick: self.0 as N,
        }
    }

    pub(super) fn as_kv(self) -> Kv {
        Kv {
            key: (self.0 >> N::BITS) as u8,
            value: self.0 as N,
        }
    }

    /// The time in the time word of a log entry.
    pub(super) fn at(self) -> Time {
        Self(self.0 >> (2 * N::BITS)).as_time()
    }

    /// The key and value that the time word of a log entry vouches for.
    pub(super) fn of(self) -> Kv {
        self.as_kv()
    }
}
