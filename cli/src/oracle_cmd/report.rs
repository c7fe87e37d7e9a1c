//! The output of `treering oracle`: a line for each run, the full account of each violation, and
//! the JSON document `treering.oracle/1`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use treering_oracle::campaign::Outcome;
use treering_oracle::crash::{Phase, Point};
use treering_oracle::differential::Failure as Found;
use treering_oracle::edges::Edges;
use treering_oracle::history::History;
use treering_oracle::reach::{Area, Reach, batches};
use treering_oracle::{Engine, Finding, Program, Tally};
use treering_specs::conformance::module::Module;

use super::runs::Mode;

/// The number of programs after which a run should have met every limit. Of histories, one in six
/// goes to the limits, thousands of times.
fn limits_want(mode: Mode) -> u64 {
    match mode {
        Mode::Concurrent => 12,
        _ => 100,
    }
}

/// With this many operations, a run without batches has missed them.
const BATCHES_WANTED: u64 = 2_000;

/// Maximum width of the text.
const WIDTH: usize = 100;

/// Name of the count of different spec actions that were taken.
pub(super) const ACTIONS_TAKEN: &str = "actions of the spec taken";

/// The results of one mode on one engine.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) engine: String,
    pub(super) mode: Mode,
    /// Programs started.
    pub(super) runs: u64,
    /// Programs that were interrupted because the time was up.
    pub(super) interrupted: u64,
    /// How often the run did what its mode is for (see [`Mode::purpose`]).
    pub(super) did: u64,
    /// Whether the run had a time budget. Then it may have missed things for lack of time only.
    pub(super) lenient: bool,
    pub(super) elapsed: Duration,
    pub(super) tally: Tally,
    /// Number of distinct crash states.
    pub(super) crash_states: u64,
    /// How often a store was opened after a crash and judged.
    pub(super) recoveries: u64,
    pub(super) points: BTreeMap<(Phase, Point), u64>,
    /// Histories judged for linearizability.
    pub(super) histories: u64,
    /// Further counts.
    pub(super) counts: Vec<(String, u64)>,
    /// A history that is not linearizable, and its seed.
    pub(super) history: Option<(u64, History)>,
    /// Spec actions that should be taken, and how often each was.
    pub(super) actions: Reach,
    /// Spec actions that the engine does not have.
    pub(super) never_does: Vec<&'static str>,
    /// What should have been exercised and never was, apart from limits.
    pub(super) never: Vec<String>,
    /// The limits of the engine that programs should come to.
    pub(super) limits: Edges,
    pub(super) finding: Option<Finding>,
    /// The episode whose event `WalRecovery` refused: its store, its seed, and whether it had
    /// threads.
    pub(super) refused: Option<(usize, u64, bool)>,
    /// The event that another mirror refused, as a TLA+ behaviour; or why there is none.
    pub(super) behaviour: Option<Result<Module, String>>,
    /// The seed of the program that failed, and the smallest program that fails in the same way.
    pub(super) failure: Option<(u64, Box<Found>)>,
}

/// The results of all runs.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
    pub(super) budget: Option<Spent>,
}

/// The time budget, and the time used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    pub(super) wanted: Duration,
    pub(super) took: Duration,
}

impl Row {
    pub(super) fn new(engine: String, mode: Mode) -> Row {
        Row {
            engine,
            mode,
            runs: 0,
            interrupted: 0,
            did: 0,
            lenient: false,
            elapsed: Duration::ZERO,
            tally: Tally::default(),
            crash_states: 0,
            recoveries: 0,
            points: BTreeMap::new(),
            histories: 0,
            counts: Vec::new(),
            history: None,
            actions: Reach::default(),
            never_does: Vec::new(),
            never: Vec::new(),
            limits: Edges::default(),
            finding: None,
            refused: None,
            behaviour: None,
            failure: None,
        }
    }

    /// The result of a program that was run again.
    pub(super) fn replayed(engine: String, program: &Program, finding: Option<Finding>) -> Row {
        let mut row = Row::new(engine, Mode::of(program));
        row.runs = 1;
        row.tally.operations = program.ops.len() as u64;
        row.finding = finding;
        row
    }

