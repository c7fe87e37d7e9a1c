//! Reads a study: from a TOML file, or from the command line.
//!
//! ```toml
//! traces = ["a.trz"]            # paths from the folder of the study
//! repetitions = 3               # seeds of each point
//! [fixed]                       # flags of all points
//! limit = "1M"
//! [grid]                        # every combination
//! cache = ["5%", "20%"]
//! [[zip]]                       # lists of the same length, walked together
//! page = ["4KiB", "8KiB"]
//! threshold = ["1KiB", "2KiB"]
//! [[list]]                      # a further point
//! tree = "ccl"
//! [[exclude]]                   # points with these values are left out
//! cache = ["5%"]
//! page = "8KiB"
//! ```
//!
//! An error names the file, the line, and what was expected there.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::points::{self, Axis, Setting, Study, TRACE};
use crate::args::{Listed, SweepArgs};
use crate::failure::Failure;

/// The study of these arguments, and the folder from which its paths start; `None` is where the
/// command was started.
pub(super) fn of(args: &SweepArgs) -> Result<(Study, Option<&Path>), Failure> {
    let is_study = |path: &&std::path::PathBuf| path.extension().is_some_and(|e| e == "toml");
    if let Some((flag, value)) = &args.not_text {
        return Err(Failure::usage(format!(
            "--{flag} {}: expected UTF-8",
            value.display()
        )));
    }
    match args.inputs.iter().find(is_study) {
        None => Ok((of_flags(args)?, None)),
        Some(path) if args.inputs.len() > 1 => Err(Failure::usage(format!(
            "{}: expected one study alone, or only traces",
            path.display()
        ))),
        Some(path) => {
            let mut study = read(path)?;
            if let Some(given) = args.flags.first() {
                return Err(Failure::usage(format!(
                    "--{}: expected it in the study {}, in [fixed] or [grid]",
                    given.flag,
                    path.display()
                )));
            }
            study.repetitions = args.repetitions.unwrap_or(study.repetitions);
            check_seeds(&study).map_err(Failure::usage)?;
            Ok((study, path.parent()))
        }
    }
}

/// The study of flags: one value is fixed, a list is a part of the grid.
fn of_flags(args: &SweepArgs) -> Result<Study, Failure> {
    let mut study = Study {
        repetitions: args.repetitions.unwrap_or(1),
        ..Study::default()
    };
    for path in &args.inputs {
        let Some(text) = path.to_str() else {
            return Err(Failure::usage(format!(
                "{}: expected a path in UTF-8",
                path.display()
            )));
        };
        study.traces.push(text.to_owned());
    }
    twice(&study.traces).map_err(|value| given_twice("TRACE", value))?;
    for list in &args.flags {
        for value in &list.values {
            let checked = points::check(&list.flag, value);
            checked.map_err(|why| Failure::usage(format!("--{why}")))?;
        }
        let flag = format!("--{}", list.flag);
        twice(&list.values).map_err(|value| given_twice(&flag, value))?;
        match list.values.as_slice() {
            [only] => study.fixed.push((list.flag.clone(), only.clone())),
            _ => study.axes.push(Axis::of(list)),
        }
    }
    check_seeds(&study).map_err(Failure::usage)?;
    Ok(study)
}

fn given_twice(flag: &str, value: &str) -> Failure {
    Failure::usage(format!(
        "{flag} {value}: given twice; expected different values"
    ))
}

/// The first value that is there twice.
fn twice(values: &[String]) -> Result<(), &str> {
    let again = (1..values.len()).find(|i| values[..*i].contains(&values[*i]));
    again.map_or(Ok(()), |i| Err(&values[i]))
}

/// Seeds are either varied or counted.
fn check_seeds(study: &Study) -> Result<(), String> {
    let steps = study.axes.iter().flat_map(|axis| &axis.steps).flatten();
    let varied = steps.into_iter().any(|(flag, _)| flag == "seed");
    match varied && study.repetitions > 1 {
        true => Err("seed: expected either a list of seeds or repetitions, found both".into()),
        false => Ok(()),
    }
}

fn read(path: &Path) -> Result<Study, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| Failure::file(&name, &e))?;
    let file = File {
        name: &name,
        text: &text,
        folder: path.parent().unwrap_or(Path::new("")),
    };
    let root = DeTable::parse(&text).map_err(|error| {
        let at = error.span().unwrap_or_default();
        file.refuse(&at, error.message())
    })?;
    file.study(root.get_ref())
}

