//! Decides the order in which jobs (a mode on an engine) have turns.
//!
//! Nobody knows which job will find a bug. So each job first has a short turn, and jobs that follow
//! one another differ as much as possible. From then on the job that has had the least time,
//! relative to its weight, has the next turn, which is as long as all its earlier turns together
//! ([`super::turns`]). A bug that a job finds quickly is thus found within the first seconds, and a
//! mode with long programs does not take time from the others. The programs of a turn continue
//! those of the job's previous turn, so all turns together run the same programs as one long turn,
//! and runs without a budget repeat exactly.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use treering_oracle::Engine;
use treering_oracle::campaign::Plan;

use super::report::Row;
use super::runs::{self, Kept, Mode};
use super::turns::{Accounts, Turn};
use crate::args::OracleArgs;
use crate::failure::Failure;
use crate::interrupt;

/// A mode on an engine.
pub(super) type Job<'e> = (&'e dyn Engine, Mode);

/// Without a budget, the first turns run one program in this many.
const FIRST_RUNS: u64 = 25;

/// The job's share of the time, relative to other jobs.
fn weight((engine, mode): Job<'_>) -> f64 {
    // An engine that differs from another only in the layout of its leaves shares the code above
    // and below them.
    let layout = engine.name().contains('+');
    match mode {
        // This mode found two thirds of the bugs that were planted by hand.
        Mode::Differential => 3.0,
        Mode::Concurrent if layout => 0.7,
        Mode::Damage if layout => 0.4,
        Mode::Crash | Mode::Concurrent => 2.0,
        Mode::Damage => 1.0,
        Mode::Events => 0.5,
    }
}

