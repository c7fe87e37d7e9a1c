//! One mode on one engine.

use std::sync::Mutex;

use treering_model::oracle::campaign::{self, Plan};
use treering_model::oracle::crash::{Coverage, Effort, Phase, Point};
use treering_model::oracle::{DiskKind, Engine, Tally};

use super::report::Row;
use crate::progress::Progress;

/// A way of judging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Differential,
    Crash,
    Concurrent,
    Events,
}

impl Mode {
    pub(super) const ALL: [Mode; 2] = [Mode::Differential, Mode::Crash];

    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Differential => "differential",
            Mode::Crash => "crash",
            Mode::Concurrent => "concurrent",
            Mode::Events => "events",
        }
    }

    /// Programs, and operations of each.
    pub(super) fn defaults(self) -> (u64, usize) {
        match self {
            Mode::Differential => (500, 1_000),
            Mode::Crash => (60, 200),
            Mode::Concurrent => (20, 20_000),
            Mode::Events => (200, 200),
        }
    }

    /// Whether it can judge an engine; if not, why.
    pub(super) fn judges(self, engine: &dyn Engine) -> Result<(), &'static str> {
        match (self, engine.disk()) {
            (Mode::Crash, DiskKind::Folder) => {
                Err("it keeps its files itself, where the power cannot be cut")
            }
            _ => Ok(()),
        }
    }
}

/// What a tiny store must have gone through; engines that count nothing are not asked.
fn never_done(tally: &Tally) -> Vec<String> {
    let counted = [
        ("splits", tally.splits),
        ("merges", tally.merges),
        ("evictions", tally.evictions),
        ("checkpoints", tally.checkpoints),
    ];
    if counted.iter().all(|(_, n)| *n == 0) {
        return Vec::new();
    }
    let missing = counted.iter().filter(|(_, n)| *n == 0);
    missing.map(|(name, _)| (*name).to_owned()).collect()
}

const POINTS: [(Phase, Point); 9] = [
    (Phase::Run, Point::Log),
    (Phase::Run, Point::Page),
    (Phase::Run, Point::Extra),
    (Phase::Run, Point::Torn),
    (Phase::Run, Point::Flush),
    (Phase::Recovery, Point::Log),
    (Phase::Recovery, Point::Page),
    (Phase::Recovery, Point::Extra),
    (Phase::Recovery, Point::Flush),
];

/// Only our engines say what a write is for; of the others all writes are of one kind.
fn never_crashed(coverage: &Coverage, classes: bool) -> Vec<String> {
    let wanted = POINTS
        .iter()
        .filter(|(_, point)| classes || matches!(point, Point::Torn | Point::Flush));
    wanted
        .filter(|point| coverage.points.get(point).is_none_or(|n| *n == 0))
        .map(|(phase, point)| format!("a crash at a {} in {}", point.name(), phase.name()))
        .collect()
}

/// Runs it. A bar tells who waits how far it is.
pub(super) fn run(engine: &dyn Engine, mode: Mode, plan: &Plan) -> Row {
    let progress = Mutex::new(Progress::new());
    let began = std::time::Instant::now();
    let tick = |runs: u64| {
        let Ok(mut progress) = progress.lock() else {
            return;
        };
        match plan.budget {
            Some(budget) if plan.runs == u64::MAX => {
                let elapsed = began.elapsed().min(budget);
                progress.tell(mode.name(), elapsed.as_secs(), budget.as_secs());
            }
            _ => progress.tell(mode.name(), runs, plan.runs),
        }
    };
    let mut row = Row::new(engine.name(), mode);
    match mode {
        Mode::Differential => {
            let outcome = campaign::differential(engine, plan, &tick);
            row.note(outcome.runs, outcome.elapsed, outcome.failure);
            row.never = never_done(&outcome.done);
            row.tally = outcome.done;
        }
        Mode::Crash => {
            let outcome = campaign::crashes(engine, plan, Effort::default(), &tick);
            row.note(outcome.runs, outcome.elapsed, outcome.failure);
            row.never = never_crashed(&outcome.done, engine.name().starts_with("btree"));
            row.never.extend(never_done(&outcome.done.tally));
            row.tally = outcome.done.tally;
            row.crash_states = outcome.done.states;
            row.recoveries = outcome.done.judged;
            row.points = outcome.done.points;
        }
        Mode::Concurrent | Mode::Events => unreachable!("not in ALL yet"),
    }
    row
}
