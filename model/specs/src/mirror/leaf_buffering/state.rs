//! The variables of `LeafState.tla`.
//!
//! Small numbers in small arrays, since a state is copied and hashed at every step. Unused entries
//! are zero, so that equal states are equal bytes. `found` is a function of `pm`, so it is not
//! stored.

use super::memory::{ABSENT, Child, FIRST, Inner, Map, Place, WORDS, Words};
pub(super) use super::room::{BATCH, CLIENTS, KEYS, LEAVES, N, Set};
use super::word::Word;

pub(super) const PENDING: N = N::MAX;
/// The index of recovery's job, after those of the clients.
pub(super) const RECOVERER: usize = CLIENTS;
/// The index of the log of cleaning, after those of the clients.
pub(super) const CLEANER: usize = CLIENTS;

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding.
    Idle,
    /// A get.
    Get {
        /// The key.
        key: u8,
        /// The value read.
        got: N,
    },
    /// A put or delete.
    Write {
        /// The key.
        key: u8,
        /// The value to write.
        value: N,
        /// The progress of the write.
        at: WriteAt,
    },
}

/// The progress of a write.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum WriteAt {
    /// The write waits for the latch of its leaf.
    Called,
    /// The write has the latch.
    Begun,
    /// The write is durable.
    Done,
}

/// A slot of a buffer node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Slot {
    pub(super) key: u8,
    pub(super) value: N,
    pub(super) bit: N,
}

/// A buffer node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Buffer {
    pub(super) slots: [Slot; BATCH],
    /// How many of the slots are not in the leaf yet.
    pub(super) count: u8,
}

impl Buffer {
    /// The slots that are not in the leaf yet.
    pub(super) fn waiting(&self) -> &[Slot] {
        &self.slots[..usize::from(self.count)]
    }
}

/// Some keys, each with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Batch {
    pub(super) keys: Set,
    // invariant: 0 for a key that is not in the batch.
    values: Map,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            keys: 0,
            values: [ABSENT; KEYS],
        }
    }
}

impl Batch {
    pub(super) fn put(&mut self, key: u8, value: N) {
        self.keys |= 1 << key;
        self.values[usize::from(key) - 1] = value;
    }

    pub(super) fn value(&self, key: usize) -> N {
        self.values[key - 1]
    }

    /// The part of the batch with these keys.
    pub(super) fn only(&self, keys: Set) -> Self {
        let mut only = Self::default();
        for key in super::memory::members(self.keys & keys) {
            only.put(key as u8, self.value(key));
        }
        only
    }

    pub(super) fn has_tombstone(&self) -> bool {
        super::memory::members(self.keys).any(|key| self.value(key) == ABSENT)
    }
}

/// The progress of a writer.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    bitcode::Encode,
    bitcode::Decode,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
#[allow(missing_docs)]
pub enum At {
    #[default]
    None,
    Log,
    Logged,
    Batch,
    Records,
    Header,
    New,
    Link,
    Flushed,
    Move,
    Moved,
    Merged,
    Done,
}

/// The work of a writer under its latches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Job {
    pub(super) at: At,
    pub(super) leaf: u8,
    pub(super) from: u8,
    pub(super) new: u8,
    pub(super) epoch: N,
    pub(super) batch: Batch,
    pub(super) deletes: bool,
}

/// Where a log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct LogEnd {
    pub(super) chunk: u8,
    pub(super) used: u8,
    pub(super) epoch: N,
}

/// The progress of log cleaning.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    bitcode::Encode,
    bitcode::Decode,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum CleaningAt {
    /// No cleaning is in progress.
    #[default]
    Idle,
    /// Buffer nodes are being scanned.
    Scan,
    /// The first live epoch has been stored.
    Reclaim,
}

/// Log cleaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Cleaning {
    pub(super) at: CleaningAt,
    pub(super) todo: Set,
    pub(super) chunks: Set,
}

/// Whether the power is on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The store is open.
    Up,
    /// The power has failed, and not all words have settled.
    Failing,
    /// The process has ended, and not all words have been written back.
    Killed,
    /// The store is recovering.
    Recovery,
}

/// The variables of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) call: [Call; CLIENTS],
    pub(super) asked: N,
    pub(super) inner: Inner,
    pub(super) buffer: [Buffer; LEAVES],
    pub(super) job: [Job; CLIENTS + 1],
    pub(super) log: [LogEnd; CLIENTS + 1],
    pub(super) epoch: N,
    pub(super) tick: N,
    pub(super) cleaning: Cleaning,
    pub(super) pm: [Place; WORDS],
    pub(super) phase: Phase,
    pub(super) crashes: N,
    pub(super) written: Map,
}

impl State {
    pub(super) fn initial() -> Self {
        let mut inner = Inner::default();
        inner.insert(0, Child { leaf: 1, low: 0 });
        let mut pm = [Place::durably(Word::default()); WORDS];
        pm[FIRST] = Place::durably(Word::number(1));
        Self {
            call: [Call::Idle; CLIENTS],
            asked: 0,
            inner,
            buffer: Default::default(),
            job: Default::default(),
            log: Default::default(),
            epoch: 1,
            tick: 0,
            cleaning: Cleaning::default(),
            pm,
            phase: Phase::Up,
            crashes: 0,
            written: [ABSENT; KEYS],
        }
    }

    /// What programs read.
    pub(super) fn visible(&self) -> Words {
        self.pm.map(|place| place.newest())
    }

    /// What is durable: no crash can take it away.
    pub(super) fn medium(&self) -> Words {
        self.pm.map(|place| place.all()[0])
    }

    /// Stores a word, which is not durable yet (`Store`).
    pub(super) fn store(&mut self, address: usize, word: Word) {
        let place = &mut self.pm[address];
        if place.newest() != word {
            place.push(word);
        }
    }

    /// Makes these words durable (`Fence`).
    pub(super) fn fence(&mut self, addresses: impl IntoIterator<Item = usize>) {
        for address in addresses {
            self.pm[address].flush();
        }
    }

    pub(super) fn is_latched(&self, leaf: u8) -> bool {
        let mut jobs = self.job.iter();
        jobs.any(|job| job.at != At::None && (job.leaf == leaf || job.from == leaf))
    }

    pub(super) fn buffer(&self, leaf: u8) -> &Buffer {
        &self.buffer[usize::from(leaf) - 1]
    }

    pub(super) fn buffer_mut(&mut self, leaf: u8) -> &mut Buffer {
        &mut self.buffer[usize::from(leaf) - 1]
    }

    /// The first word that has not settled.
    pub(super) fn first_dirty(&self) -> Option<usize> {
        self.pm.iter().position(Place::is_unflushed)
    }
}
