//! The seeded bugs.

/// A seeded bug. The names are those of the constant `Bug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Bug {
    None,
    MergeDropsTombstone,
    ColdDirtyDropped,
    HotInsertNotMerged,
    HotTombstoneNotMerged,
    TombstoneReadThrough,
    MirrorBypassed,
    UpgradeAmongReaders,
    ScanReadsLeaf,
    ScanFromLowFence,
    ScanTrustsNeighbour,
    SplitLosesRightRecords,
    SplitKeepsRightRecords,
    SeparatorFirst,
    StaleHighFence,
    InnerBeforeRight,
    JoinDropsDirty,
    JoinLeavesSeparator,
    JoinKeepsVersion,
    PublishedEarlyValidation,
    PublishedColdMirror,
    PublishedInsertAfterMerge,
    PublishedOneSplit,
    PublishedLatePromotion,
}
