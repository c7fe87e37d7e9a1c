//! Runs one checker on one model.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::configs::{BoundedModel, Lane};
use super::mirrors::{self, AnyMirror, Effort, RunError};
use super::output::{self, Findings};
use super::scratch::Scratch;
use super::tools::Tlc;
use super::{cpu, process};
use crate::graph::Step;

/// A checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checker {
    /// TLC, whose verdict decides.
    Tlc,
    /// `tla-mc`, the second opinion.
    TlaMc,
    /// The stateright mirror.
    Mirror,
}

impl Checker {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tlc => "TLC",
            Self::TlaMc => "tla-mc",
            Self::Mirror => "mirror",
        }
    }
}

/// The verdict of a checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every property holds.
    Holds,
    /// A property is violated.
    Violated,
    /// A mutation violates the property that it must violate.
    Killed,
    /// A mutation violates no property.
    Alive,
    /// A mutation violates another property.
    WrongProperty,
    /// The checker gives no verdict.
    Error,
}

impl Verdict {
    /// Its name in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Violated => "violated",
            Self::Killed => "killed",
            Self::Alive => "alive",
            Self::WrongProperty => "wrong-property",
            Self::Error => "error",
        }
    }
}

/// The result of one checker on one model.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The spec.
    pub spec: String,
    /// The model.
    pub model: String,
    /// The checker.
    pub checker: Checker,
    /// Its verdict.
    pub verdict: Verdict,
    /// Distinct states.
    pub distinct: Option<u64>,
    /// Depth, in states.
    pub depth: Option<u64>,
    /// Wall-clock time.
    pub seconds: f64,
    /// Processor time.
    pub cpu_seconds: Option<f64>,
    /// The violated property.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// The seeded bug.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation: Option<String>,
    /// States that random walks visited, those that were visited again included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walked: Option<u64>,
    /// States of the counterexample, including the initial one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_length: Option<usize>,
    /// Why there is no verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The counterexample.
    #[serde(skip)]
    pub steps: Vec<Step>,
    /// For an infinite counterexample, the number (from 1) of the state to which it returns.
    #[serde(skip)]
    pub back_to: Option<usize>,
    /// Actions that were never taken, and lines in them that were never reached.
    #[serde(skip)]
    pub never_taken: Vec<String>,
}

impl Outcome {
    /// Whether some property is violated.
    #[must_use]
    pub fn violated(&self) -> bool {
        matches!(
            self.verdict,
            Verdict::Violated | Verdict::Killed | Verdict::WrongProperty
        )
    }

    /// Distinct states per second of processor time.
    #[must_use]
    pub fn states_per_cpu_second(&self) -> Option<f64> {
        let seconds = self.cpu_seconds.filter(|s| *s > 0.0)?;
        Some(self.distinct? as f64 / seconds)
    }

    fn new(model: &BoundedModel, checker: Checker, findings: Findings, time: Time) -> Self {
        let property = findings
            .violated
            .map(|found| temporal_name(model, &found).unwrap_or(found));
        let verdict = match (&property, &findings.error, model.is_mutation()) {
            (Some(found), _, true) if Some(found.as_str()) == model.must_violate() => {
                Verdict::Killed
            }
            (Some(_), _, true) => Verdict::WrongProperty,
            (Some(_), _, false) => Verdict::Violated,
            (None, Some(_), _) => Verdict::Error,
            (None, None, true) => Verdict::Alive,
            (None, None, false) => Verdict::Holds,
        };
        Self {
            spec: model.spec.clone(),
            model: model.name.clone(),
            checker,
            verdict,
            distinct: findings.distinct,
            depth: findings.depth,
            walked: findings.walked,
            seconds: seconds(time.elapsed),
            cpu_seconds: time.cpu.map(seconds),
            mutation: model.is_mutation().then(|| model.name.clone()),
            trace_length: property.is_some().then_some(findings.steps.len()),
            property,
            error: findings.error.filter(|_| verdict == Verdict::Error),
            steps: findings.steps,
            back_to: findings.back_to,
            never_taken: findings.never_taken,
        }
    }
}

