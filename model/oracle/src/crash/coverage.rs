//! What crash runs have tried, and what they should have met and never did.

use std::collections::BTreeMap;

use crate::engine::{DiskKind, Engine};
use crate::point::{Phase, Point};
use crate::session::Tally;

/// What was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Distinct states that were recovered from.
    pub states: u64,
    /// Recoveries judged, some of them from one state under several promises.
    pub judged: u64,
    /// Points of the runs at which all states were tried.
    pub exhausted: u64,
    /// Points of the runs at which a sample of the states was tried.
    pub sampled: u64,
    /// Blocks that were damaged, each in a state by itself.
    pub damaged: u64,
    /// Of these: those of which an error told.
    pub told: u64,
    /// Crashes by what they interrupted.
    pub points: BTreeMap<(Phase, Point), u64>,
    /// What the runs themselves did.
    pub tally: Tally,
}

impl Coverage {
    /// Both together; of different programs, whose states are different for all practical purposes.
    pub fn add(&mut self, other: &Coverage) {
        self.states += other.states;
        self.judged += other.judged;
        self.exhausted += other.exhausted;
        self.sampled += other.sampled;
        self.damaged += other.damaged;
        self.told += other.told;
        self.tally.add(&other.tally);
        for (point, n) in &other.points {
            *self.points.entry(*point).or_default() += n;
        }
    }

    pub(super) fn note(&mut self, phase: Phase, point: Point) {
        *self.points.entry((phase, point)).or_default() += 1;
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
