//! One run of `treering check --mutate`: all mutants of some specs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use super::checker::Tools;
use super::judges::{self, Judge};
use super::mutant::{Mutant, MutantsError};
use super::report::{Survivor, Trial};
use super::scope::Scope;
use super::{operators, trial};
use crate::check::configs::{BoundedModel, discover};
use crate::check::manifest::Manifest;
use crate::check::mirrors::SPECS;
use crate::check::tools;

/// The contract says what is right, so its mutants cannot be wrong.
const CONTRACT: &str = "DurableMap";

/// Which mutants run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// One in so many, by a hash of what is changed.
    Sample(u64),
    /// Those with these names.
    Named(Vec<String>),
}

/// What to mutate, and how long.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder `specs/`.
    pub specs: PathBuf,
    /// Only these specs. Empty means all protocols.
    pub only_specs: Vec<String>,
    /// Which of their mutants.
    pub selection: Selection,
    /// After this time no other mutant is begun.
    pub budget: Option<Duration>,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A message for the user.
    Line(&'a str),
    /// A mutant was judged.
    Judged(&'a Trial),
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The mutants that were judged, by module and place.
    pub trials: Vec<Trial>,
    /// Mutants that were selected, but not begun when the time was up.
    pub not_run: usize,
}

struct Protocol {
    scope: Scope,
    judges: Vec<Judge>,
    mutants: Vec<Mutant>,
}

/// Makes the mutants and judges them, as many at once as there are cores.
///
/// # Errors
/// A spec or a mutant is not known, a module cannot be parsed, `tla-mc` or TLC is missing or
/// cannot be run, or a model does not hold without a mutant.
pub fn run(request: &Request, say: &(dyn Fn(Step<'_>) + Sync)) -> Result<Report, MutantsError> {
    let began = Instant::now();
    let known = Survivor::read(&request.specs)?;
    let models = discover(&request.specs, &SPECS)?;
    let manifest = Manifest::read(&request.specs).map_err(|error| MutantsError::Io {
        what: request.specs.join("manifest.json").display().to_string(),
        source: std::io::Error::other(error.to_string()),
    })?;
    let mut protocols = made(request, &models)?;
    let checkers = Tools {
        tla_mc: tools::tla_mc(&request.specs, &mut |line| say(Step::Line(line)))?,
        tlc: tools::tlc(&request.specs, &mut |line| say(Step::Line(line)))?,
    };
    let selected: Vec<(usize, BoundedModel)> = (protocols.iter().enumerate())
        .flat_map(|(at, protocol)| {
            let models = judges::select(&models, &manifest, &protocol.scope.spec);
            models.into_iter().map(move |model| (at, model))
        })
        .collect();
    let prepared = side_by_side(&selected, None, |(at, model)| {
        let (judge, time) = judges::prepare(
            &checkers,
            &request.specs,
            &protocols[*at].scope,
            model.clone(),
        )?;
        let (spec, name) = (&model.spec, &model.name);
        let states = judge.counts.distinct;
        let time = time.as_secs_f64();
        say(Step::Line(&format!(
            "{spec} {name}: {states} states, {time:.1} CPU-s"
        )));
        Ok((*at, judge))
    })?;
    for (at, judge) in prepared.into_iter().flatten() {
        protocols[at].judges.push(judge);
    }
    for protocol in &mut protocols {
        judges::let_one_count(&mut protocol.judges);
    }
    let jobs: Vec<(&Protocol, &Mutant)> = by_chance(&protocols);
    let until = request.budget.map(|budget| began + budget);
    let trials = side_by_side(&jobs, until, |(protocol, mutant)| {
        let (fate, cpu) = trial::judge(
            &checkers,
            &request.specs,
            &protocol.scope,
            &protocol.judges,
            mutant,
        )?;
        let trial = Trial::new(mutant, fate, cpu, &known);
        say(Step::Judged(&trial));
        Ok(trial)
    })?;
    let not_run = trials.iter().filter(|trial| trial.is_none()).count();
    let mut trials: Vec<Trial> = trials.into_iter().flatten().collect();
    let places: BTreeMap<&str, usize> = (protocols.iter())
        .flat_map(|protocol| &protocol.mutants)
        .enumerate()
        .map(|(at, mutant)| (&*mutant.name, at))
        .collect();
    trials.sort_by_key(|trial| places.get(&*trial.mutant));
    Ok(Report { trials, not_run })
}

/// The protocols that have selected mutants.
fn made(request: &Request, models: &[BoundedModel]) -> Result<Vec<Protocol>, MutantsError> {
    let specs: Vec<&str> = SPECS
        .iter()
        .copied()
        .filter(|spec| *spec != CONTRACT)
        .collect();
    let unknown = request.only_specs.iter().find(|s| !specs.contains(&&***s));
    if let Some(unknown) = unknown {
        let why = format!("{unknown}: expected a protocol: {}", specs.join(", "));
        return Err(MutantsError::Unknown(why));
    }
    let mut protocols = Vec::new();
    let mut modules = BTreeSet::new();
    let mut left: BTreeSet<&str> = match &request.selection {
        Selection::Named(names) => names.iter().map(|name| &**name).collect(),
        _ => BTreeSet::new(),
    };
    for spec in specs {
        let of_spec: Vec<&BoundedModel> = models.iter().filter(|m| m.spec == spec).collect();
        if of_spec.is_empty() {
            continue;
        }
        let scope = Scope::read(&of_spec)?;
        let asked = request.only_specs.is_empty() || request.only_specs.iter().any(|s| s == spec);
        let mut mutants = Vec::new();
        if asked {
            mutants = operators::mutants(&scope, &modules)?;
        }
        // A module belongs to the first spec that has it.
        modules.extend(scope.modules.iter().map(|module| module.name.clone()));
        mutants.retain(|mutant| match &request.selection {
            Selection::All => true,
            Selection::Sample(n) => xxh3_64(mutant.key().as_bytes()).is_multiple_of((*n).max(1)),
            Selection::Named(names) => names.contains(&mutant.name),
        });
        if !mutants.is_empty() {
            for mutant in &mutants {
                left.remove(&*mutant.name);
            }
            protocols.push(Protocol {
                scope,
                judges: Vec::new(),
                mutants,
            });
        }
    }
    match left.first() {
        Some(name) => Err(MutantsError::Unknown(format!(
            "{name}: no mutant of these specs has this name; expected Module:line:column:operator"
        ))),
        None => Ok(protocols),
    }
}

/// All mutants in an order that depends only on what they change, so that a run that is cut short
/// has judged a sample.
fn by_chance(protocols: &[Protocol]) -> Vec<(&Protocol, &Mutant)> {
    let mut jobs: Vec<(&Protocol, &Mutant)> = (protocols.iter())
        .flat_map(|protocol| {
            protocol
                .mutants
                .iter()
                .map(move |mutant| (protocol, mutant))
        })
        .collect();
    jobs.sort_by_cached_key(|(_, mutant)| xxh3_64(mutant.key().as_bytes()));
    jobs
}

/// Does `work` for each job, on all cores. Jobs that were not begun before `until` give `None`.
fn side_by_side<J: Sync, R: Send>(
    jobs: &[J],
    until: Option<Instant>,
    work: impl Fn(&J) -> Result<R, MutantsError> + Sync,
) -> Result<Vec<Option<R>>, MutantsError> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let results: Vec<Mutex<Option<R>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let works = || {
        while let Some((job, slot)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(at).zip(results.get(at))
        } {
            if until.is_some_and(|until| Instant::now() >= until) {
                return;
            }
            match work(job) {
                // A poisoned lock only means that another thread panicked.
                Ok(result) => *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result),
                Err(error) => {
                    next.store(jobs.len(), Ordering::Relaxed);
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(jobs.len()) {
            scope.spawn(works);
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let results = results.into_iter();
    Ok(results
        .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect())
}

/// Makes the selected mutants, without running them.
///
/// # Errors
/// A spec or a mutant is not known, or a module cannot be parsed.
pub fn list(request: &Request) -> Result<Vec<Mutant>, MutantsError> {
    let models = discover(&request.specs, &SPECS)?;
    let protocols = made(request, &models)?;
    Ok(protocols.into_iter().flat_map(|p| p.mutants).collect())
}

/// The ghosts of a spec's modules: variables that only serve the checking, except those that count
/// for the bounds of models. `models` are those of the specs that are known.
///
/// # Errors
/// A module cannot be read or parsed.
pub fn ghosts(models: &[BoundedModel], spec: &str) -> Result<BTreeSet<String>, MutantsError> {
    let of_spec: Vec<&BoundedModel> = models.iter().filter(|m| m.spec == spec).collect();
    let scope = Scope::read(&of_spec)?;
    let counters: BTreeSet<&String> = (scope.modules.iter().flat_map(|m| &m.counters)).collect();
    let ghosts = scope.ghosts.iter().filter(|name| !counters.contains(name));
    Ok(ghosts.cloned().collect())
}