    /// Adds to the amount of work done.
    pub(super) fn note<T, E>(&mut self, outcome: &Outcome<T, E>) {
        self.runs = outcome.runs;
        self.interrupted = outcome.interrupted;
        self.elapsed = outcome.elapsed;
    }

    /// Adds what should have happened to batches and has not, if the engine has batches.
    pub(super) fn note_batches(&mut self, engine: &dyn Engine) {
        if engine.batch_bytes().is_none() || self.tally.operations < BATCHES_WANTED {
            return;
        }
        let written = (Area::Step, batches::WRITTEN);
        let wanted = match self.mode {
            Mode::Differential | Mode::Concurrent => vec![written],
            Mode::Crash => vec![written, (Area::Fault, batches::CUT)],
            // The mirrors know no batches.
            Mode::Events | Mode::Damage => Vec::new(),
        };
        for (area, what) in wanted {
            if self.tally.reach.of(area, what).unwrap_or_default() == 0 {
                self.never.push(what.to_owned());
            }
        }
    }

    /// The finding, if there is one.
    pub(super) fn fail(&mut self, failure: Option<(u64, Box<Found>)>) {
        self.finding = failure.as_ref().map(|(_, found)| found.finding.clone());
        self.failure = failure;
    }

    /// Adds a later turn of the same job, which ran other programs.
    pub(super) fn add(&mut self, turn: Row) {
        self.runs += turn.runs;
        self.interrupted += turn.interrupted;
        self.did += turn.did;
        self.elapsed += turn.elapsed;
        self.tally.add(&turn.tally);
        self.crash_states += turn.crash_states;
        self.recoveries += turn.recoveries;
        self.histories += turn.histories;
        for (point, n) in turn.points {
            *self.points.entry(point).or_default() += n;
        }
        for (what, n) in turn.counts {
            match self.counts.iter_mut().find(|(known, _)| *known == what) {
                // The count of different actions cannot be added up.
                Some((_, sum)) if what == ACTIONS_TAKEN => *sum = n.max(*sum),
                Some((_, sum)) => *sum += n,
                None => self.counts.push((what, n)),
            }
        }
        self.actions.add(&turn.actions);
        self.never.retain(|what| turn.never.contains(what));
        self.limits = turn.limits;
        self.history = turn.history;
        self.finding = turn.finding;
        self.refused = turn.refused;
        self.behaviour = turn.behaviour;
        self.failure = turn.failure;
    }

    /// How often the run met each thing that it could meet.
    pub(super) fn reach(&self) -> Reach {
        let mut reach = self.actions.clone();
        reach.add(&self.tally.reach);
        reach.expect_no(Area::Step, &self.never_does);
        self.limits
            .names()
            .for_each(|limit| reach.want(Area::Limit, limit));
        for (limit, n) in self.tally.edges.each() {
            reach.met(Area::Limit, limit, n);
        }
        for ((phase, point), n) in &self.points {
            let what = format!("power cut in {} at a {}", phase.name(), point.name());
            reach.met(Area::Fault, what, *n);
        }
        reach
    }

    /// What should have been exercised and never was.
    pub(super) fn never_reached(&self) -> Vec<String> {
        let mut never = self.never.clone();
        if self.runs - self.interrupted >= limits_want(self.mode) {
            never.extend(self.limits.without(self.tally.edges).names());
        }
        never
    }

    /// Whether everything was reached; with a time budget, whether at least the purpose of the mode
    /// was.
    fn exercised(&self) -> bool {
        match self.lenient {
            true => self.did > 0,
            false => self.never_reached().is_empty(),
        }
    }

