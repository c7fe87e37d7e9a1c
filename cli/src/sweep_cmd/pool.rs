//! Runs processes of this program side by side, within a number of processes and a memory budget.
//!
//! A process is taken to need what the largest measured one of its group needed: the same command on
//! the same trace, with a tree or without. Before one was measured, it is taken to need what
//! [`guess`] says. A process starts if what all are taken to need fits into the budget; one that
//! does not fit even alone runs alone.
//!
//! If this process dies, however it dies, the kernel ends its processes, too
//! ([`interrupt::end_with_parent`]).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::runs::Cost;
use crate::failure::Failure;
use crate::interrupt;

/// Memory that any run needs.
const BASE: u64 = 64 << 20;
/// Memory for each byte of a packed trace. Trees need about 2 to 40 bytes, for keys and pages.
const WITH_TREE: u64 = 32;
/// The same without a tree: 7 to 500 bytes, because each record has blocks of its own, which the
/// simulated drive holds.
const WITHOUT_TREE: u64 = 512;
/// Time between two looks at the processes. The shortest replays take about ten times as long.
const LOOK: Duration = Duration::from_millis(5);
/// Time between two measurements of memory.
const MEASURE: Duration = Duration::from_millis(50);

/// A process to run.
#[derive(Debug)]
pub(super) struct Job {
    /// The caller's numbers of what it runs.
    pub(super) runs: Vec<usize>,
    pub(super) arguments: Vec<OsString>,
    /// Jobs of the same group are taken to need the same memory.
    pub(super) group: String,
    /// Memory that it is taken to need before one of its group was measured.
    pub(super) guess: u64,
}

/// How a process ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) runs: Vec<usize>,
    /// The exit status, or what ended it.
    pub(super) status: Result<u8, String>,
    /// Its last line on stderr.
    pub(super) said: String,
    pub(super) cost: Cost,
}

/// The limits.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) jobs: usize,
    pub(super) memory: u64,
    /// The largest measured peak of each group.
    pub(super) peaks: BTreeMap<String, u64>,
}

/// A running process.
struct Running {
    job: Job,
    child: Child,
    stderr: File,
    began: Instant,
    estimate: u64,
    peak: u64,
}

impl Limits {
    fn estimate(&self, job: &Job) -> u64 {
        self.peaks.get(&job.group).copied().unwrap_or(job.guess)
    }

    pub(super) fn learn(&mut self, group: &str, peak: u64) {
        // A process that was never measured says nothing.
        if peak > 0 {
            let known = self.peaks.entry(group.to_owned()).or_default();
            *known = peak.max(*known);
        }
    }
}

