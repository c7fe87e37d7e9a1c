//! The mirror of `specs/wal_recovery/WalRecovery.tla`: logging, checkpoints and recovery (Bf-Tree
//! §5.7).
//!
//! ```text
//! state.rs       the variables (WalState.tla), places with their versions (Device.tla)
//! reading.rs     what recovery makes of a device's blocks (LogBlocks.tla, WalState.tla)
//! steps.rs       the actions (GroupCommit.tla, WalRecovery.tla)
//! invariants.rs  what must hold in every state
//! values.rs      a state as TLA+ values
//! unbounded.rs   the mirror as the judge of a recording
//! ```

mod invariants;
mod reading;
mod state;
mod steps;
pub mod unbounded;
mod values;

use stateright::{Model, Property};

use self::invariants::INVARIANTS;
pub use self::state::{
    At, Block, Call, Checkpoint, Image, Lost, Phase, Record, Scalars, State, Superblock, Verdict,
    Versions,
};
use super::wal_recovery_room as room;
use super::{Mirror, bounded, listed, properties, subset};
use crate::{Config, ConfigError, Value};
use room::{CLIENTS, KEYS, N, PER_BLOCK, PLACES, Set, VALUES};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client asks for a key.
    CallGet(u8, u8),
    /// A client asks for the next write, of a key.
    CallWrite(u8, u8),
    /// A get looks at its page.
    ReadPage(u8),
    /// It has its answer.
    AnswerGet(u8),
    /// A write takes effect: its record is in the log buffer.
    AppendLog(u8),
    /// Its page in memory changes.
    ChangePage(u8),
    /// It is durable, and its client is told.
    Acknowledge(u8),
    /// Its client is told that it failed.
    ReportFailure(u8),
    /// A client leads a group flush.
    FlushLog(u8),
    /// It is over.
    CompleteFlush,
    /// A flush fails.
    FailFlush,
    /// A dirty page is written.
    WriteBack(u8),
    /// A clean page is read again.
    Reload(u8),
    /// A checkpoint begins.
    BeginCheckpoint,
    /// Its page images are durable.
    FlushPages,
    /// Its superblock is written.
    WriteSuperblock,
    /// And durable.
    FlushSuperblock,
    /// The log before it is given up.
    TruncateLog,
    /// The power goes; the digits of the number, in base of the versions of each block, say which
    /// of them is left.
    Crash(u16),
    /// The process is started again.
    Restart,
    /// Recovery begins.
    LoadSuperblock,
    /// A record is done again.
    RedoRecord,
    /// All of them are.
    FinishRedo,
    /// The store is up.
    FinishRecovery,
}

/// The names of all actions.
pub const LABELS: [&str; 24] = [
    "CallGet",
    "CallWrite",
    "ReadPage",
    "AnswerGet",
    "AppendLog",
    "ChangePage",
    "Acknowledge",
    "ReportFailure",
    "FlushLog",
    "CompleteFlush",
    "FailFlush",
    "WriteBack",
    "Reload",
    "BeginCheckpoint",
    "FlushPages",
    "WriteSuperblock",
    "FlushSuperblock",
    "TruncateLog",
    "Crash",
    "Restart",
    "LoadSuperblock",
    "RedoRecord",
    "FinishRedo",
    "FinishRecovery",
];

/// The seeded bugs; see the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The protocol as it is meant.
    None,
    /// Acknowledged when appended.
    AcksBeforeFlush,
    /// Acknowledged by a flush that began earlier.
    AcksWhatCameLater,
    /// A failed flush is tried again.
    RetriesFailedFlush,
    /// No look at the ring's room.
    OverrunsLog,
    /// No WAL rule.
    PageBeforeLog,
    /// Clean, but not written.
    CleanWithoutWrite,
    /// Evicted, but not written.
    EvictsDirty,
    /// Only the last change is remembered.
    DirtiedMoves,
    /// Writes under way are not waited for.
    SkipsQuiesce,
    /// Redo begins where the log ends when the checkpoint does.
    RedoStartsLate,
    /// The superblock overtakes the pages.
    CheckpointSkipsFlush,
    /// The truncation overtakes the superblock.
    TruncatesEarly,
    /// The log's last block is not read.
    StopsBeforeLast,
    /// The log is read on behind a hole.
    ReadsPastHole,
    /// Old blocks are read.
    ReplaysOldLap,
    /// No new epoch.
    KeepsEpoch,
    /// The superblock overtakes the pages, in recovery.
    RecoverySkipsFlush,
    /// Not all is redone.
    StopsRedoEarly,
    /// What a failed flush forgot is believed.
    TrustsWhatItReads,
    /// Redo ignores the page's LSN.
    PublishedRedoAlways,
    /// Not all are woken.
    SleepsThrough,
    /// No flush after an interval.
    WaitsForFullBuffer,
    /// The checkpoint waits for who waits for it.
    QuiescesWhoWaitsForRoom,
}

