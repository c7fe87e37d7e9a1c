//! The mirror of `specs/index_snapshot/IndexSnapshot.tla`: splits and merges of leaves, and the
//! snapshot of the index (`engine/src/trees/btree`, `engine/src/snapshot.rs`).
//!
//! ```text
//! state.rs       the variables (SnapshotState.tla)
//! redo.rs        what recovery reads, and redo (SnapshotState.tla)
//! tree.rs        clients, splits and merges, pages (SnapshotTree.tla)
//! steps.rs       checkpoints, crashes and recovery (IndexSnapshot.tla)
//! invariants.rs  the invariants, and what must be reachable
//! values.rs      a state as TLA+ values
//! situation.rs   describes the part of a state that a step depends on
//! unbounded.rs   the mirror as the judge of a recording
//! ```

mod invariants;
mod redo;
mod situation;
mod state;
mod steps;
mod tree;
pub mod unbounded;
mod values;

use super::index_snapshot_room as room;

use self::invariants::INVARIANTS;
pub use self::state::{
    Call, Change, Checkpoint, Entries, Entry, InSlot, Kind, Leaf, Phase, Record, Stage, State,
    Step, Super,
};
use super::{Mirror, bounded, count, listed, model, named, subset};
use crate::{Config, ConfigError, Value};
use room::{CLIENTS, KEYS, LOG, N, SLOTS, Set};

/// A step. Clients are numbered from 0, keys and slots from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
pub enum Action {
    /// A client calls a get of a key.
    CallGet(u8, u8),
    /// A client calls a scan; if the last is set, downwards.
    CallScan(u8, bool),
    /// A client calls a put of a key; if the last is set, a delete.
    CallWrite(u8, u8, bool),
    /// A call finds a page in the index.
    Descend(u8),
    /// The page is not the one that was looked for.
    DescendAgain(u8),
    /// A get reads its leaf.
    ReadLeaf(u8),
    /// A scan upwards reads a leaf up to this bound.
    CopyLeaf(u8, u8),
    /// A scan downwards reads a leaf down to this bound.
    CopyBack(u8, u8),
    /// A get or scan returns.
    Answer(u8),
    /// A write takes effect, in the log and in its leaf.
    ChangeLeaf(u8),
    /// A write is durable, and its client is told.
    Acknowledge(u8),
    /// The log is durable up to here.
    CommitLog(N),
    /// A split of a page at a fence is logged, with this right page.
    AppendSplit(u8, u8, u8),
    /// A merge of a page with its right neighbour is logged.
    AppendMerge(u8),
    /// The leaves of a split or merge are changed.
    ChangeLeaves,
    /// The index is.
    UpdateIndex,
    /// A page is written; if the last is set, the device loses it.
    WritePage(u8, bool),
    /// A page that was merged away is freed.
    FreePage(u8),
    /// A checkpoint begins.
    BeginCheckpoint,
    /// Old changes are written. The first chunk gets this slot.
    BeginSnapshot(u8),
    /// The next fence of the index is read.
    ReadFence,
    /// The version of its page is read.
    AddEntry,
    /// Likewise. The chunk before is written, and the next one gets this slot.
    AddChunk(u8, bool),
    /// The last chunk is written.
    EndSnapshot(bool),
    /// The superblock is written, after a flush.
    WriteSuper,
    /// The superblock is flushed.
    FinishCheckpoint,
    /// A power failure. The log is left up to the first number. The digits of the second select the
    /// version of each place that is left, in base of the number of its versions.
    Crash(N, u32),
    /// The process is restarted. It finds the log up to this LSN.
    Restart(N),
    /// Recovery redoes a record.
    RedoRecord,
    /// Redo is complete, and the store is up.
    FinishRedo,
    /// A page or chunk is missing.
    FindDamage,
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
    PageBeforeLog,
    TrustsIndex,
    BackTrustsIndex,
    SkipsFence,
    UnlatchesEarly,
    FreesAtOnce,
    WaitsForNobody,
    SkipsSweep,
    VersionOfMemory,
    RedoFromSnapshot,
    SnapshotBeforeLog,
    SuperBeforeFlush,
    FreesBeforeSuper,
    TakesAnyChunk,
    TrustsNumber,
    TakesAnyImage,
    SkipsNewFences,
    SkipsGoneFences,
    SkipsRight,
    BuildsOverChunk,
    Reapplies,
    FindsPage,
    StopsRedoEarly,
}

