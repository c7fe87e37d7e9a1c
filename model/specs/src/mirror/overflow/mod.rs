//! The mirror of `specs/overflow/Overflow.tla`: long values on blocks of their own
//! (`engine/src/overflow`).
//!
//! ```text
//! state.rs       the variables, and what the log says of them (OverflowState.tla)
//! steps.rs       the actions (Overflow.tla)
//! invariants.rs  what must hold in every state
//! values.rs      a state as TLA+ values
//! ```

mod invariants;
mod state;
mod steps;
mod values;

use stateright::{Model, Property};

use self::invariants::INVARIANTS;
pub use self::state::{
    Block, Call, Entry, Leaf, Pointer, Reading, Record, Retired, State, Writing,
};
use super::overflow_room as room;
use super::{Mirror, bounded, count, listed, named, properties, subset};
use crate::{Config, ConfigError, Value};
use room::{BLOCKS, CLIENTS, KEYS, LOG, N, Set};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client asks for the next write, of a key.
    CallWrite(u8, u8),
    /// The blocks of its value are written, to these.
    WriteBlocks(u8, Set),
    /// It takes effect, in log and leaf.
    AppendRecord(u8),
    /// It is durable, and its client is told.
    Acknowledge(u8),
    /// A client asks for a key.
    CallGet(u8, u8),
    /// A get copies the record of the leaf.
    CopyRecord(u8),
    /// It reads a block.
    ReadBlock(u8),
    /// A block was not the value's: it looks at the leaf again.
    LookAgain(u8),
    /// It has its answer.
    AnswerGet(u8),
    /// The value that the record with this LSN let go of is trimmed, and its blocks are free.
    FreeValue(N),
    /// What the log's next records name is durable.
    ForceValues,
    /// They are written.
    WriteLog,
    /// And durable.
    FlushLog,
    /// A dirty leaf is written.
    WriteBack(u8),
    /// Redo will begin later.
    Checkpoint,
    /// The power goes; the log is left up to the first number, and the digits of the second, in
    /// base of the versions of each block, say which of them is left.
    Crash(N, u32),
    /// A record is done again.
    RedoRecord,
    /// Redo writes a page to a block.
    RedoPage(u8),
    /// All is done again, and what is free is known.
    FinishRedo,
}

/// The seeded bugs; see the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The protocol as it is meant.
    None,
    /// The log's flush flushes nothing before it writes.
    NotFlushedBeforeLog,
    /// It writes records appended after that.
    WritesWhatCameLater,
    /// Blocks are free before the record that replaced their pointer is durable.
    FreedAtOnce,
    /// Blocks are taken when their record is appended.
    TakesLate,
    /// A reader takes any block for its value's.
    BlockUnchecked,
    /// Or any but the first.
    OnlyFirstChecked,
    /// It says "damaged" without a look at the record.
    TellsAtOnce,
    /// Values are named anew from 1 after a crash.
    NamesAgain,
    /// No WAL rule.
    PageBeforeLog,
    /// The redo start overtakes the leaves.
    CheckpointSkipsFlush,
    /// Redo keeps off what leaves name by now only.
    RedoMovesOver,
    /// Not all is redone.
    StopsRedoEarly,
    /// Recovery does not look at leaves that redo did not change.
    TakesRedoneOnly,
    /// It takes what looks like a value's block.
    TakesWhatLooksSo,
}

const BUGS: [(&str, Bug); 15] = [
    ("none", Bug::None),
    ("not-flushed-before-log", Bug::NotFlushedBeforeLog),
    ("writes-what-came-later", Bug::WritesWhatCameLater),
    ("freed-at-once", Bug::FreedAtOnce),
    ("takes-late", Bug::TakesLate),
    ("block-unchecked", Bug::BlockUnchecked),
    ("only-first-checked", Bug::OnlyFirstChecked),
    ("tells-at-once", Bug::TellsAtOnce),
    ("names-again", Bug::NamesAgain),
    ("page-before-log", Bug::PageBeforeLog),
    ("checkpoint-skips-flush", Bug::CheckpointSkipsFlush),
    ("redo-moves-over", Bug::RedoMovesOver),
    ("stops-redo-early", Bug::StopsRedoEarly),
    ("takes-redone-only", Bug::TakesRedoneOnly),
    ("takes-what-looks-so", Bug::TakesWhatLooksSo),
];

