//! Crash runs: one run of a program, and then every way, or a sample of the ways, in which a power cut could have ended it.
//!
//! ```text
//! run, recorded      w w w F w w F …            w: write, F: flush
//! a twin device      apply 1, 2, 3 … requests   after each: which blocks are in doubt, in how many versions?
//! crash states       one version of each        all of them if few, else a sample
//! for each           open, read all, judge      and for some: cut the power again in that recovery; or write, sync and cut it
//! ```
//!
//! The twin goes through the states of the device one request at a time, so the program runs once only. A state is judged by the
//! reference as it was at that request: what was acknowledged must be there, what was not yet asked for cannot be. The same bytes under a
//! stricter promise are judged again; otherwise no state is looked at twice.
//!
//! Cost: O(requests · effort) recoveries, each of them what the engine makes it.

mod explore;
mod record;

use std::collections::BTreeMap;

use serde::Serialize;
use treering_engine::IoClass;
use treering_engine::device::Request;

pub use explore::{explore, replay};

use super::session::Tally;

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
}

impl Point {
    fn of(request: &Request) -> Point {
        match request {
            Request::Write { class, .. } => match class {
                IoClass::Log => Point::Log,
                IoClass::Page => Point::Page,
                IoClass::Extra => Point::Extra,
            },
            Request::Trim { .. } => Point::Trim,
            Request::Flush { .. } => Point::Flush,
        }
    }

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

/// How much to try.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// If a crash can leave at most so many states, all are tried.
    pub exhaustive: usize,
    /// Otherwise so many.
    pub sample: usize,
    /// Every so many-th state is cut again in its recovery; 0: none.
    pub again: u64,
    /// Every so many-th state is written to after recovery, and cut once more; 0: none.
    pub go_on: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Effort {
            exhaustive: 16,
            sample: 8,
            again: 4,
            go_on: 8,
        }
    }
}

/// What was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Distinct states that were recovered from.
    pub states: u64,
    /// Recoveries judged, some of them from one state under several promises.
    pub judged: u64,
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
        self.tally.add(&other.tally);
        for (point, n) in &other.points {
            *self.points.entry(*point).or_default() += n;
        }
    }

    fn note(&mut self, phase: Phase, point: Point) {
        *self.points.entry((phase, point)).or_default() += 1;
    }
}
