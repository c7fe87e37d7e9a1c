//! One run of `treering check`: all its models and checkers, and the report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::configs::{BoundedModel, Lane, SpecsError, discover};
use super::coverage;
use super::frontier::FrontierError;
use super::manifest::{Manifest, ManifestError};
use super::mirrors::{self, AnyMirror, COMPOSED, RunError, SPECS};
use super::run::{self, Checker, Extras, Outcome, Verdict};
use super::scratch::Scratch;
use super::tools::{self, Missing, Tlc};
use crate::ConfigError;
use crate::graph::{self, Difference, DumpError};

/// The selection of checks to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder `specs/`.
    pub specs: PathBuf,
    /// Only these specs. Empty means all.
    pub only_specs: Vec<String>,
    /// Only these models. Empty means those of `lanes`.
    pub only_models: Vec<String>,
    /// The lanes whose models run.
    pub lanes: Vec<Lane>,
    /// The checkers.
    pub checkers: Vec<Checker>,
    /// Whether to compare the mirrors' state graphs with TLC's.
    pub graphs: bool,
    /// Random walks of TLC and the mirror, instead of all states.
    pub walks: Option<u64>,
    /// Memory of a mirror for states that are not visited yet, in bytes.
    pub memory: u64,
    /// Whether to record the results in the manifest.
    pub record: bool,
}

/// Walks of TLC on a large model.
const WALKS: u64 = 1000;

/// The results of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// One result for each model and checker.
    pub outcomes: Vec<Outcome>,
    /// One comparison for each state graph.
    pub graphs: Vec<GraphReport>,
    /// Actions that TLC never took in a model, and lines that it never reached.
    pub never_taken: Vec<NeverTaken>,
    /// Everything that is wrong, a sentence each.
    pub complaints: Vec<String>,
}

/// A part of `Next` that a model never takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NeverTaken {
    /// The spec.
    pub spec: String,
    /// The model.
    pub model: String,
    /// The action, or a line of an action that is taken otherwise.
    pub action: String,
}

/// The comparison of a mirror's state graph with TLC's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GraphReport {
    /// The spec.
    pub spec: String,
    /// The model.
    pub model: String,
    /// States of TLC's graph.
    pub states: usize,
    /// Distinct edges of TLC's graph.
    pub edges: usize,
    /// Whether the mirror's graph is equal.
    pub equal: bool,
    /// A state or edge that only one of them has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<String>,
}

/// Why nothing could be checked.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The `specs` folder cannot be used.
    #[error(transparent)]
    Specs(#[from] SpecsError),
    /// A configuration does not fit its mirror.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The states of a model do not fit into memory, and cannot be kept in files.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A tool is missing.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// TLC's dump cannot be read.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// There is no spec or model of this name.
    #[error("{0}")]
    Unknown(String),
    /// A process could not be run.
    #[error("{what}: {source}")]
    Io {
        /// The process.
        what: &'static str,
        /// The cause.
        source: std::io::Error,
    },
}

impl From<RunError> for SuiteError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Config(error) => error.into(),
            RunError::Frontier(error) => error.into(),
        }
    }
}

struct Tools {
    tlc: Option<Tlc>,
    tla_mc: Option<PathBuf>,
}

