//! The variables of `BatchState.tla`, and what the log says.
//!
//! Clients are numbered from 0, keys and writes from 1. Entries of keys that a configuration does
//! not have keep their initial values.

use super::{Bug, WriteBatch};

/// LSNs, values, counts.
pub(super) type N = u8;

pub(super) const CLIENTS: usize = 2;
pub(super) const KEYS: usize = 4;
/// The maximum number of writes.
pub(super) const WRITES: usize = 8;

/// A value: 0 is `Absent`.
pub(super) type Content = N;
pub(super) const ABSENT: Content = 0;
pub(super) const PENDING: Content = N::MAX;

/// A map from keys to values.
pub(super) type Map = [Content; KEYS];

/// The new value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Change {
    pub(super) key: u8,
    pub(super) value: Content,
}

impl Change {
    /// The absence of a change (`NoChange`).
    pub(super) const NONE: Change = Change {
        key: 1,
        value: ABSENT,
    };
}

/// The place of a key in an array.
pub(super) fn place(key: u8) -> usize {
    usize::from(key) - 1
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Kind {
    /// One change.
    Put,
    /// A part of an intent.
    Part {
        /// Which, counted from 0.
        number: N,
        /// Whether there are no more.
        last: bool,
    },
    /// All changes of a batch are made.
    End,
}

/// A record of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Record {
    pub(super) kind: Kind,
    pub(super) epoch: N,
    pub(super) change: Change,
}

/// A leaf, and the LSN of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Leaf {
    pub(super) value: Content,
    pub(super) lsn: N,
}

/// Changes that take effect with the record at `lsn`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Effect {
    pub(super) lsn: N,
    pub(super) changes: Vec<Change>,
}

/// The progress of a get.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Reading {
    /// The call was made, and has had no effect yet.
    Called,
    /// The get has noted the version of the shown changes.
    Looked,
    /// The get has a value.
    Read,
}

/// The progress of a write or batch.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Writing {
    /// The call was made, and has had no effect yet.
    Called,
    /// A write completes the batch of another client first.
    Finishing,
    /// A write has passed the gate.
    Passing,
    /// The client of a batch has closed the gate.
    Closed,
    /// The batch is being written.
    Writing,
    /// The write has taken effect, and is not known to be durable.
    Waiting,
}

/// A client's outstanding call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
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
        /// The progress of the get.
        at: Reading,
        /// The version that it has noted.
        version: N,
        /// The value that it has read.
        got: Content,
    },
    /// A put or delete.
    Write {
        /// The change to make.
        change: Change,
        /// The progress of the write.
        at: Writing,
        /// The LSN of its record, once it has one.
        lsn: N,
    },
    /// A batch.
    Batch {
        /// The changes to make.
        changes: Vec<Change>,
        /// The progress of the batch.
        at: Writing,
        /// The LSN of its end, once it has one.
        lsn: N,
    },
}

/// The client or recovery that has closed the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub enum Gate {
    /// The gate is open.
    Nobody,
    /// A client.
    Client(u8),
    /// Recovery.
    Recovery,
}

/// The progress of the open batch.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum At {
    /// Recovery has not made its epoch durable yet.
    Epoch,
    /// Its first intent is being logged.
    Logging,
    /// Its first intent is in the log.
    Logged,
    /// Its changes are being made.
    Making,
    /// Its intent is being logged once more.
    Renewing,
    /// The log before its newest intent is being freed.
    Moving,
    /// Its end is in the log.
    Ended,
}

/// The open batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct Batch {
    pub(super) at: At,
    pub(super) changes: Vec<Change>,
    pub(super) made: N,
    pub(super) parts: N,
    pub(super) begin: N,
}

impl Batch {
    pub(super) fn len(&self) -> N {
        self.changes.len() as N
    }
}

/// Whether the store is open.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// The store is open.
    Up,
    /// The power failed.
    Down,
    /// Recovery completes the batch that the crash cut short.
    Completing,
}

/// All variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, bitcode::Encode, bitcode::Decode)]
pub struct State {
    pub(super) call: [Call; CLIENTS],
    pub(super) asked: N,
    pub(super) gate: Gate,
    pub(super) batch: Option<Batch>,
    pub(super) shown: Vec<Change>,
    pub(super) version: N,
    pub(super) log: Vec<Record>,
    pub(super) durable: N,
    pub(super) pin: N,
    pub(super) checkpoint: N,
    pub(super) redo_start: N,
    pub(super) leaf: [Leaf; KEYS],
    pub(super) leaf_dev: [Leaf; KEYS],
    pub(super) epoch: N,
    pub(super) super_epoch: N,
    pub(super) phase: Phase,
    pub(super) crashes: N,
    pub(super) effects: Vec<Effect>,
}

/// The batches of the log read so far.
#[derive(Default)]
struct Intents {
    begun: Vec<Change>,
    parts: N,
    pending: Vec<Change>,
}

