//! The variables of `WalState.tla`, and how recovery reads the device's blocks.
//!
//! Small numbers in small arrays, since a state is copied and hashed at every step. Unused entries
//! are zero, so that equal states are equal bytes.

use std::hash::{Hash, Hasher};

pub use super::room::Record;
use super::room::{self, BUFFER, CLIENTS, KEYS, N, PER_BLOCK, PLACES, Set, VERSIONS};

/// A value: 0 is `Absent`.
pub(super) type Content = N;
pub(super) const ABSENT: Content = 0;
pub(super) const PENDING: Content = N::MAX;

/// The progress of a write.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum At {
    /// The call was made, and has had no effect yet.
    Called,
    /// Its record is in the buffer, and its page is latched.
    Logged,
    /// The write waits for its LSN to become durable.
    Waiting,
    /// The write sleeps until the flush in flight is over.
    Asleep,
}

/// A client's outstanding call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Call {
    /// No call is outstanding. The last one, if any, returned, or a crash ended it.
    Idle,
    /// No call is outstanding. The last one was refused, and has had no effect.
    Refused,
    /// No call is outstanding. Nobody knows whether the last one has had an effect.
    Unknown,
    /// A get.
    Get {
        /// The key.
        key: u8,
        /// The value read.
        got: Content,
    },
    /// A put or delete.
    Write {
        /// The key.
        key: u8,
        /// The value to write.
        value: Content,
        /// The progress of the write.
        at: At,
        /// The LSN of its record, once it has one.
        lsn: N,
    },
}

/// The versions of one place, oldest first. The first one is durable, and a read returns the last
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Versions<T, const ROOM: usize = VERSIONS> {
    // invariant: versions from `len` on are default.
    all: [T; ROOM],
    len: u8,
}

impl<T: Copy + Default + Hash, const ROOM: usize> Hash for Versions<T, ROOM> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.len.hash(hasher);
        self.all().iter().for_each(|version| version.hash(hasher));
    }
}

impl<T: Copy + Default, const ROOM: usize> Versions<T, ROOM> {
    pub(in crate::mirror) fn durably(version: T) -> Self {
        let mut all = [T::default(); ROOM];
        all[0] = version;
        Self { all, len: 1 }
    }

    pub(in crate::mirror) fn all(&self) -> &[T] {
        &self.all[..usize::from(self.len)]
    }

    pub(in crate::mirror) fn newest(&self) -> T {
        self.all[usize::from(self.len) - 1]
    }

    pub(in crate::mirror) fn push(&mut self, version: T) {
        match self.all.get_mut(usize::from(self.len)) {
            Some(place) => *place = version,
            None => room::no_room("versions of a block between two flushes", ROOM),
        }
        self.len += 1;
    }

    pub(in crate::mirror) fn is_unflushed(&self) -> bool {
        self.len > 1
    }

    pub(in crate::mirror) fn flush(&mut self) {
        *self = Self::durably(self.newest());
    }
}

/// A log block. Unused records are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Block {
    pub(super) epoch: N,
    pub(super) index: N,
    pub(super) records: [Record; PER_BLOCK],
}

impl Hash for Block {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        room::hash_block(self.epoch, self.index, &self.records, hasher);
    }
}

impl Block {
    pub(super) fn records(&self) -> &[Record] {
        let len = self.records.iter().take_while(|r| r.is_some()).count();
        &self.records[..len]
    }
}

/// A page: its value, and the LSN of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Image {
    pub(super) value: Content,
    pub(super) lsn: N,
}

impl Hash for Image {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        room::hash_pair([self.value, self.lsn], hasher);
    }
}

/// The superblock: an epoch, and the position in it where redo begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Superblock {
    pub(super) epoch: N,
    pub(super) redo: N,
}

impl Hash for Superblock {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        room::hash_pair([self.epoch, self.redo], hasher);
    }
}

/// The last step that a checkpoint has taken.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Checkpoint {
    /// No checkpoint is in progress.
    Idle,
    /// Pages are being written back.
    Sweep,
    /// The page images are durable.
    Forced,
    /// The superblock is written.
    Written,
    /// The superblock is durable.
    Recorded,
}

/// The phase of the store\'s life.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The store serves clients.
    Up,
    /// The store is down: the power failed.
    Cut,
    /// The store is down: the process died, and the device lived on.
    Killed,
    /// Recovery replays the log.
    Redo,
    /// Recovery takes its final checkpoint.
    Opening,
}

impl Phase {
    /// Whether the store is neither up nor recovering (`Down`).
    #[must_use]
    pub fn is_down(self) -> bool {
        matches!(self, Phase::Cut | Phase::Killed)
    }
}

/// The error that the last crash revealed, if any.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// No error was revealed.
    Fine,
    /// Durable writes were lost.
    Lost,
    /// The remaining writes are not a prefix of the history.
    Mixed,
    /// Before the crash, recovery would have led to something else.
    Changed,
    /// A value that a get had returned was lost.
    Vanished,
}

/// Places whose unflushed versions a failed flush forgot, as bit sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Lost {
    pub(super) log: Set,
    pub(super) pages: Set,
    pub(super) superblock: bool,
}

