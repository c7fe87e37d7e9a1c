//! The sizes of a state of `LeafBuffering` for the bounded models, small and flat. A configuration
//! that needs more is refused.

/// Values, ticks, epochs, counts.
pub(crate) type N = u8;
/// A set of slots, keys, leaves, chunks, clients or writes.
pub(crate) type Set = u16;

pub(crate) const CLIENTS: usize = 2;
pub(crate) const KEYS: usize = 4;
pub(crate) const LEAVES: usize = 3;
pub(crate) const SLOTS: usize = 4;
pub(crate) const CHUNKS: usize = 4;
pub(crate) const ENTRIES: usize = 2;
/// Slots of a buffer node.
pub(crate) const BATCH: usize = 2;
/// The maximum number of writes.
pub(crate) const WRITES: usize = 12;
/// Versions of a word: those stored since it was last fenced, and the one before.
pub(crate) const VERSIONS: usize = 4;

/// A point in time: the epoch first, then the tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// The epoch.
    pub epoch: N,
    /// The tick. It starts again when the store does.
    pub tick: N,
}

/// A key and its value. Key 0 means nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Word(u32);

impl Word {
    fn pair(high: u8, low: u8) -> u32 {
        u32::from(high) << 8 | u32::from(low)
    }

    pub(super) fn number(n: N) -> Self {
        Self(n.into())
    }

    pub(super) fn header(live: Set, next: u8) -> Self {
        Self(Self::pair(next, live as u8))
    }

    pub(super) fn time(time: Time) -> Self {
        Self(Self::pair(time.epoch, time.tick))
    }

    pub(super) fn kv(kv: Kv) -> Self {
        Self(Self::pair(kv.key, kv.value))
    }

    pub(super) fn stamped(time: Time, kv: Kv) -> Self {
        Self(Self::time(time).0 << 16 | Self::kv(kv).0)
    }

    pub(super) fn as_number(self) -> N {
        self.0 as N
    }

    pub(super) fn live(self) -> Set {
        self.0 as Set & 0xff
    }

    pub(super) fn next(self) -> u8 {
        (self.0 >> 8) as u8
    }

    pub(super) fn as_time(self) -> Time {
        Time {
            epoch: (self.0 >> 8) as N,
            tick: self.0 as N,
        }
    }

    pub(super) fn as_kv(self) -> Kv {
        Kv {
            key: (self.0 >> 8) as u8,
            value: self.0 as N,
        }
    }

    /// The time in the time word of a log entry.
    pub(super) fn at(self) -> Time {
        Self(self.0 >> 16).as_time()
    }

    /// The key and value that the time word of a log entry vouches for.
    pub(super) fn of(self) -> Kv {
        self.as_kv()
    }
}
