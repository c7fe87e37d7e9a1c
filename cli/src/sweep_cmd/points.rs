//! The points of a study: a trace and flags of `treering replay` each.
//!
//! ```text
//! traces × axis × axis …   (grid and zip)  ─┐
//! traces × list                            ─┴─▶ − exclude ──▶ × seeds ──▶ points, in this order
//! ```

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::args::{Listed, ReplayArgs, swept};
use crate::devices_cmd;
use crate::failure::{self, Failure};

/// The name of the parameter that is no flag.
pub(super) const TRACE: &str = "trace";

/// A flag of `replay`, without its dashes, and its value.
pub(super) type Setting = (String, String);

/// A part of the product: each step sets one flag (grid), or several together (zip).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) steps: Vec<Vec<Setting>>,
}

impl Axis {
    /// An axis of one flag.
    pub(super) fn of(list: &Listed) -> Axis {
        let step = |value: &String| vec![(list.flag.clone(), value.clone())];
        Axis {
            steps: list.values.iter().map(step).collect(),
        }
    }
}

/// What to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Study {
    /// The name of this part of a study; empty if the study has no parts.
    pub(super) name: String,
    /// The traces, as paths from where the study is; none if an axis or each point of the list
    /// names its own.
    pub(super) traces: Vec<String>,
    /// Flags of all points.
    pub(super) fixed: Vec<Setting>,
    /// Every combination of their steps is a point.
    pub(super) axes: Vec<Axis>,
    /// Further points. One that names no trace is run with each.
    pub(super) list: Vec<Vec<Setting>>,
    /// Points that have, of each of these flags, one of the values are left out.
    pub(super) exclude: Vec<Vec<Listed>>,
    /// Points that have one of these flags, but none of its values, are left out.
    pub(super) only: Vec<Listed>,
    /// Number of seeds of each point.
    pub(super) repetitions: u64,
}

/// One run: the arguments of `treering replay`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) trace: String,
    /// The file of a generated trace; `None` if the trace is its own path.
    pub(super) file: Option<String>,
    /// By flag, without dashes.
    pub(super) settings: BTreeMap<String, String>,
}

/// The flags that can be varied, in the order of `--help`, each with whether it takes a value.
pub(super) fn flags() -> &'static [(String, bool)] {
    static FLAGS: OnceLock<Vec<(String, bool)>> = OnceLock::new();
    FLAGS.get_or_init(|| {
        let named = |arg: clap::Arg| {
            let name = arg.get_long().unwrap_or_default().to_owned();
            (name, arg.get_action().takes_values())
        };
        swept().into_iter().map(named).collect()
    })
}

fn takes_value(flag: &str) -> Option<bool> {
    let found = flags().iter().find(|(name, _)| name == flag);
    found.map(|(_, takes_value)| *takes_value)
}

/// Checks one value by itself, so that a bad one is found before anything is run.
///
/// # Errors
/// If the flag or the value is not one of `replay`, a message that says what was expected.
pub(crate) fn check(flag: &str, value: &str) -> Result<(), String> {
    let Some(takes_value) = takes_value(flag) else {
        return Err(format!(
            "{flag}: no such flag; expected one of `treering replay`, such as cache or page"
        ));
    };
    if !takes_value {
        return match value {
            "true" | "false" => Ok(()),
            other => Err(format!("{flag}: expected true or false, found {other}")),
        };
    }
    if flag == "device" {
        if value.starts_with("file:") {
            return Err(format!(
                "device: expected simulated devices, found {value}: a file gives other results \
                 each time"
            ));
        }
        return devices_cmd::find(value).map(drop).map_err(|e| e.message);
    }
    parse(&[format!("--{flag}={value}"), "--".into(), "trace".into()])
        .map(drop)
        .map_err(|e| format!("{flag}: {}", e.message))
}

fn parse(arguments: &[String]) -> Result<ReplayArgs, Failure> {
    ReplayArgs::of(arguments).map_err(|error| failure::clap(&error))
}

