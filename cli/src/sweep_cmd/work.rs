//! The work of a sweep: which runs are done, which are run now, and what came out.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::columnar;
use super::jobs::{self, Jobs, group};
use super::plan::{Plan, Run};
use super::points::Point;
use super::pool::{self, Ended, Job, Limits};
use super::runs::{Cost, Failed, Folder, Kind, Outcome};
use super::table::{Result as Row, State, Table};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;

/// Time between two tables while runs are going on.
const STREAM: Duration = Duration::from_secs(5);
/// Time between two lines of progress if stderr is no terminal.
const REPORT: Duration = Duration::from_secs(30);

/// The state of a sweep.
pub(crate) struct Work<'a> {
    pub(super) plan: &'a Plan,
    pub(super) parameters: Vec<String>,
    folder: Folder,
    limits: Limits,
    /// What is known of each run, by its place in the plan.
    replays: BTreeMap<usize, Row>,
    predictions: BTreeMap<usize, Row>,
    /// Number of reports that this call has made.
    pub(super) new: usize,
    costs: BTreeMap<String, Cost>,
    /// Number of runs that use the same statistics, by their name.
    shared: BTreeMap<&'a str, usize>,
}

impl<'a> Work<'a> {
    /// The work, with what is already in the folder.
    pub(crate) fn new(plan: &'a Plan, parameters: Vec<String>, folder: Folder) -> Work<'a> {
        let costs = folder.costs();
        let mut limits = Limits {
            jobs: 1,
            memory: u64::MAX,
            peaks: BTreeMap::new(),
        };
        let mut shared = BTreeMap::new();
        for run in &plan.runs {
            if let Some(name) = &run.statistics {
                *shared.entry(name.as_str()).or_default() += 1;
            }
            if let Some(cost) = costs.get(&run.hash) {
                limits.learn(&group(Kind::Replay, run), cost.peak_bytes);
            }
        }
        Work {
            plan,
            parameters,
            folder,
            limits,
            replays: BTreeMap::new(),
            predictions: BTreeMap::new(),
            new: 0,
            costs,
            shared,
        }
    }

    /// Sets the number of processes and their memory.
    pub(crate) fn limit(&mut self, jobs: Option<u32>, memory: Option<u64>) {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.limits.jobs = jobs.map_or_else(cores, |jobs| jobs.max(1) as usize);
        self.limits.memory = memory.unwrap_or_else(pool::available);
    }

    fn results(&mut self, kind: Kind) -> &mut BTreeMap<usize, Row> {
        match kind {
            Kind::Replay => &mut self.replays,
            Kind::Predict => &mut self.predictions,
        }
    }

    /// What the folder, or the plan, knows of a run.
    pub(crate) fn known(&self, kind: Kind, run: &Run) -> Option<Outcome> {
        match &run.refused {
            Some(why) => Some(Outcome::Failed(Failed::new(
                why.status,
                why.message.clone(),
                None,
            ))),
            None => self.folder.outcome(kind, &run.hash),
        }
    }

    /// Runs those of `wanted` that are not done.
    pub(crate) fn run(&mut self, kind: Kind, wanted: Vec<usize>) -> Result<(), Failure> {
        let plan = self.plan;
        let mut missing = Vec::new();
        for at in wanted {
            match self.known(kind, &plan.runs[at]) {
                Some(outcome) => {
                    self.results(kind).insert(at, Row::of(kind, &outcome));
                }
                None => missing.push(at),
            }
        }
        let mut told = Told::new(kind, missing.len());
        let mut streamed = Streamed::new();
        let jobs = self.jobs().together(kind, &missing)?;
        let mut left = self.run_jobs(kind, jobs, (&mut told, &mut streamed))?;
        left.sort_unstable();
        let jobs = self.jobs().alone(kind, &left);
        self.run_jobs(kind, jobs, (&mut told, &mut streamed))?;
        Ok(())
    }

    /// Runs processes; returns the runs that must be run alone.
    fn run_jobs(
        &mut self,
        kind: Kind,
        jobs: Vec<Job>,
        (told, streamed): (&mut Told, &mut Streamed),
    ) -> Result<Vec<usize>, Failure> {
        let mut limits = self.limits.clone();
        let mut left = Vec::new();
        let ran = pool::run(jobs, &mut limits, &mut |ended| {
            told.more(self.end(kind, ended, &mut left)?);
            streamed.write(|| self.write().map(drop))
        });
        self.limits.peaks = limits.peaks;
        ran.map(|()| left)
    }

    fn jobs(&self) -> Jobs<'_> {
        Jobs {
            plan: self.plan,
            folder: &self.folder,
            shared: &self.shared,
            at_a_time: self.limits.jobs,
        }
    }