/// The module with its constants. Sets of clients, keys, blocks and writes are bit sets.
#[derive(Clone, Debug)]
pub struct Overflow {
    clients: Vec<Value>,
    keys: Vec<Value>,
    values: N,
    blocks: u8,
    absent: Value,
    pending: Value,
    bug: Bug,
    deletes: Set,
    shorts: Set,
    pairs: Set,
    home: u8,
    at_home: Set,
    writers: Set,
    readers: Set,
    read_keys: Set,
    moved: Set,
    max_crashes: N,
    invariants: Vec<&'static str>,
}

impl Overflow {
    /// All blocks.
    fn all_blocks(&self) -> Set {
        (1 << self.blocks) - 1
    }
}

impl Model for Overflow {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::initial(self.all_blocks())]
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

impl Mirror for Overflow {
    const SPEC: &'static str = "Overflow";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(
            config,
            &["Size", "MayGet", "MayWrite", "MayMove", "MayCrash"],
        )?;
        let clients = config.members("Clients", CLIENTS)?;
        let keys = config.members("Keys", KEYS)?;
        let values = count(config, "Values", LOG)?;
        let blocks = count(config, "Blocks", BLOCKS)?;
        let numbers = |most: usize| (1..=most as i64).map(Value::Int).collect::<Vec<_>>();
        let (writes, places) = (numbers(values), numbers(blocks));
        let home = config.constant_value("Home")?;
        let home = keys.iter().position(|key| key == home);
        let invariants = listed(config, &INVARIANTS)?;
        Ok(Self {
            values: values as N,
            blocks: blocks as u8,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            bug: named(config, "Bug", &BUGS)?,
            deletes: subset(config, "Deletes", &writes)?,
            shorts: subset(config, "Shorts", &writes)?,
            pairs: subset(config, "Pairs", &writes)?,
            home: home.ok_or_else(|| config.wrong("Home", "expected one of Keys"))? as u8,
            at_home: subset(config, "AtHome", &writes)?,
            writers: subset(config, "Writers", &clients)?,
            readers: subset(config, "Readers", &clients)?,
            read_keys: subset(config, "ReadKeys", &keys)?,
            moved: subset(config, "Moved", &places)?,
            max_crashes: config.int("MaxCrashes", u8::MAX)?,
            invariants: invariants.into_iter().map(|(name, _)| *name).collect(),
            clients,
            keys,
        })
    }

    fn label(action: &Action) -> &'static str {
        match action {
            Action::CallWrite(..) => "CallWrite",
            Action::WriteBlocks(..) => "WriteBlocks",
            Action::AppendRecord(..) => "AppendRecord",
            Action::Acknowledge(..) => "Acknowledge",
            Action::CallGet(..) => "CallGet",
            Action::CopyRecord(..) => "CopyRecord",
            Action::ReadBlock(..) => "ReadBlock",
            Action::LookAgain(..) => "LookAgain",
            Action::AnswerGet(..) => "AnswerGet",
            Action::FreeValue(..) => "FreeValue",
            Action::ForceValues => "ForceValues",
            Action::WriteLog => "WriteLog",
            Action::FlushLog => "FlushLog",
            Action::WriteBack(..) => "WriteBack",
            Action::Checkpoint => "Checkpoint",
            Action::Crash(..) => "Crash",
            Action::RedoRecord => "RedoRecord",
            Action::RedoPage(..) => "RedoPage",
            Action::FinishRedo => "FinishRedo",
        }
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.values_of(state)
    }
}
