//! Reads a study from a TOML file.
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
//! [[part]]                      # instead of grid, zip and list: several studies in one file,
//! name = "large pages"          # each with its own of all these; a part without traces has those
//! grid = { page = ["64KiB"] }   # above, and [fixed] and [[exclude]] above are for all
//! ```
//!
//! `[[generate]]` is of [`super::generated`], `[small]` of [`super::changes`], and `[[table]]`,
//! `[[chart]]` and `[[claim]]` are of [`super::shown`].
//!
//! An error names the file, the line, and what was expected there.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::generated::{self, Generated};
use super::points::{self, Axis, Setting, Study, TRACE};
use super::shown::Shown;
use super::study::{Whole, check_seeds};
use crate::args::{Changes, Listed};
use crate::failure::Failure;

/// Reads a study.
///
/// # Errors
/// If it is wrong, with the line.
pub(super) fn read(path: &Path) -> Result<Whole, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| Failure::file(&name, &e))?;
    let mut file = File {
        name: &name,
        text: &text,
        folder: path.parent().unwrap_or(Path::new("")),
        generated: Vec::new(),
    };
    let root = DeTable::parse(&text).map_err(|error| {
        let at = error.span().unwrap_or_default();
        file.refuse(&at, error.message())
    })?;
    for (key, _, value) in entries(root.get_ref()) {
        if key == "generate" {
            file.generated = file.generate(value)?;
        }
    }
    file.whole(root.get_ref())
}

/// A study file, which names its lines in errors.
struct File<'a> {
    name: &'a str,
    text: &'a str,
    folder: &'a Path,
    generated: Vec<Generated>,
}

/// A key of a table and its value, each with its place.
type Entry<'a> = (&'a str, Range<usize>, &'a Spanned<DeValue<'a>>);