/// Which steps are kept apart, so that a model is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
enum Apart {
    /// None.
    No,
    /// Clients call before a checkpoint begins, which waits for their answers; only chunks of a
    /// tree that never changed are lost; and after a crash there is recovery, and nothing else.
    Steps,
    /// One thing after the other. The first life has a checkpoint, which is cut off once its
    /// snapshot is written. The second has writes, then merges, then a checkpoint, with splits
    /// beside it, whose last chunk is lost; it ends once the superblock is written. The last life
    /// reads.
    Lives,
}

/// The module with its constants. Sets of clients, keys and writes are bit sets.
#[derive(Clone, Debug)]
pub struct IndexSnapshot {
    clients: Vec<Value>,
    keys: u8,
    slots: u8,
    values: N,
    absent: Value,
    pending: Value,
    fences: Set,
    room: usize,
    per_chunk: usize,
    trims: bool,
    bug: Bug,
    deletes: Set,
    write_keys: Set,
    writers: Set,
    read_keys: Set,
    readers: Set,
    scanners: Set,
    back_scanners: Set,
    split_keys: Set,
    max_splits: N,
    max_merges: N,
    max_checkpoints: N,
    max_crashes: N,
    max_restarts: N,
    max_losses: N,
    apart: Apart,
    /// Whether the first free slot is taken, and `deletes` says which writes are deletes.
    bounded: bool,
    invariants: Vec<&'static str>,
}

model!(IndexSnapshot, IndexSnapshot::initial);

impl Mirror for IndexSnapshot {
    const SPEC: &'static str = "IndexSnapshot";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(
            config,
            &[
                "MayGet",
                "MayScan",
                "MayWrite",
                "MaySplit",
                "MayMerge",
                "MayTake",
                "MayLose",
                "MayCheckpoint",
                "MayCrash",
                "MayRestart",
            ],
        )?;
        let numbers = |most: usize| (1..=most as i64).map(Value::Int).collect::<Vec<_>>();
        let clients = config.members("Clients", CLIENTS)?;
        let keys = count(config, "Keys", KEYS)?;
        let slots = count(config, "Slots", SLOTS)?;
        // A client whose call is outstanding may add one more record after the last number.
        let values = count(config, "Values", LOG + 1 - CLIENTS)?;
        let (key_names, writes) = (numbers(keys), numbers(values));
        let most = (LOG + 1 - CLIENTS) as u8;
        let max_splits = N::from(config.int("MaxSplits", most)?);
        let max_merges = N::from(config.int("MaxMerges", most)?);
        if values + usize::from(max_splits + max_merges) > LOG {
            return Err(config.wrong("Values", "with splits and merges, more than the log has"));
        }
        let fences: Set = subset(config, "Fences", &key_names)?;
        if fences & 1 == 0 {
            return Err(config.wrong("Fences", "expected the least key among them"));
        }
        Ok(Self {
            keys: keys as u8,
            slots: slots as u8,
            values: values as N,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            fences,
            room: usize::from(config.int("Room", KEYS as u8)?),
            per_chunk: usize::from(config.int("PerChunk", KEYS as u8)?.max(1)),
            trims: config.bool("Trims")?,
            bug: named(config, "Bug")?,
            deletes: subset(config, "Deletes", &writes)?,
            write_keys: subset(config, "WriteKeys", &key_names)?,
            writers: subset(config, "Writers", &clients)?,
            read_keys: subset(config, "ReadKeys", &key_names)?,
            readers: subset(config, "Readers", &clients)?,
            scanners: subset(config, "Scanners", &clients)?,
            back_scanners: subset(config, "BackScanners", &clients)?,
            split_keys: subset(config, "SplitKeys", &key_names)?,
            max_splits,
            max_merges,
            max_checkpoints: N::from(config.int("MaxCheckpoints", u8::MAX)?),
            max_crashes: N::from(config.int("MaxCrashes", u8::MAX)?),
            max_restarts: N::from(config.int("MaxRestarts", u8::MAX)?),
            max_losses: N::from(config.int("MaxLosses", u8::MAX)?),
            apart: named(config, "Apart")?,
            bounded: true,
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