impl State {
    /// Forgets what a crash takes of memory.
    pub(super) fn forget_memory(&mut self) {
        self.call.fill(Call::Idle);
        (self.gate, self.batch, self.pin) = (Gate::Nobody, None, 0);
        self.shown.clear();
        (self.version, self.checkpoint, self.epoch) = (0, 0, 0);
        self.leaf.fill(Leaf::default());
    }

    /// The initial state (`Init`).
    pub(super) fn initial() -> Self {
        Self {
            call: [Call::Idle, Call::Idle],
            asked: 0,
            gate: Gate::Nobody,
            batch: None,
            shown: Vec::new(),
            version: 0,
            log: Vec::new(),
            durable: 0,
            pin: 0,
            checkpoint: 0,
            redo_start: 0,
            leaf: [Leaf::default(); KEYS],
            leaf_dev: [Leaf::default(); KEYS],
            epoch: 1,
            super_epoch: 1,
            phase: Phase::Up,
            crashes: 0,
            effects: Vec::new(),
        }
    }

    /// The LSN of the last record.
    pub(super) fn end(&self) -> N {
        self.log.len() as N
    }

    /// The records behind LSN `from`, up to LSN `to`, with their LSNs.
    pub(super) fn records(&self, from: N, to: N) -> impl Iterator<Item = (N, &Record)> {
        (from + 1..=to).zip(&self.log[usize::from(from)..usize::from(to)])
    }

    /// `batch.at`; `None` without a batch.
    pub(super) fn at(&self) -> Option<At> {
        self.batch.as_ref().map(|batch| batch.at)
    }

    /// Whether a batch waits to be completed, with its gate open (`Unfinished`).
    pub(super) fn unfinished(&self) -> bool {
        self.batch.is_some() && self.gate == Gate::Nobody
    }

    /// `ShownFor`, if there is a change for the key.
    pub(super) fn shown_for(&self, key: u8) -> Option<Content> {
        let change = self.shown.iter().find(|change| change.key == key);
        change.map(|change| change.value)
    }

    /// Appends a record, and returns its LSN.
    pub(super) fn append(&mut self, kind: Kind, change: Change) -> N {
        self.log.push(Record {
            kind,
            epoch: self.epoch,
            change,
        });
        self.end()
    }

    /// The map after the first `n` records (`MapAfter`).
    pub(super) fn map_after(&self, n: N) -> Map {
        let effects = self.effects.iter().filter(|effect| effect.lsn <= n);
        let changes = effects.flat_map(|effect| &effect.changes);
        after([ABSENT; KEYS], changes)
    }

    /// `Redone`: the leaves after redoing the records behind the redo start up to `n`.
    pub(super) fn redone(&self, n: N) -> [Leaf; KEYS] {
        let mut leaves = self.leaf_dev;
        for (lsn, record) in self.records(self.redo_start, n) {
            let leaf = &mut leaves[place(record.change.key)];
            if record.kind == Kind::Put && leaf.lsn < lsn {
                let value = record.change.value;
                *leaf = Leaf { value, lsn };
            }
        }
        leaves
    }
}

/// `After`: a map after some changes.
fn after<'a>(mut map: Map, changes: impl IntoIterator<Item = &'a Change>) -> Map {
    for change in changes {
        map[place(change.key)] = change.value;
    }
    map
}

impl WriteBatch {
    /// `PendingAt`: the batch that recovery has to complete if the log ends at `n`.
    pub(super) fn pending_at(&self, s: &State, n: N) -> Vec<Change> {
        if self.bug == Bug::RecoveryForgetsBatch {
            return Vec::new();
        }
        let mut intents = Intents::default();
        for (_, record) in s.records(s.redo_start, n) {
            self.take_record(&mut intents, record);
        }
        intents.pending
    }

    /// Takes one more record of the log (`Take`).
    fn take_record(&self, intents: &mut Intents, record: &Record) {
        let (number, last) = match record.kind {
            Kind::Put => return,
            Kind::End => {
                if self.bug != Bug::BatchNeverEnds {
                    intents.pending.clear();
                }
                return;
            }
            Kind::Part { number, last } => (number, last),
        };
        let mut all = std::mem::take(&mut intents.begun);
        let next = std::mem::take(&mut intents.parts);
        if number == 0 {
            all.clear();
        } else if number != next {
            return;
        }
        all.push(record.change);
        if last || self.bug == Bug::BatchHappensIncomplete {
            intents.pending.clone_from(&all);
        }
        if !last {
            (intents.begun, intents.parts) = (all, number + 1);
        }
    }

    /// `Recovered`: what recovery makes of the leaves on the device and a log that ends at `n`.
    pub(super) fn recovered(&self, s: &State, n: N) -> Map {
        let leaves = s.redone(n).map(|leaf| leaf.value);
        after(leaves, &self.pending_at(s, n))
    }
}
