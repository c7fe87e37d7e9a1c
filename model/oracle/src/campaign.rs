//! Campaigns: many runs of one kind on one engine, spread over a few threads.
//!
//! A campaign hands out seeds in order. After a violation it starts no larger seed and waits for
//! the smaller ones, so the same options find the same program on any number of threads. The
//! failing program is reduced before it is reported.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::crash::{self, Coverage, Effort};
use super::deadline::Deadline;
use super::differential::{self, Failure};
use super::generate::Trouble;
use super::patience::FairClock;
use super::random::Random;
use super::{DiskKind, Engine, Finding, Tally, damage, generate, shrink};

/// One program in this many has a store of many leaves.
const GROWN: u64 = 24;

/// What a campaign does, and how much of it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The first seed.
    pub seed: u64,
    /// The most programs to run.
    pub runs: u64,
    /// No program starts after this time.
    pub budget: Option<Duration>,
    /// Programs still running after this time are interrupted.
    pub at_most: Option<Duration>,
    /// Operations per program.
    pub operations: usize,
    /// What may go wrong in programs, besides ordinary operations.
    pub trouble: Trouble,
    /// Number of threads.
    pub threads: usize,
    /// A program that runs longer than this is reported as stuck.
    pub patience: Duration,
    /// Whether each program runs with its own options; see [`Engine::vary`].
    pub vary: bool,
    /// Whether one program in 24 runs on a store of many leaves; see [`Engine::grown`].
    pub grown: bool,
    /// How long to reduce a failing crash program, unless [`Plan::at_most`] ends sooner.
    pub shrinks_for: Duration,
}

impl Plan {
    /// The engine that the program of `seed` runs on.
    #[must_use]
    pub fn engine<'e>(&self, engine: &'e dyn Engine, seed: u64) -> Varied<'e> {
        let grows = self.grown && Random::part(seed, 6).one_in(GROWN);
        let varied = match grows {
            true => engine.grown(seed),
            false => engine.vary(seed),
        };
        match varied.filter(|_| self.vary) {
            Some(varied) => Varied::As(varied),
            None => Varied::Not(engine),
        }
    }
}

/// The engine of a campaign as it is, or with other options.
pub enum Varied<'e> {
    /// The engine as it is.
    Not(&'e dyn Engine),
    /// The engine with other options.
    As(Box<dyn Engine>),
}

impl<'e> std::ops::Deref for Varied<'e> {
    type Target = dyn Engine + 'e;

    fn deref(&self) -> &Self::Target {
        match self {
            Varied::Not(engine) => *engine,
            Varied::As(engine) => engine.as_ref(),
        }
    }
}

impl Default for Plan {
    /// Twenty programs on one thread, with every kind of trouble.
    fn default() -> Plan {
        Plan {
            seed: 0,
            runs: 20,
            budget: None,
            at_most: None,
            operations: 200,
            trouble: Trouble::ANY,
            threads: 1,
            patience: Duration::from_secs(60),
            shrinks_for: Duration::from_secs(60),
            vary: true,
            grown: false,
        }
    }
}

/// An observer of a campaign. A closure `|done: u64|` is one.
pub trait Watch: Sync {
    /// Called when `runs` programs have finished.
    fn through(&self, runs: u64);

    /// Called when the program of this seed is stuck. Nothing can stop it, so the campaign will not
    /// return.
    fn stuck(&self, seed: u64) {
        eprintln!("no progress: a call of the program of seed {seed} never returns");
    }
}

impl<F: Fn(u64) + Sync> Watch for F {
    fn through(&self, runs: u64) {
        self(runs);
    }
}

/// What the worker threads are doing, for the watchdog.
struct UnderWay {
    workers: Mutex<Workers>,
    over: Condvar,
}

struct Workers {
    /// Workers that have not finished.
    left: usize,
    /// For each worker the seed of its program, and the fair time since the watchdog first saw it.
    programs: Vec<Option<(u64, Duration)>>,
}

impl UnderWay {
    fn new(workers: usize) -> UnderWay {
        UnderWay {
            workers: Mutex::new(Workers {
                left: workers,
                programs: vec![None; workers],
            }),
            over: Condvar::new(),
        }
    }