impl File<'_> {
    fn refuse(&self, at: &Range<usize>, why: &str) -> Failure {
        let before = self.text.get(..at.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Failure::usage(format!("{}:{line}: {why}", self.name))
    }

    fn whole(&self, root: &DeTable<'_>) -> Result<Whole, Failure> {
        let mut all = Study {
            repetitions: 1,
            ..Study::default()
        };
        let mut whole = Whole {
            generated: self.generated.clone(),
            base: self.folder.to_owned(),
            ..Whole::of(Vec::new())
        };
        let mut parts = Vec::new();
        for (key, at, value) in entries(root) {
            match key {
                "repetitions" => all.repetitions = self.repetitions(value)?,
                "part" => parts = self.tables(key, value)?,
                "generate" | "table" | "chart" | "claim" => {}
                "small" => whole.small = self.small(value)?,
                key if self.section(&mut all, key, value)? => {}
                other => {
                    return Err(self.refuse(
                        &at,
                        &format!(
                            "{other}: expected traces, repetitions, fixed, grid, zip, list, \
                             exclude, part, generate, small, table, chart or claim"
                        ),
                    ));
                }
            }
        }
        if parts.is_empty() {
            self.check_flags(&all, root)?;
            whole.parts.push(all);
        } else {
            whole.parts = self.parts(&all, &parts)?;
        }
        whole.shown = Shown::read(self.text).map_err(|(at, why)| self.refuse(&at, &why))?;
        Ok(whole)
    }

    /// Reads a section that a part may have, too; tells whether it is one.
    fn section(
        &self,
        study: &mut Study,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<bool, Failure> {
        match key {
            "traces" => study.traces = self.traces(value)?,
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
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The parts, each with what is said for all.
    fn parts(&self, all: &Study, tables: &[&Spanned<DeValue<'_>>]) -> Result<Vec<Study>, Failure> {
        let mut parts: Vec<Study> = Vec::new();
        for table in tables {
            let DeValue::Table(inner) = table.get_ref() else {
                return Err(self.refuse(&table.span(), "part: expected [[part]]"));
            };
            if !all.axes.is_empty() || !all.list.is_empty() {
                let why = "part: expected grid, zip and list in parts only, found some above";
                return Err(self.refuse(&table.span(), why));
            }
            let mut part = Study {
                repetitions: all.repetitions,
                ..Study::default()
            };
            for (key, at, value) in entries(inner) {
                match (key, value.get_ref()) {
                    ("name", DeValue::String(name)) => part.name = name.to_string(),
                    ("repetitions", _) => part.repetitions = self.repetitions(value)?,
                    (key, _) if self.section(&mut part, key, value)? => {}
                    (other, _) => {
                        let why = format!(
                            "{other}: expected a name, traces, repetitions, fixed, grid, zip, \
                             list or exclude"
                        );
                        return Err(self.refuse(&at, &why));
                    }
                }
            }
            if part.name.is_empty() || parts.iter().any(|other| other.name == part.name) {
                let why = "part: expected a name that no other part has";
                return Err(self.refuse(&table.span(), why));
            }
            inherit(&mut part, all);
            self.check_flags(&part, inner)?;
            parts.push(part);
        }
        Ok(parts)
    }

    /// The traces to generate, each checked.
    fn generate(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Generated>, Failure> {
        let mut all: Vec<Generated> = Vec::new();
        for table in self.tables("generate", value)? {
            let mut it = Generated {
                name: String::new(),
                workload: String::new(),
                settings: Vec::new(),
            };
            for (key, at, value) in self.table(table)? {
                let text = self.word(key, value)?;
                match key {
                    "name" => it.name = text,
                    "workload" => it.workload = text,
                    flag if generated::has(flag) => it.settings.push((flag.into(), text)),
                    other => {
                        let why = format!(
                            "{other}: expected name, workload, or a flag of `treering gen`"
                        );
                        return Err(self.refuse(&at, &why));
                    }
                }
            }
            if it.name.is_empty() || all.iter().any(|other| other.name == it.name) {
                let why = "generate: expected a name that no other trace has";
                return Err(self.refuse(&table.span(), why));
            }
            it.params()
                .map_err(|e| self.refuse(&table.span(), &format!("generate: {}", e.message)))?;
            all.push(it);
        }
        Ok(all)
    }

    /// How the small version differs.
    fn small(&self, value: &Spanned<DeValue<'_>>) -> Result<Changes, Failure> {
        let mut small = Changes::default();
        for (key, at, value) in self.table(value)? {
            match key {
                "scale" => {
                    let scale: Option<f64> = self.word(key, value)?.parse().ok();
                    let scale = scale.filter(|scale| scale.is_finite() && *scale > 0.0);
                    let why = "scale: expected a number above 0";
                    small.scale = Some(scale.ok_or_else(|| self.refuse(&at, why))?);
                }
                "set" => small.set = self.words(value)?,
                "only" => small.only = self.words(value)?,
                other => {
                    let why = format!("{other}: expected scale, set or only");
                    return Err(self.refuse(&at, &why));
                }
            }
        }
        Ok(small)
    }

    /// Lists of values that are checked where they are used.
    fn words(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Listed>, Failure> {
        let mut lists = Vec::new();
        for (flag, _, value) in self.table(value)? {
            let values = match value.get_ref() {
                DeValue::Array(values) => values.iter().map(|v| self.word(flag, v)).collect(),
                _ => self.word(flag, value).map(|word| vec![word]),
            };
            lists.push(Listed {
                flag: flag.to_owned(),
                values: values?,
            });
        }
        Ok(lists)
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
        let whole = 0..0;
        if study.points().iter().any(|point| point.trace.is_empty()) {
            return Err(self.refuse(&whole, "expected traces = [\"FILE.trz\"], found none"));
        }
        check_seeds(study).map_err(|why| self.refuse(&whole, &why))
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
        let is_generated = self.generated.iter().any(|trace| trace.name == text);
        match is_generated || self.folder.join(text).is_file() {
            true => Ok(()),
            false => Err(self.refuse(
                at,
                &format!(
                    "{text}: no such file; expected a trace, as a path from the study's folder, or \
                     the name of a generated one"
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

    /// A value as it would be typed.
    fn word(&self, flag: &str, value: &Spanned<DeValue<'_>>) -> Result<String, Failure> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => Ok(number.to_string()),
            DeValue::Float(number) => Ok(number.to_string()),
            DeValue::Boolean(on) => Ok(on.to_string()),
            _ => {
                let why = format!("{flag}: expected a text, a number, true or false");
                Err(self.refuse(&value.span(), &why))
            }
        }
    }

    /// A value as it would be typed, checked.
    fn value(
        &self,
        flag: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(Range<usize>, String), Failure> {
        let (at, text) = (value.span(), self.word(flag, value)?);
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

/// Gives a part what is said for all parts, unless it says something else.
fn inherit(part: &mut Study, all: &Study) {
    let steps = part.axes.iter().flat_map(|axis| &axis.steps).flatten();
    let own = steps.chain(&part.fixed).map(|(flag, _)| flag.clone());
    let own: Vec<String> = own.collect();
    if part.traces.is_empty() && !own.iter().any(|flag| flag == TRACE) {
        part.traces.clone_from(&all.traces);
    }
    let fixed = all.fixed.iter().filter(|(flag, _)| !own.contains(flag));
    part.fixed = fixed.chain(&part.fixed).cloned().collect();
    part.exclude.extend(all.exclude.iter().cloned());
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
