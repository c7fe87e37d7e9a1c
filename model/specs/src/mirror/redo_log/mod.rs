//! The mirror of `specs/redo_log/RedoLog.tla`: the redo log, packed and sparse
//! (`engine/src/wal`).
//!
//! ```text
//! format.rs      what is on the device (LogFormat.tla)
//! reading.rs     how it is written and read (LogFormat.tla)
//! state.rs       the variables (RedoState.tla)
//! verdict.rs     the initial state, and the verdict on what is read (RedoState.tla)
//! steps.rs       the actions (RedoLog.tla)
//! recovery.rs    crashes, restarts, decay and recovery (RedoState.tla, RedoLog.tla)
//! invariants.rs  the invariants, and what must be reachable
//! values.rs      a state as TLA+ values
//! situation.rs   describes the part of a state that a step depends on
//! unbounded.rs   the mirror as the judge of a recording
//! ```
//!
//! A state has vectors, not arrays, since the number of units in a block is a constant.

mod format;
mod invariants;
mod reading;
mod recovery;
mod situation;
mod state;
mod steps;
pub mod unbounded;
mod values;
mod verdict;

use self::format::N;
pub use self::format::{Block, Content, Entry, Super, Unit};
use self::invariants::INVARIANTS;
pub use self::state::{Call, Packing, Phase, State, Step, Verdict};
use super::{Mirror, bounded, count, listed, named, properties};
use crate::{Config, ConfigError, Value};

/// A step. Clients and places are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
pub enum Action {
    /// A client asks for a record of this length to be appended.
    CallAppend(usize, u32),
    /// The record gets its place in the buffer.
    AppendRecord(usize),
    /// The ring has no room for it.
    RefuseAppend(usize),
    /// The record is durable, and its client is told.
    Acknowledge(usize),
    /// A client does not wait any more.
    Leave(usize),
    /// After a failed flush, a client is told that its call has failed.
    FailCall(usize),
    /// Everything appended is written.
    WriteLog,
    /// It is durable.
    CompleteFlush,
    /// A flush fails.
    FailFlush,
    /// The write of a flush or witness fails. The binary digits of the number select which of its
    /// places, in order, are read as they were before.
    FailWrite(usize),
    /// A checkpoint begins.
    BeginCheckpoint,
    /// Its superblock is written.
    WriteSuper,
    /// The superblock is flushed, and the log before the redo start is given up.
    FinishCheckpoint,
    /// A store that is closed writes a witness.
    WriteWitness,
    /// The witness is flushed, and the process ends.
    Close,
    /// A power failure. The digits of the number select what is left of each place, in base of the
    /// number of its choices.
    Crash(usize),
    /// The process ends, and the device lives on.
    Restart,
    /// A block decays.
    Rot(usize),
    /// Recovery reads the log. The new life writes its log in this form.
    OpenLog(Packing),
    /// What was read is flushed.
    FlushAgain,
    /// Recovery marks the end of the log.
    MarkEnd,
    /// The mark is flushed.
    FlushMark,
    /// The new epoch is written to the superblock. Tells whether redo begins at its start from then
    /// on.
    RecordEpoch(bool),
    /// The store is up.
    Open,
}

/// The names of all actions.
pub const LABELS: &[&str] = <Action as strum::VariantNames>::VARIANTS;

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Bug {
    None,
    AcksAtOnce,
    RefusedShows,
    AcksBeforeFlush,
    RetriesFailedFlush,
    TrustsWhatItReads,
    TrustsTheEnd,
    MarksEndEarly,
    GoesOnInBlock,
    KnowsNoClosed,
    SuspectsClosed,
    CountsNoUnforced,
    LooksNotAhead,
    LeavesNoWitness,
    ReadsWitness,
    BelievesTornBlock,
    ReplaysOldLap,
    OverrunsLog,
    ReadsPastHole,
    KeepsEpoch,
    ReadsOlderEpoch,
    CarriesIntoEpoch,
    RecordsNoEpoch,
    SuperBeforeLog,
    FreesBeforeSuper,
}

/// The module with its constants.
#[derive(Clone, Debug)]
pub struct RedoLog {
    clients: Vec<Value>,
    /// Units in a block.
    units: N,
    /// Blocks on the device.
    ring: N,
    packings: Vec<Packing>,
    tears_at_sectors: bool,
    bug: Bug,
    records: N,
    lengths: Vec<N>,
    leaves: bool,
    checkpoints: N,
    closes: bool,
    max_crashes: N,
    max_restarts: N,
    switches: bool,
    flushes_fail: bool,
    /// Whether the model chooses what failed writes leave, if flushes fail.
    writes_fail: bool,
    max_rotten: N,
    invariants: Vec<&'static str>,
}

impl stateright::Model for RedoLog {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let packings = self.packings.iter();
        packings.map(|packing| self.initial(*packing)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.enabled(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.take(&mut next, action);
        Some(next)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        properties(&INVARIANTS, &self.invariants)
    }
}

/// The bounds that a configuration must set.
const BOUNDS: [&str; 8] = [
    "MayAppend",
    "MayLeave",
    "MayCheckpoint",
    "MayClose",
    "MayFail",
    "MayCrash",
    "MayRestart",
    "MayRot",
];

impl Mirror for RedoLog {
    const SPEC: &'static str = "RedoLog";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(config, &BOUNDS)?;
        let most = |name, most| config.int(name, most).map(N::from);
        let at_least = |name, least: u8| match config.int(name, 16)? {
            n if n < least => Err(config.wrong(name, format!("expected {least} or more"))),
            n => Ok(N::from(n)),
        };
        let packing = |value: &Value| match value {
            Value::Str(text) => text.parse().ok(),
            _ => None,
        };
        let packings = config.members("Packings", 2)?;
        let packings: Option<Vec<Packing>> = packings.iter().map(packing).collect();
        let packings = packings.filter(|packings| !packings.is_empty());
        let unknown = || config.wrong("Packings", "expected \"packed\", \"sparse\", or both");
        let length = |value: &Value| match value {
            Value::Int(len) => N::try_from(*len).ok().filter(|len| *len > 0),
            _ => None,
        };
        let lengths = config.members("Lengths", 16)?;
        let lengths: Option<Vec<N>> = lengths.iter().map(length).collect();
        let odd = || config.wrong("Lengths", "expected lengths of one unit or more");
        let tears_at_sectors = match config.string("Tears")? {
            "block" => false,
            "sector" => true,
            _ => return Err(config.wrong("Tears", "expected \"block\" or \"sector\"")),
        };
        Ok(Self {
            clients: config.members("Clients", 4)?,
            units: at_least("Units", 1)?,
            ring: at_least("Ring", 2)?,
            packings: packings.ok_or_else(unknown)?,
            tears_at_sectors,
            bug: named(config, "Bug")?,
            records: count(config, "Records", 16)? as N,
            lengths: lengths.ok_or_else(odd)?,
            leaves: config.bool("Leaves")?,
            checkpoints: most("Checkpoints", u8::MAX)?,
            closes: config.bool("Closes")?,
            max_crashes: most("MaxCrashes", u8::MAX)?,
            max_restarts: most("MaxRestarts", u8::MAX)?,
            switches: config.bool("Switches")?,
            flushes_fail: config.bool("FlushesFail")?,
            writes_fail: config.bool("FlushesFail")?,
            max_rotten: most("MaxRotten", u8::MAX)?,
            invariants: listed(config, &INVARIANTS)?,
        })
    }

    fn label(action: &Action) -> &'static str {
        action.into()
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.values_of(state)
    }
}
