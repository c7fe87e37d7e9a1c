//! Decides which job has the next turn and how long it is. This module keeps accounts only and
//! knows nothing about the jobs themselves.
//!
//! Each job has a weight. The job that has had the least time, relative to its weight, is next. Its
//! first turn is short; later turns are as long as all its earlier ones together. With a budget, a
//! turn has two ends: after the first, no new program starts; at the second, the running program is
//! interrupted. The second end is the job's share: the time that it would have in the end if all
//! running jobs reached the same level, by their weights. So a job whose first program is long gets
//! its share at once, and no more, and the other jobs share the time that finished jobs leave.

use std::time::Duration;

/// Each first turn takes this share of the time that the job would get of the budget, or at least
/// [`LEAST`].
const FIRST: f64 = 0.06;
const LEAST: Duration = Duration::from_millis(20);

/// The length of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// After this time, no new program starts.
    pub(super) begins_for: Duration,
    /// After this time, the running program is interrupted.
    pub(super) at_most: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    HasTurn,
    Through,
}

struct Account {
    weight: f64,
    spent: Duration,
    state: State,
    /// When its latest turn began.
    since: Duration,
}

impl Account {
    fn level(&self) -> f64 {
        self.spent.as_secs_f64() / self.weight
    }
}

/// The accounts of all jobs, by number.
pub(super) struct Accounts {
    budget: Option<Duration>,
    /// Number of jobs that can have a turn at the same time.
    workers: usize,
    accounts: Vec<Account>,
}

impl Accounts {
    pub(super) fn new(weights: &[f64], budget: Option<Duration>, workers: usize) -> Accounts {
        let account = |weight: &f64| Account {
            weight: *weight,
            spent: Duration::ZERO,
            state: State::Waits,
            since: Duration::ZERO,
        };
        Accounts {
            budget,
            workers,
            accounts: weights.iter().map(account).collect(),
        }
    }

    /// The next job to have a turn at the time `now` and, with a budget, the length of the turn;
    /// the job keeps the turn until [`Accounts::settle`]. `None` if no job waits or the budget is
    /// spent.
    pub(super) fn next(&mut self, elapsed: Duration) -> Option<(usize, Option<Turn>)> {
        let left = self.budget.map(|budget| budget.saturating_sub(elapsed));
        if left.is_some_and(|left| left.is_zero()) {
            return None;
        }
        let waiting = self.accounts.iter().enumerate();
        let waiting = waiting.filter(|(_, account)| account.state == State::Waits);
        // Of several jobs that have had the least, take the first.
        let (job, _) = waiting.min_by(|(_, a), (_, b)| a.level().total_cmp(&b.level()))?;
        let turn = left.map(|left| self.turn(job, left, elapsed));
        self.accounts[job].state = State::HasTurn;
        self.accounts[job].since = elapsed;
        Some((job, turn))
    }

    fn turn(&self, job: usize, left: Duration, now: Duration) -> Turn {
        let account = &self.accounts[job];
        let level = self.final_level(left, now);
        let share = Duration::from_secs_f64(level * account.weight);
        let at_most = share.saturating_sub(account.spent).max(LEAST).min(left);
        let budget = self.budget.unwrap_or_default();
        let first = budget.mul_f64(FIRST * self.workers as f64) / self.accounts.len() as u32;
        Turn {
            begins_for: first.max(LEAST).max(account.spent).min(at_most),
            at_most,
        }
    }

    /// The level that all running jobs reach if the rest of the time is given to those below it.
    fn final_level(&self, left: Duration, now: Duration) -> f64 {
        let live = self.accounts.iter();
        let live = live.filter(|account| account.state != State::Through);
        let mut live: Vec<(f64, f64)> = live
            .map(|account| {
                let running = account.state == State::HasTurn;
                let since = if running { account.since } else { now };
                let spent = account.spent + now.saturating_sub(since);
                (spent.as_secs_f64(), account.weight)
            })
            .collect();
        live.sort_by(|(a, of), (b, other)| (a / of).total_cmp(&(b / other)));
        let (mut time, mut weights, mut level) =
            (left.as_secs_f64() * self.workers as f64, 0.0, 0.0);
        for (spent, weight) in live {
            // This job is above the level already, and so are all after it.
            if weights > 0.0 && spent / weight >= level {
                break;
            }
            time += spent;
            weights += weight;
            level = time / weights;
        }
        level
    }

