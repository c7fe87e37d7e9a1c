//! `treering check --inductive`: whether no step leads out of an inductive invariant.

use std::cell::RefCell;
use std::fmt::Write as _;

use serde::Serialize;
use treering_specs::Value;
use treering_specs::check::configs::BoundedModel;
use treering_specs::check::mirrors;
use treering_specs::check::suite::{self, SuiteError};
use treering_specs::inductive::{Broken, Induction, Plan};

use crate::args::CheckArgs;
use crate::check_cmd::request;
use crate::failure::Failure;
use crate::output::{self, Output, say};
use crate::progress::Progress;

/// Name and version of the document.
const SCHEMA: &str = "treering.inductive/1";

/// States with the invariant in each model.
const STATES: u64 = 10_000;

/// `treering.inductive/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    complete: bool,
    seed: u64,
    versions: u8,
    without: Option<&'a str>,
    models: &'a [Row],
}

/// A model's typed states.
#[derive(Serialize)]
struct Row {
    spec: String,
    model: String,
    /// Whether the model has a seeded bug.
    bug: bool,
    /// Whether the bug must break the invariant. One that only concerns liveness need not.
    must_break: bool,
    #[serde(flatten)]
    induction: Induction,
}

impl Row {
    /// What is not as expected.
    fn complaint(&self) -> Option<String> {
        let (spec, model) = (&self.spec, &self.model);
        match (&self.induction.broken, self.bug) {
            (Some(broken), false) => Some(match &broken.action {
                Some(action) => {
                    format!("{spec} {model}: {action} breaks {}", broken.conjunct)
                }
                None => format!("{spec} {model}: {} does not follow", broken.conjunct),
            }),
            (None, true) if self.must_break => {
                Some(format!("{spec} {model}: the seeded bug breaks no conjunct"))
            }
            (None, _) if self.induction.kept == 0 => {
                Some(format!("{spec} {model}: no state has the invariant"))
            }
            _ => None,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[])?;
    let plan = Plan {
        states: args.states.unwrap_or(Some(STATES)),
        seed: args.seed.unwrap_or_default(),
        versions: usize::from(args.versions),
        without: args.without.clone(),
    };
    let models = suite::select(&request(args)?)?;
    let mut rows = Vec::new();
    // The invariants do not say what a get may return while it is not durable. The contract does not
    // ask for it.
    let reads_freely = |m: &BoundedModel| {
        let reads = m.config.constants.get("Reads");
        reads.is_none_or(|reads| *reads == Value::str("free"))
    };
    // What the paper says may be harmless in the models, and yet not keep the invariant.
    let has_bug = |m: &BoundedModel| {
        let bug = m.config.constants.get("Bug");
        bug.is_some_and(|bug| *bug != Value::str("none"))
    };
    // What must be reachable is no invariant.
    let is_probe = |m: &BoundedModel| m.must_violate().is_some() && !has_bug(m);
    let has = |m: &&BoundedModel| {
        let known = mirrors::INDUCTIVE.contains(&m.spec.as_str());
        known && !m.config.invariants.is_empty() && reads_freely(m) && !is_probe(m)
    };
    let wanted = |m: &&BoundedModel| !has_bug(m) || args.mutations || !args.only.is_empty();
    for model in models.iter().filter(has).filter(wanted) {
        let progress = RefCell::new(Progress::new());
        let tell = |found: &Induction| {
            let total = plan.states.unwrap_or(found.kept);
            (progress.borrow_mut()).tell("states with the invariant", found.kept, total);
        };
        rows.push(Row {
            spec: model.spec.clone(),
            model: model.name.clone(),
            bug: has_bug(model),
            must_break: has_bug(model) && model.must_violate().is_some() && !model.is_temporal(),
            induction: mirrors::induct(&model.spec, &model.config, &plan, &tell)
                .map_err(SuiteError::from)?,
        });
    }
    if let Some(json) = &json {
        json.write(&output::json(&Document {
            schema: SCHEMA,
            complete: true,
            seed: plan.seed,
            versions: args.versions,
            without: args.without.as_deref(),
            models: &rows,
        })?)?;
    }
    if json != Some(Output::Stdout) {
        say(text(&rows, &plan).as_bytes())?;
        say(crate::glossary::SEE.as_bytes())?;
    }
    let complaints: Vec<String> = rows.iter().filter_map(Row::complaint).collect();
    match (rows.is_empty(), complaints.as_slice()) {
        (true, _) => Err(Failure::not_reached(format!(
            "no such model has an inductive invariant; specs that have one: {}",
            mirrors::INDUCTIVE.join(", ")
        ))),
        (_, []) => Ok(()),
        (_, [one]) => Err(Failure::found(one.clone())),
        (_, several) => Err(Failure::found(several.join("\n"))),
    }
}

/// The table. Writing to a string cannot fail.
fn text(rows: &[Row], plan: &Plan) -> String {
    let mut text = format!(
        "{:<15} {:<24} {:>10} {:>9} {:>10} {:>7}  verdict\n",
        "spec", "model", "tried", "kept", "steps", "actions"
    );
    for row in rows {
        let found = &row.induction;
        let verdict = match &found.broken {
            None => "inductive".to_owned(),
            Some(Broken {
                conjunct,
                action: None,
                ..
            }) => format!("lacks {conjunct}"),
            Some(Broken {
                conjunct,
                action: Some(action),
                ..
            }) => {
                format!("{conjunct} broken by {action}")
            }
        };
        let _ = writeln!(
            text,
            "{:<15} {:<24} {:>10} {:>9} {:>10} {:>7}  {verdict}",
            row.spec,
            row.model,
            found.tried,
            found.kept,
            found.steps,
            found.actions.len()
        );
        if let Some(without) = &plan.without {
            let _ = writeln!(
                text,
                "  {} of the states kept lack {without}",
                found.lacking
            );
        }
    }
    let told = rows
        .iter()
        .filter(|row| rows.len() == 1 || row.complaint().is_some());
    for broken in told.filter_map(|row| row.induction.broken.as_ref()).take(1) {
        let _ = writeln!(
            text,
            "\nIn this state the invariant holds:\n{}",
            broken.state
        );
        match (&broken.action, &broken.next) {
            (Some(action), Some(next)) => {
                let _ = writeln!(
                    text,
                    "After {action}, {} does not:\n{next}",
                    broken.conjunct
                );
            }
            _ => {
                let _ = writeln!(text, "{} does not.", broken.conjunct);
            }
        }
    }
    text
}