/// Runs all jobs, in their order as far as memory allows; tells `end` of each that has ended, and
/// whether it was the last. Stops early, without the processes, if a signal came.
///
/// # Errors
/// If a process cannot be started, or `end` fails.
pub(super) fn run(
    jobs: Vec<Job>,
    limits: &mut Limits,
    end: &mut dyn FnMut(Ended) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::cannot_run(format!("this program cannot be found: {e}")))?;
    let mut pool = Pool {
        program,
        running: Vec::new(),
        measured: Instant::now(),
    };
    let mut waiting: std::collections::VecDeque<Job> = jobs.into();
    while !(waiting.is_empty() && pool.running.is_empty()) && interrupt::stopped().is_none() {
        while let Some(at) = pool.next(&waiting, limits) {
            if let Some(job) = waiting.remove(at) {
                pool.start(job, limits)?;
            }
        }
        pool.measure();
        for (group, ended) in pool.reap() {
            limits.learn(&group, ended.cost.peak_bytes);
            end(ended)?;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

struct Pool {
    program: PathBuf,
    running: Vec<Running>,
    measured: Instant,
}

impl Pool {
    /// The place of the first waiting job that may start now.
    fn next(&self, waiting: &std::collections::VecDeque<Job>, limits: &Limits) -> Option<usize> {
        if self.running.is_empty() {
            return (!waiting.is_empty()).then_some(0);
        }
        if self.running.len() >= limits.jobs {
            return None;
        }
        let used: u64 = self.running.iter().map(|r| r.estimate.max(r.peak)).sum();
        let left = limits.memory.saturating_sub(used);
        waiting.iter().position(|job| limits.estimate(job) <= left)
    }

    fn start(&mut self, job: Job, limits: &Limits) -> Result<(), Failure> {
        let failure =
            |e: std::io::Error| Failure::cannot_run(format!("a run cannot be started: {e}"));
        let stderr = tempfile::tempfile().map_err(failure)?;
        let child = Command::new(&self.program)
            .args(&job.arguments)
            .env(interrupt::PARENT, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr.try_clone().map_err(failure)?)
            .spawn()
            .map_err(failure)?;
        self.running.push(Running {
            estimate: limits.estimate(&job),
            job,
            child,
            stderr,
            began: Instant::now(),
            peak: 0,
        });
        Ok(())
    }

    /// Reads the peak memory of each process, which is gone once it has ended.
    fn measure(&mut self) {
        let now = Instant::now();
        let is_due = now - self.measured >= MEASURE;
        for running in &mut self.running {
            if is_due || running.peak == 0 {
                running.peak = peak(running.child.id()).max(running.peak);
            }
        }
        if is_due {
            self.measured = now;
        }
    }

    /// The processes that have ended, each with its group.
    fn reap(&mut self) -> Vec<(String, Ended)> {
        let mut ended = Vec::new();
        let mut i = 0;
        while i < self.running.len() {
            let status = match self.running[i].child.try_wait() {
                Ok(None) => {
                    i += 1;
                    continue;
                }
                Ok(Some(status)) => said(status),
                Err(e) => Err(e.to_string()),
            };
            let mut running = self.running.remove(i);
            let cost = Cost {
                seconds: running.began.elapsed().as_secs_f64(),
                peak_bytes: running.peak,
            };
            let said = last_line(&mut running.stderr);
            let how = Ended {
                runs: running.job.runs,
                status,
                said,
                cost,
            };
            ended.push((running.job.group, how));
        }
        ended
    }
}

/// Processes do not outlive the pool, also if it ends with an error.
impl Drop for Pool {
    fn drop(&mut self) {
        for running in &mut self.running {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

fn said(status: ExitStatus) -> Result<u8, String> {
    match status.code().map(u8::try_from) {
        Some(Ok(code)) => Ok(code),
        _ => Err(format!("the run was ended: {status}")),
    }
}

/// The last line, without the program's name.
fn last_line(stderr: &mut File) -> String {
    let mut text = String::new();
    // What does not read is not said.
    let _ = stderr.rewind();
    let _ = stderr.read_to_string(&mut text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.unwrap_or_default().trim();
    last.strip_prefix("treering: ").unwrap_or(last).to_owned()
}

/// The largest resident size of a process so far; 0 if it has ended.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    kib(&status, "VmHWM:").unwrap_or(0) << 10
}

/// What a run of a trace file of this length is taken to need before one was measured.
pub(super) fn guess(trace_bytes: u64, has_tree: bool) -> u64 {
    let each = if has_tree { WITH_TREE } else { WITHOUT_TREE };
    BASE.saturating_add(trace_bytes.saturating_mul(each))
}

/// Three quarters of the memory that is available now; without a limit if that is unknown.
pub(super) fn available() -> u64 {
    let about = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kib(&about, "MemAvailable:").map_or(u64::MAX, |kib| (kib << 10) / 4 * 3)
}

/// The number of KiB in the line that begins with `name`.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(group: &str) -> Job {
        Job {
            runs: vec![0],
            arguments: Vec::new(),
            group: group.into(),
            guess: guess(1000, true),
        }
    }

    #[test]
    fn a_measured_run_replaces_the_guess() {
        let mut limits = Limits {
            jobs: 2,
            memory: 1 << 30,
            peaks: BTreeMap::new(),
        };
        assert_eq!(limits.estimate(&job("a")), BASE + 32_000);
        limits.learn("a", 5 << 20);
        limits.learn("a", 3 << 20);
        limits.learn("a", 0);
        assert_eq!(limits.estimate(&job("a")), 5 << 20);
        assert_eq!(limits.estimate(&job("b")), BASE + 32_000);
        assert!(guess(1000, false) > guess(1000, true));
    }

    #[test]
    fn memory_is_read_from_the_lines_of_the_kernel() {
        let text = "VmPeak:\t  9 kB\nVmHWM:\t   17056 kB\n";
        assert_eq!(kib(text, "VmHWM:"), Some(17_056));
        assert!(peak(std::process::id()) > 0, "this process has memory");
    }
}
