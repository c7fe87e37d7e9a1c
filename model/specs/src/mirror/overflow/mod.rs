//! The mirror of `specs/overflow/Overflow.tla`: long values on blocks of their own
//! (`engine/src/overflow`).
//!
//! ```text
//! state.rs       the variables, and what follows from the log (OverflowState.tla)
//! steps.rs       the actions (Overflow.tla)
//! invariants.rs  the invariants
//! values.rs      a state as TLA+ values
//! ```

mod invariants;
mod state;
mod steps;
mod values;

use self::invariants::INVARIANTS;
pub use self::state::{
    Block, Call, Entry, Leaf, Phase, Pointer, Reading, Record, Retired, State, Writing,
};
use super::overflow_room as room;
use super::{Discards, Mirror, bounded, count, listed, model, named, subset};
use crate::{Config, ConfigError, Value};
use room::{BLOCKS, CLIENTS, KEYS, LOG, N, Set};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
pub enum Action {
    /// A client calls the next write, of this key.
    CallWrite(u8, u8),
    /// The value of a write is written to these blocks.
    WriteBlocks(u8, Set),
    /// A write takes effect: its record is in the log and in the leaf.
    AppendRecord(u8),
    /// A write is durable, and its client is told.
    Acknowledge(u8),
    /// A client calls a get of a key.
    CallGet(u8, u8),
    /// A get copies the leaf's record.
    CopyRecord(u8),
    /// A get reads a block.
    ReadBlock(u8),
    /// A block that a get read did not belong to the value, so it reads the leaf again.
    LookAgain(u8),
    /// A get returns.
    AnswerGet(u8),
    /// The value that the record with this LSN replaced is trimmed, and its blocks are free.
    FreeValue(N),
    /// The values that the log's next records name are made durable.
    ForceValues,
    /// The log records are written.
    WriteLog,
    /// The log records are durable.
    FlushLog,
    /// A dirty leaf is written.
    WriteBack(u8),
    /// The redo start moves forward.
    Checkpoint,
    /// A power failure. The log is left up to the first number. The digits of the second, in base
    /// of the number of each block's versions, select the version of each block that is left.
    Crash(N, u32),
    /// The process ends and is restarted, and the device lives on. The log is left up to this number.
    Restart(N),
    /// Recovery redoes a record.
    RedoRecord,
    /// Redo writes a page to a block.
    RedoPage(u8),
    /// Redo is complete, and the free blocks are known.
    FinishRedo,
}

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Bug {
    /// The correct protocol.
    None,
    /// The flush of the log does not flush the values before it writes.
    NotFlushedBeforeLog,
    /// The flush of the log also writes records that were appended after the values were flushed.
    WritesWhatCameLater,
    /// Blocks become free before the record that replaced their pointer is durable.
    FreedAtOnce,
    /// Blocks are taken only when their record is appended.
    TakesLate,
    /// A reader does not check that a block belongs to its value.
    BlockUnchecked,
    /// A reader checks only the first block.
    OnlyFirstChecked,
    /// A reader reports damage without reading the record again.
    TellsAtOnce,
    /// After a crash values are numbered from 1 again.
    NamesAgain,
    /// No WAL rule.
    PageBeforeLog,
    /// The redo start overtakes the leaves.
    CheckpointSkipsFlush,
    /// Redo avoids only the blocks that leaves name at that moment.
    RedoMovesOver,
    /// Some records are not redone.
    StopsRedoEarly,
    /// Recovery ignores leaves that redo did not change.
    TakesRedoneOnly,
    /// Recovery takes every block that looks like a value's.
    TakesWhatLooksSo,
    /// A write is acknowledged as soon as its record is appended.
    AcksAtOnce,
    /// After the end of the process, what recovery reads is not flushed.
    TrustsWhatItReads,
}

/// The module with its constants. Sets of clients, keys, blocks and writes are bit sets.
#[derive(Clone, Debug)]
pub struct Overflow {
    clients: Vec<Value>,
    keys: Vec<Value>,
    values: N,
    blocks: u8,
    absent: Value,
    pending: Value,
    discards: Discards,
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
    max_restarts: N,
    invariants: Vec<&'static str>,
}

impl Overflow {
    /// All blocks.
    fn all_blocks(&self) -> Set {
        (1 << self.blocks) - 1
    }
}

model!(Overflow, |it| State::initial(it.all_blocks()));

impl Mirror for Overflow {
    const SPEC: &'static str = "Overflow";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(
            config,
            &[
                "Size",
                "MayGet",
                "MayWrite",
                "MayMove",
                "MayCrash",
                "MayRestart",
            ],
        )?;
        let clients = config.members("Clients", CLIENTS)?;
        let keys = config.members("Keys", KEYS)?;
        let values = count(config, "Values", LOG)?;
        let blocks = count(config, "Blocks", BLOCKS)?;
        let numbers = |most: usize| (1..=most as i64).map(Value::Int).collect::<Vec<_>>();
        let (writes, places) = (numbers(values), numbers(blocks));
        let home = config.constant_value("Home")?;
        let home = keys.iter().position(|key| key == home);
        Ok(Self {
            values: values as N,
            blocks: blocks as u8,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            discards: named(config, "Discards")?,
            bug: named(config, "Bug")?,
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
            max_restarts: config.int("MaxRestarts", u8::MAX)?,
            invariants: listed(config, &INVARIANTS)?,
            clients,
            keys,
        })
    }

    fn label(action: &Action) -> &'static str {
        action.into()
    }

    fn variables(&self, state: &State) -> Vec<(&'static str, Value)> {
        self.values_of(state)
    }
}
