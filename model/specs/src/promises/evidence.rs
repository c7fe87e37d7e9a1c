//! What reports say: `treering oracle --json`, `treering check --mutate --json`.

use serde_json::Value;

use super::error::PromisesError;
use super::file::{Attack, Counted};

/// Reports that were read.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// Runs of the oracle that found nothing.
    runs: Vec<Value>,
    /// Seeded bugs of the engine.
    bugs: Vec<Value>,
    /// Mutants of the specs, if a report of them was given.
    mutants: Option<Vec<Value>>,
}

/// Schemas that are understood.
const ORACLE: &str = "treering.oracle/1";
const MUTANTS: &str = "treering.mutants-of-specs/1";

impl Reports {
    /// Adds the report `text` of the file `name`.
    ///
    /// # Errors
    /// It is no JSON, of another kind, or was written by a run that was stopped.
    pub fn add(&mut self, name: &str, text: &[u8]) -> Result<(), PromisesError> {
        let fail = |why: String| PromisesError::Report {
            name: name.into(),
            why,
        };
        let mut document: Value = serde_json::from_slice(text)
            .map_err(|e| fail(format!("line {}: expected JSON, found {e}", e.line())))?;
        let schema = document["schema"].as_str().unwrap_or("none").to_owned();
        if document["complete"] != true {
            return Err(fail(
                "expected a complete report, found a partial one".into(),
            ));
        }
        let mut take = |field: &str| match document[field].take() {
            Value::Array(rows) => Ok(rows),
            _ => Err(fail(format!("expected a list named {field}"))),
        };
        match schema.as_str() {
            ORACLE => {
                let held = |run: &Value| run["verdict"] != "violated";
                self.runs.extend(take("runs")?.into_iter().filter(held));
                self.bugs.extend(take("mutations")?);
            }
            MUTANTS => {
                let mutants = take("mutants")?;
                self.mutants.get_or_insert_default().extend(mutants);
            }
            other => {
                return Err(fail(format!(
                    "expected a report with the schema {ORACLE} or {MUTANTS}, found {other}"
                )));
            }
        }
        Ok(())
    }

    /// Mutants that violate one of the operators.
    pub(super) fn killed(&self, operators: &[&(String, String)]) -> Option<usize> {
        let killed = |mutant: &&Value| {
            (operators.iter()).any(|(spec, operator)| {
                mutant["spec"] == spec.as_str() && mutant["by"] == operator.as_str()
            })
        };
        Some(self.mutants.as_ref()?.iter().filter(killed).count())
    }

    /// Seeded bugs of a tree that these checks must find: found, and tried.
    pub(super) fn bugs(
        &self,
        checks: &[String],
        is_of: &impl Fn(&str) -> bool,
    ) -> Option<(usize, usize)> {
        let (mut found, mut tried) = (0, 0);
        for bug in &self.bugs {
            let check = bug["expected_check"].as_str().unwrap_or_default();
            let engine = bug["engine"].as_str().unwrap_or_default();
            if bug["benign"] != true && checks.iter().any(|name| name == check) && is_of(engine) {
                tried += 1;
                found += usize::from(bug["killed"] == true);
            }
        }
        (!self.bugs.is_empty()).then_some((found, tried))
    }

    /// How often the engine took one of these steps.
    pub(super) fn heard(&self, steps: &[String], is_of: &impl Fn(&str) -> bool) -> Option<u64> {
        let is_step = |row: &&Value| {
            let what = row["what"].as_str().unwrap_or_default();
            row["area"] == "step" && steps.iter().any(|step| step == what)
        };
        let runs = self.of("events", is_of)?;
        Some(
            runs.into_iter()
                .flat_map(reach)
                .filter(is_step)
                .map(number)
                .sum(),
        )
    }

    /// What the oracle counted.
    pub(super) fn attacked(
        &self,
        attacks: &[Attack],
        is_of: &impl Fn(&str) -> bool,
    ) -> Option<u64> {
        let mut sum = None;
        for attack in attacks {
            let Some(runs) = self.of(&attack.mode, is_of) else {
                continue;
            };
            let counted: u64 = match &attack.counted {
                Counted::Field(name) => runs
                    .iter()
                    .filter_map(|run| run[name.as_str()].as_u64())
                    .sum(),
                Counted::Reach(text) => {
                    let has = |row: &&Value| {
                        let what = row["what"].as_str().unwrap_or_default();
                        row["area"] == "fault" && what.contains(text.as_str())
                    };
                    runs.into_iter()
                        .flat_map(reach)
                        .filter(has)
                        .map(number)
                        .sum()
                }
            };
            *sum.get_or_insert(0) += counted;
        }
        sum
    }

    /// The runs of a tree in a mode, if any tree was run in it.
    fn of(&self, mode: &str, is_of: &impl Fn(&str) -> bool) -> Option<Vec<&Value>> {
        let in_mode = self.runs.iter().filter(|run| run["mode"] == mode);
        let in_mode: Vec<&Value> = in_mode.collect();
        let of_tree = |run: &&Value| is_of(run["engine"].as_str().unwrap_or_default());
        (!in_mode.is_empty()).then(|| in_mode.into_iter().filter(of_tree).collect())
    }
}

fn reach(run: &Value) -> impl Iterator<Item = &Value> {
    run["reach"].as_array().into_iter().flatten()
}

fn number(row: &Value) -> u64 {
    row["n"].as_u64().unwrap_or(0)
}
