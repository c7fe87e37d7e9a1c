//! `treering check --ghosts`: whether variables that only serve the checking decide anything.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use treering_specs::check::configs::BoundedModel;
use treering_specs::check::mirrors;
use treering_specs::check::suite::{self, SuiteError};
use treering_specs::ghosts::Projection;
use treering_specs::mutants;

use crate::args::CheckArgs;
use crate::check_cmd::request;
use crate::failure::Failure;
use crate::output::{self, Output, say};

/// Name and version of the document.
const SCHEMA: &str = "treering.ghosts/1";

/// `treering.ghosts/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    complete: bool,
    models: &'a [Row],
}

/// A model without its ghosts.
#[derive(Serialize)]
struct Row {
    spec: String,
    model: String,
    ghosts: Vec<String>,
    #[serde(flatten)]
    projection: Projection,
}

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[])?;
    let models = suite::select(&request(args)?)?;
    let mut ghosts: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut rows = Vec::new();
    let shown = |m: &&BoundedModel| mirrors::is_mirrored(&m.spec) && m.must_violate().is_none();
    for model in models.iter().filter(shown) {
        let ghosts = match ghosts.entry(&model.spec) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(mutants::ghosts(&models, &model.spec)?),
        };
        if ghosts.is_empty() {
            continue;
        }
        let mirror = mirrors::open(&model.spec, &model.config).map_err(SuiteError::from)?;
        rows.push(Row {
            spec: model.spec.clone(),
            model: model.name.clone(),
            projection: mirror.project(ghosts).map_err(SuiteError::from)?,
            ghosts: ghosts.iter().cloned().collect(),
        });
    }
    if let Some(json) = &json {
        json.write(&output::json(&Document {
            schema: SCHEMA,
            complete: true,
            models: &rows,
        })?)?;
    }
    if json != Some(Output::Stdout) {
        say(text(&rows).as_bytes())?;
        say(crate::glossary::SEE.as_bytes())?;
    }
    let decides = rows.iter().filter(|row| row.projection.decided.is_some());
    let decides: Vec<&Row> = decides.collect();
    match (rows.is_empty(), decides.first()) {
        (true, _) => Err(Failure::not_reached("no model of these specs has ghosts")),
        (false, Some(row)) => Err(Failure::found(format!(
            "{} {}: a ghost decides a step; see above",
            row.spec, row.model
        ))),
        (false, None) => Ok(()),
    }
}

/// The table. Writing to a string cannot fail.
fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<15} {:<24} {:>9} {:>9}  {:<9} ghosts\n",
        "spec", "model", "states", "without", "verdict"
    );
    let mut told = Vec::new();
    for row in rows {
        let Projection {
            states,
            projected,
            decided,
        } = &row.projection;
        let verdict = if decided.is_none() { "free" } else { "decides" };
        let _ = writeln!(
            text,
            "{:<15} {:<24} {states:>9} {projected:>9}  {verdict:<9} {}",
            row.spec,
            row.model,
            row.ghosts.join(" ")
        );
        // One for each spec says enough.
        let again = told.contains(&&row.spec);
        if let Some(decided) = decided.as_ref().filter(|_| !again) {
            told.push(&row.spec);
            let _ = writeln!(
                text,
                "  {} can be taken with\n{}  but not with\n{}  in\n{}",
                decided.action,
                indented(&decided.takes),
                indented(&decided.refuses),
                indented(&decided.state)
            );
        }
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
