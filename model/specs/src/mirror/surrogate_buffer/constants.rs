//! The module's constants, and its seeded bugs.

use super::room::{N, Set};
use crate::Value;

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Bug {
    None,
    BuffersBeforeFence,
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

pub(super) const BUGS: [(&str, Bug); 29] = [
    ("none", Bug::None),
    ("buffers-before-fence", Bug::BuffersBeforeFence),
    ("bitmap-before-pairs", Bug::BitmapBeforePairs),
    ("links-before-fence", Bug::LinksBeforeFence),
    ("switches-before-fence", Bug::SwitchesBeforeFence),
    ("new-leaf-without-stamp", Bug::NewLeafWithoutStamp),
    ("stamps-at-switch", Bug::StampsAtSwitch),
    ("restarts-numbers", Bug::RestartsNumbers),
    ("trusts-what-it-reads", Bug::TrustsWhatItReads),
    ("leaves-torn-entries", Bug::LeavesTornEntries),
    ("reuses-live-log", Bug::ReusesLiveLog),
    ("believes-torn-entry", Bug::BelievesTornEntry),
    ("split-forgets-version", Bug::SplitForgetsVersion),
    ("replays-log-by-log", Bug::ReplaysLogByLog),
    ("flushes-half-a-leaf", Bug::FlushesHalfALeaf),
    ("no-designated-slot", Bug::NoDesignatedSlot),
    ("forgets-new-leaf", Bug::ForgetsNewLeaf),
    ("splits-among-others", Bug::SplitsAmongOthers),
    ("replays-flushed", Bug::ReplaysFlushed),
    ("replays-valid-logs", Bug::ReplaysValidLogs),
    ("orders-by-version", Bug::OrdersByVersion),
    ("believes-stale-entry", Bug::BelievesStaleEntry),
    ("logs-before-lock", Bug::LogsBeforeLock),
    ("replays-in-parallel", Bug::ReplaysInParallel),
    ("separators-from-keys", Bug::SeparatorsFromKeys),
    ("two-words", Bug::TwoWords),
    ("only-sets-bits", Bug::OnlySetsBits),
    ("counts-flushes-only", Bug::CountsFlushesOnly),
    ("counts-leaf-alone", Bug::CountsLeafAlone),
];

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
    /// For each key, the writes that may go to it.
    pub(super) to: [Set; 3],
    pub(super) deletes: Set,
    pub(super) readers: Set,
    pub(super) any_space: bool,
    pub(super) max_crashes: N,
    pub(super) max_restarts: N,
    pub(super) invariants: Vec<&'static str>,
}
