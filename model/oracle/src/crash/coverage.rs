//! What crash runs have tried, and which crash points they missed.

use std::collections::BTreeMap;

use crate::engine::{DiskKind, Engine};
use crate::point::{Phase, Point};
use crate::session::Tally;

/// What crash runs have tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Distinct crash states that were recovered from.
    pub states: u64,
    /// Recoveries judged. One state may be judged several times, with more acknowledged each time.
    pub judged: u64,
    /// Crash points at which all states were tried.
    pub exhausted: u64,
    /// Crash points at which a sample of the states was tried.
    pub sampled: u64,
    /// Blocks that were damaged, one per state.
    pub damaged: u64,
    /// How many of those the engine reported with an error.
    pub told: u64,
    /// Crashes, by what they interrupted.
    pub points: BTreeMap<(Phase, Point), u64>,
    /// What the recorded runs did.
    pub tally: Tally,
}

impl Coverage {
    /// Adds the counts of another run. States of different programs count as different.
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

/// On blocks, for an engine that labels its writes with an [`treering_engine::IoClass`].
const CLASSES: [(Phase, Point); 6] = [
    (Phase::Run, Point::Log),
    (Phase::Run, Point::Page),
    (Phase::Run, Point::Extra),
    (Phase::Recovery, Point::Log),
    (Phase::Recovery, Point::Page),
    (Phase::Recovery, Point::Extra),
];

/// On blocks, for any engine.
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
    /// The crash points that many programs on this engine should have reached, and these have not.
    /// `classes`: the engine labels its block writes with an [`treering_engine::IoClass`].
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
