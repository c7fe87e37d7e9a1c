//! `treering advise`: which tree and settings to use for a workload, why, and how sure that is.
//!
//! ```text
//! flags ──space──▶ designs, settings ──search──▶ predictions ──leaders──▶ replays of a sample
//!                                                     │                        │ the best
//!                                                     │                        ▼
//!                                what_if ◀────────────┴──────────────── replays, whole
//!                                   └────────▶ report ◀────────────────────────┘
//! ```
//!
//! A prediction costs a fraction of a replay, and its error is small ([`docs/PREDICTION.md`]). So
//! many designs are predicted, from one pass over the trace, and few are replayed: those whose
//! intervals reach the best one's.
//!
//! [`docs/PREDICTION.md`]: ../../../docs/PREDICTION.md

mod constraint;
mod objective;
mod predict;
mod recording;
mod replays;
mod report;
mod search;
mod space;
mod what_if;
mod words;

use std::path::{Path, PathBuf};

use crate::args::{AdviseArgs, Objective};
use crate::failure::Failure;
use crate::interrupt::Ours;
use crate::output::{self, Output};
use crate::replay_config;

use constraint::Constraint;
use objective::Goal;
use predict::Predictor;
use replays::Means;
use report::Advice;
use search::Found;
use space::Space;
use what_if::WhatIf;

/// Candidates of which a sample is replayed, for each that is replayed whole.
const SAMPLED: usize = 2;
/// The same if predictions do not have what is to be least.
const SAMPLED_BLINDLY: usize = 4;

/// Advises.
pub(crate) fn run(args: &AdviseArgs) -> Result<(), Failure> {
    if let Some((flag, value)) = &args.not_text {
        let value = value.display();
        return Err(Failure::usage(format!("--{flag} {value}: expected UTF-8")));
    }
    let json = Output::if_given("--json", args.json.as_deref(), &[&args.trace])?;
    if recording::is_one(args) {
        return recording::advise(args, json.as_ref());
    }
    let constraints = args.constraints.iter().map(|text| Constraint::parse(text));
    let constraints: Result<Vec<_>, _> = constraints.collect();
    let constraints = constraints.map_err(|why| Failure::usage(format!("--constraint {why}")))?;
    let goal = Goal {
        objective: args.objective,
        prices: args.prices,
    };
    let space = Space::of(&args.trace, &args.flags)?;
    check(&goal, &space)?;
    treering_traces::open(&args.trace)?;
    let place = Place::of(args.out.as_deref())?;
    let timed = goal.is_timed() || constraints.iter().any(Constraint::is_timed);
    let means = Means {
        folder: (place.path.clone(), place.asked.clone()),
        jobs: args.jobs,
        memory: args.memory,
        timed,
    };
    let mut predictor = Predictor::new(place.path.join("advise.stats"));
    let mut found = Found::new(goal, constraints);
    found.search(&space, &mut predictor)?;
    let default = space.default();
    if default
        .parsed()
        .is_ok_and(|args| replay_config::of(&args).is_ok())
    {
        found.predict(vec![default.clone()], &mut predictor)?;
    }
    if found.ranked().is_empty() {
        return Err(unkept(&found));
    }
    let whole = usize::try_from(args.replays).unwrap_or(usize::MAX);
    decide(&mut found, &means, &predictor, whole)?;
    if found.ranked().is_empty() {
        return Err(unkept(&found));
    }
    let predictions = predictor.count;
    let what_if = match args.what_if {
        true => WhatIf::look(&found, &space, &mut predictor)?,
        false => WhatIf::default(),
    };
    let advice = Advice::new(&found, &predictor.trace, &default, what_if, predictions);
    if let Some(warning) = advice.warning() {
        output::warn(warning);
    }
    if let Some(json) = &json {
        json.write(&output::json(&advice.document())?)?;
    }
    match json {
        Some(Output::Stdout) => Ok(()),
        _ => output::say(advice.words().as_bytes()),
    }
}

