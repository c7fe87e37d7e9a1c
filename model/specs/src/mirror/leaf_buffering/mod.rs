//! The mirror of `specs/leaf_buffering/LeafBuffering.tla`: buffer nodes above leaves in persistent
//! memory, logs that trigger writes skip, logless split and merge, log cleaning by epochs, recovery
//! (CCL-BTree §3, §4).
//!
//! ```text
//! memory.rs      the words, and how recovery interprets them (LeafMemory.tla)
//! state.rs       the variables (LeafState.tla)
//! constants.rs   the constants, and the seeded bugs
//! content.rs     buffer nodes, how a batch changes a leaf (LeafState.tla)
//! steps.rs       the actions (LeafBuffering.tla)
//! writes.rs      those that write to leaves
//! unbounded.rs   the mirror as the judge of a recording
//! look.rs        what the judge sees of a state
//! invariants.rs  the invariants
//! inductive/     an inductive invariant (IndLeafBuffering.tla)
//! situation.rs   what a step depends on
//! values.rs      a state as TLA+ values
//! ```

mod constants;
mod content;
mod inductive;
mod invariants;
pub mod look;
mod memory;
mod situation;
mod state;
mod steps;
pub mod unbounded;
mod values;
mod word;
mod writes;

use super::leaf_buffering_room as room;

pub use self::constants::{Bug, LeafBuffering};
use self::invariants::INVARIANTS;
pub use self::memory::{Child, Inner};
pub use self::state::State;
pub use self::state::{
    At, Batch, Buffer, Call, Cleaning, CleaningAt, Job, LogEnd, Phase, Slot, WriteAt,
};
use self::state::{BATCH, CLIENTS, KEYS, LEAVES, N, Set};
pub use self::word::{Kv, Time, Word};
use super::{Mirror, bounded, count, listed, model, named, subset};
use crate::{Config, ConfigError, Value};

/// A step. Clients are numbered from 0, and recovery comes after the last client. Keys and leaves
/// are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
pub enum Action {
    /// A client calls a get of a key.
    CallGet(u8, u8),
    /// A client calls a write of a key.
    CallWrite(u8, u8),
    /// A get reads the buffer and the leaf.
    ReadKey(u8),
    /// A get returns.
    AnswerGet(u8),
    /// A write takes the latch of its leaf.
    Latch(u8),
    /// A write is done and returns.
    Finish(u8),
    /// A write stores its entry at the end of its log.
    AppendLog(u8),
    /// The log entry is durable, and is inserted into the buffer.
    FenceLog(u8),
    /// A batch is stored in free slots.
    StoreRecords(u8),
    /// The records are durable, and the bitmap is stored.
    StoreHeader(u8),
    /// The bitmap is durable, and the timestamp is stored.
    FenceHeader(u8),
    /// Half of a leaf is stored in a new leaf.
    StoreNewLeaf(u8),
    /// The new leaf is durable, and is linked.
    StoreLink(u8),
    /// The link is durable.
    FenceLink(u8),
    /// A merge takes the latch of the left leaf.
    LatchLeft(u8),
    /// A merge stores the records in the left leaf.
    MoveRecords(u8),
    /// The records are durable, and the leaf that they were in is unlinked.
    StoreMerged(u8),
    /// The unlinking is durable.
    FenceMerged(u8),
    /// Log cleaning begins.
    FlipEpoch,
    /// A buffer node is scanned, and one entry is copied.
    ScanBuffer(u8),
    /// Older logs no longer count.
    Reclaim,
    /// Their chunks are free.
    FreeLogs,
    /// A power failure.
    Crash,
    /// The process ends.
    Kill,
    /// The next word keeps its n-th version.
    Settle(u8),
    /// The next word is written back.
    WriteBack,
    /// The store is started.
    Restart,
    /// A log entry is replayed.
    Replay,
    /// The logs no longer count.
    DropLogs,
    /// The store is open.
    Open,
}

/// The names of all actions.
pub const LABELS: &[&str] = <Action as strum::VariantNames>::VARIANTS;

model!(LeafBuffering, |_| State::initial());

/// `Plan`, a set of `10 n + k`: for each write n, the keys k that it may go to.
fn plan(config: &Config, keys: usize) -> Result<[Set; room::WRITES], ConfigError> {
    let mut plan = [0; room::WRITES];
    for member in config.members("Plan", room::WRITES * KEYS)? {
        let known = match member {
            Value::Int(n) => usize::try_from(n).ok().map(|n| (n / 10, n % 10)),
            _ => None,
        };
        let known =
            known.filter(|(n, key)| (1..=room::WRITES).contains(n) && (1..=keys).contains(key));
        let (n, key) = known.ok_or_else(|| {
            config.wrong(
                "Plan",
                format!("expected 10 n + k of a write and a key, found {member}"),
            )
        })?;
        plan[n - 1] |= 1 << key;
    }
    Ok(plan)
}

impl Mirror for LeafBuffering {
    const SPEC: &'static str = "LeafBuffering";

    fn from_config(config: &Config) -> Result<Self, ConfigError> {
        bounded(
            config,
            &["MayGet", "MayWrite", "MayClean", "MayCrash", "MayKill"],
        )?;
        let clients = config.members("Clients", CLIENTS)?;
        let keys = count(config, "Keys", KEYS)?;
        let values = count(config, "Values", room::WRITES)?;
        let writes: Vec<Value> = (1..=values as i64).map(Value::Int).collect();
        let epochs: Vec<Value> = (0..Set::BITS.into()).map(Value::Int).collect();
        Ok(Self {
            keys,
            values: values as N,
            leaves: count(config, "Leaves", LEAVES)?,
            slots: count(config, "Slots", room::SLOTS)?,
            chunks: count(config, "Chunks", room::CHUNKS)?,
            entries: count(config, "Entries", room::ENTRIES)?,
            batch: usize::from(config.int("Batch", BATCH as u8)?),
            absent: config.constant_value("Absent")?.clone(),
            pending: config.constant_value("Pending")?.clone(),
            bug: named(config, "Bug")?,
            deletes: subset(config, "Deletes", &writes)?,
            plan: plan(config, keys)?,
            readers: subset(config, "Readers", &clients)?,
            flips: subset(config, "Flips", &epochs)?,
            max_crashes: N::from(config.int("MaxCrashes", u8::MAX)?),
            max_kills: N::from(config.int("MaxKills", u8::MAX)?),
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