    /// Takes the results of a process; returns how many. Runs that shared it and have no report are
    /// left.
    fn end(&mut self, kind: Kind, ended: Ended, left: &mut Vec<usize>) -> Result<u64, Failure> {
        let [run] = ended.runs[..] else {
            return self.end_together(kind, &ended, left);
        };
        let hash = &self.plan.runs[run].hash;
        let outcome = match ended.status {
            // It was stopped together with this process; there is nothing to record.
            Ok(130 | 143) if is_stopped_soon() => return Ok(1),
            Ok(0) => match self.folder.take(kind, hash)? {
                Some(outcome) => outcome,
                None => self.fail(kind, hash, 3, "the run wrote no whole report".into())?,
            },
            // The place of the statistics is not the point's, so the run is worth another try.
            Ok(2) if ended.said.contains("save-statistics") => {
                self.fail(kind, hash, 3, ended.said)?
            }
            Ok(status @ (2 | 4)) => self.fail(kind, hash, status, ended.said)?,
            Ok(status) => {
                let reason = match ended.said.as_str() {
                    "" => format!("the run ended with status {status}"),
                    said => said.into(),
                };
                self.fail(kind, hash, 3, reason)?
            }
            Err(how) => self.fail(kind, hash, 3, how)?,
        };
        self.know(kind, run, &outcome, ended.cost);
        Ok(1)
    }

    /// Takes the reports that runs of one process have made. Whatever happened to the others, they
    /// are run alone, which tells what is wrong with them.
    fn end_together(
        &mut self,
        kind: Kind,
        ended: &Ended,
        left: &mut Vec<usize>,
    ) -> Result<u64, Failure> {
        let cost = Cost {
            seconds: ended.cost.seconds / ended.runs.len() as f64,
            ..ended.cost
        };
        if let Some(first) = ended.runs.first() {
            // That it stays would be harmless.
            let _ = std::fs::remove_file(jobs::list(&self.folder, kind, &self.plan.runs[*first]));
        }
        let mut taken = 0;
        for &run in &ended.runs {
            match self.folder.take(kind, &self.plan.runs[run].hash)? {
                Some(outcome) => {
                    self.know(kind, run, &outcome, cost);
                    taken += 1;
                }
                None => left.push(run),
            }
        }
        Ok(taken)
    }

    fn know(&mut self, kind: Kind, run: usize, outcome: &Outcome, cost: Cost) {
        self.new += 1;
        if kind == Kind::Replay {
            let hash = self.plan.runs[run].hash.clone();
            self.costs.insert(hash, cost);
        }
        self.results(kind).insert(run, Row::of(kind, outcome));
    }

    fn fail(&self, kind: Kind, hash: &str, status: u8, why: String) -> Result<Outcome, Failure> {
        self.folder.fail(kind, hash, status, why)
    }

    /// The runs with the lowest predicted write amplification; of equal ones, the earlier.
    pub(super) fn best(&self, count: usize) -> Vec<usize> {
        let predicted = |(at, row): (&usize, &Row)| Some((*at, row.predicted()?));
        let mut ranked: Vec<(usize, f64)> = self.predictions.iter().filter_map(predicted).collect();
        ranked.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        ranked.truncate(count);
        let mut best: Vec<usize> = ranked.into_iter().map(|(at, _)| at).collect();
        best.sort_unstable();
        best
    }

