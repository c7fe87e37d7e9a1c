//! Campaigns: one kind of run, on one engine, for many seeds on a few threads.
//!
//! Seeds are handed out in order. A violation stops the campaign once all smaller seeds are through, so the same options find the same program
//! however many threads there are. What is found is made small before it is reported.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::crash::{self, Coverage, Effort};
use super::differential::{self, Failure};
use super::generate::Trouble;
use super::{Engine, Tally, generate, shrink};

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The first seed.
    pub seed: u64,
    /// So many programs, at most.
    pub runs: u64,
    /// So long, at most: no program is begun later.
    pub budget: Option<Duration>,
    /// Operations of a program.
    pub operations: usize,
    /// What else is in it.
    pub trouble: Trouble,
    /// Threads.
    pub threads: usize,
}

impl Default for Plan {
    /// A short one on one thread, with any trouble.
    fn default() -> Plan {
        Plan {
            seed: 0,
            runs: 20,
            budget: None,
            operations: 200,
            trouble: Trouble::ANY,
            threads: 1,
        }
    }
}

/// What came of a campaign.
#[derive(Debug)]
pub struct Outcome<T> {
    /// What was done, without the program that failed.
    pub done: T,
    /// Programs that were run.
    pub runs: u64,
    /// Wall-clock time.
    pub elapsed: Duration,
    /// The seed whose program failed, and how.
    pub failure: Option<(u64, Box<Failure>)>,
}

struct Shared<T> {
    done: T,
    runs: u64,
    failure: Option<(u64, Box<Failure>)>,
}

fn campaign<T: Default + Send>(
    plan: &Plan,
    tick: &(dyn Fn(u64) + Sync),
    run: impl Fn(u64) -> Result<T, Box<Failure>> + Sync,
    add: impl Fn(&mut T, &T) + Sync,
) -> Outcome<T> {
    let began = Instant::now();
    let next = AtomicU64::new(0);
    // No run with a greater number is begun.
    let stop = AtomicU64::new(plan.runs);
    let shared = Mutex::new(Shared {
        done: T::default(),
        runs: 0,
        failure: None,
    });
    let work = || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let late = plan.budget.is_some_and(|budget| began.elapsed() >= budget);
            if late || n >= stop.load(Ordering::Acquire) {
                return;
            }
            let seed = plan.seed.wrapping_add(n);
            let result = run(seed);
            let mut shared = shared.lock().expect("a run does not panic");
            shared.runs += 1;
            tick(shared.runs);
            match result {
                Ok(done) => add(&mut shared.done, &done),
                Err(failure) => {
                    stop.fetch_min(n, Ordering::AcqRel);
                    if shared
                        .failure
                        .as_ref()
                        .is_none_or(|(first, _)| seed < *first)
                    {
                        shared.failure = Some((seed, failure));
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            scope.spawn(work);
        }
    });
    let shared = shared.into_inner().expect("a run does not panic");
    Outcome {
        done: shared.done,
        runs: shared.runs,
        elapsed: began.elapsed(),
        failure: shared.failure,
    }
}

/// Differential runs; `tick` is told how many are through.
pub fn differential(
    engine: &dyn Engine,
    plan: &Plan,
    tick: &(dyn Fn(u64) + Sync),
) -> Outcome<Tally> {
    let run = |seed| differential::run(engine, seed, plan.operations, plan.trouble);
    campaign(plan, tick, run, Tally::add)
}

/// Crash runs; `tick` is told how many programs are through.
pub fn crashes(
    engine: &dyn Engine,
    plan: &Plan,
    effort: Effort,
    tick: &(dyn Fn(u64) + Sync),
) -> Outcome<Coverage> {
    let run = |seed| {
        let program = generate::program(engine, seed, plan.operations, plan.trouble);
        crash::explore(engine, &program, effort, seed)
    };
    let mut outcome = campaign(plan, tick, run, Coverage::add);
    if let Some((seed, failure)) = &mut outcome.failure {
        **failure = smallest(engine, failure, effort, *seed);
    }
    outcome
}

/// The smallest program with a crash that shows the same kind of violation.
fn smallest(engine: &dyn Engine, failure: &Failure, effort: Effort, seed: u64) -> Failure {
    // A small program has few crash states, so more of them can be tried; and not for ever.
    let effort = Effort {
        exhaustive: effort.exhaustive.max(64),
        // All states of each short candidate would take most of the time.
        short: 0,
        exhaustive_short: 0,
        sample: effort.sample.max(24),
        again: effort.again.min(1),
        go_on: effort.go_on.min(1),
    };
    let limit = Instant::now() + Duration::from_secs(60);
    let mut last = failure.clone();
    let check = failure.finding.check;
    shrink::minimise(&failure.program, |candidate| {
        if Instant::now() > limit {
            return false;
        }
        match crash::explore(engine, candidate, effort, seed) {
            Err(found) if found.finding.check == check => {
                last = *found;
                true
            }
            _ => false,
        }
    });
    last.program.forget_unused_keys();
    last
}