/// A study file, which names its lines in errors.
struct File<'a> {
    name: &'a str,
    text: &'a str,
    folder: &'a Path,
}

/// A key of a table and its value, each with its place.
type Entry<'a> = (&'a str, Range<usize>, &'a Spanned<DeValue<'a>>);

impl File<'_> {
    fn refuse(&self, at: &Range<usize>, why: &str) -> Failure {
        let before = self.text.get(..at.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Failure::usage(format!("{}:{line}: {why}", self.name))
    }

    fn study(&self, root: &DeTable<'_>) -> Result<Study, Failure> {
        let mut study = Study {
            repetitions: 1,
            ..Study::default()
        };
        for (key, at, value) in entries(root) {
            match key {
                "traces" => study.traces = self.traces(value)?,
                "repetitions" => study.repetitions = self.repetitions(value)?,
                "fixed" => study.fixed = self.settings(value)?,
                "grid" => {
                    let lists = self.lists(value)?;
                    // The grid comes before lists that are walked together, wherever it is.
                    study.axes.splice(0..0, lists.iter().map(Axis::of));
                }
                "zip" => {
                    for table in self.tables(key, value)? {
                        study.axes.push(self.zip(table)?);
                    }
                }
                "list" => {
                    for table in self.tables(key, value)? {
                        study.list.push(self.settings(table)?);
                    }
                }
                "exclude" => {
                    for table in self.tables(key, value)? {
                        study.exclude.push(self.lists(table)?);
                    }
                }
                other => {
                    return Err(self.refuse(
                        &at,
                        &format!(
                            "{other}: expected traces, repetitions, fixed, grid, zip, list or \
                             exclude"
                        ),
                    ));
                }
            }
        }
        let whole = 0..0;
        self.check_flags(&study, root)?;
        if study.points().iter().any(|point| point.trace.is_empty()) {
            return Err(self.refuse(&whole, "expected traces = [\"FILE.trz\"], found none"));
        }
        check_seeds(&study).map_err(|why| self.refuse(&whole, &why))?;
        Ok(study)
    }

    /// A parameter belongs to one place: otherwise it would be unclear which value holds.
    fn check_flags(&self, study: &Study, root: &DeTable<'_>) -> Result<(), Failure> {
        let first = |axis: &Axis| axis.steps.first().cloned().unwrap_or_default();
        let settings = study.fixed.iter().cloned();
        let settings = settings.chain(study.axes.iter().flat_map(first));
        let traces = (!study.traces.is_empty()).then(|| TRACE.to_owned());
        let mut seen: Vec<String> = traces.into_iter().collect();
        for (flag, _) in settings {
            if seen.contains(&flag) {
                let at = place(root, &flag).unwrap_or_default();
                let why =
                    format!("{flag}: expected in one of traces, fixed, grid and zip, found twice");
                return Err(self.refuse(&at, &why));
            }
            seen.push(flag);
        }
        Ok(())
    }

    fn traces(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Failure> {
        let mut traces: Vec<String> = Vec::new();
        for (at, text) in self.values(TRACE, value)? {
            if traces.contains(&text) {
                return Err(self.refuse(&at, &format!("{text}: given twice")));
            }
            self.check_trace(&at, &text)?;
            traces.push(text);
        }
        Ok(traces)
    }

    fn check_trace(&self, at: &Range<usize>, text: &str) -> Result<(), Failure> {
        match self.folder.join(text).is_file() {
            true => Ok(()),
            false => Err(self.refuse(
                at,
                &format!(
                    "{text}: no such file; expected a trace, as a path from the study's folder"
                ),
            )),
        }
    }

    fn repetitions(&self, value: &Spanned<DeValue<'_>>) -> Result<u64, Failure> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.filter(|n| *n > 0).ok_or_else(|| {
            self.refuse(
                &value.span(),
                "repetitions: expected a whole number above 0",
            )
        })
    }

    /// The tables of `[[key]]`; a single table is one.
    fn tables<'a>(
        &self,
        key: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Result<Vec<&'a Spanned<DeValue<'a>>>, Failure> {
        match value.get_ref() {
            DeValue::Array(tables) => Ok(tables.iter().collect()),
            DeValue::Table(_) => Ok(vec![value]),
            _ => Err(self.refuse(&value.span(), &format!("{key}: expected [[{key}]]"))),
        }
    }

    fn table<'a>(&self, value: &'a Spanned<DeValue<'a>>) -> Result<Vec<Entry<'a>>, Failure> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(entries(table)),
            _ => Err(self.refuse(&value.span(), "expected a table of flags")),
        }
    }

    /// One value for each flag.
    fn settings(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Setting>, Failure> {
        let mut settings = Vec::new();
        for (flag, at, value) in self.table(value)? {
            if matches!(value.get_ref(), DeValue::Array(_)) {
                let why = format!("{flag}: expected one value here, found a list");
                return Err(self.refuse(&at, &why));
            }
            let (_, text) = self.value(flag, value)?;
            settings.push((flag.to_owned(), text));
        }
        Ok(settings)
    }

    /// A list of values for each flag.
    fn lists(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Listed>, Failure> {
        let mut lists = Vec::new();
        for (flag, at, value) in self.table(value)? {
            let mut values = Vec::new();
            for (at, text) in self.values(flag, value)? {
                if values.contains(&text) {
                    return Err(self.refuse(&at, &format!("{flag}: {text} is given twice")));
                }
                values.push(text);
            }
            if values.is_empty() {
                return Err(self.refuse(&at, &format!("{flag}: expected values, found none")));
            }
            let flag = flag.to_owned();
            lists.push(Listed { flag, values });
        }
        Ok(lists)
    }

    /// Lists of the same length, walked together. A value may be there several times.
    fn zip(&self, value: &Spanned<DeValue<'_>>) -> Result<Axis, Failure> {
        let mut axis = Axis::default();
        for (flag, at, value) in self.table(value)? {
            let values = self.values(flag, value)?;
            if axis.steps.is_empty() {
                axis.steps = vec![Vec::new(); values.len()];
            }
            if values.is_empty() || values.len() != axis.steps.len() {
                let why = format!(
                    "{flag}: expected {} values, as many as the first list of this zip has, \
                     found {}",
                    axis.steps.len().max(1),
                    values.len()
                );
                return Err(self.refuse(&at, &why));
            }
            for (step, (_, text)) in axis.steps.iter_mut().zip(values) {
                step.push((flag.to_owned(), text));
            }
        }
        if axis.steps.is_empty() {
            return Err(self.refuse(&value.span(), "zip: expected lists, found none"));
        }
        Ok(axis)
    }

    fn values(
        &self,
        flag: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<(Range<usize>, String)>, Failure> {
        match value.get_ref() {
            DeValue::Array(values) => values.iter().map(|v| self.value(flag, v)).collect(),
            _ => Ok(vec![self.value(flag, value)?]),
        }
    }

    /// A value as it would be typed, checked.
    fn value(
        &self,
        flag: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(Range<usize>, String), Failure> {
        let at = value.span();
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(on) => on.to_string(),
            _ => {
                let why = format!("{flag}: expected a text, a number, true or false");
                return Err(self.refuse(&at, &why));
            }
        };
        if flag == TRACE {
            self.check_trace(&at, &text)?;
        } else {
            self.check_value(flag, &at, &text)?;
        }
        Ok((at, text))
    }

    fn check_value(&self, flag: &str, at: &Range<usize>, text: &str) -> Result<(), Failure> {
        // A profile is found from the study's folder, into which the sweep goes later.
        if flag == "device" && text.ends_with(".toml") {
            let profile = self.folder.join(text);
            let found = crate::devices_cmd::find(&profile.to_string_lossy());
            return found.map(drop).map_err(|e| self.refuse(at, &e.message));
        }
        points::check(flag, text).map_err(|why| self.refuse(at, &why))
    }
}

/// The entries of a table in the order of the file.
fn entries<'a>(table: &'a DeTable<'a>) -> Vec<Entry<'a>> {
    let entry = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
        let name: &std::borrow::Cow<'a, str> = key.get_ref();
        (name.as_ref(), key.span(), value)
    };
    let mut found: Vec<Entry<'a>> = table.iter().map(entry).collect();
    found.sort_by_key(|(_, at, _)| at.start);
    found
}

/// Where a flag is varied.
fn place(root: &DeTable<'_>, flag: &str) -> Option<Range<usize>> {
    let in_table = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::Table(table) => {
            let found = entries(table).into_iter().find(|(key, ..)| *key == flag);
            found.map(|(_, at, _)| at)
        }
        _ => None,
    };
    let varying = entries(root)
        .into_iter()
        .filter(|(key, ..)| ["fixed", "grid", "zip"].contains(key));
    let mut places = varying.flat_map(|(_, _, value)| match value.get_ref() {
        DeValue::Array(tables) => tables.iter().filter_map(in_table).collect::<Vec<_>>(),
        _ => in_table(value).into_iter().collect(),
    });
    places.next_back()
}
