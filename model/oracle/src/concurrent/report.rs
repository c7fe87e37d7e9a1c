//! The report of a concurrent run.

use std::time::{Duration, Instant};

use treering_engine::Stats;

use super::client::Session;
use super::finding::Finding;
use super::races;
use super::workload::Shape;
use crate::edges::Edges;
use crate::engine::{Engine, Promise};
use crate::finding;
use crate::history::{Action, History, Outcome, Row, Version};
use crate::linear;
use crate::reach::{Area, Reach, batches};

/// A history with which something is wrong.
#[derive(Debug)]
pub struct Wrong {
    /// The number of the history, from 0.
    pub number: u64,
    /// The shape of its workload.
    pub shape: Shape,
    /// All that was found, the plainest first.
    pub findings: Vec<Finding>,
    /// The recorded calls. [`History::save`] writes them to a file, and [`linear::check`] checks
    /// them again.
    pub history: History,
}

impl Wrong {
    /// The findings in the terms that all modes share, the plainest first.
    pub fn findings(&self) -> impl Iterator<Item = finding::Finding> {
        let what = format!("history {}, {:?}", self.number, self.shape);
        (self.findings.iter()).map(move |found| found.in_words(&what))
    }
}

/// What a run did and found.
#[derive(Debug, Default)]
pub struct Report {
    /// Histories recorded.
    pub histories: u64,
    /// How many of them were interrupted; see [`Plan::at_most`](super::Plan::at_most).
    pub interrupted: u64,
    /// Calls of all histories.
    pub calls: u64,
    /// Calls that overlapped another one.
    pub overlapping: u64,
    /// Operations on single keys that were checked.
    pub accesses: u64,
    /// Keys that were too complex to check; see [`linear::MAX_PENDING`].
    pub unjudged_keys: u64,
    /// The time of the run.
    pub elapsed: Duration,
    /// The part of it that checking took.
    pub checking: Duration,
    /// Leaf splits, as the engine counts them.
    pub splits: u64,
    /// Leaf merges.
    pub merges: u64,
    /// Evictions.
    pub evictions: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Times the log wrapped around to the start of its region.
    pub log_wraps: u64,
    /// Histories that ended in a power cut.
    pub cuts: u64,
    /// The length limits that keys and values have reached.
    pub edges: Edges,
    /// What else the run exercised.
    pub reach: Reach,
    /// The length limits that runs with histories of every shape should reach.
    pub limits: Edges,
    /// The first history with which something is wrong. The run ends there.
    pub wrong: Option<Wrong>,
}

impl Report {
    /// Whether the run did what it is for: calls overlapped, and there were leaf splits and merges
    /// if the engine counts them.
    #[must_use]
    pub fn exercised(&self, engine: &dyn Engine) -> bool {
        let counts = self.splits + self.merges + self.evictions > 0;
        let merged = self.merges > 0 || !engine.merges_leaves();
        self.overlapping > 0 && (!counts || self.splits > 0 && merged)
    }

    pub(super) fn count(
        &mut self,
        engine: &dyn Engine,
        session: &Session,
        stats: &Stats,
        history: &History,
    ) {
        self.reach.steps(stats, true);
        // If writes are durable when they return, races with syncs do not matter.
        let syncs = engine.promise() == Promise::OnSync;
        let can_be = races::CanBe {
            cuts: session.can_be_cut(),
            syncs,
            batches: engine.batch_bytes().is_some(),
        };
        races::count(history, &session.deeds, can_be, &mut self.reach);
        if can_be.batches {
            self.reach.want(Area::Step, batches::WRITTEN);
            let written = history.calls().iter().filter(|call| {
                matches!(call.action, Action::Write(_)) && call.outcome == Outcome::Returned
            });
            self.reach
                .met(Area::Step, batches::WRITTEN, written.count() as u64);
        }
        let (limits, work) = (engine.limits(), &session.work);
        for call in history.calls() {
            for Row { key, version } in history.written_by(call) {
                if version != Version::ABSENT {
                    let key = work.keys()[key.0 as usize].len();
                    self.edges.met(&limits, key, work.len_of(key, version.0));
                }
            }
        }
        self.histories += 1;
        self.calls += history.calls().len() as u64;
        self.splits += stats.splits;
        self.merges += stats.merges;
        self.evictions += stats.evictions;
        self.checkpoints += stats.checkpoints;
        self.log_wraps += stats.log_wraps;
        let mut latest = 0;
        for call in history.calls() {
            self.overlapping += u64::from(call.invoke < latest);
            latest = latest.max(call.end);
        }
    }
    /// Checks a history, and adds the time that it took.
    pub(super) fn check(&mut self, history: &History) -> Result<(), Finding> {
        let checking = Instant::now();
        let judged = linear::check(history);
        self.checking += checking.elapsed();
        let judged = judged.map_err(Finding::Violation)?;
        self.accesses += judged.accesses;
        self.unjudged_keys += judged.unjudged.len() as u64;
        Ok(())
    }
}