impl Point {
    /// A trace with all defaults.
    pub(crate) fn of(trace: &str) -> Point {
        Point {
            trace: trace.to_owned(),
            file: None,
            settings: BTreeMap::new(),
        }
    }

    /// The path of the trace.
    pub(super) fn path(&self) -> &str {
        self.file.as_deref().unwrap_or(&self.trace)
    }

    /// Sets a flag.
    pub(crate) fn set(&mut self, flag: &str, value: &str) {
        self.settings.insert(flag.to_owned(), value.to_owned());
    }

    /// The point with another value of a flag.
    pub(crate) fn with(&self, flag: &str, value: &str) -> Point {
        let mut point = self.clone();
        point.set(flag, value);
        point
    }

    /// The flags and their values.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let settings = self.settings.iter();
        settings.map(|(flag, value)| (flag.as_str(), value.as_str()))
    }

    /// The value of a parameter: a flag, or [`TRACE`].
    pub(crate) fn get(&self, parameter: &str) -> Option<&str> {
        match parameter {
            TRACE => Some(&self.trace),
            flag => self.settings.get(flag).map(String::as_str),
        }
    }

    fn take(&mut self, (flag, value): &Setting) {
        match flag.as_str() {
            TRACE => self.trace = value.clone(),
            flag => self.set(flag, value),
        }
    }

    /// The arguments of `replay`, or of another command with its flags, without those in `left_out`.
    pub(crate) fn arguments(&self, left_out: &[&str]) -> Vec<String> {
        let mut words = Vec::new();
        for (flag, value) in &self.settings {
            if left_out.contains(&flag.as_str()) {
                continue;
            }
            match (takes_value(flag), value.as_str()) {
                (Some(false), "true") => words.push(format!("--{flag}")),
                (Some(false), _) => {}
                _ => words.push(format!("--{flag}={value}")),
            }
        }
        words.extend(["--".into(), self.path().to_owned()]);
        words
    }

    /// The flags as `replay` parses them.
    pub(crate) fn parsed(&self) -> Result<ReplayArgs, Failure> {
        parse(&self.arguments(&[]))
    }

    /// The point in words, by these parameters.
    pub(super) fn said(&self, parameters: &[String]) -> String {
        let said = |name: &String| Some(format!("{name}={}", self.get(name)?));
        let said: Vec<String> = parameters.iter().filter_map(said).collect();
        said.join(" ")
    }
}

impl Study {
    /// All points, in the order of the table's rows.
    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        if !self.axes.is_empty() || self.list.is_empty() {
            let mut product = self.starts();
            for axis in &self.axes {
                product = (product.iter())
                    .flat_map(|point| axis.steps.iter().map(|step| with(point, step)))
                    .collect();
            }
            points.extend(product);
        }
        for settings in &self.list {
            let names_trace = settings.iter().any(|(flag, _)| flag == TRACE);
            let starts = self.starts();
            let starts = &starts[..if names_trace { 1 } else { starts.len() }];
            points.extend(starts.iter().map(|point| with(point, settings)));
        }
        // The table always has a column for the tree.
        for point in &mut points {
            let tree = point.settings.entry("tree".into());
            tree.or_insert_with(default_tree);
        }
        points.retain(|point| !self.exclude.iter().any(|part| matches(point, part)));
        let fits = |point: &Point, list: &Listed| {
            let value = point.get(&list.flag);
            value.is_none_or(|value| list.values.iter().any(|other| other == value))
        };
        points.retain(|point| self.only.iter().all(|list| fits(point, list)));
        match self.repetitions {
            1 => points,
            n => points.iter().flat_map(|point| seeds(point, n)).collect(),
        }
    }

    /// A point for each trace, with the fixed flags. Without traces, one whose trace comes later.
    fn starts(&self) -> Vec<Point> {
        let start = |trace: &str| with(&Point::of(trace), &self.fixed);
        match self.traces.as_slice() {
            [] => vec![start("")],
            traces => traces.iter().map(|trace| start(trace)).collect(),
        }
    }
}

