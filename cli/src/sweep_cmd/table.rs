//! The table of a sweep: a row for each run that has ended, in the order of the study.
//!
//! ```text
//! trace, tree, what varies │ run, state, reason │ the figures of crate::figures │ warnings
//! ```
//!
//! Nothing in it depends on when or how fast it was made, so that the same study gives the same
//! bytes.

use serde_json::{Map, Value, json};

use super::points::Point;
use super::runs::{Kind as Of, Outcome};
use crate::figures::{self, Kind};

/// How far a row came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Replayed,
    Predicted,
    /// Replayed, but without what `--strict` asks for.
    NotReached,
    Failed,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Replayed => "replayed",
            State::Predicted => "predicted",
            State::NotReached => "not reached",
            State::Failed => "failed",
        }
    }
}

/// What is known of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Result {
    pub(super) state: State,
    /// Exit status of the run.
    pub(super) status: u8,
    /// Why it failed; empty if it did not.
    pub(super) reason: String,
    /// In the order of [`figures::all`]; `null` where the run has none.
    figures: Vec<Value>,
    warnings: String,
}

impl Result {
    /// The result of an outcome of this kind.
    pub(super) fn of(kind: Of, outcome: &Outcome) -> Result {
        match outcome {
            Outcome::Done(report) => {
                let state = match kind {
                    Of::Replay => State::Replayed,
                    Of::Predict => State::Predicted,
                };
                Result::with(state, 0, String::new(), Some(report), kind)
            }
            Outcome::Failed(failed) => {
                let (report, reason) = (failed.report.as_deref(), failed.reason.clone());
                let state = match failed.status {
                    4 => State::NotReached,
                    _ => State::Failed,
                };
                Result::with(state, failed.status, reason, report, kind)
            }
        }
    }

    fn with(state: State, status: u8, reason: String, report: Option<&Value>, kind: Of) -> Result {
        let moved;
        let report = match (report, kind) {
            (Some(report), Of::Predict) => {
                moved = as_replay(report);
                &moved
            }
            (Some(report), Of::Replay) => report,
            (None, _) => &Value::Null,
        };
        let figure = |(path, _)| figures::at(report, path).cloned().unwrap_or_default();
        let warnings = report["warnings"].as_array().into_iter().flatten();
        let warnings: Vec<&str> = warnings.filter_map(Value::as_str).collect();
        Result {
            state,
            status,
            reason,
            figures: figures::all().iter().map(|(p, k)| figure((p, k))).collect(),
            warnings: warnings.join("; "),
        }
    }

    /// The predicted write amplification of the device, by which predictions are ranked: bytes that
    /// reach flash or the medium of persistent memory, per user byte.
    pub(super) fn predicted(&self) -> Option<f64> {
        let all = figures::all();
        let value = |path: &str| {
            let at = all.iter().position(|(other, _)| other == path)?;
            self.figures[at].as_f64()
        };
        value("wa.predicted.device.total.value").or_else(|| value("pm.predicted.xbi.value"))
    }
}

/// A prediction with its figures where a replay has them.
fn as_replay(report: &Value) -> Value {
    let run = &report["configurations"][0];
    json!({
        "trace": report["trace"],
        "device": report["device"],
        "ops": report["ops"],
        "user_bytes": run["user_bytes"],
        "wa": { "predicted": run["wa"] },
        "pm": { "predicted": run["pm"] },
        "prediction": run["prediction"],
        "warnings": run["warnings"],
    })
}

/// The table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) columns: Vec<(String, Kind)>,
    /// As many values as columns; `null` where there is none.
    pub(super) rows: Vec<Vec<Value>>,
}

impl Table {
    /// The table of the results so far.
    pub(super) fn of<'a>(
        parameters: &[String],
        results: impl Iterator<Item = (&'a Point, &'a str, &'a Result)>,
    ) -> Table {
        let text = |name: &str| (name.to_owned(), Kind::Text);
        let mut columns: Vec<_> = parameters.iter().map(|name| text(name)).collect();
        columns.extend(["run", "state", "reason"].map(text));
        columns.extend(figures::all());
        columns.push(text("warnings"));
        let row = |(point, hash, result): (&Point, &str, &Result)| {
            let mut row: Vec<Value> = (parameters.iter())
                .map(|name| point.get(name).into())
                .collect();
            row.extend([
                hash.into(),
                result.state.name().into(),
                none_if_empty(&result.reason),
            ]);
            row.extend(result.figures.iter().cloned());
            row.push(none_if_empty(&result.warnings));
            row
        };
        let rows = results.map(row).collect();
        Table { columns, rows }
    }

    /// The rows as JSON objects, without what is `null`.
    pub(super) fn json(&self) -> Vec<Value> {
        let object = |row: &Vec<Value>| {
            let names = self.columns.iter().map(|(name, _)| name.clone());
            let cells = names.zip(row.iter().cloned());
            let cells: Map<String, Value> = cells.filter(|(_, value)| !value.is_null()).collect();
            Value::Object(cells)
        };
        self.rows.iter().map(object).collect()
    }

    /// The table as CSV (RFC 4180); an empty field has no value.
    pub(super) fn csv(&self) -> Vec<u8> {
        let names = self.columns.iter().map(|(name, _)| quoted(name));
        let mut text = names.collect::<Vec<_>>().join(",") + "\n";
        for row in &self.rows {
            let cells = row.iter().map(|value| match value {
                Value::Null => String::new(),
                Value::String(text) => quoted(text),
                other => other.to_string(),
            });
            text += &cells.collect::<Vec<_>>().join(",");
            text.push('\n');
        }
        text.into_bytes()
    }
}

fn none_if_empty(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => text.into(),
    }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        let table = Table {
            columns: vec![("a".into(), Kind::Text), ("b".into(), Kind::Real)],
            rows: vec![
                vec!["x(T=1,Ds=2)".into(), 1.5.into()],
                vec!["say \"so\"".into(), Value::Null],
            ],
        };
        let csv = String::from_utf8(table.csv()).expect("text");
        assert_eq!(csv, "a,b\n\"x(T=1,Ds=2)\",1.5\n\"say \"\"so\"\"\",\n");
        assert_eq!(table.json()[1], json!({"a": "say \"so\""}));
    }

    #[test]
    fn a_prediction_has_its_figures_where_a_replay_has_them() {
        let report = json!({"configurations": [
            {"wa": {"device": {"total": {"value": 2.5}}}, "user_bytes": 7}
        ]});
        let result = Result::of(Of::Predict, &Outcome::Done(Box::new(report)));
        assert_eq!(
            (result.state, result.predicted()),
            (State::Predicted, Some(2.5))
        );
    }
}