struct Job<'a> {
    model: &'a BoundedModel,
    checker: Checker,
    dump: Option<PathBuf>,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A message for the user.
    Line(&'a str),
    /// A model was checked.
    Checked(&'a Outcome),
    /// Two graphs were compared.
    Compared(&'a GraphReport),
}

/// Receives the progress, from several threads.
pub type Say<'a> = dyn Fn(Step<'_>) + Sync + 'a;

/// Runs the checks. `say` is called after each step.
///
/// # Errors
/// Something is missing or malformed. A violated property or a difference is part of the report,
/// not an error.
pub fn check(request: &Request, say: &Say<'_>) -> Result<Report, SuiteError> {
    let models = select(request)?;
    let unmirrored = |m: &BoundedModel| !mirrors::is_mirrored(&m.spec);
    let alone = request.checkers == [Checker::Mirror] && !models.is_empty();
    if alone && models.iter().all(unmirrored) {
        let specs = request.only_specs.join(", ");
        let why = format!("{specs}: has no mirror; expected another checker, tlc or tla-mc");
        return Err(SuiteError::Unknown(why));
    }
    let mut manifest = match Manifest::read(&request.specs) {
        Err(_) if request.record => Manifest::empty(),
        other => other?,
    };
    let tools = find_tools(request, say)?;
    let dumps = Scratch::new().map_err(|source| SuiteError::Io {
        what: "a folder for state graphs",
        source,
    })?;
    let jobs = jobs(request, &models, &tools, dumps.path());
    let mut report = Report {
        outcomes: run_all(request, &tools, &jobs, say)?,
        ..Report::default()
    };
    if request.checkers.contains(&Checker::Mirror) {
        for model in models.iter().filter(|m| run::mirror_applies(m)) {
            let (outcome, mirror) = run::mirror(model, request.walks, request.memory)?;
            say(Step::Checked(&outcome));
            say(Step::Line(&told(&outcome)));
            report.outcomes.push(outcome);
            let job = (jobs.iter()).find(|j| std::ptr::eq(j.model, model) && j.dump.is_some());
            // If TLC found an error, that is reported already, and there may be no graph.
            let dump = job
                .and_then(|job| job.dump.as_deref())
                .filter(|path| path.is_file());
            if let Some(dump) = dump {
                let graph = compare(model, &*mirror, dump)?;
                let verdict = if graph.equal { "equal" } else { "different" };
                say(Step::Compared(&graph));
                let line = format!("{} {}: graphs {verdict}", model.spec, model.name);
                say(Step::Line(&line));
                report.graphs.push(graph);
                // The file is large.
                let _ = std::fs::remove_file(dump);
            }
        }
    }
    if request.lanes.contains(&Lane::Full) && request.checkers.contains(&Checker::Mirror) {
        let all = discover(&request.specs, &SPECS)?;
        for full in models.iter().filter(|m| m.lane == Lane::Full) {
            report
                .never_taken
                .extend(coverage::lost_actions(&all, full)?);
        }
    }
    if request.record {
        record(&mut manifest, &models, &report, request)?;
    }
    judge(&mut report, &manifest, request, &models);
    Ok(report)
}

/// The models that a request names.
///
/// # Errors
/// A model cannot be read, or there is no spec or model of a name.
pub fn select(request: &Request) -> Result<Vec<BoundedModel>, SuiteError> {
    let all = discover(&request.specs, &SPECS)?;
    let spec_named =
        |spec: &str| request.only_specs.is_empty() || request.only_specs.iter().any(|s| s == spec);
    for wanted in &request.only_specs {
        if !all.iter().any(|m| m.spec == *wanted) {
            let known = [&SPECS[..], &COMPOSED].concat();
            let why = format!("{wanted}: no such spec; expected {}", known.join(", "));
            return Err(SuiteError::Unknown(why));
        }
    }
    for wanted in &request.only_models {
        if !(all.iter()).any(|m| m.name == *wanted && spec_named(&m.spec)) {
            return Err(SuiteError::Unknown(format!(
                "{wanted}: no model of this name"
            )));
        }
    }
    let wanted = |m: &BoundedModel| {
        let lane = request.lanes.contains(&m.lane);
        let named = request.only_models.contains(&m.name);
        spec_named(&m.spec) && (named || (request.only_models.is_empty() && lane))
    };
    Ok(all.into_iter().filter(wanted).collect())
}

fn find_tools(request: &Request, say: &Say<'_>) -> Result<Tools, SuiteError> {
    let asked = |checker| request.checkers.contains(&checker);
    let mut tell = |what: &str| say(Step::Line(what));
    let tlc = (asked(Checker::Tlc).then(|| tools::tlc(&request.specs, &mut tell))).transpose()?;
    let tla_mc =
        (asked(Checker::TlaMc).then(|| tools::tla_mc(&request.specs, &mut tell))).transpose()?;
    Ok(Tools { tlc, tla_mc })
}

/// Orders the jobs: TLC's first, since they take longest.
fn jobs<'a>(
    request: &Request,
    models: &'a [BoundedModel],
    tools: &Tools,
    dumps: &Path,
) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    let both = [
        (Checker::Tlc, tools.tlc.is_some()),
        (Checker::TlaMc, tools.tla_mc.is_some()),
    ];
    for (checker, _) in both.into_iter().filter(|(_, there)| *there) {
        for (number, model) in models.iter().enumerate() {
            let walks = request.walks.is_some() || model.lane == Lane::Large;
            if checker == Checker::TlaMc && walks {
                continue;
            }
            let dumped = request.graphs
                && checker == Checker::Tlc
                && request.checkers.contains(&Checker::Mirror)
                && run::graph_applies(model);
            jobs.push(Job {
                model,
                checker,
                dump: dumped.then(|| dumps.join(format!("{number}.dot"))),
            });
        }
    }
    jobs
}