struct Time {
    elapsed: Duration,
    cpu: Option<Duration>,
}

/// Rounded to milliseconds, the resolution for a process.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// The property that a spec keeps the interface `AtomicPages`.
const PAGES: &str = "ContractOfPagesProp";

/// The name of a property that TLC does not name ("Temporal properties were violated"), or names
/// only by a line of the contract.
pub(crate) fn temporal_name(model: &BoundedModel, found: &str) -> Option<String> {
    let refinement = |name: &&String| name.starts_with("Contract");
    let properties = &model.config.properties;
    let of = |module: &str| found.contains(&format!("module {module}"));
    if of("AtomicPages") {
        return properties.iter().find(|name| *name == PAGES).cloned();
    }
    if ["DurableMap", "DurableBatches", "DurableLog"]
        .into_iter()
        .any(of)
    {
        let mut contracts = properties.iter().filter(refinement);
        return contracts.find(|name| *name != PAGES).cloned();
    }
    let mut others = properties.iter().filter(|name| !refinement(name));
    match (found, others.next(), others.next()) {
        ("", Some(only), None) => Some(only.clone()),
        _ => None,
    }
}

/// Random walks end after so many states.
pub(super) const LONGEST: usize = 200;

/// What TLC does besides giving a verdict.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Walk so often at random, and do not visit all states.
    pub walks: Option<u64>,
    /// The file for the state graph.
    pub dump: Option<PathBuf>,
    /// Whether to report coverage.
    pub coverage: bool,
}

/// Checks `model` with TLC, breadth first with one worker.
///
/// # Errors
/// The process cannot be started, or its output cannot be stored.
pub fn tlc(
    tlc: &Tlc,
    specs: &Path,
    model: &BoundedModel,
    extras: &Extras,
) -> std::io::Result<Outcome> {
    let scratch = Scratch::new()?;
    let library = library(specs);
    let mut command = match model.is_mutation() {
        true => tlc.brief_command(&library, scratch.path())?,
        false => tlc.command(&library, scratch.path())?,
    };
    command
        .args(["-workers", "1", "-metadir"])
        .arg(scratch.path().join("states"));
    if let Some(walks) = extras.walks {
        let longest = LONGEST.to_string();
        command.arg("-simulate").arg(format!("num={walks}"));
        command.args(["-depth", &longest, "-seed", "1"]);
    }
    if let Some(dump) = &extras.dump {
        command.args(["-dump", "dot,actionlabels"]).arg(dump);
    }
    if extras.coverage {
        // The interval is in minutes, and longer than any run: only the final report is wanted.
        command.args(["-coverage", "9999"]);
    }
    files(&mut command, model);
    let done = process::run(&mut command, scratch.path())?;
    let time = Time {
        elapsed: done.elapsed,
        cpu: done.cpu,
    };
    let mut findings = output::read(&done.output);
    if extras.walks.is_some() {
        // Then TLC does not say that no error was found.
        let ended = done.status.success() && findings.violated.is_none();
        if ended && findings.walked.is_some() {
            (findings.holds, findings.error) = (true, None);
        }
    }
    Ok(Outcome::new(model, Checker::Tlc, findings, time))
}

/// Checks `model` with `tla-mc` and one worker.
///
/// # Errors
/// The process cannot be started, or its output cannot be stored.
pub fn tla_mc(program: &Path, specs: &Path, model: &BoundedModel) -> std::io::Result<Outcome> {
    let scratch = Scratch::new()?;
    let mut command = Command::new(program);
    command.args(["-workers", "1"]);
    for folder in library(specs) {
        command.arg("-lib").arg(folder);
    }
    command.arg("-metadir").arg(scratch.path().join("states"));
    files(&mut command, model);
    let done = process::run(&mut command, scratch.path())?;
    let mut findings = output::read(&done.output);
    if !done.status.success() && findings.violated.is_none() && findings.error.is_none() {
        findings.error = Some(format!("ended with {}", done.status));
    }
    let time = Time {
        elapsed: done.elapsed,
        cpu: done.cpu,
    };
    Ok(Outcome::new(model, Checker::TlaMc, findings, time))
}

