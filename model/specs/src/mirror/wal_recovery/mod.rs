//! The mirror of `specs/wal_recovery/WalRecovery.tla`: logging, checkpoints and recovery (Bf-Tree
//! §5.7).
//!
//! ```text
//! state.rs       the variables (WalState.tla), places with their versions (Device.tla)
//! reading.rs     how recovery reads a device's blocks (LogBlocks.tla, WalState.tla)
//! steps.rs       the actions (GroupCommit.tla, WalRecovery.tla)
//! invariants.rs  the invariants
//! inductive/     an inductive invariant (IndWalRecovery.tla)
//! values.rs      a state as TLA+ values
//! promised.rs    what a crash must leave
//! unbounded.rs   the mirror as the judge of a recording
//! ```

mod inductive;
mod invariants;
mod promised;
mod reading;
mod state;
mod steps;
pub mod unbounded;
mod values;

use self::invariants::INVARIANTS;
pub use self::state::{
    At, Block, Call, Checkpoint, Image, Lost, Phase, Record, Scalars, State, Superblock, Verdict,
    Versions,
};
use super::wal_recovery_room as room;
use super::{Mirror, bounded, listed, model, named, subset};
use crate::{Config, ConfigError, Value};
use room::{CLIENTS, KEYS, N, PER_BLOCK, PLACES, Set, VALUES};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
pub enum Action {
    /// A client calls a get of a key.
    CallGet(u8, u8),
    /// A client calls the next write, of this key.
    CallWrite(u8, u8),
    /// A get reads its page.
    ReadPage(u8),
    /// A get returns.
    AnswerGet(u8),
    /// A write takes effect: its record is appended to the log buffer.
    AppendLog(u8),
    /// A write changes its page in memory.
    ChangePage(u8),
    /// A write is durable, and its client is told.
    Acknowledge(u8),
    /// A write failed, and its client is told.
    ReportFailure(u8),
    /// A client leads a group flush.
    FlushLog(u8),
    /// The group flush completes.
    CompleteFlush,
    /// A flush fails.
    FailFlush,
    /// A dirty page is written.
    WriteBack(u8),
    /// A clean page is read from the device again.
    Reload(u8),
    /// A checkpoint begins.
    BeginCheckpoint,
    /// The page images of a checkpoint are durable.
    FlushPages,
    /// The superblock of a checkpoint is written.
    WriteSuperblock,
    /// The superblock of a checkpoint is durable.
    FlushSuperblock,
    /// The log before the checkpoint is given up.
    TruncateLog,
    /// A power failure. The digits of the number, in base of the number of each block's versions,
    /// select the version of each block that is left.
    Crash(u16),
    /// The process is restarted.
    Restart,
    /// Recovery reads the superblock.
    LoadSuperblock,
    /// Recovery redoes a record.
    RedoRecord,
    /// All records are redone.
    FinishRedo,
    /// The store is open.
    FinishRecovery,
}

/// The names of all actions.
pub const LABELS: &[&str] = <Action as strum::VariantNames>::VARIANTS;

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Bug {
    /// The correct protocol.
    None,
    /// A write is acknowledged when its record is appended.
    AcksBeforeFlush,
    /// After a failed flush, a client that waits for it is told that its write is durable.
    AcksWhenPoisoned,
    /// After a failed flush, a client is told that its write, which is logged, has not happened.
    RefusedShows,
    /// A flush acknowledges records that were appended after it began.
    AcksWhatCameLater,
    /// A failed flush is retried.
    RetriesFailedFlush,
    /// The room left in the ring is not checked.
    OverrunsLog,
    /// No WAL rule.
    PageBeforeLog,
    /// A page is marked clean without being written.
    CleanWithoutWrite,
    /// A page is evicted without being written.
    EvictsDirty,
    /// Only the last change that dirtied a page is remembered.
    DirtiedMoves,
    /// A checkpoint does not wait for writes in progress.
    SkipsQuiesce,
    /// Redo begins where the log ended when the checkpoint ended.
    RedoStartsLate,
    /// The superblock is written before the pages are durable.
    CheckpointSkipsFlush,
    /// The log is truncated before the superblock is durable.
    TruncatesEarly,
    /// The log's last block is not read.
    StopsBeforeLast,
    /// Reading the log continues after a hole.
    ReadsPastHole,
    /// Blocks of an earlier lap are read.
    ReplaysOldLap,
    /// Recovery does not begin a new epoch.
    KeepsEpoch,
    /// In recovery, the superblock is written before the pages are durable.
    RecoverySkipsFlush,
    /// Some records are not redone.
    StopsRedoEarly,
    /// Unflushed versions that a failed flush forgot are trusted.
    TrustsWhatItReads,
    /// Redo ignores the page's LSN.
    PublishedRedoAlways,
    /// A completed flush does not wake all waiting clients.
    SleepsThrough,
    /// No flush is started by a timeout.
    WaitsForFullBuffer,
    /// The checkpoint waits for clients that wait for it.
    QuiescesWhoWaitsForRoom,
}

/// Whether a get waits until what it returns is durable, and whether the loss of what it returned
/// counts as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum Reads {
    /// A get does not wait, and a loss is no error.
    Free,
    /// A get does not wait, and a loss is an error.
    Judged,
    /// A get waits, and a loss is an error.
    Wait,
}

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

model!(WalRecovery, |_| State::initial());

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
        Ok(Self {
            values: values.len() as N,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            per_block,
            ring_blocks,
            reads: named(config, "Reads")?,
            bug: named(config, "Bug")?,
            deletes: subset(config, "Deletes", &values)?,
            odd: subset(config, "Odd", &clients)?,
            odd_keys: subset(config, "OddKeys", &keys)?,
            readers: subset(config, "Readers", &clients)?,
            read_keys: subset(config, "ReadKeys", &keys)?,
            max_crashes: N::from(config.int("MaxCrashes", u8::MAX)?),
            flushes_fail: config.bool("FlushesFail")?,
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
