//! Crash points: what a power cut interrupted, and in which phase of a run.

use serde::Serialize;

/// What a power cut interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Point {
    /// Before anything was written.
    Nothing,
    /// A write of the log.
    Log,
    /// A write of pages at their home.
    Page,
    /// A write of what keeps pages findable and whole: journal, table, snapshot, superblock.
    Extra,
    /// Several unflushed writes, of which some were kept and some were not.
    Torn,
    /// A flush, just done.
    Flush,
    /// A trim.
    Trim,
    /// A store to persistent memory.
    Store,
    /// A write-back of a line.
    WriteBack,
    /// A store to persistent memory, past the cache.
    NtStore,
    /// A fence, just done.
    Fence,
    /// Several unfenced words of one line or of several, of which some were kept and some were not.
    TornLine,
}

impl Point {
    /// All of them.
    pub const ALL: [Point; 12] = [
        Point::Nothing,
        Point::Log,
        Point::Page,
        Point::Extra,
        Point::Torn,
        Point::Flush,
        Point::Trim,
        Point::Store,
        Point::WriteBack,
        Point::NtStore,
        Point::Fence,
        Point::TornLine,
    ];

    /// As tables show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Point::Nothing => "nothing",
            Point::Log => "log write",
            Point::Page => "page write",
            Point::Extra => "extra write",
            Point::Torn => "torn writes",
            Point::Flush => "flush",
            Point::Trim => "trim",
            Point::Store => "store",
            Point::WriteBack => "write-back",
            Point::NtStore => "non-temporal store",
            Point::Fence => "fence",
            Point::TornLine => "torn line",
        }
    }
}

/// When the power went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// While the program ran.
    Run,
    /// While a crash was recovered from.
    Recovery,
}

impl Phase {
    /// As tables show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Run => "run",
            Phase::Recovery => "recovery",
        }
    }
}
