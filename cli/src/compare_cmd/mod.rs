//! `treering compare`: what differs between replays, in input and outcome.
//!
//! ```text
//! reports ──difference──▶ paths whose values differ ──▶ inputs │ main figures │ others
//!    └─────expression───▶ growth against the first ───▶ exit status 1 if an expression holds
//! ```

mod difference;
mod expression;
mod text;

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output::{self, Output};

use difference::Difference;
use expression::Expression;

/// Name and version of the document.
const SCHEMA: &str = "treering.compare/1";

/// How the schemas of the reports begin.
const REPORTS: &str = "treering.replay/";

/// A report that was read.
struct Report {
    name: String,
    document: Value,
}

/// `treering.compare/1`.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    complete: bool,
    /// The files, the first of which the others are compared with.
    reports: Vec<String>,
    /// What differs in the trace, the tree, the device and the options.
    inputs: Vec<Difference>,
    /// What differs in the results.
    outcomes: Vec<Difference>,
    checks: Vec<Check>,
    /// `exceeded` if an expression holds, otherwise `within`; `null` without expressions.
    verdict: Option<&'static str>,
}

/// An expression, judged for one report.
#[derive(Serialize)]
struct Check {
    expression: String,
    report: String,
    first: f64,
    value: f64,
    holds: bool,
}

/// Compares, writes the differences, and fails if an expression holds.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let inputs: Vec<&Path> = args.reports.iter().map(AsRef::as_ref).collect();
    let json = Output::if_given("--json", args.json.as_deref(), &inputs)?;
    let expressions = args.fail_if.iter().map(|text| {
        let parsed = Expression::parse(text);
        parsed.map_err(|why| Failure::usage(format!("--fail-if {why}")))
    });
    let expressions = expressions.collect::<Result<Vec<_>, _>>()?;
    if args.reports.len() < 2 {
        return Err(Failure::usage(
            "REPORT.json: expected two reports or more, found one",
        ));
    }
    let reports = (args.reports.iter())
        .map(|path| read(path))
        .collect::<Result<Vec<_>, _>>()?;
    let documents: Vec<&Value> = reports.iter().map(|report| &report.document).collect();
    let checks = judge(&expressions, &reports)?;
    let (inputs, outcomes) = difference::of(&documents);
    let held: Vec<&Check> = checks.iter().filter(|check| check.holds).collect();
    let failure = held.first().map(|check| {
        Failure::found(format!(
            "--fail-if {}: holds for {}: {} after {}{}",
            check.expression,
            check.report,
            check.value,
            check.first,
            more(held.len() - 1)
        ))
    });
    let document = Document {
        schema: SCHEMA,
        complete: true,
        reports: reports.iter().map(|report| report.name.clone()).collect(),
        inputs,
        outcomes,
        verdict: match (checks.is_empty(), held.is_empty()) {
            (true, _) => None,
            (false, true) => Some("within"),
            (false, false) => Some("exceeded"),
        },
        checks,
    };
    if let Some(json) = &json {
        json.write(&output::json(&document)?)?;
    }
    if json != Some(Output::Stdout) {
        output::say(text::render(&document, args.all).as_bytes())?;
    }
    failure.map_or(Ok(()), Err)
}

fn more(others: usize) -> String {
    match others {
        0 => String::new(),
        n => format!(", and {n} more"),
    }
}

fn read(path: &Path) -> Result<Report, Failure> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|e| Failure::file(&name, &e))?;
    let document: Value = serde_json::from_slice(&bytes).map_err(|e| {
        Failure::usage(format!(
            "{name}:{}: expected a report of `treering replay --json`, found {e}",
            e.line()
        ))
    })?;
    match document["schema"].as_str() {
        Some(schema) if schema.starts_with(REPORTS) => Ok(Report { name, document }),
        Some(other) => Err(Failure::usage(format!(
            "{name}: expected a report of `treering replay --json`, found {other}"
        ))),
        None => Err(Failure::usage(format!(
            "{name}: expected a report of `treering replay --json`, found no schema"
        ))),
    }
}

/// Judges all reports but the first.
fn judge(expressions: &[Expression], reports: &[Report]) -> Result<Vec<Check>, Failure> {
    let number = |expression: &Expression, report: &Report| {
        expression.number(&report.document).ok_or_else(|| {
            Failure::usage(format!(
                "--fail-if {}: expected a number at {} in {}, found none",
                expression.text, expression.path, report.name
            ))
        })
    };
    let mut checks = Vec::new();
    for expression in expressions {
        let Some((first, others)) = reports.split_first() else {
            break;
        };
        let first = number(expression, first)?;
        for report in others {
            let value = number(expression, report)?;
            checks.push(Check {
                expression: expression.text.clone(),
                report: report.name.clone(),
                first,
                value,
                holds: expression.holds(first, value),
            });
        }
    }
    Ok(checks)
}