/// Runs as many processes at once as there are cores, each with one worker.
fn run_all(
    request: &Request,
    tools: &Tools,
    jobs: &[Job<'_>],
    say: &Say<'_>,
) -> Result<Vec<Outcome>, SuiteError> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<std::io::Result<Outcome>>>> =
        jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some((job, slot)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(at).zip(results.get(at))
        } {
            let outcome = run_one(request, tools, job);
            if let Ok(outcome) = &outcome {
                say(Step::Checked(outcome));
                say(Step::Line(&told(outcome)));
            }
            // A poisoned lock only means that another thread panicked while it stored its own
            // result.
            *slot
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(outcome);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(jobs.len()) {
            scope.spawn(work);
        }
    });
    let outcomes = results.into_iter().filter_map(|slot| {
        slot.into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    });
    outcomes
        .map(|outcome| {
            outcome.map_err(|source| SuiteError::Io {
                what: "a checker",
                source,
            })
        })
        .collect()
}

fn run_one(request: &Request, tools: &Tools, job: &Job<'_>) -> std::io::Result<Outcome> {
    match (job.checker, &tools.tlc, &tools.tla_mc) {
        (Checker::TlaMc, _, Some(program)) => run::tla_mc(program, &request.specs, job.model),
        (_, Some(tlc), _) => {
            let extras = Extras {
                walks: request
                    .walks
                    .or((job.model.lane == Lane::Large).then_some(WALKS)),
                dump: job.dump.clone(),
                // Coverage doubles TLC's time, so it is collected once for each spec.
                coverage: job.model.name == "smoke",
            };
            run::tlc(tlc, &request.specs, job.model, &extras)
        }
        _ => Err(std::io::Error::other("a tool is missing")),
    }
}

fn told(outcome: &Outcome) -> String {
    let states = outcome.distinct.map(|n| format!(", {n} states"));
    let (spec, model) = (&outcome.spec, &outcome.model);
    let (checker, verdict) = (outcome.checker.name(), outcome.verdict.word());
    format!(
        "{spec} {model}: {checker} {verdict}{}, {:.1} s",
        states.unwrap_or_default(),
        outcome.seconds
    )
}

fn compare(
    model: &BoundedModel,
    mirror: &dyn AnyMirror,
    dump: &Path,
) -> Result<GraphReport, SuiteError> {
    let (theirs, ours) = (graph::read_dump(dump)?, mirror.graph()?);
    let text = |state| {
        let ours = mirror.text(state);
        (ours.or_else(|| graph::dump_text(dump, state))).unwrap_or_default()
    };
    let tell = |who: &str, difference: Difference| match difference {
        Difference::State(state) => format!("only {who} has the state\n{}", text(state)),
        Difference::Initial(state) => format!("only {who} starts in\n{}", text(state)),
        Difference::Edge(from, label, to) => format!(
            "only {who} has a step {label} from\n{}to\n{}",
            text(from),
            text(to)
        ),
    };
    let difference = (graph::missing(&theirs, &ours).map(|d| tell("TLC", d)))
        .or_else(|| graph::missing(&ours, &theirs).map(|d| tell("the mirror", d)));
    Ok(GraphReport {
        spec: model.spec.clone(),
        model: model.name.clone(),
        states: theirs.states.len(),
        edges: theirs.edges.len(),
        equal: difference.is_none(),
        first_difference: difference,
    })
}