    /// Ends a job's turn of length `took`; the job continues or is finished.
    pub(super) fn settle(&mut self, job: usize, took: Duration, through: bool) {
        let account = &mut self.accounts[job];
        // An empty turn counts, too; otherwise this job would have every turn.
        account.spent += took.max(Duration::from_millis(1));
        account.state = match through {
            true => State::Through,
            false => State::Waits,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Simulates one worker whose clock is advanced only by programs: job `n` has programs of
    /// length `programs[n]`, each of which stops `late` after it is told to. Returns the time that
    /// each job had, and the total.
    fn played(
        weights: &[f64],
        programs: &[Duration],
        late: Duration,
        budget: Duration,
    ) -> (Vec<Duration>, Duration) {
        let mut accounts = Accounts::new(weights, Some(budget), 1);
        let mut had = vec![Duration::ZERO; weights.len()];
        let mut now = Duration::ZERO;
        while let Some((job, turn)) = accounts.next(now) {
            let turn = turn.unwrap();
            assert!(turn.begins_for <= turn.at_most && turn.at_most <= budget - now);
            let mut took = Duration::ZERO;
            while took < turn.begins_for {
                took += programs[job];
                if took > turn.at_most {
                    took = turn.at_most + late;
                }
            }
            now += took;
            had[job] += took;
            accounts.settle(job, took, false);
        }
        (had, now)
    }

    #[test]
    fn a_budget_is_kept_however_long_programs_are() {
        let weights = [3.0, 2.0, 2.0, 0.5, 1.0];
        let all: f64 = weights.iter().sum();
        for seconds in [5, 30, 180] {
            let budget = Duration::from_secs(seconds);
            let programs = [ms(40), ms(60_000), ms(900), ms(5), ms(3_000)];
            let (had, now) = played(&weights, &programs, ms(10), budget);
            assert!(now >= budget && now <= budget + ms(10), "{now:?}");
            for (had, weight) in had.iter().zip(weights) {
                let share = budget.mul_f64(weight / all).as_secs_f64();
                let ratio = had.as_secs_f64() / share;
                // A program that starts near the end of a share still runs in full.
                assert!((0.4..1.6).contains(&ratio), "{seconds} s: {had:?}");
            }
        }
    }

    #[test]
    fn what_is_late_is_taken_from_what_is_left_and_all_have_their_turns() {
        // Each program stops too late by a fifth of its share.
        let weights = [1.0; 10];
        let (had, now) = played(&weights, &[ms(10_000); 10], ms(100), ms(5_000));
        assert!(now <= ms(5_100), "{now:?}");
        assert!(had.iter().all(|had| *had >= ms(250)), "{had:?}");
    }

    #[test]
    fn what_a_job_that_is_through_leaves_is_shared() {
        let mut accounts = Accounts::new(&[1.0, 1.0], Some(ms(1_000)), 1);
        let (job, turn) = accounts.next(Duration::ZERO).unwrap();
        assert_eq!((job, turn.unwrap().at_most), (0, ms(500)));
        accounts.settle(0, ms(100), true);
        let (job, turn) = accounts.next(ms(100)).unwrap();
        assert_eq!((job, turn.unwrap().at_most), (1, ms(900)));
        // It has its turn, and the other has finished.
        assert!(accounts.next(ms(100)).is_none());
        accounts.settle(1, ms(900), false);
        assert!(accounts.next(ms(1_000)).is_none());
    }

    #[test]
    fn without_a_budget_turns_have_no_end() {
        let mut accounts = Accounts::new(&[1.0, 2.0], None, 1);
        for expected in [0, 1, 1, 0] {
            let (job, turn) = accounts.next(Duration::ZERO).unwrap();
            assert_eq!((job, turn), (expected, None));
            accounts.settle(job, ms(10), false);
        }
    }
}