const BUGS: [(&str, Bug); 24] = [
    ("none", Bug::None),
    ("acks-before-flush", Bug::AcksBeforeFlush),
    ("acks-what-came-later", Bug::AcksWhatCameLater),
    ("retries-failed-flush", Bug::RetriesFailedFlush),
    ("overruns-log", Bug::OverrunsLog),
    ("page-before-log", Bug::PageBeforeLog),
    ("clean-without-write", Bug::CleanWithoutWrite),
    ("evicts-dirty", Bug::EvictsDirty),
    ("dirtied-moves", Bug::DirtiedMoves),
    ("skips-quiesce", Bug::SkipsQuiesce),
    ("redo-starts-late", Bug::RedoStartsLate),
    ("checkpoint-skips-flush", Bug::CheckpointSkipsFlush),
    ("truncates-early", Bug::TruncatesEarly),
    ("stops-before-last", Bug::StopsBeforeLast),
    ("reads-past-hole", Bug::ReadsPastHole),
    ("replays-old-lap", Bug::ReplaysOldLap),
    ("keeps-epoch", Bug::KeepsEpoch),
    ("recovery-skips-flush", Bug::RecoverySkipsFlush),
    ("stops-redo-early", Bug::StopsRedoEarly),
    ("trusts-what-it-reads", Bug::TrustsWhatItReads),
    ("published-redo-always", Bug::PublishedRedoAlways),
    ("sleeps-through", Bug::SleepsThrough),
    ("waits-for-full-buffer", Bug::WaitsForFullBuffer),
    ("quiesces-who-waits-for-room", Bug::QuiescesWhoWaitsForRoom),
];

/// Whether a get waits until what it returns is durable, and whether it is held against the
/// protocol if that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Neither.
    Free,
    /// It does not wait.
    Judged,
    /// Both.
    Wait,
}

const READS: [(&str, Reads); 3] = [
    ("free", Reads::Free),
    ("judged", Reads::Judged),
    ("wait", Reads::Wait),
];

/// The module with its constants. Sets of clients, keys and writes are bit sets.
#[derive(Clone, Debug)]
pub struct WalRecovery {
    clients: Vec<Value>,
    keys: Vec<Value>,
    values: N,
    absent: Value,
    pending: Value,
    per_block: N,
    ring_blocks: N,
    reads: Reads,
    bug: Bug,
    deletes: Set,
    odd: Set,
    odd_keys: Set,
    readers: Set,
    read_keys: Set,
    max_crashes: N,
    flushes_fail: bool,
    invariants: Vec<&'static str>,
}

impl Model for WalRecovery {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::initial()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = *state;
        self.take(&mut next, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties(&INVARIANTS, &self.invariants)
    }
}

fn named<T: Copy>(config: &Config, constant: &str, known: &[(&str, T)]) -> Result<T, ConfigError> {
    let name = config.string(constant)?;
    let found = known.iter().find(|(known, _)| *known == name);
    found.map_or_else(
        || Err(config.wrong(constant, format!("the mirror knows no {name}"))),
        |(_, value)| Ok(*value),
    )
}

impl Mirror for WalRecovery {
    const SPEC: &'static str = "WalRecovery";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(config, &["MayGet", "MayWrite", "MayFail", "MayCrash"])?;
        let clients = config.members("Clients", CLIENTS)?;
        let keys = config.members("Keys", KEYS)?;
        let values = config.members("Values", usize::from(VALUES))?;
        if values
            != (1..=values.len() as i64)
                .map(Value::Int)
                .collect::<Vec<_>>()
        {
            return Err(config.wrong("Values", "expected 1, 2, ... without a gap"));
        }
        let per_block = N::from(config.int("PerBlock", PER_BLOCK as u8)?);
        let ring_blocks = N::from(config.int("RingBlocks", PLACES as u8)?);
        if per_block == 0 || usize::from(ring_blocks) != PLACES {
            let why = format!("the mirror takes {PLACES} blocks of 1 to {PER_BLOCK} records");
            return Err(config.wrong("RingBlocks", why));
        }
        let invariants = listed(config, &INVARIANTS)?;
        Ok(Self {
            values: values.len() as N,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            per_block,
            ring_blocks,
            reads: named(config, "Reads", &READS)?,
            bug: named(config, "Bug", &BUGS)?,
            deletes: subset(config, "Deletes", &values)?,
            odd: subset(config, "Odd", &clients)?,
            odd_keys: subset(config, "OddKeys", &keys)?,
            readers: subset(config, "Readers", &clients)?,
            read_keys: subset(config, "ReadKeys", &keys)?,
            max_crashes: N::from(config.int("MaxCrashes", u8::MAX)?),
            flushes_fail: config.bool("FlushesFail")?,
            invariants: invariants.into_iter().map(|(name, _)| *name).collect(),
            clients,
            keys,
        })
    }

    fn label(action: &Action) -> &'static str {
        match action {
            Action::CallGet(..) => "CallGet",
            Action::CallWrite(..) => "CallWrite",
            Action::ReadPage(..) => "ReadPage",
            Action::AnswerGet(..) => "AnswerGet",
            Action::AppendLog(..) => "AppendLog",
            Action::ChangePage(..) => "ChangePage",
            Action::Acknowledge(..) => "Acknowledge",
            Action::ReportFailure(..) => "ReportFailure",
            Action::FlushLog(..) => "FlushLog",
            Action::CompleteFlush => "CompleteFlush",
            Action::FailFlush => "FailFlush",
            Action::WriteBack(..) => "WriteBack",
            Action::Reload(..) => "Reload",
            Action::BeginCheckpoint => "BeginCheckpoint",
            Action::FlushPages => "FlushPages",
            Action::WriteSuperblock => "WriteSuperblock",
            Action::FlushSuperblock => "FlushSuperblock",
            Action::TruncateLog => "TruncateLog",
            Action::Crash(..) => "Crash",
            Action::Restart => "Restart",
            Action::LoadSuperblock => "LoadSuperblock",
            Action::RedoRecord => "RedoRecord",
            Action::FinishRedo => "FinishRedo",
            Action::FinishRecovery => "FinishRecovery",
        }
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.values_of(state)
    }
}
