//! The work of a sweep: which runs are done, which are run now, and what came out.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::{Duration, Instant};

use super::columnar;
use super::plan::{Plan, Run};
use super::points::Point;
use super::pool::{self, Ended, Job, Limits};
use super::runs::{Cost, Failed, Folder, Kind, Outcome};
use super::table::{Result as Row, State, Table};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;

/// Flags of `replay` that `predict` does not take: they are about runs.
const OF_RUNS: [&str; 5] = [
    "contention-split",
    "daily",
    "no-predict",
    "strict",
    "timing",
];

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
        let jobs: Vec<Job> = missing.iter().map(|at| self.job(kind, *at)).collect();
        let mut limits = self.limits.clone();
        let mut told = Told::new(kind, jobs.len());
        let mut streamed = Streamed::new();
        let ran = pool::run(jobs, &mut limits, &mut |ended| {
            self.end(kind, ended)?;
            told.one_more();
            streamed.write(|| self.write().map(drop))
        });
        self.limits.peaks = limits.peaks;
        ran
    }

    fn job(&self, kind: Kind, at: usize) -> Job {
        let run = &self.plan.runs[at];
        let left_out: &[&str] = match kind {
            Kind::Replay => &[],
            Kind::Predict => &OF_RUNS,
        };
        let mut words = vec![kind.command().into()];
        words.push("--json".into());
        words.push(self.folder.part(kind, &run.hash).into_os_string());
        if let Some(name) = &run.statistics
            && self.shared.get(name.as_str()).is_some_and(|runs| *runs > 1)
        {
            words.push("--statistics".into());
            words.push(self.folder.statistics(name).into_os_string());
            words.push("--save-statistics".into());
        }
        let flags = run.point.arguments(left_out);
        words.extend(flags.into_iter().map(Into::into));
        Job {
            run: at,
            arguments: words,
            group: group(kind, run),
            guess: pool::guess(run.trace_bytes, has_tree(run)),
        }
    }

    /// Takes the result of a process.
    fn end(&mut self, kind: Kind, ended: Ended) -> Result<(), Failure> {
        let hash = &self.plan.runs[ended.run].hash;
        let outcome = match ended.status {
            // It was stopped together with this process; there is nothing to record.
            Ok(130 | 143) if is_stopped_soon() => return Ok(()),
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
        let row = Row::of(kind, &outcome);
        self.new += 1;
        if kind == Kind::Replay {
            self.costs.insert(hash.clone(), ended.cost);
        }
        self.results(kind).insert(ended.run, row);
        Ok(())
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

/// Runs of a group need about the same memory.
fn group(kind: Kind, run: &Run) -> String {
    let (command, has_tree) = (kind.command(), has_tree(run));
    format!("{command} {has_tree} {}", run.point.trace)
}

/// Whether a tree runs, and not the drive alone.
fn has_tree(run: &Run) -> bool {
    run.point.get("tree") != Some("none")
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

    fn one_more(&mut self) {
        self.done += 1;
        self.bar.tell(self.what, self.done, self.all);
        if !self.bar.is_shown() && self.last.elapsed() >= REPORT && self.done < self.all {
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
