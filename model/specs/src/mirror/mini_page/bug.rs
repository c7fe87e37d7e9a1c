//! The seeded bugs.

/// A seeded bug. The names are those of the constant `Bug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount, strum::EnumString)]
#[strum(serialize_all = "kebab-case")]
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
    ScanWritesAmongReaders,
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
    AsPublishedEarlyValidation,
    AsPublishedColdMirror,
    AsPublishedInsertAfterMerge,
    AsPublishedOneSplit,
    AsPublishedLatePromotion,
}