/// Orders jobs so that neighbours have different modes and different engines.
pub(super) fn mix(jobs: &mut [Job<'_>]) {
    let mut seen: Vec<String> = Vec::new();
    let mut place = |name: String| match seen.iter().position(|known| *known == name) {
        Some(at) => at,
        None => {
            seen.push(name);
            seen.len() - 1
        }
    };
    let places: Vec<usize> = jobs
        .iter()
        .map(|(engine, _)| place(engine.name()))
        .collect();
    let of_mode = |mode: Mode| {
        Mode::ALL
            .iter()
            .position(|other| *other == mode)
            .unwrap_or(0)
    };
    let mut keyed: Vec<(usize, usize, Job<'_>)> = (jobs.iter().zip(places))
        .map(|(job, engine)| {
            // In each round, an engine gets the mode after its mode in the previous round, and its
            // neighbour another one.
            let mode = of_mode(job.1);
            let turn = (mode + Mode::ALL.len() - engine % Mode::ALL.len()) % Mode::ALL.len();
            (turn, engine, *job)
        })
        .collect();
    keyed.sort_by_key(|(turn, engine, _)| (*turn, *engine));
    for (job, (_, _, mixed)) in jobs.iter_mut().zip(keyed) {
        *job = mixed;
    }
}

struct Turns<'e> {
    job: Job<'e>,
    plan: Plan,
    kept: Kept,
    row: Option<Row>,
    /// Without a budget: the next turn runs one program in this many.
    share: u64,
}

/// Callback that is told of each job in which something was found.
pub(super) type Found<'f> = dyn FnMut(&dyn Engine, &Row) -> Result<(), Failure> + Send + 'f;

/// Runs all jobs, several at a time, until the budget is spent or each job has run its programs. A
/// job with a finding has no more turns; `found` is told of it at once.
pub(super) fn run(
    args: &OracleArgs,
    jobs: Vec<Job<'_>>,
    found: &mut Found<'_>,
) -> Result<Vec<Row>, Failure> {
    let began = Instant::now();
    let budget = args.budget.map(Duration::from_nanos);
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = args.threads.map_or(processors, |n| n as usize);
    let workers = threads.min(jobs.len()).max(1);
    let weights: Vec<f64> = jobs.iter().map(|job| weight(*job)).collect();
    let accounts = Mutex::new(Accounts::new(&weights, budget, workers));
    let all: Vec<Mutex<Turns<'_>>> = (jobs.into_iter())
        .map(|job| {
            Mutex::new(Turns {
                plan: plan(args, job.0, job.1, threads / workers),
                job,
                kept: Kept::default(),
                row: None,
                share: FIRST_RUNS,
            })
        })
        .collect();
    let found = Mutex::new((found, Ok(())));
    // Set with `--fail-fast`, once the first violation is reported.
    let enough = AtomicBool::new(false);
    let lock = || accounts.lock().expect("accounts do not panic");
    let next = || lock().next(began.elapsed());
    let work = || {
        while let Some((job, turn)) = next() {
            if enough.load(Ordering::Relaxed) {
                return;
            }
            if interrupt::stopped().is_some() {
                return;
            }
            let mut turns = all[job].lock().expect("a run does not panic");
            let from = Instant::now();
            let through = turns.take(turn);
            lock().settle(job, from.elapsed(), through);
            if let Some(row) = turns.row.as_ref().filter(|row| row.finding.is_some())
                && !(args.fail_fast && enough.swap(true, Ordering::Relaxed))
                && let Ok(mut found) = found.lock()
            {
                let (tell, failed) = &mut *found;
                if let (Err(failure), true) = (tell(turns.job.0, row), failed.is_ok()) {
                    *failed = Err(failure);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        (1..workers).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let (_, told) = found.into_inner().expect("a run does not panic");
    told?;
    let rows = all.into_iter().map(|turns| {
        let turns = turns.into_inner().expect("a run does not panic");
        let (engine, mode) = turns.job;
        let mut row = turns.row.unwrap_or_else(|| {
            let mut row = Row::new(engine.name(), mode);
            row.never.push("a turn".into());
            row
        });
        row.lenient = budget.is_some() && !args.strict;
        row
    });
    Ok(rows.collect())
}

impl Turns<'_> {
    /// Runs one turn: for the given time, or the next part of all programs. Returns whether it was
    /// the last.
    fn take(&mut self, turn: Option<Turn>) -> bool {
        let before = self.row.as_ref().map_or(0, |row| row.runs);
        let left = self.plan.runs.saturating_sub(before);
        let runs = match turn {
            Some(_) if self.plan.runs == u64::MAX => u64::MAX,
            Some(_) => left,
            None => (self.plan.runs / self.share).clamp(1, left.max(1)),
        };
        self.share = (self.share / 4).max(1);
        let row = runs::run(
            self.job.0,
            self.job.1,
            &Plan {
                seed: self.plan.seed.wrapping_add(before),
                runs,
                budget: turn.map(|turn| turn.begins_for),
                at_most: turn.map(|turn| turn.at_most),
                ..self.plan
            },
            (before, &self.kept),
        );
        match &mut self.row {
            Some(sum) => sum.add(row),
            None => self.row = Some(row),
        }
        let row = self.row.as_ref();
        let through = row.is_none_or(|row| row.finding.is_some() || row.runs >= self.plan.runs);
        // A mode that did nothing in its turn will do nothing in the next.
        let idle = row.is_some_and(|row| row.runs == before);
        through || idle && turn.is_none()
    }
}

fn plan(args: &OracleArgs, engine: &dyn Engine, mode: Mode, threads: usize) -> Plan {
    let (runs, operations) = mode.defaults(engine);
    let runs = match args.budget {
        Some(_) => u64::MAX,
        None => runs,
    };
    Plan {
        seed: args.seed,
        runs: args.runs.unwrap_or(runs),
        operations: args.ops.map_or(operations, |n| n as usize),
        grown: mode.grows(),
        threads,
        ..Plan::default()
    }
}

#[cfg(test)]
mod tests {
    use treering_oracle::engines::{BTree, Geometry};

    use super::*;

    #[test]
    fn neighbours_differ_in_engine_and_mode_and_nobody_is_left_out() {
        let engines: Vec<BTree> = BTree::names()
            .filter_map(|name| BTree::named(name, Geometry::Tiny))
            .collect();
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for engine in &engines {
            for mode in Mode::ALL {
                jobs.push((engine, mode));
            }
        }
        let names = |jobs: &[Job<'_>]| {
            let name = |job: &Job<'_>| (job.0.name(), job.1.name());
            jobs.iter().map(name).collect::<Vec<_>>()
        };
        let mut before = names(&jobs);
        mix(&mut jobs);
        let mut after = names(&jobs);
        for pair in after.windows(2) {
            assert!(pair[0].0 != pair[1].0, "{pair:?}");
        }
        let modes: std::collections::HashSet<_> = after[..8].iter().map(|(_, mode)| mode).collect();
        assert_eq!(modes.len(), Mode::ALL.len());
        before.sort();
        after.sort();
        assert_eq!(before, after);
    }
}
