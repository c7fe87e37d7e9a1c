//! Time limits for programs.
//!
//! A campaign with little time cannot wait for a long program. A runner therefore asks its deadline
//! between two steps and stops once it is over. The checks made until then remain valid.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The least time for reducing a failing program.
const LEAST_SHRINKING: Duration = Duration::from_secs(1);

/// Set when the whole process is told to stop.
static STOPPED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Ends every deadline of the process once `flag` is set; for signal handlers. Only the first call
/// has an effect.
pub fn end_with(flag: Arc<AtomicBool>) {
    let _ = STOPPED.set(flag);
}

/// A time limit. It remembers whether anyone was told to stop.
///
/// ```
/// use treering_oracle::Deadline;
///
/// let deadline = Deadline::after_questions(2);
/// assert!(!deadline.is_over() && !deadline.is_over() && !deadline.has_struck());
/// assert!(deadline.is_over() && deadline.has_struck());
/// ```
#[derive(Debug)]
pub struct Deadline {
    clock: Clock,
    struck: AtomicBool,
}

#[derive(Debug)]
enum Clock {
    Never,
    At(Instant),
    /// Over after this many more calls of `is_over`.
    Questions(AtomicU64),
}

impl Deadline {
    fn on(clock: Clock) -> Deadline {
        Deadline {
            clock,
            struck: AtomicBool::new(false),
        }
    }

    /// A deadline that is never over.
    #[must_use]
    pub fn never() -> Deadline {
        Deadline::on(Clock::Never)
    }

    /// A deadline at a point in time. `None` means never.
    #[must_use]
    pub fn at(when: Option<Instant>) -> Deadline {
        Deadline::on(when.map_or(Clock::Never, Clock::At))
    }

    /// A deadline that is over after `n` calls of [`Deadline::is_over`], so that tests repeat on
    /// any machine.
    #[must_use]
    pub fn after_questions(n: u64) -> Deadline {
        Deadline::on(Clock::Questions(AtomicU64::new(n)))
    }

    /// Whether to stop now. The caller must stop if this returns `true`.
    pub fn is_over(&self) -> bool {
        let stopped = STOPPED.get();
        let stopped = stopped.is_some_and(|flag| flag.load(Ordering::Relaxed));
        let over = match &self.clock {
            _ if stopped => true,
            Clock::Never => false,
            Clock::At(when) => Instant::now() >= *when,
            Clock::Questions(left) => {
                let less = |left: u64| left.checked_sub(1);
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
                    .is_err()
            }
        };
        if over {
            self.struck.store(true, Ordering::Relaxed);
        }
        over
    }

    /// Whether [`Deadline::is_over`] has ever returned `true`.
    pub fn has_struck(&self) -> bool {
        self.struck.load(Ordering::Relaxed)
    }

    /// A separate deadline for a first part, after this share of the remaining time.
    #[must_use]
    pub fn part(&self, share: f64) -> Deadline {
        Deadline::on(match &self.clock {
            Clock::Never => Clock::Never,
            Clock::At(when) => {
                let now = Instant::now();
                let left = when.saturating_duration_since(now);
                Clock::At(now + left.mul_f64(share))
            }
            Clock::Questions(left) => {
                let left = left.load(Ordering::Relaxed) as f64;
                Clock::Questions(AtomicU64::new((left * share) as u64))
            }
        })
    }

    /// A separate deadline for reducing a failing program: this one, but at least a second from
    /// now.
    #[must_use]
    pub fn for_shrinking(&self) -> Deadline {
        Deadline::on(match &self.clock {
            Clock::At(when) => Clock::At((*when).max(Instant::now() + LEAST_SHRINKING)),
            Clock::Never | Clock::Questions(_) => Clock::Never,
        })
    }

    /// The earlier of this deadline and `time` from now.
    #[must_use]
    pub fn within(self, time: Duration) -> Deadline {
        let latest = Instant::now() + time;
        Deadline::on(match self.clock {
            Clock::At(when) => Clock::At(when.min(latest)),
            Clock::Never => Clock::At(latest),
            Clock::Questions(left) => Clock::Questions(left),
        })
    }

    /// Takes over from a part of it whether anyone was told to stop.
    pub fn join(&self, part: &Deadline) {
        if part.has_struck() {
            self.struck.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_strikes_once_it_is_over_and_only_then() {
        let never = Deadline::never();
        assert!(!never.is_over() && !never.has_struck());
        let later = Deadline::after_questions(2);
        assert!(!later.is_over() && !later.is_over() && !later.has_struck());
        assert!(later.is_over() && later.has_struck());
        let past = Deadline::at(Some(Instant::now()));
        assert!(past.is_over());
    }

    #[test]
    fn what_makes_small_has_a_second_and_else_what_is_left() {
        let at = |seconds| Instant::now() + Duration::from_secs(seconds);
        let limit = |deadline: Deadline| match deadline.clock {
            Clock::At(when) => when,
            _ => panic!("it has no end"),
        };
        let past = limit(Deadline::at(Some(at(0))).for_shrinking());
        assert!(past > at(0) && past <= at(1));
        let later = at(50);
        let left = || Deadline::at(Some(later)).for_shrinking();
        assert_eq!(limit(left()), later);
        assert!(limit(left().within(Duration::from_secs(3))) < at(4));
        assert!(!Deadline::never().for_shrinking().is_over());
        assert!(
            limit(
                Deadline::never()
                    .for_shrinking()
                    .within(Duration::from_secs(3))
            ) < at(4)
        );
    }

    #[test]
    fn a_part_is_over_before_the_whole() {
        let whole = Deadline::after_questions(10);
        let part = whole.part(0.5);
        assert_eq!((0..10).filter(|_| !part.is_over()).count(), 5);
        assert!(!whole.has_struck());
        whole.join(&part);
        assert!(whole.has_struck() && !whole.is_over());
    }
}
