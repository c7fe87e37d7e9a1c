//! The module's constants, and its seeded bugs.

use super::room::{N, Set};
use crate::Value;

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Bug {
    None,
    BuffersBeforeFence,
    AcksAtOnce,
    BitmapBeforePairs,
    LinksBeforeFence,
    SwitchesBeforeFence,
    NewLeafWithoutStamp,
    StampsAtSwitch,
    RestartsNumbers,
    TrustsWhatItReads,
    LeavesTornEntries,
    ReusesLiveLog,
    BelievesTornEntry,
    SplitForgetsVersion,
    ReplaysLogByLog,
    FlushesHalfALeaf,
    NoDesignatedSlot,
    ForgetsNewLeaf,
    SplitsAmongOthers,
    ReplaysFlushed,
    ReplaysValidLogs,
    OrdersByVersion,
    BelievesStaleEntry,
    LogsBeforeLock,
    ReplaysInParallel,
    SeparatorsFromKeys,
    TwoWords,
    OnlySetsBits,
    CountsFlushesOnly,
    CountsLeafAlone,
}

/// The module with its constants. Sets of clients and writes are bit sets.
#[derive(Clone, Debug)]
pub struct SurrogateBuffer {
    pub(super) clients: Vec<Value>,
    pub(super) keys: u8,
    pub(super) leaves: usize,
    pub(super) leaf_slots: usize,
    pub(super) spaces: usize,
    pub(super) log_size: usize,
    pub(super) values: N,
    pub(super) absent: Value,
    pub(super) pending: Value,
    pub(super) slots: usize,
    pub(super) fanout: usize,
    pub(super) t_node: usize,
    pub(super) t_split: u32,
    pub(super) lows: Vec<u8>,
    pub(super) bug: Bug,
    /// For each key, the writes that may go to it; the last for all further keys.
    pub(super) to: [Set; 3],
    pub(super) deletes: Set,
    pub(super) readers: Set,
    pub(super) any_space: bool,
    pub(super) max_crashes: N,
    pub(super) max_restarts: N,
    pub(super) invariants: Vec<&'static str>,
}
