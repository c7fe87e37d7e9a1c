//! `treering promises`: what each tree promises, and what stands behind it, as Markdown.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use treering_sim::report::numbers::grouped;
use treering_specs::promises::{self, Bounds, PromisesError, Reports, Row, Table, TreeRows};

use crate::args::PromisesArgs;
use crate::failure::Failure;
use crate::output::{self, Output, say};
use crate::specs::specs_folder;

/// Name and version of the document.
const SCHEMA: &str = "treering.promises/1";

/// `treering.promises/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    complete: bool,
    #[serde(flatten)]
    table: &'a Table,
}

impl From<PromisesError> for Failure {
    fn from(error: PromisesError) -> Failure {
        Failure::usage(error.to_string())
    }
}

/// Runs the command.
pub(crate) fn run(args: &PromisesArgs) -> Result<(), Failure> {
    let inputs: Vec<&Path> = args.reports.iter().map(AsRef::as_ref).collect();
    let json = Output::if_given("--json", args.json.as_deref(), &inputs)?;
    let specs = specs_folder(args.folder.as_deref())?;
    let mut reports = Reports::default();
    for path in &args.reports {
        let name = path.display().to_string();
        let text = std::fs::read(path).map_err(|e| Failure::file(&name, &e))?;
        reports.add(&name, &text)?;
    }
    let mut table = promises::table(&specs, &reports)?;
    let known: Vec<String> = table.trees.iter().map(|tree| tree.tree.clone()).collect();
    if let Some(other) = args.trees.iter().find(|name| !known.contains(name)) {
        return Err(Failure::usage(format!(
            "--tree {other}: expected one of {}",
            known.join(", ")
        )));
    }
    if !args.trees.is_empty() {
        table.trees.retain(|tree| args.trees.contains(&tree.tree));
    }
    if let Some(json) = &json {
        json.write(&output::json(&Document {
            schema: SCHEMA,
            complete: true,
            table: &table,
        })?)?;
    }
    if json != Some(Output::Stdout) {
        say(markdown(&table).as_bytes())?;
    }
    Ok(())
}

const ABOUT: &str = "# What is promised, and what stands behind it

`treering promises` makes this table of `specs/promises.toml`, of the models' results, and of reports.
**none** is a promise without that evidence. *not run* means that no report was given.

- *specified*: the operators of the specs that state the promise.
- *checked*: models that check one of them and hold, and their distinct states together. The largest
  model of each spec, with its bounds, is at the end.
- *planted*, *made*: seeded bugs of the specs, and mutants made by machine, that violate one of them.
- *bugs*: seeded bugs of the engine that the oracle must find, and has found.
- *heard*: steps of this kind that the engine took while it was listened to. The spec allowed all.
- *attacked*: what the oracle has tried: crash states, killed processes, torn writes, failed requests,
  histories of threads, operations.
";

/// The document. Writing to a string cannot fail, here and below.
fn markdown(table: &Table) -> String {
    let mut text = ABOUT.to_owned();
    for tree in &table.trees {
        section(&mut text, tree);
    }
    text.push_str("\n## Bounds\n\nThe largest model of each spec that a promise names.\n\n");
    text.push_str("| spec | model | distinct states | bounds |\n|---|---|--:|---|\n");
    for Bounds {
        spec,
        model,
        states,
        constants,
    } in &table.bounds
    {
        let constants: Vec<String> = (constants.iter())
            .map(|(name, value)| format!("{name} = {}", value.replace('|', "\\|")))
            .collect();
        let constants = constants.join(", ");
        let _ = writeln!(
            text,
            "| {spec} | {model} | {} | {constants} |",
            grouped(*states)
        );
    }
    text
}

fn section(text: &mut String, tree: &TreeRows) {
    let _ = write!(text, "\n## {}\n\n{}\n\n", tree.tree, tree.is);
    text.push_str(
        "| promise | specified | checked | planted | made | bugs | heard | attacked |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in &tree.rows {
        let _ = writeln!(text, "| {} |", cells(row).join(" | "));
    }
}

fn cells(row: &Row) -> [String; 8] {
    let checked = match row.models {
        0 => none(),
        models => format!("{models}: {}", grouped(row.states)),
    };
    [
        row.promise.clone(),
        specified(&row.specified),
        checked,
        counted(Some(row.planted as u64)),
        counted(row.killed.map(|n| n as u64)),
        match row.bugs {
            None => not_run(),
            Some((_, 0)) => none(),
            Some((found, tried)) => format!("{found} of {tried}"),
        },
        counted(row.heard),
        counted(row.attacked),
    ]
}

/// The operators, spec by spec.
fn specified(operators: &[String]) -> String {
    let mut text = String::new();
    let mut last = "";
    for named in operators {
        let (spec, operator) = named.split_once('.').unwrap_or(("", named));
        match (last == spec, text.is_empty()) {
            (true, _) => text.push_str(", "),
            (false, true) => {
                let _ = write!(text, "{spec}: ");
            }
            (false, false) => {
                let _ = write!(text, "; {spec}: ");
            }
        }
        let _ = write!(text, "`{operator}`");
        last = spec;
    }
    if text.is_empty() { none() } else { text }
}

fn none() -> String {
    "**none**".into()
}

fn not_run() -> String {
    "*not run*".into()
}

fn counted(number: Option<u64>) -> String {
    match number {
        None => not_run(),
        Some(0) => none(),
        Some(number) => grouped(number),
    }
}