/// Refuses an objective that lacks what it needs.
fn check(goal: &Goal, space: &Space) -> Result<(), Failure> {
    if goal.objective == Objective::Cost && space.default().get("daily").is_none() {
        return Err(Failure::usage(
            "--objective cost: expected --daily SIZE, the bytes that the user writes each day",
        ));
    }
    Ok(())
}

/// Replays leading candidates: a sample of some, and the best of those whole.
fn decide(
    found: &mut Found,
    means: &Means,
    predictor: &Predictor,
    whole: usize,
) -> Result<(), Failure> {
    if whole == 0 {
        return Ok(());
    }
    let each = match found.goal.is_predicted() {
        true => SAMPLED,
        false => SAMPLED_BLINDLY,
    };
    let mut leaders = found.leaders(whole, whole.saturating_mul(each));
    if leaders.len() > whole {
        let sample = |at: &usize| means.sample(&found.candidates[*at].point, &predictor.trace);
        let points: Vec<_> = leaders.iter().map(sample).collect();
        let reports = means.replay(&points)?;
        let valued = leaders.iter().zip(&reports).filter_map(|(at, report)| {
            let config = &found.candidates[*at].config;
            Some((*at, found.goal.value(report, config)?))
        });
        let mut valued: Vec<(usize, f64)> = valued.collect();
        valued.sort_by(|(_, a), (_, b)| match found.goal.is_better(*a, *b) {
            true => std::cmp::Ordering::Less,
            false if a == b => std::cmp::Ordering::Equal,
            false => std::cmp::Ordering::Greater,
        });
        leaders = valued.into_iter().map(|(at, _)| at).take(whole).collect();
    }
    let run = |at: &usize| means.run(&found.candidates[*at].point);
    let points: Vec<_> = leaders.iter().map(run).collect();
    let reports = means.replay(&points)?;
    for (at, report) in leaders.into_iter().zip(reports) {
        unknown(&found.constraints, &report)?;
        found.candidates[at].measured = Some(report);
    }
    Ok(())
}

/// Refuses a constraint on what no report has.
fn unknown(constraints: &[Constraint], report: &serde_json::Value) -> Result<(), Failure> {
    let mut without = constraints.iter().filter(|c| c.holds(report).is_none());
    match without.next() {
        None => Ok(()),
        Some(constraint) => Err(Failure::usage(format!(
            "--constraint {}: the report has no figure {}; `treering replay --json` shows all",
            constraint.text, constraint.path
        ))),
    }
}

fn unkept(found: &Found) -> Failure {
    let texts: Vec<&str> = found.constraints.iter().map(|c| c.text.as_str()).collect();
    match texts.is_empty() {
        true => Failure::not_reached(format!(
            "no design has {}: nothing is written, or the device's profile lacks it",
            found.goal.unit()
        )),
        false => Failure::not_reached(format!(
            "none of {} configurations keeps the constraints: {}",
            found.candidates.len(),
            texts.join("; ")
        )),
    }
}

/// The folder for statistics and reports; a temporary one is removed at the end.
struct Place {
    path: PathBuf,
    asked: PathBuf,
    _temporary: Option<(tempfile::TempDir, Ours)>,
}

impl Place {
    fn of(out: Option<&Path>) -> Result<Place, Failure> {
        let failure = |path: &Path, e| Failure::file(&path.display().to_string(), &e);
        if let Some(out) = out {
            std::fs::create_dir_all(out).map_err(|e| failure(out, e))?;
            let path = std::path::absolute(out).map_err(|e| failure(out, e))?;
            return Ok(Place {
                path,
                asked: out.to_owned(),
                _temporary: None,
            });
        }
        let folder = tempfile::Builder::new()
            .prefix("treering-advise-")
            .tempdir();
        let folder = folder.map_err(|e| failure(&std::env::temp_dir(), e))?;
        let path = folder.path().to_owned();
        let ours = Ours::new(&path);
        Ok(Place {
            asked: path.clone(),
            path,
            _temporary: Some((folder, ours)),
        })
    }
}
