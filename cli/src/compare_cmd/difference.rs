//! The paths at which reports differ.
//!
//! Inputs are what the replays were asked to do: the trace, the records loaded before it, the tree,
//! the device and its profile, the options. Everything else is an outcome. Long lists (`series`,
//! `page_fill`, distributions of latencies) are compared by the figures that sum them up, and full
//! predictions by those that stand beside measured values.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::expression::relative;
use crate::figures;

/// The first names of paths that are inputs.
const INPUTS: [&str; 5] = ["schema", "trace", "preload", "tree", "options"];

/// Parts of `device` that come from the run and not from the request.
const OF_RUNS: [&str; 3] = ["gc_reached", "effective_alpha", "compression"];

/// What is not compared value by value.
const LEFT_OUT: [&str; 2] = ["series", "page_fill"];

/// A path at which not all reports have the same value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Difference {
    pub(super) path: String,
    /// The values, in the order of the reports; `null` where there is none.
    pub(super) values: Vec<Value>,
    /// The growth of each further value relative to the first; `null` if it is no number, or from
    /// zero.
    pub(super) growth: Vec<Option<f64>>,
    /// Whether it is an input that was chosen, or a main figure.
    pub(super) main: bool,
}

/// The inputs and the outcomes that differ. Outcomes begin with the main figures, in their order;
/// the others are in the order of paths.
pub(super) fn of(reports: &[&Value]) -> (Vec<Difference>, Vec<Difference>) {
    let mut paths = BTreeSet::new();
    for report in reports {
        collect(report, String::new(), &mut paths);
    }
    let main: Vec<String> = figures::all().into_iter().map(|(path, _)| path).collect();
    let differ = |path: String| {
        let value = |report: &&Value| figures::at(report, &path).cloned().unwrap_or_default();
        let values: Vec<Value> = reports.iter().map(value).collect();
        if values.iter().all(|value| *value == values[0]) {
            return None;
        }
        Some(Difference {
            growth: growth(&values),
            main: main.contains(&path) && !path.ends_with(".low") && !path.ends_with(".high"),
            path,
            values,
        })
    };
    let all = paths.into_iter().filter_map(differ);
    let (mut inputs, mut outcomes): (Vec<_>, Vec<_>) = all.partition(|found| is_input(&found.path));
    let other_device = inputs.iter().any(|found| found.path == "device.profile");
    for found in &mut inputs {
        // What follows from another device is not worth a line of its own.
        let follows = other_device && found.path.starts_with("device.");
        found.main = !follows || ["device.kind", "device.profile"].contains(&found.path.as_str());
    }
    let place = |found: &Difference| main.iter().position(|path| *path == found.path);
    outcomes.sort_by_key(|found| place(found).unwrap_or(main.len()));
    (inputs, outcomes)
}

/// Whether the path is of an input.
fn is_input(path: &str) -> bool {
    let mut names = path.split('.');
    match (names.next(), names.next()) {
        // How many operations were replayed is asked for, too, by the trace and --limit.
        (Some("device"), Some(part)) => !OF_RUNS.contains(&part),
        (Some(first), _) => INPUTS.contains(&first),
        (None, _) => false,
    }
}

fn growth(values: &[Value]) -> Vec<Option<f64>> {
    let first = values[0].as_f64();
    let growth = |other: &Value| {
        let growth = relative(first?, other.as_f64()?);
        growth.is_finite().then_some(growth)
    };
    values.iter().skip(1).map(growth).collect()
}

/// Collects the paths of all single values.
fn collect(value: &Value, path: String, paths: &mut BTreeSet<String>) {
    let inner = |name: &str| match path.as_str() {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let is_top = path.is_empty();
                let is_full = is_top && name == "prediction" && value.is_object();
                if is_full {
                    // Its other parts repeat what stands under `wa` and `pm`, or lead to it.
                    paths.insert("prediction.hit_ratio".into());
                } else if !(is_top && LEFT_OUT.contains(&name.as_str())) && name != "cdf" {
                    collect(value, inner(name), paths);
                }
            }
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                collect(value, inner(&at.to_string()), paths);
            }
        }
        Value::Null => {}
        _ => {
            paths.insert(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn inputs_are_told_from_outcomes_and_main_figures_come_first() {
        let report = |cache: &str, wa: f64, n: u64| {
            json!({
                "options": {"cache": cache},
                "device": {"kind": "ssd", "gc_reached": n > 1},
                "a": {"other": n},
                "wa": {"device": {"total": wa}},
                "series": [n],
                "latency_ns": {"get": {"p99": n, "cdf": [n]}},
            })
        };
        let (a, b) = (report("5%", 2.0, 1), report("9%", 3.0, 2));
        let (inputs, outcomes) = of(&[&a, &b]);
        let paths = |found: &[Difference]| -> Vec<String> {
            found.iter().map(|found| found.path.clone()).collect()
        };
        assert_eq!(paths(&inputs), ["options.cache"]);
        assert!(inputs[0].main && outcomes[0].main && !outcomes[2].main);
        let expected = [
            "wa.device.total",
            "latency_ns.get.p99",
            "a.other",
            "device.gc_reached",
        ];
        assert_eq!(paths(&outcomes), expected);
        assert_eq!(outcomes[0].growth, [Some(0.5)]);
        let same = of(&[&a, &a]);
        assert!(same.0.is_empty() && same.1.is_empty());
    }
}
