//! The module's constants, and its seeded bugs.

use super::room::{self, N, Set};
use crate::Value;

/// The seeded bugs. See the configurations of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

pub(super) const BUGS: [(&str, Bug); 29] = [
    ("none", Bug::None),
    ("timestamp-with-bitmap", Bug::TimestampWithBitmap),
    ("appends-duplicates", Bug::AppendsDuplicates),
    ("copy-keeps-bit", Bug::CopyKeepsBit),
    ("log-by-log", Bug::LogByLog),
    ("stamps-while-replaying", Bug::StampsWhileReplaying),
    ("resets-timestamps", Bug::ResetsTimestamps),
    ("clears-smallest", Bug::ClearsSmallest),
    ("merge-keeps-timestamp", Bug::MergeKeepsTimestamp),
    ("merge-without-flush", Bug::MergeWithoutFlush),
    ("split-stamps-old-leaf", Bug::SplitStampsOldLeaf),
    ("believes-old-entries", Bug::BelievesOldEntries),
    ("believes-torn-entries", Bug::BelievesTornEntries),
    ("acks-before-fence", Bug::AcksBeforeFence),
    ("header-before-records", Bug::HeaderBeforeRecords),
    ("reads-epoch-twice", Bug::ReadsEpochTwice),
    ("copies-unlatched", Bug::CopiesUnlatched),
    ("reclaims-before-fence", Bug::ReclaimsBeforeFence),
    ("skips-tombstones", Bug::SkipsTombstones),
    ("links-before-fence", Bug::LinksBeforeFence),
    ("new-leaf-unstamped", Bug::NewLeafUnstamped),
    ("recovery-stamps-new-leaf", Bug::RecoveryStampsNewLeaf),
    ("reuses-early", Bug::ReusesEarly),
    ("keeps-cache", Bug::KeepsCache),
    ("merges-under-one-fence", Bug::MergesUnderOneFence),
    ("epoch-too-low", Bug::EpochTooLow),
    ("stamps-ahead", Bug::StampsAhead),
    ("separator-between", Bug::SeparatorBetween),
    ("flushes-logged-key", Bug::FlushesLoggedKey),
];

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
    pub(super) invariants: Vec<&'static str>,
}