    /// What is known of each run, in the order of the plan: of those that were replayed, that.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&Run, &Row)> {
        let row = |at: &usize| self.replays.get(at).or_else(|| self.predictions.get(at));
        let all = self.plan.runs.iter().enumerate();
        all.filter_map(move |(at, run)| Some((run, row(&at)?)))
    }

    /// Number of runs that are known.
    pub(crate) fn done(&self) -> usize {
        self.rows().count()
    }

    pub(super) fn table(&self) -> Table {
        let rows = self.rows();
        let rows = rows.map(|(run, row)| (&run.point, run.hash.as_str(), row));
        Table::of(&self.parameters, rows)
    }

    /// Writes the table as CSV and Parquet, and the costs; tells whether this build has Parquet.
    pub(super) fn write(&self) -> Result<bool, Failure> {
        let table = self.table();
        self.folder.write("results.csv", &table.csv())?;
        let parquet = columnar::parquet(&table)?;
        if let Some(bytes) = &parquet {
            self.folder.write("results.parquet", bytes)?;
        }
        self.folder.write_costs(&self.costs)?;
        Ok(parquet.is_some())
    }

    /// The folder of the results.
    pub(super) fn folder(&self) -> PathBuf {
        self.folder.file("")
    }

    /// Writes a file of the results.
    pub(super) fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.folder.write(name, bytes)
    }

    /// The failed runs, each with its point.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&Point, &Row)> {
        let rows = self.rows().map(|(run, row)| (&run.point, row));
        rows.filter(|(_, row)| matches!(row.state, State::Failed | State::NotReached))
    }

    /// The failure of the sweep if runs have failed: that it could not run comes before what was
    /// not reached, and bad input last.
    pub(super) fn failure(&self) -> Option<Failure> {
        let failed: Vec<_> = self.failed().collect();
        let has = |status| failed.iter().any(|(_, row)| row.status == status);
        let (point, row) = failed.first()?;
        let sentence = format!(
            "{} of {} runs failed, first {}: {}",
            failed.len(),
            self.plan.runs.len(),
            point.said(&self.parameters),
            row.reason
        );
        Some(match () {
            () if has(3) => Failure::cannot_run(sentence),
            () if has(4) => Failure::not_reached(sentence),
            () => Failure::usage(sentence),
        })
    }
}

/// Whether a signal stops this process, too. Ctrl-C reaches all processes, in any order.
fn is_stopped_soon() -> bool {
    let began = Instant::now();
    while interrupt::stopped().is_none() && began.elapsed() < Duration::from_millis(100) {
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt::stopped().is_some()
}

/// Tells the progress: as a bar on a terminal, else as a line now and then.
struct Told {
    what: &'static str,
    done: u64,
    all: u64,
    bar: Progress,
    began: Instant,
    last: Instant,
}

impl Told {
    fn new(kind: Kind, all: usize) -> Told {
        let what = match kind {
            Kind::Replay => "replaying",
            Kind::Predict => "predicting",
        };
        let now = Instant::now();
        let mut bar = Progress::new();
        bar.tell(what, 0, all as u64);
        Told {
            what,
            done: 0,
            all: all as u64,
            bar,
            began: now,
            last: now,
        }
    }

    fn more(&mut self, runs: u64) {
        self.done += runs;
        self.bar.tell(self.what, self.done, self.all);
        if !self.bar.is_shown()
            && self.last.elapsed() >= REPORT
            && 0 < self.done
            && self.done < self.all
        {
            self.last = Instant::now();
            let each = self.began.elapsed().as_secs_f64() / self.done as f64;
            let left = each * (self.all - self.done) as f64;
            let line = format!(
                "treering: {}: {} of {} runs, about {left:.0} s left\n",
                self.what, self.done, self.all
            );
            // If nobody listens, the runs go on.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

/// Writes the table now and then, seldom enough to take a small part of the time.
struct Streamed {
    last: Instant,
    took: Duration,
}

impl Streamed {
    fn new() -> Streamed {
        Streamed {
            last: Instant::now(),
            took: Duration::ZERO,
        }
    }

    fn write(&mut self, write: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        if self.last.elapsed() < STREAM.max(self.took * 20) {
            return Ok(());
        }
        let began = Instant::now();
        write()?;
        self.took = began.elapsed();
        self.last = Instant::now();
        Ok(())
    }
}
