//! What a sweep says: a few lines for people, and `treering.sweep/1`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::claims::Judged;
use super::points;
use super::runs::{Kind, Outcome};
use super::work::Work;
use crate::args::Extent;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::results_page;

/// Name and version of the document.
const SCHEMA: &str = "treering.sweep/1";

/// `treering.sweep/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    /// Whether every run has ended.
    complete: bool,
    /// The parameters that are columns.
    parameters: &'a [String],
    /// The other parameters, which are the same in all rows.
    fixed: BTreeMap<&'a str, &'a str>,
    /// Number of runs of the study.
    runs: usize,
    /// Number of failed ones.
    failed: usize,
    /// Number of points that were left out because an earlier one is the same run.
    duplicates: usize,
    /// The claims of the study, judged.
    #[serde(skip_serializing_if = "<[Judged]>::is_empty")]
    claims: &'a [Judged],
    /// The rows of the table, without what they do not have.
    rows: Vec<Value>,
}

/// Writes `treering.sweep/1`, if asked.
pub(super) fn write(
    work: &Work,
    complete: bool,
    claims: &[Judged],
    json: Option<&Output>,
) -> Result<(), Failure> {
    let Some(json) = json else { return Ok(()) };
    let document = Document {
        schema: SCHEMA,
        complete,
        parameters: &work.parameters,
        fixed: fixed(work),
        runs: work.plan.runs.len(),
        failed: work.failed().count(),
        duplicates: work.plan.duplicates,
        claims,
        rows: work.table().json(),
    };
    json.write(&output::json(&document)?)
}

/// The page of the table. Reports are linked if they are in a folder below that of the page.
pub(super) fn page(work: &Work, to: &Output, out: &Path) -> String {
    let table = work.table();
    let columns: Vec<String> = table.columns.iter().map(|(name, _)| name.clone()).collect();
    let base = match to {
        Output::File(path) => (path.parent()).and_then(|folder| out.strip_prefix(folder).ok()),
        Output::Stdout => None,
    };
    let base = base.and_then(|base| base.to_str()).map(|base| match base {
        "" => String::new(),
        base => format!("{base}/"),
    });
    results_page::html(&columns, &work.parameters, &table.rows, base.as_deref())
}

/// The parameters that are no columns.
fn fixed<'a>(work: &Work<'a>) -> BTreeMap<&'a str, &'a str> {
    let Some(run) = work.plan.runs.first() else {
        return BTreeMap::new();
    };
    let is_fixed = |name: &&str| !work.parameters.iter().any(|other| other == name);
    let names = points::flags().iter().map(|(name, _)| name.as_str());
    names
        .filter(is_fixed)
        .filter_map(|name| Some((name, run.point.get(name)?)))
        .collect()
}

/// Says how many runs there are and where the results are, and lists failed runs and claims.
pub(super) fn say(work: &Work, claims: &[Judged], out: &Path) -> Result<(), Failure> {
    let failed = work.failed().count();
    let mut text = format!(
        "{} runs, {failed} failed; {} new reports\n",
        work.plan.runs.len(),
        work.new
    );
    for (point, row) in work.failed() {
        text += &format!("  {}: {}\n", point.said(&work.parameters), row.reason);
    }
    for claim in claims {
        let (verdict, measured) = (claim.verdict_in_words(), &claim.measured);
        text += &format!("  claim {}: {verdict} ({measured})\n", claim.name);
    }
    text += &format!("{}\n", out.join("results.csv").display());
    output::say(text.as_bytes())
}

/// A point of a dry run.
#[derive(Serialize)]
struct Listed<'a> {
    run: &'a str,
    state: &'static str,
    parameters: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// `treering.sweep/1` of a dry run.
#[derive(Serialize)]
struct DryRun<'a> {
    schema: &'static str,
    /// Whether every run has ended.
    complete: bool,
    dry_run: bool,
    duplicates: usize,
    points: Vec<Listed<'a>>,
}

/// Lists the points, and which of them are done. Nothing is written but what is asked for.
pub(super) fn dry_run(work: &Work, extent: Extent, json: Option<&Output>) -> Result<(), Failure> {
    let kind = match extent {
        Extent::Replay => Kind::Replay,
        Extent::Predict | Extent::PredictFirst(_) => Kind::Predict,
    };
    let listed = work.plan.runs.iter().map(|run| {
        let (state, reason) = match work.known(kind, run) {
            None => ("to run", None),
            Some(Outcome::Done(_)) => ("done", None),
            Some(Outcome::Failed(failed)) => ("failed", Some(failed.reason)),
        };
        let names = work.parameters.iter();
        let parameters = names.filter_map(|name| Some((name.as_str(), run.point.get(name)?)));
        Listed {
            run: &run.hash,
            state,
            parameters: parameters.collect(),
            reason,
        }
    });
    let points: Vec<Listed> = listed.collect();
    if let Some(json) = json {
        let document = DryRun {
            schema: SCHEMA,
            complete: points.iter().all(|point| point.state != "to run"),
            dry_run: true,
            duplicates: work.plan.duplicates,
            points,
        };
        json.write(&output::json(&document)?)?;
        if *json == Output::Stdout {
            return Ok(());
        }
        return output::say(text(work, &document.points).as_bytes());
    }
    output::say(text(work, &points).as_bytes())
}

fn text(work: &Work, points: &[Listed]) -> String {
    let mut text = String::new();
    for (run, point) in work.plan.runs.iter().zip(points) {
        let said = run.point.said(&work.parameters);
        let why = point
            .reason
            .as_ref()
            .map_or(String::new(), |why| format!(": {why}"));
        text += &format!("{:<7} {said}{why}\n", point.state);
    }
    let missing = points
        .iter()
        .filter(|point| point.state == "to run")
        .count();
    text += &format!("{} runs, {missing} to run\n", points.len());
    text
}
