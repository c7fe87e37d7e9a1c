//! The mirror of `specs/write_batch/WriteBatch.tla`: atomic write batches
//! (`engine/src/store/batch.rs`).
//!
//! ```text
//! state.rs       the variables, and what the log says (BatchState.tla)
//! steps.rs       which actions are enabled (WriteBatch.tla)
//! effects.rs     what they do
//! invariants.rs  the invariants
//! values.rs      a state as TLA+ values
//! ```

mod effects;
mod invariants;
mod state;
mod steps;
mod values;

use self::invariants::INVARIANTS;
pub use self::state::{
    At, Batch, Call, Change, Effect, Gate, Kind, Leaf, Phase, Reading, Record, State, Writing,
};
use self::state::{CLIENTS, KEYS, N, WRITES};
use super::{Mirror, bounded, count, listed, model, named, subset};
use crate::{Config, ConfigError, Value};

/// A set of clients, keys or writes.
type Set = u8;

/// A step. Clients are numbered from 0, keys from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
pub enum Action {
    /// A client calls a get of a key.
    CallGet(u8, u8),
    /// A get takes what is shown for its key, or else notes the version.
    Look(u8),
    /// A get reads the leaf.
    ReadLeaf(u8),
    /// A get returns.
    AnswerGet(u8),
    /// A client calls the next write, of this key.
    CallWrite(u8, u8),
    /// A writer passes the gate.
    Pass(u8),
    /// A writer logs its record and changes its leaf.
    WriteOne(u8),
    /// A put, delete or batch is durable, and its client is told.
    Acknowledge(u8),
    /// A client calls the next write, a batch.
    CallBatch(u8),
    /// A client closes the gate.
    CloseGate(u8),
    /// The batch of a client begins.
    OpenBatch(u8),
    /// A part of an intent is logged.
    LogPart,
    /// A batch is refused while its intent is being logged.
    Refuse(u8),
    /// The changes of the batch are shown.
    Show,
    /// One change is made.
    MakeChange,
    /// The log runs short, and the intent is to be logged once more.
    RenewIntent,
    /// The log before the new intent is free.
    FreeOldIntent,
    /// The end of the batch is logged.
    LogEnd,
    /// The changes are hidden again.
    Hide(u8),
    /// The batch cannot be completed now.
    StopShort(u8),
    /// The log is flushed.
    FlushLog,
    /// A dirty leaf is written.
    WriteBack(u8),
    /// A checkpoint begins.
    BeginCheckpoint,
    /// The redo start moves to where the checkpoint began.
    FinishCheckpoint,
    /// A power failure. The log is left up to this LSN.
    Crash(N),
    /// Recovery redoes the log.
    Redo,
    /// Recovery makes its epoch durable.
    WriteEpoch,
    /// Recovery has completed the batch.
    FinishRecovery,
}

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Bug {
    /// The correct protocol.
    None,
    /// Changes are made that no intent has announced.
    BatchMadeBeforeIntent,
    /// An intent whose last part is missing counts as complete.
    BatchHappensIncomplete,
    /// A batch that has ended is made again.
    BatchNeverEnds,
    /// The record that ends a batch comes before its last change.
    BatchEndsEarly,
    /// A batch whose changes were cut short is left as it is.
    RecoveryForgetsBatch,
    /// Recovery appends under an epoch that is not durable.
    RecoverySkipsEpoch,
    /// A checkpoint frees the intent of the batch that is being made.
    CheckpointIgnoresBatch,
    /// The intent of a batch is freed before the one that replaces it is in the log.
    BatchMovesBeforeIntent,
    /// Readers see one change of a batch after the other.
    BatchShownPiecemeal,
    /// Writers do not complete a batch that could not be completed.
    UnfinishedBatchForgotten,
    /// Writers do not wait for the batch that is being made.
    WritersPassClosedGate,
    /// A batch does not wait for the writers that have passed.
    BatchDoesNotWait,
    /// A write or batch is acknowledged as soon as it is logged.
    AcksAtOnce,
    /// A batch that was cut short is reported as refused.
    RefusedShows,
}

/// The module with its constants. Sets of clients, keys and writes are bit sets.
#[derive(Clone, Debug)]
pub struct WriteBatch {
    clients: Vec<Value>,
    keys: u8,
    values: N,
    absent: Value,
    pending: Value,
    room: N,
    spare: N,
    resumes: bool,
    bug: Bug,
    batched: Set,
    deletes: Set,
    batchers: Set,
    writers: Set,
    write_keys: Set,
    readers: Set,
    read_keys: Set,
    refuses: bool,
    stopped: bool,
    max_crashes: N,
    invariants: Vec<&'static str>,
}

model!(WriteBatch, |_| State::initial());

impl Mirror for WriteBatch {
    const SPEC: &'static str = "WriteBatch";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let operators = [
            "ChangesOf",
            "MayGet",
            "MayWrite",
            "MayBatch",
            "MayRefuse",
            "MayStop",
            "MayCrash",
        ];
        bounded(config, &operators)?;
        let clients = config.members("Clients", CLIENTS)?;
        let keys = count(config, "Keys", KEYS)?;
        let values = count(config, "Values", WRITES)?;
        let numbers = |most: usize| (1..=most as i64).map(Value::Int).collect::<Vec<_>>();
        let (writes, places) = (numbers(values), numbers(keys));
        Ok(Self {
            keys: keys as u8,
            values: values as N,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            room: config.int("Room", u8::MAX)?,
            spare: config.int("Spare", u8::MAX)?,
            resumes: config.bool("Resumes")?,
            bug: named(config, "Bug")?,
            batched: subset(config, "Batched", &writes)?,
            deletes: subset(config, "Deletes", &writes)?,
            batchers: subset(config, "Batchers", &clients)?,
            writers: subset(config, "Writers", &clients)?,
            write_keys: subset(config, "WriteKeys", &places)?,
            readers: subset(config, "Readers", &clients)?,
            read_keys: subset(config, "ReadKeys", &places)?,
            refuses: config.bool("Refuses")?,
            stopped: config.bool("Stopped")?,
            max_crashes: config.int("MaxCrashes", u8::MAX)?,
            invariants: listed(config, &INVARIANTS)?,
            clients,
        })
    }

    fn label(action: &Action) -> &'static str {
        action.into()
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.values_of(state)
    }
}