/// The tree of `replay` without `--tree`.
fn default_tree() -> String {
    let tree = swept()
        .into_iter()
        .find(|arg| arg.get_long() == Some("tree"));
    let default = tree.and_then(|arg| arg.get_default_values().first().cloned());
    default.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn with(point: &Point, step: &[Setting]) -> Point {
    let mut point = point.clone();
    step.iter().for_each(|setting| point.take(setting));
    point
}

fn matches(point: &Point, part: &[Listed]) -> bool {
    part.iter().all(|list| {
        let value = point.get(&list.flag);
        value.is_some_and(|value| list.values.iter().any(|other| other == value))
    })
}

/// The point with `n` seeds, from its own on.
fn seeds(point: &Point, n: u64) -> impl Iterator<Item = Point> {
    let first: u64 = (point.get("seed"))
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(0);
    (0..n).map(move |i| {
        let seed = first.wrapping_add(i).to_string();
        with(point, &[("seed".into(), seed)])
    })
}

/// The parameters that come first in the table: trace and tree, and each flag that varies, in the
/// order of `--help`.
pub(super) fn varied(points: &[Point]) -> Vec<String> {
    let varies = |name: &str| {
        let mut values = points.iter().map(|point| point.get(name));
        let first = values.next().flatten();
        values.any(|value| value != first)
    };
    let named = flags().iter().map(|(name, _)| name.as_str());
    let named = named.filter(|name| *name == "tree" || varies(name));
    [TRACE]
        .into_iter()
        .chain(named)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(flag: &str, values: &[&str]) -> Listed {
        Listed {
            flag: flag.into(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }
    }

    fn said(study: &Study) -> Vec<String> {
        let points = study.points();
        let names = varied(&points);
        points.iter().map(|point| point.said(&names)).collect()
    }

    #[test]
    fn points_are_the_product_and_the_list_without_what_is_excluded() {
        let zip = |page: &str, threshold: &str| {
            vec![
                ("page".to_owned(), page.to_owned()),
                ("threshold".to_owned(), threshold.to_owned()),
            ]
        };
        let study = Study {
            traces: vec!["a".into(), "b".into()],
            axes: vec![
                Axis::of(&list("tree", &["btree", "bf"])),
                Axis {
                    steps: vec![zip("4KiB", "1KiB"), zip("8KiB", "2KiB")],
                },
            ],
            list: vec![
                vec![("tree".into(), "ccl".into())],
                vec![("trace".into(), "c".into())],
            ],
            exclude: vec![
                vec![list("tree", &["bf"]), list("page", &["8KiB", "16KiB"])],
                vec![list("trace", &["b"]), list("tree", &["btree", "bf"])],
            ],
            repetitions: 1,
            ..Study::default()
        };
        assert_eq!(
            said(&study),
            [
                "trace=a tree=btree threshold=1KiB page=4KiB",
                "trace=a tree=btree threshold=2KiB page=8KiB",
                "trace=a tree=bf threshold=1KiB page=4KiB",
                "trace=a tree=ccl",
                "trace=b tree=ccl",
                "trace=c tree=btree",
            ]
        );
    }

    #[test]
    fn repetitions_count_seeds_from_the_given_one_on() {
        let study = Study {
            traces: vec!["a".into()],
            fixed: vec![("seed".into(), "7".into())],
            repetitions: 2,
            ..Study::default()
        };
        assert_eq!(
            said(&study),
            ["trace=a tree=btree seed=7", "trace=a tree=btree seed=8"]
        );
    }

    #[test]
    fn bad_values_are_told_from_good_ones() {
        for (flag, value) in [("cache", "5%"), ("timing", "true"), ("device", "csd")] {
            assert_eq!(check(flag, value), Ok(()));
        }
        for (flag, value, expected) in [
            ("cache", "5 bits", "expected a size"),
            ("cahce", "5%", "no such flag"),
            ("timing", "yes", "true or false"),
            ("device", "file:/tmp/x", "simulated"),
            ("device", "floppy", "no such drive"),
            ("json", "a.json", "no such flag"),
        ] {
            let why = check(flag, value).expect_err(value);
            assert!(why.contains(expected), "{why}");
        }
    }
}
