//! A clock for "nothing has happened for a minute" that does not accuse an engine on a busy machine.
//!
//! A thread without a processor makes no progress, and that is not its fault. So the time that
//! threads spend in the run queue does not count:
//!
//! ```text
//!   wall time     |----|----|----|----|----|----|     60 s
//!   run queue     |..##|####|####|..##|....|....|     the thread that waited longest: 12 s
//!   fair time                                         48 s
//! ```
//!
//! Linux counts a thread's time in the run queue in `/proc/PID/task/TID/schedstat` (second number,
//! in nanoseconds; kernel's `Documentation/scheduler/sched-stats.rst`). It adds a wait when that
//! ends, so it is taken off afterwards. Elsewhere all time counts.
//!
//! Threads that spin also wait for each other. Fair time is therefore at least a tenth of the wall
//! time, so that they are noticed, too.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// Looking at all threads costs some microseconds each, so it is done this often at most.
const LOOK: Duration = Duration::from_millis(100);
/// Fair time is at least one part in so many of the wall time.
const LEAST_PART: u32 = 10;

/// Counts time in which no thread of some processes waits for a processor; see the module
/// documentation.
#[derive(Debug)]
pub(crate) struct FairClock {
    began: Instant,
    looked: Instant,
    /// Run queue time that has been taken off.
    queued: Duration,
    /// Of each thread, by its number in the system.
    threads: HashMap<u64, Duration>,
    processes: Vec<u32>,
}

impl FairClock {
    /// A clock for the threads of this process.
    pub(crate) fn new() -> FairClock {
        FairClock::with(&[])
    }

    /// A clock for the threads of this process and of `others`, by their process numbers.
    pub(crate) fn with(others: &[u32]) -> FairClock {
        let mut processes = vec![std::process::id()];
        processes.extend(others);
        let now = Instant::now();
        let threads = run_queues(&processes);
        FairClock {
            began: now,
            looked: now,
            queued: Duration::ZERO,
            threads,
            processes,
        }
    }

    /// The fair time since the clock was made. It may go back a little, when a long wait has ended.
    pub(crate) fn now(&mut self) -> Duration {
        let now = Instant::now();
        if now - self.looked >= LOOK {
            self.looked = now;
            let threads = run_queues(&self.processes);
            self.queued += longest_wait(&self.threads, &threads);
            self.threads = threads;
        }
        fair(now - self.began, self.queued)
    }
}

/// Measures how long something has made no progress.
#[derive(Debug)]
pub(crate) struct Patience<Progress> {
    clock: FairClock,
    /// The progress that was seen last, and when it was first seen.
    seen: Progress,
    since: Duration,
}

impl<Progress: PartialEq> Patience<Progress> {
    /// Begins at this progress.
    pub(crate) fn new(mut clock: FairClock, progress: Progress) -> Self {
        Patience {
            since: clock.now(),
            seen: progress,
            clock,
        }
    }

    /// The fair time since the progress was another one.
    pub(crate) fn without(&mut self, progress: Progress) -> Duration {
        let now = self.clock.now();
        if progress != self.seen {
            (self.seen, self.since) = (progress, now);
        }
        now.saturating_sub(self.since)
    }
}

fn fair(wall: Duration, queued: Duration) -> Duration {
    wall.saturating_sub(queued).max(wall / LEAST_PART)
}

/// The longest time that a thread has waited between two looks. A thread of the second look alone
/// has begun between them.
fn longest_wait(before: &HashMap<u64, Duration>, after: &HashMap<u64, Duration>) -> Duration {
    let waited = after.iter().map(|(thread, &queued)| {
        let then = before.get(thread).copied().unwrap_or_default();
        queued.saturating_sub(then)
    });
    waited.max().unwrap_or_default()
}

/// The time that each thread of the processes has spent in the run queue; nothing of a thread that
/// has just ended, or where the system does not tell.
fn run_queues(processes: &[u32]) -> HashMap<u64, Duration> {
    let folders = processes.iter().map(|id| format!("/proc/{id}/task"));
    let tasks = folders.filter_map(|folder| fs::read_dir(folder).ok());
    tasks
        .flat_map(|tasks| tasks.flatten())
        .filter_map(|task| {
            let thread = task.file_name().to_str()?.parse().ok()?;
            let figures = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let queued = figures.split_whitespace().nth(1)?.parse().ok()?;
            Some((thread, Duration::from_nanos(queued)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(of: &[(u64, u64)]) -> HashMap<u64, Duration> {
        let threads = of.iter();
        threads
            .map(|&(thread, seconds)| (thread, Duration::from_secs(seconds)))
            .collect()
    }

    #[test]
    fn the_thread_that_waited_longest_decides() {
        let before = seconds(&[(1, 5), (2, 50), (3, 7)]);
        let after = seconds(&[(1, 9), (2, 51), (4, 3)]);
        assert_eq!(longest_wait(&before, &after), Duration::from_secs(4));
        assert_eq!(longest_wait(&before, &HashMap::new()), Duration::ZERO);
    }

    #[test]
    fn time_in_the_run_queue_does_not_count_but_for_a_tenth() {
        let of = |wall, queued| fair(Duration::from_secs(wall), Duration::from_secs(queued));
        assert_eq!(of(60, 0), Duration::from_secs(60));
        assert_eq!(of(60, 12), Duration::from_secs(48));
        assert_eq!(of(60, 59), Duration::from_secs(6));
        assert_eq!(of(60, 100), Duration::from_secs(6));
    }

    /// More threads spin than there are processors, so some wait.
    #[cfg(target_os = "linux")]
    #[test]
    fn threads_that_outnumber_the_processors_wait_for_them() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 * processors {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let mut clock = FairClock::new();
            // Some threads have run and waited by then, on any machine.
            while clock.queued < LOOK && clock.began.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(LOOK);
                clock.now();
            }
            over.store(true, Ordering::Relaxed);
            assert!(clock.queued >= LOOK);
            assert!(clock.now() < clock.began.elapsed());
        });
    }
}