    fn set(&self, worker: usize, program: Option<u64>) {
        let mut workers = self.workers.lock().expect("nothing panics here");
        workers.programs[worker] = program.map(|seed| (seed, Duration::ZERO));
    }

    fn leave(&self) {
        self.workers.lock().expect("nothing panics here").left -= 1;
        self.over.notify_all();
    }

    /// Waits until all workers have finished. Reports each program that takes longer than
    /// `patience`, once.
    fn watch(&self, patience: Duration, watch: &dyn Watch) {
        let mut clock = FairClock::new();
        let mut looked = clock.now();
        let mut workers = self.workers.lock().expect("nothing panics here");
        while workers.left > 0 {
            let late = |program: &Option<(u64, Duration)>| {
                program.is_some_and(|(_, taken)| taken >= patience)
            };
            let stuck = workers.programs.iter_mut().find(|program| late(program));
            if let Some((seed, _)) = stuck.and_then(Option::take) {
                watch.stuck(seed);
            }
            let tick = Duration::from_secs(1);
            let waited = self.over.wait_timeout(workers, tick);
            workers = waited.expect("nothing panics here").0;
            let now = clock.now();
            for (_, taken) in workers.programs.iter_mut().flatten() {
                *taken += now.saturating_sub(looked);
            }
            looked = now;
        }
    }
}

/// The result of a campaign.
#[derive(Debug)]
pub struct Outcome<T, E = Failure> {
    /// What the programs did, without the one that failed.
    pub done: T,
    /// Number of programs that ran.
    pub runs: u64,
    /// How many of them were interrupted; see [`Plan::at_most`].
    pub interrupted: u64,
    /// Wall-clock time.
    pub elapsed: Duration,
    /// The smallest seed whose program failed, and the failure.
    pub failure: Option<(u64, Box<E>)>,
}

struct Shared<T, E> {
    done: T,
    runs: u64,
    interrupted: u64,
    failure: Option<(u64, Box<E>)>,
}

fn campaign<T: Default + Send, E: Send>(
    plan: &Plan,
    watch: &dyn Watch,
    run: impl Fn(u64, &Deadline, &dyn Fn()) -> Result<T, Box<E>> + Sync,
    add: impl Fn(&mut T, &T) + Sync,
) -> Outcome<T, E> {
    let began = Instant::now();
    let next = AtomicU64::new(0);
    // No run with a greater number starts.
    let stop = AtomicU64::new(plan.runs);
    let shared = Mutex::new(Shared {
        done: T::default(),
        runs: 0,
        interrupted: 0,
        failure: None,
    });
    let workers = plan.threads.max(1);
    let under_way = UnderWay::new(workers);
    let work = |worker: usize| {
        loop {
            under_way.set(worker, None);
            let n = next.fetch_add(1, Ordering::Relaxed);
            let late = plan.budget.is_some_and(|budget| began.elapsed() >= budget);
            if late || n >= stop.load(Ordering::Acquire) {
                return under_way.leave();
            }
            let seed = plan.seed.wrapping_add(n);
            under_way.set(worker, Some(seed));
            // Reducing a program takes long, and must not count as being stuck.
            let deadline = Deadline::at(plan.at_most.map(|most| began + most));
            let result = run(seed, &deadline, &|| under_way.set(worker, None));
            let mut shared = shared.lock().expect("a run does not panic");
            shared.runs += 1;
            shared.interrupted += u64::from(deadline.has_struck());
            watch.through(shared.runs);
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
        for worker in 0..workers {
            let work = &work;
            scope.spawn(move || work(worker));
        }
        under_way.watch(plan.patience, watch);
    });
    let shared = shared.into_inner().expect("a run does not panic");
    Outcome {
        done: shared.done,
        runs: shared.runs,
        interrupted: shared.interrupted,
        elapsed: began.elapsed(),
        failure: shared.failure,
    }
}