fn record(
    manifest: &mut Manifest,
    models: &[BoundedModel],
    report: &Report,
    request: &Request,
) -> Result<(), SuiteError> {
    let all = discover(&request.specs, &SPECS)?;
    (manifest.models).retain(|e| all.iter().any(|m| m.spec == e.spec && m.name == e.model));
    for model in models {
        let by = |checker| {
            let mut outcomes = report.outcomes.iter();
            outcomes.find(|o| o.spec == model.spec && o.model == model.name && o.checker == checker)
        };
        // TLC does not count the states of a large model.
        let counter = match model.lane {
            Lane::Large => Checker::Mirror,
            _ => Checker::Tlc,
        };
        if let Some(counted) = by(counter).filter(|o| o.verdict != Verdict::Error) {
            manifest.record(counted, by(Checker::TlaMc));
        }
    }
    let place =
        |spec: &str, name: &str| (all.iter()).position(|m| m.spec == spec && m.name == name);
    (manifest.models).sort_by_cached_key(|e| place(&e.spec, &e.model));
    Ok(manifest.write(&request.specs)?)
}

/// Collects everything that is wrong.
fn judge(report: &mut Report, manifest: &Manifest, request: &Request, models: &[BoundedModel]) {
    let mut complaints = Vec::new();
    let by_name: BTreeMap<_, _> = models.iter().map(|m| ((&*m.spec, &*m.name), m)).collect();
    for outcome in &report.outcomes {
        let Some(model) = by_name.get(&(&*outcome.spec, &*outcome.model)) else {
            continue;
        };
        let recorded = || match outcome.walked {
            // Walks count no distinct states, and may miss a violation.
            Some(_) => outcome.error.clone(),
            None => manifest.complaint(outcome),
        };
        let missed = outcome.walked.is_some() && outcome.property.is_none();
        let why = (promised(model, outcome).filter(|_| !missed)).or_else(recorded);
        if let Some(why) = why {
            let (spec, name, by) = (&outcome.spec, &outcome.model, outcome.checker.name());
            complaints.push(format!("{spec} {name}, {by}: {why}"));
        }
        let never = outcome
            .never_taken
            .iter()
            .filter(|place| !coverage::is_seeded(model, place));
        report.never_taken.extend(never.map(|action| NeverTaken {
            spec: outcome.spec.clone(),
            model: outcome.model.clone(),
            action: action.clone(),
        }));
    }
    for graph in report.graphs.iter().filter(|g| !g.equal) {
        let difference = graph.first_difference.as_deref().unwrap_or_default();
        let (spec, model) = (&graph.spec, &graph.model);
        complaints.push(format!("{spec} {model}: the graphs differ: {difference}"));
    }
    // A small model must take the action. A line in an action may need larger bounds than the
    // model's, so it is only reported.
    let all = discover(&request.specs, &SPECS).unwrap_or_default();
    let action =
        |n: &&NeverTaken| !n.action.contains(',') && !coverage::is_taken_elsewhere(&all, n);
    for never in report.never_taken.iter().filter(action) {
        let (spec, model, action) = (&never.spec, &never.model, &never.action);
        complaints.push(format!("{spec} {model}: never taken: {action}"));
    }
    if request.only_models.is_empty() && request.only_specs.is_empty() {
        complaints.extend(forgotten(manifest, request));
    }
    report.complaints = complaints;
}

/// How the outcome differs from what the title of the configuration requires. Only TLC judges
/// temporal properties.
fn promised(model: &BoundedModel, outcome: &Outcome) -> Option<String> {
    if outcome.verdict == Verdict::Error {
        return None;
    }
    let found = outcome.property.as_deref();
    match (model.must_violate(), found) {
        (Some(wanted), Some(found)) if wanted == found => None,
        (Some(wanted), Some(found)) => Some(format!("must violate {wanted}, but violates {found}")),
        (Some(wanted), None) => Some(format!("must violate {wanted}, but nothing is violated")),
        (None, Some(found)) => Some(format!("violates {found}")),
        (None, None) => None,
    }
}

/// Models in the manifest that have no file.
fn forgotten(manifest: &Manifest, request: &Request) -> Vec<String> {
    let Ok(all) = discover(&request.specs, &SPECS) else {
        return Vec::new();
    };
    let there = |spec: &str, model: &str| all.iter().any(|m| m.spec == spec && m.name == model);
    (manifest.models.iter())
        .filter(|e| !there(&e.spec, &e.model))
        .map(|e| {
            format!(
                "{} {}: is in the manifest, but has no file",
                e.spec, e.model
            )
        })
        .collect()
}