/// Where a checker looks for modules besides the spec's own folder: the contract, and what
/// `specs/layers` runs together.
pub(crate) fn library(specs: &Path) -> [PathBuf; 5] {
    [
        "contract",
        "wal_recovery",
        "page_shadowing",
        "mini_page",
        "circular_buffer",
    ]
    .map(|part| absolute(&specs.join(part)))
}

fn files(command: &mut Command, model: &BoundedModel) {
    let name = |path: &Path| path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    command
        .arg("-config")
        .arg(name(&model.config.path))
        .arg(name(&model.module))
        .current_dir(model.module.parent().unwrap_or(Path::new(".")));
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Checks `model` with its mirror: all states, or those on random walks. If the model must violate a
/// property, finds a shortest counterexample.
///
/// # Errors
/// The configuration does not fit the mirror, or the states of two levels do not fit into `memory`
/// bytes and cannot be kept in files.
pub fn mirror(
    model: &BoundedModel,
    walks: Option<u64>,
    memory: u64,
) -> Result<(Outcome, Box<dyn AnyMirror>), RunError> {
    let mirror = mirrors::open(&model.spec, &model.config)?;
    let mut findings = Findings::default();
    let mut time = Time {
        elapsed: Duration::ZERO,
        cpu: None,
    };
    if let Some(walks) = walks {
        let (clock, processor) = (std::time::Instant::now(), cpu::own());
        let walked = mirror.walk_at_random(walks)?;
        time.elapsed = clock.elapsed();
        time.cpu = cpu::since(processor, cpu::own());
        findings.walked = Some(walked.states);
        if let Some(found) = walked.counterexample {
            findings.violated = Some(found.property);
            findings.steps = found.steps;
        }
        findings.holds = findings.violated.is_none();
        return Ok((Outcome::new(model, Checker::Mirror, findings, time), mirror));
    }
    let searched = model.must_violate().is_some() || {
        let large = model.lane == Lane::Large;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if large { cores } else { 1 };
        let run = mirror.run(&Effort { threads, memory })?;
        findings.distinct = Some(run.distinct);
        findings.depth = Some(run.depth);
        time = Time {
            elapsed: run.elapsed,
            cpu: run.cpu,
        };
        run.violated
    };
    if searched {
        let clock = std::time::Instant::now();
        if let Some(found) = mirror.counterexample()? {
            findings.violated = Some(found.property);
            findings.steps = found.steps;
        }
        time.elapsed += clock.elapsed();
    }
    findings.holds = findings.violated.is_none();
    Ok((Outcome::new(model, Checker::Mirror, findings, time), mirror))
}

/// Whether there is a mirror that can check a model. It cannot check temporal properties, and needs
/// an invariant.
#[must_use]
pub(crate) fn mirror_applies(model: &BoundedModel) -> bool {
    mirrors::is_mirrored(&model.spec) && !model.is_temporal() && !model.config.invariants.is_empty()
}

/// Whether to compare the model's state graph edge by edge. Other lanes are too large, and with
/// temporal properties TLC dumps a product graph.
#[must_use]
pub(crate) fn graph_applies(model: &BoundedModel) -> bool {
    let temporal = (model.config.properties.iter()).any(|name| !name.starts_with("Contract"));
    let mirrored = mirrors::is_mirrored(&model.spec);
    mirrored && model.lane == Lane::Smoke && model.must_violate().is_none() && !temporal
}