    fn verdict(&self) -> &'static str {
        match (&self.finding, self.exercised()) {
            (Some(_), _) => "violated",
            (None, false) => "not-exercised",
            (None, true) => "holds",
        }
    }

    /// The lines that are printed for the run.
    pub(super) fn line(&self) -> String {
        let mut line = format!(
            "{:<16} {:<13} {:<13}",
            self.engine,
            self.mode.name(),
            self.verdict()
        );
        let _ = write!(
            line,
            " {} programs, {} operations",
            self.runs, self.tally.operations
        );
        let per_second = |n: u64| n as f64 / self.elapsed.as_secs_f64().max(1e-9);
        if self.recoveries > 0 {
            let _ = write!(
                line,
                ", {} crash states, {} recoveries ({:.0}/s)",
                self.crash_states,
                self.recoveries,
                per_second(self.recoveries)
            );
        } else if !self.elapsed.is_zero() {
            let _ = write!(line, " ({:.0}/s)", per_second(self.tally.operations));
        }
        let tally = &self.tally;
        if tally.splits + tally.merges + tally.evictions + tally.checkpoints > 0 {
            let _ = write!(
                line,
                ", {} splits, {} merges, {} evictions, {} checkpoints, {} log wraps",
                tally.splits, tally.merges, tally.evictions, tally.checkpoints, tally.log_wraps
            );
        }
        if !self.elapsed.is_zero() {
            let _ = write!(line, ", {:.1} s", self.elapsed.as_secs_f64());
        }
        line.push('\n');
        if self.interrupted > 0 {
            let what = "programs interrupted";
            let _ = writeln!(line, "  {what:<34} {:>10}", self.interrupted);
        }
        let limits = self.limits.count();
        if limits > 0 {
            let met = limits - self.limits.without(self.tally.edges).count();
            let what = format!("limits met, of {limits}");
            let _ = writeln!(line, "  {what:<34} {met:>10}");
        }
        let scarce = [
            ("puts refused by a full store", tally.full),
            ("operations on a full medium", tally.starved),
            ("openings for reading only", tally.read_only),
        ];
        for (what, n) in scarce.iter().filter(|(_, n)| *n > 0) {
            let _ = writeln!(line, "  {what:<34} {n:>10}");
        }
        for (what, n) in &self.counts {
            let _ = writeln!(line, "  {what:<34} {n:>10}");
        }
        for ((phase, point), n) in &self.points {
            let what = format!("cut in {} at a {}", phase.name(), point.name());
            let _ = writeln!(line, "  {what:<34} {n:>10}");
        }
        if self.lenient {
            let never = self.never_reached();
            line.push_str(&listed("not reached in this budget", &never));
        }
        line
    }

    fn json(&self) -> Value {
        let tally = &self.tally;
        let points: Vec<Value> = (self.points.iter())
            .map(|((phase, point), n)| json!({"phase": phase, "point": point, "crashes": n}))
            .collect();
        let reach: Vec<Value> = (self.reach().iter())
            .map(|(area, what, n)| json!({"area": area.name(), "what": what, "n": n}))
            .collect();
        json!({
            "engine": self.engine,
            "mode": self.mode.name(),
            "verdict": self.verdict(),
            "programs": self.runs,
            "interrupted": self.interrupted,
            "operations": tally.operations,
            "crash_states": self.crash_states,
            "recoveries": self.recoveries,
            "crash_points": points,
            "histories": self.histories,
            "counts": self.counts.iter().map(|(what, n)| json!({"what": what, "n": n})).collect::<Vec<_>>(),
            "failed_operations": tally.failed,
            "power_cuts": tally.crashes,
            "puts_refused_as_full": tally.full,
            "operations_without_space": tally.starved,
            "openings_to_read": tally.read_only,
            "splits": tally.splits,
            "merges": tally.merges,
            "evictions": tally.evictions,
            "checkpoints": tally.checkpoints,
            "log_wraps": tally.log_wraps,
            "limits": self.limits.count(),
            "limits_met": self.limits.count() - self.limits.without(tally.edges).count(),
            "never_reached": self.never_reached(),
            "reach": reach,
            "seconds": self.elapsed.as_secs_f64(),
            "finding": self.finding.as_ref().map(|finding| json!({
                "check": finding.check,
                "operation": finding.operation,
                "what": finding.what,
                "expected": finding.expected,
                "found": finding.found,
            })),
            "seed": self.failure.as_ref().map(|(seed, _)| seed),
        })
    }
}

/// A heading and indented names below it, in lines of at most [`WIDTH`]; empty if there are no
/// names.
fn listed(what: &str, names: &[String]) -> String {
    let mut text = String::new();
    if names.is_empty() {
        return text;
    }
    let mut line = format!("  {what}:");
    for (i, name) in names.iter().enumerate() {
        let comma = if i + 1 < names.len() { "," } else { "" };
        if line.len() + 1 + name.len() + comma.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = "   ".into();
        }
        let _ = write!(line, " {name}{comma}");
    }
    let _ = writeln!(text, "{line}");
    text
}

