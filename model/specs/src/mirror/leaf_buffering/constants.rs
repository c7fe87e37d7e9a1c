//! The module's constants, and its seeded bugs.

use super::room::{self, N, Set};
use crate::Value;

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Bug {
    None,
    TimestampWithBitmap,
    AppendsDuplicates,
    CopyKeepsBit,
    LogByLog,
    StampsWhileReplaying,
    ResetsTimestamps,
    ClearsSmallest,
    MergeKeepsTimestamp,
    MergeWithoutFlush,
    SplitStampsOldLeaf,
    BelievesOldEntries,
    BelievesTornEntries,
    AcksBeforeFence,
    AcksAtOnce,
    HeaderBeforeRecords,
    ReadsEpochTwice,
    CopiesUnlatched,
    ReclaimsBeforeFence,
    SkipsTombstones,
    LinksBeforeFence,
    NewLeafUnstamped,
    RecoveryStampsNewLeaf,
    ReusesEarly,
    KeepsCache,
    MergesUnderOneFence,
    EpochTooLow,
    StampsAhead,
    SeparatorBetween,
    FlushesLoggedKey,
    TrustsWhatItReads,
}

/// The module with its constants. Sets of clients, epochs and writes are bit sets.
#[derive(Clone, Debug)]
pub struct LeafBuffering {
    pub(super) clients: Vec<Value>,
    pub(super) keys: usize,
    pub(super) values: N,
    pub(super) leaves: usize,
    pub(super) slots: usize,
    pub(super) chunks: usize,
    pub(super) entries: usize,
    pub(super) batch: usize,
    pub(super) absent: Value,
    pub(super) pending: Value,
    pub(super) bug: Bug,
    pub(super) deletes: Set,
    /// For each write, the keys that it may go to. The empty set means any key.
    pub(super) plan: [Set; room::WRITES],
    pub(super) readers: Set,
    pub(super) flips: Set,
    pub(super) max_crashes: N,
    pub(super) max_kills: N,
    pub(super) invariants: Vec<&'static str>,
}
