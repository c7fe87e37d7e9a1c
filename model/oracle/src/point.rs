//! Crash points: what a power cut interrupted, and in which phase of a run.

use serde::Serialize;

/// What a power cut interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Point {
    /// Nothing had been written yet.
    Nothing,
    /// A write of the redo log.
    Log,
    /// A write of pages to their place.
    Page,
    /// A write of metadata: journal, page table, index snapshot, superblock.
    Extra,
    /// Several unflushed writes, of which only some survived.
    Torn,
    /// A flush that had just completed.
    Flush,
    /// A trim.
    Trim,
    /// A store to persistent memory.
    Store,
    /// A write-back of a cache line.
    WriteBack,
    /// A non-temporal store, which bypasses the CPU cache.
    NtStore,
    /// A fence that had just completed.
    Fence,
    /// Several unfenced words, of one line or more, of which only some survived.
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

    /// Its name in reports.
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

/// When the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// While the program was running.
    Run,
    /// During recovery from an earlier crash.
    Recovery,
}

impl Phase {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Run => "run",
            Phase::Recovery => "recovery",
        }
    }
}
