//! Where the power can go: what a cut interrupted, and in which phase; and which of these a run must have met.

use serde::Serialize;
use treering_engine::IoClass;
use treering_engine::device::{self, PmRequest};

use super::Coverage;
use crate::medium::Request;
use crate::{DiskKind, Engine};

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
    pub(super) fn of(request: &Request) -> Point {
        match request {
            Request::Block(device::Request::Write { class, .. }) => match class {
                IoClass::Log => Point::Log,
                IoClass::Page => Point::Page,
                IoClass::Extra => Point::Extra,
            },
            Request::Block(device::Request::Trim { .. }) => Point::Trim,
            Request::Block(device::Request::Flush { .. }) => Point::Flush,
            Request::Pm(PmRequest::Store { .. }) => Point::Store,
            Request::Pm(PmRequest::WriteBack { .. }) => Point::WriteBack,
            Request::Pm(PmRequest::NtStore { .. }) => Point::NtStore,
            Request::Pm(PmRequest::Fence) => Point::Fence,
        }
    }

    /// Some of what was in doubt was kept and some was not.
    pub(super) fn torn(disk: DiskKind) -> Point {
        match disk {
            DiskKind::Pm(_) => Point::TornLine,
            DiskKind::Blocks(_) | DiskKind::Folder => Point::Torn,
        }
    }

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

/// On blocks, of an engine that says what its writes are for.
const CLASSES: [(Phase, Point); 6] = [
    (Phase::Run, Point::Log),
    (Phase::Run, Point::Page),
    (Phase::Run, Point::Extra),
    (Phase::Recovery, Point::Log),
    (Phase::Recovery, Point::Page),
    (Phase::Recovery, Point::Extra),
];

/// On blocks, of any engine.
const BLOCKS: [(Phase, Point); 3] = [
    (Phase::Run, Point::Torn),
    (Phase::Run, Point::Flush),
    (Phase::Recovery, Point::Flush),
];

/// In persistent memory.
const PM: [(Phase, Point); 8] = [
    (Phase::Run, Point::Store),
    (Phase::Run, Point::WriteBack),
    (Phase::Run, Point::NtStore),
    (Phase::Run, Point::Fence),
    (Phase::Run, Point::TornLine),
    (Phase::Recovery, Point::Store),
    (Phase::Recovery, Point::WriteBack),
    (Phase::Recovery, Point::Fence),
];

impl Coverage {
    /// What many programs on an engine should have met and these did not, of what its kind of disk has, in the order of the phases. `classes`: the
    /// engine says what its writes to blocks are for.
    #[must_use]
    pub fn never(&self, engine: &dyn Engine, classes: bool) -> Vec<(Phase, Point)> {
        let avoided = engine.avoids();
        let mut wanted = match engine.disk() {
            DiskKind::Blocks(_) if classes => [&CLASSES[..], &BLOCKS[..]].concat(),
            DiskKind::Blocks(_) => BLOCKS.to_vec(),
            DiskKind::Pm(_) => PM.to_vec(),
            DiskKind::Folder => Vec::new(),
        };
        wanted.sort();
        wanted.retain(|at| !avoided.contains(&at.1) && !self.points.contains_key(at));
        wanted
    }
}