/// Runs random programs beside the reference map, with restarts, power cuts and failed requests in
/// them. `watch` is told how many have finished.
///
/// ```
/// use treering_oracle::campaign::{Plan, differential};
/// use treering_oracle::engines::{BTree, Geometry};
///
/// let engine = BTree::named("btree:cow", Geometry::Tiny).expect("a name of `BTree::names`");
/// let outcome = differential(&engine, &Plan { runs: 3, ..Plan::default() }, &|_| {});
/// assert!(outcome.failure.is_none());
/// assert!(outcome.done.operations >= 600);
/// ```
pub fn differential(engine: &dyn Engine, plan: &Plan, watch: &dyn Watch) -> Outcome<Tally> {
    let run = |seed, until: &Deadline, found: &dyn Fn()| {
        let engine = plan.engine(engine, seed);
        differential::run(&*engine, seed, plan.operations, plan.trouble, until, found)
    };
    campaign(plan, watch, run, Tally::add)
}

/// Damages closed and crashed stores, and reads them; see [`crate::damage`]. `watch` is told how
/// many stores have been judged.
pub fn damage(
    engine: &dyn Engine,
    plan: &Plan,
    watch: &dyn Watch,
) -> Outcome<damage::Tally, Finding> {
    let run = |seed, until: &Deadline, _: &dyn Fn()| match engine.disk() {
        DiskKind::Blocks(_) => {
            damage::run_until(&*plan.engine(engine, seed), seed, plan.operations, until)
        }
        DiskKind::Pm(_) | DiskKind::Folder => {
            damage::run_until(engine, seed, plan.operations, until)
        }
    };
    campaign(plan, watch, run, damage::Tally::add)
}

/// Runs random programs and explores the states that power cuts can leave; see [`crate::crash`].
/// `watch` is told how many programs have finished.
pub fn crashes(
    engine: &dyn Engine,
    plan: &Plan,
    effort: Effort,
    watch: &dyn Watch,
) -> Outcome<Coverage> {
    let run = |seed, until: &Deadline, _: &dyn Fn()| {
        let engine = plan.engine(engine, seed);
        let program = generate::on_a_built_store(&*engine, seed, plan.operations, plan.trouble);
        crash::explore_until(&*engine, &program, effort, seed, until)
    };
    let ends = plan.at_most.map(|most| Instant::now() + most);
    let mut outcome = campaign(plan, watch, run, Coverage::add);
    if let Some((seed, failure)) = &mut outcome.failure {
        let engine = plan.engine(engine, *seed);
        let until = Deadline::at(ends).for_shrinking().within(plan.shrinks_for);
        **failure = smallest(&*engine, failure, effort, *seed, &until);
    }
    outcome
}

/// Reduces a program whose crash shows a violation to a small one that shows the same kind.
fn smallest(
    engine: &dyn Engine,
    failure: &Failure,
    effort: Effort,
    seed: u64,
    until: &Deadline,
) -> Failure {
    // A small program has few crash states, so a larger share of them can be tried.
    let effort = Effort {
        exhaustive: effort.exhaustive.max(64),
        // Trying all states of each short candidate would take most of the time.
        short: 0,
        exhaustive_short: 0,
        sample: effort.sample.max(24),
        one_in: 1,
        again: effort.again.min(1),
        go_on: effort.go_on.min(1),
        damage: effort.damage.min(1),
    };
    let mut last = failure.clone();
    let check = failure.finding.check;
    shrink::minimise(&failure.program, |candidate| {
        if until.is_over() {
            return false;
        }
        match crash::explore_until(engine, candidate, effort, seed, until) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_program_that_does_not_end_is_told_of() {
        struct Told(AtomicU64);
        impl Watch for Told {
            fn through(&self, _: u64) {}
            fn stuck(&self, seed: u64) {
                self.0.store(seed, Ordering::SeqCst);
            }
        }
        let told = Told(AtomicU64::new(0));
        let plan = Plan {
            seed: 7,
            runs: 3,
            threads: 2,
            patience: Duration::ZERO,
            ..Plan::default()
        };
        // The program of seed 8 runs until it has been reported as stuck.
        let run = |seed, _: &Deadline, _: &dyn Fn()| {
            while seed == 8 && told.0.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            Ok(())
        };
        let outcome = campaign::<(), Failure>(&plan, &told, run, |_, _| {});
        assert_eq!(outcome.runs, 3);
        assert_ne!(told.0.load(Ordering::SeqCst), 0);
    }
}
