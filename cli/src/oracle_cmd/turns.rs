//! Who has the next turn, and how long: the accounts of jobs, without the jobs.
//!
//! Each job has a weight. Whoever has had least, by its weight, is next, for as long as all its turns
//! before, and at first for a short turn. With a budget a turn has two ends. Behind the first no
//! program is begun; at the second what is under way is interrupted. The second is the job's share:
//! what it would have in the end if all jobs that go on came to the same level, by their weights. So
//! a job whose first program is long has its share at once, and no more than that, and whatever
//! jobs are through with leave is shared by the others.

use std::time::Duration;

/// Of a budget each first turn takes this share of what would be the job's, or at least [`LEAST`].
const FIRST: f64 = 0.06;
const LEAST: Duration = Duration::from_millis(20);

/// How long a turn may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// After this no program is begun.
    pub(super) begins_for: Duration,
    /// After this what is under way is interrupted.
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
    /// When its last turn began.
    since: Duration,
}

impl Account {
    fn level(&self) -> f64 {
        self.spent.as_secs_f64() / self.weight
    }
}

/// The accounts of all jobs, by their number.
pub(super) struct Accounts {
    budget: Option<Duration>,
    /// So many jobs have a turn at a time.
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

    /// The job whose turn it is when so much time has passed, and with a budget how long; the job has
    /// it until [`Accounts::settle`]. `None`: nobody waits, or the budget is spent.
    pub(super) fn next(&mut self, elapsed: Duration) -> Option<(usize, Option<Turn>)> {
        let left = self.budget.map(|budget| budget.saturating_sub(elapsed));
        if left.is_some_and(|left| left.is_zero()) {
            return None;
        }
        let waiting = self.accounts.iter().enumerate();
        let waiting = waiting.filter(|(_, account)| account.state == State::Waits);
        // The first of those that have had least.
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

    /// The level that all come to that go on, if what is left of the time is given to those that are
    /// below it.
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
            // This one has more than that already, and so have all after it.
            if weights > 0.0 && spent / weight >= level {
                break;
            }
            time += spent;
            weights += weight;
            level = time / weights;
        }
        level
    }

    /// The job's turn is over; it took so long, and the job goes on or is through.
    pub(super) fn settle(&mut self, job: usize, took: Duration, through: bool) {
        let account = &mut self.accounts[job];
        // A turn of nothing counts, too, or it would be this job's turn for ever.
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

    /// One worker, whose clock moves only by what programs take: job `n` has programs of
    /// `programs[n]`, each of which stops `late` after it is told to. What each job had, and how
    /// much time passed.
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
                // A program that is begun near the end of a share is as long as it is.
                assert!((0.4..1.6).contains(&ratio), "{seconds} s: {had:?}");
            }
        }
    }

    #[test]
    fn what_is_late_is_taken_from_what_is_left_and_all_have_their_turns() {
        // Each stops too late by a fifth of its share.
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
        // It has its turn, and the other is through.
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