/// The variables that are single numbers or flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bitcode::Encode, bitcode::Decode)]
pub struct Scalars {
    pub(super) asked: N,
    pub(super) buffer_len: N,
    pub(super) durable: N,
    pub(super) flushing: N,
    pub(super) epoch: N,
    pub(super) oldest: N,
    pub(super) poisoned: bool,
    pub(super) checkpoint: Checkpoint,
    pub(super) begin: N,
    pub(super) phase: Phase,
    pub(super) redone: N,
    pub(super) lost: Lost,
    pub(super) verdict: Verdict,
    pub(super) crashes: N,
}

impl Hash for Scalars {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let numbers = [
            self.asked,
            self.buffer_len,
            self.durable,
            self.flushing,
            self.epoch,
            self.oldest,
            self.begin,
            self.redone,
        ];
        let rest = [
            self.crashes,
            N::from(self.poisoned),
            self.checkpoint as N,
            self.phase as N,
            self.verdict as N,
            // Hashes only the first members of a wide set. That is enough, since equal states hash
            // equally.
            self.lost.log as N,
            self.lost.pages as N,
            N::from(self.lost.superblock),
        ];
        room::hash_eight(numbers, hasher);
        room::hash_eight(rest, hasher);
    }
}

/// The variables of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) call: [Call; CLIENTS],
    // invariant: records from `buffer_len` on are 0.
    pub(super) buffer: [Record; BUFFER],
    pub(super) page: [Image; KEYS],
    pub(super) dirtied: [N; KEYS],
    pub(super) log_dev: [Versions<Block>; PLACES],
    pub(super) page_dev: [Versions<Image>; KEYS],
    pub(super) super_dev: Versions<Superblock>,
    pub(super) base: [Content; KEYS],
    pub(super) it: Scalars,
}

impl State {
    pub(super) fn initial() -> Self {
        let scalars = Scalars {
            asked: 0,
            buffer_len: 0,
            durable: 0,
            flushing: 0,
            epoch: 1,
            oldest: 0,
            poisoned: false,
            checkpoint: Checkpoint::Idle,
            begin: 0,
            phase: Phase::Up,
            redone: 0,
            lost: Lost::default(),
            verdict: Verdict::Fine,
            crashes: 0,
        };
        Self {
            call: [Call::Idle; CLIENTS],
            buffer: [Record::default(); BUFFER],
            page: [Image::default(); KEYS],
            dirtied: [0; KEYS],
            log_dev: [Versions::durably(Block::default()); PLACES],
            page_dev: [Versions::durably(Image::default()); KEYS],
            super_dev: Versions::durably(Superblock { epoch: 1, redo: 0 }),
            base: [ABSENT; KEYS],
            it: scalars,
        }
    }

    /// Loses everything in memory (`ForgetMemory`).
    pub(super) fn forget_memory(&mut self, phase: Phase) {
        let fresh = Self::initial();
        self.it = Scalars {
            asked: self.it.asked,
            epoch: 0,
            phase,
            lost: self.it.lost,
            verdict: self.it.verdict,
            crashes: self.it.crashes + 1,
            ..fresh.it
        };
        (self.call, self.buffer) = (fresh.call, fresh.buffer);
        (self.page, self.dirtied) = (fresh.page, fresh.dirtied);
    }

    pub(super) fn buffer(&self) -> &[Record] {
        &self.buffer[..usize::from(self.it.buffer_len)]
    }

    /// Whether a client holds the latch of this page.
    pub(super) fn latched(&self, k: usize) -> bool {
        self.call.iter().any(|call| {
            matches!(call, Call::Write { key, at: At::Logged, .. } if usize::from(*key) == k)
        })
    }

    /// A device flush.
    pub(super) fn device_flush(&mut self) {
        let lost = self.it.lost;
        for (p, place) in self.log_dev.iter_mut().enumerate() {
            if lost.log >> p & 1 == 0 {
                place.flush();
            }
        }
        for (k, place) in self.page_dev.iter_mut().enumerate() {
            if lost.pages >> k & 1 == 0 {
                place.flush();
            }
        }
        if !lost.superblock {
            self.super_dev.flush();
        }
    }

    /// The result of reading the whole device.
    pub(super) fn newest(&self) -> Medium {
        Medium {
            log: self.log_dev.map(|place| place.newest()),
            pages: self.page_dev.map(|place| place.newest()),
            superblock: self.super_dev.newest(),
        }
    }
}

/// One version of every block.
#[derive(Clone, Copy)]
pub(super) struct Medium {
    pub(super) log: [Block; PLACES],
    pub(super) pages: [Image; KEYS],
    pub(super) superblock: Superblock,
}

/// Records read from the log.
#[derive(Clone, Copy)]
pub(super) struct Records {
    all: [Record; 2 * BUFFER],
    len: N,
}

impl Default for Records {
    fn default() -> Self {
        Self {
            all: [Record::default(); 2 * BUFFER],
            len: 0,
        }
    }
}

impl Records {
    pub(super) fn push(&mut self, record: Record) {
        self.all[usize::from(self.len)] = record;
        self.len += 1;
    }

    pub(super) fn len(&self) -> N {
        self.len
    }

    pub(super) fn all(&self) -> &[Record] {
        &self.all[..usize::from(self.len)]
    }
}

impl State {
    /// Makes the device hold exactly this, durably.
    pub(super) fn leave(&mut self, medium: &Medium) {
        self.log_dev = medium.log.map(Versions::durably);
        self.page_dev = medium.pages.map(Versions::durably);
        self.super_dev = Versions::durably(medium.superblock);
        self.it.lost = Lost::default();
    }
}
