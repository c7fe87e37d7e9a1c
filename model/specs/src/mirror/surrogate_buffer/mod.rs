//! The mirror of `specs/surrogate_buffer/SurrogateBuffer.tla`: LodgeTree's buffer in the free slots
//! of inner nodes, its log, its leaves (§III).
//!
//! ```text
//! words.rs       leaves and log in persistent memory, and outcomes of a crash (LodgeWords.tla)
//! state.rs       the variables (LodgeState.tla)
//! constants.rs   the constants, and the seeded bugs
//! steps.rs       the actions (SurrogateBuffer.tla): clients and the log
//! flush.rs       flushes and splits (LeafCountFlush.tla)
//! recovery.rs    crash, recovery, and what recovery would yield
//! invariants.rs  the invariants
//! inductive/     an inductive invariant (IndSurrogateBuffer.tla)
//! unbounded.rs   the mirror as the judge of a recording
//! look.rs        what the judge sees of a state
//! situation.rs   what a step depends on
//! values.rs      a state as TLA+ values
//! row.rs         short sequences
//! ```

mod constants;
mod flush;
mod inductive;
mod invariants;
pub mod look;
mod recovery;
mod row;
mod situation;
mod state;
mod steps;
pub mod unbounded;
mod values;
mod words;

use super::surrogate_buffer_room as room;

pub use self::constants::{Bug, SurrogateBuffer};
use self::invariants::INVARIANTS;
pub use self::row::Row;
use self::state::CLIENTS;
pub use self::state::{At, Buffered, Call, Lock, Node, State, Step, Version};
use self::words::{ENTRIES, KEYS, LEAVES, N, SLOTS, SPACES, Set};
pub use self::words::{Entry, EntryWords, Fence, Header, Leaf, LeafWords, Meta, Pair, Replayed};
use super::{Mirror, bounded, count, listed, model, named, subset};
use crate::{Config, ConfigError, Value};

/// A step. Clients, nodes, logs and their entries are numbered from 0, keys from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
pub enum Action {
    /// A client calls a get of a key.
    CallGet(u8, u8),
    /// A client calls a write of a key.
    CallWrite(u8, u8),
    /// A get reads the buffer or the leaf.
    ReadKey(u8),
    /// A get returns.
    AnswerGet(u8),
    /// A client's partition continues in another log.
    OpenLog(u8, u8),
    /// A write is logged.
    AppendEntry(u8),
    /// A log entry becomes persistent before its fence.
    WriteBackEntry(u8),
    /// A log entry is fenced, and its pair is buffered.
    BufferPair(u8),
    /// A write's client is told.
    Acknowledge(u8),
    /// A flush of a node's buffer starts.
    StartFlush(u8),
    /// A flush clears bits, because there are too few empty slots.
    ClearSlots(u8),
    /// Pairs are written to empty slots.
    WritePairs(u8),
    /// The pairs are fenced, and their bits are set.
    SetBitmap(u8),
    /// The bits are fenced, and the pairs leave the buffer.
    FinishMerge(u8),
    /// A new leaf is made.
    PrepareLeaf(u8),
    /// The new leaf is fenced and linked.
    LinkLeaf(u8),
    /// The link is fenced, and the sibling pointer switched.
    SwitchSibling(u8),
    /// The sibling pointer is fenced, and the new leaf is added to its node.
    FinishSplit(u8),
    /// An inner node is split.
    SplitNode(u8),
    /// A power failure. The numbers select the outcomes for the leaves and for the logs.
    Crash(u32, u32),
    /// The process is restarted.
    Restart,
    /// An entry, given by its log and its place there, is buffered again.
    ReplayEntry(u8, u8),
    /// The store is open.
    FinishReplay,
}

/// The names of the actions.
pub const LABELS: &[&str] = <Action as strum::VariantNames>::VARIANTS;

model!(SurrogateBuffer, SurrogateBuffer::initial);

/// The lowest key of each of the first leaves, of which the last may be behind all keys.
fn lows(config: &Config, keys: u8) -> Result<Vec<u8>, ConfigError> {
    let members = config.members("Lows", LEAVES)?;
    let low = |value: &Value| match value {
        Value::Int(n) if (0..=i64::from(keys) + 1).contains(n) => Ok(*n as u8),
        other => Err(config.wrong(
            "Lows",
            format!("expected 0, a key or the next number, found {other}"),
        )),
    };
    let lows = members.iter().map(low).collect::<Result<Vec<u8>, _>>()?;
    match lows.first() {
        Some(0) => Ok(lows),
        _ => Err(config.wrong("Lows", "expected 0 among them")),
    }
}

/// The assumptions of `LodgeState.tla` on sizes: a split makes room for all pairs, and no flush
/// splits a leaf twice without a slot of its node for the second separator. They are judged before
/// a configuration is held against the room of a state.
fn room_for_splits(config: &Config) -> Result<(), ConfigError> {
    let number = |name| Ok(usize::from(config.int(name, u8::MAX)?));
    let (leaf_slots, slots) = (number("LeafSlots")?, number("Slots")?);
    let (t_split, fanout) = (number("TSplit")?, number("Fanout")?);
    let keys = config.members("Keys", usize::MAX)?.len();
    if slots > leaf_slots + 2 && keys > 2 * leaf_slots {
        return Err(config.wrong("LeafSlots", "one split would not make room"));
    }
    let split_twice = 2 * t_split + 2 - t_split.div_ceil(2);
    let grows = leaf_slots >= split_twice && slots >= split_twice + 2;
    if grows && fanout >= 3 && keys >= 2 * t_split + 2 {
        let why = format!(
            "a flush could split a leaf of {split_twice} pairs twice, and its node has one slot \
             for a separator; expected fewer than {split_twice} slots"
        );
        return Err(config.wrong("LeafSlots", why));
    }
    Ok(())
}

impl Mirror for SurrogateBuffer {
    const SPEC: &'static str = "SurrogateBuffer";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(
            config,
            &["MayGet", "MayWrite", "MayOpen", "MayCrash", "MayRestart"],
        )?;
        room_for_splits(config)?;
        let clients = config.members("Clients", CLIENTS)?;
        let values = count(config, "Values", Set::BITS as usize)?;
        let writes: Vec<Value> = (1..=values as i64).map(Value::Int).collect();
        let keys = count(config, "Keys", KEYS)? as u8;
        let to = |name| subset::<Set>(config, name, &writes);
        let number = |name, most: usize| Ok(usize::from(config.int(name, most as u8)?));
        let leaf_slots = number("LeafSlots", SLOTS)?;
        let slots = number("Slots", LEAVES + KEYS + 1)?;
        let t_split = number("TSplit", leaf_slots)?;
        Ok(Self {
            leaves: count(config, "Leaves", LEAVES)?,
            leaf_slots,
            spaces: count(config, "Spaces", SPACES)?,
            log_size: number("LogSize", ENTRIES)?,
            values: values as N,
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            slots,
            fanout: number("Fanout", LEAVES)?,
            t_node: number("TNode", LEAVES)?,
            t_split: t_split as u32,
            lows: lows(config, keys)?,
            bug: named(config, "Bug")?,
            to: [to("To1")?, to("To2")?, to("To3")?],
            deletes: to("Deletes")?,
            readers: subset(config, "Readers", &clients)?,
            any_space: config.bool("AnySpace")?,
            max_crashes: N::from(config.int("MaxCrashes", u8::MAX)?),
            max_restarts: N::from(config.int("MaxRestarts", u8::MAX)?),
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