impl Report {
    /// Number of jobs (a mode on an engine) that had no turn within the budget.
    fn without_a_turn(&self) -> usize {
        self.rows.iter().filter(|row| row.runs == 0).count()
    }

    /// With a budget: a line that says whether it was kept, and what did not fit into it.
    pub(super) fn account(&self) -> Option<String> {
        let budget = self.budget?;
        let (wanted, took) = (budget.wanted.as_secs_f64(), budget.took.as_secs_f64());
        let (all, not) = (self.rows.len(), self.without_a_turn());
        let interrupted: u64 = self.rows.iter().map(|row| row.interrupted).sum();
        let missing = self
            .rows
            .iter()
            .filter(|row| !row.never_reached().is_empty());
        Some(format!(
            "{took:.1} s used of a budget of {wanted:.1} s: {} of {all} jobs (a mode on an engine) had turns, \
             {interrupted} programs were interrupted, {} jobs did not reach everything\n",
            all - not,
            missing.count(),
        ))
    }

    /// Modes that were requested, but on no engine did what they are for.
    pub(super) fn idle_modes(&self) -> Vec<Mode> {
        let idle = |mode: &Mode| {
            let mut rows = self.rows.iter().filter(|row| row.mode == *mode).peekable();
            rows.peek().is_some() && rows.all(|row| row.did == 0)
        };
        Mode::ALL.into_iter().filter(idle).collect()
    }

    pub(super) fn json(&self) -> Vec<u8> {
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let mut document = json!({
            "schema": "treering.oracle/1",
            "complete": crate::interrupt::stopped().is_none(),
            "runs": rows,
            "mutations": [],
        });
        if let Some(budget) = &self.budget {
            document["budget"] = json!({
                "seconds": budget.wanted.as_secs_f64(),
                "took_seconds": budget.took.as_secs_f64(),
                "without_a_turn": self.without_a_turn(),
            });
        }
        let mut text = serde_json::to_vec_pretty(&document).expect("numbers and strings are JSON");
        text.push(b'\n');
        text
    }
}

/// Maximum number of operations of a failing program that are printed.
const MOST: usize = 40;

/// The account of a violation: the program, what was expected and found, and how to repeat it.
pub(super) fn story(program: &Program, finding: &Finding, file: &str) -> String {
    let mut text = String::new();
    let skipped = program.ops.len().saturating_sub(MOST);
    if skipped > 0 {
        let _ = writeln!(text, "     … {skipped} earlier operations are in the file");
    }
    for (i, op) in program.ops.iter().enumerate().skip(skipped) {
        let mark = if finding.operation == Some(i + 1) {
            ">"
        } else {
            " "
        };
        let _ = writeln!(text, "{mark}{:>4}  {}", i + 1, program.line(op));
    }
    for (i, crash) in program.crashes.iter().enumerate() {
        let place = if i == 0 { "the run" } else { "recovery" };
        let _ = writeln!(
            text,
            "      the power is cut after device request {} of {place}",
            crash.after_request
        );
    }
    let _ = writeln!(text, "  check     {}", finding.check);
    let _ = writeln!(text, "  at        {}", finding.what);
    let _ = writeln!(text, "  expected  {}", finding.expected);
    let _ = writeln!(text, "  found     {}", finding.found);
    let _ = writeln!(text, "  again     treering oracle --replay {file}");
    text
}

/// The account of a violation without a program; it can have many lines.
pub(super) fn tale(finding: &Finding, file: Option<&str>) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "  check     {}", finding.check);
    let _ = writeln!(text, "  at        {}", finding.what);
    let _ = writeln!(text, "  expected  {}", finding.expected);
    let _ = writeln!(
        text,
        "  found     {}",
        finding.found.trim_end().replace('\n', "\n            ")
    );
    if let Some(file) = file {
        let _ = writeln!(text, "  again     treering oracle --replay {file}");
    }
    text
}
