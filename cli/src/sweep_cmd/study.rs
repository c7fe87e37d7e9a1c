//! The study of the arguments: a file, or flags.

use std::path::PathBuf;

use super::changes;
use super::file;
use super::generated::Generated;
use super::points::{self, Axis, Study};
use super::shown::Shown;
use crate::args::{Changes, SweepArgs};
use crate::failure::Failure;

/// All that a study says.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    /// At least one.
    pub(super) parts: Vec<Study>,
    pub(super) generated: Vec<Generated>,
    /// How the small version differs.
    pub(super) small: Changes,
    /// What is made of the results.
    pub(super) shown: Shown,
    /// Factor of the records and operations of generated traces.
    pub(super) scale: f64,
    /// The folder from which paths start; empty is where the command was started.
    pub(super) base: PathBuf,
}

impl Whole {
    /// A study of points only.
    pub(super) fn of(parts: Vec<Study>) -> Whole {
        Whole {
            parts,
            generated: Vec::new(),
            small: Changes::default(),
            shown: Shown::default(),
            scale: 1.0,
            base: PathBuf::new(),
        }
    }
}

/// The study of these arguments.
pub(super) fn of(args: &SweepArgs) -> Result<Whole, Failure> {
    let is_study = |path: &&PathBuf| path.extension().is_some_and(|e| e == "toml");
    if let Some((flag, value)) = &args.not_text {
        return Err(Failure::usage(format!(
            "--{flag} {}: expected UTF-8",
            value.display()
        )));
    }
    match args.inputs.iter().find(is_study) {
        None => {
            only_for_studies(args)?;
            Ok(Whole::of(vec![of_flags(args)?]))
        }
        Some(path) if args.inputs.len() > 1 => Err(Failure::usage(format!(
            "{}: expected one study alone, or only traces",
            path.display()
        ))),
        Some(path) => {
            let mut whole = file::read(path)?;
            if let Some(given) = args.flags.first() {
                return Err(Failure::usage(format!(
                    "--{}: expected it in the study {}, in [fixed] or [grid], or as --set {0}=…",
                    given.flag,
                    path.display()
                )));
            }
            changes::apply(&mut whole, &args.changes)?;
            for study in &mut whole.parts {
                study.repetitions = args.repetitions.unwrap_or(study.repetitions);
                check_seeds(study).map_err(Failure::usage)?;
            }
            Ok(whole)
        }
    }
}

/// Refuses flags that need a study.
fn only_for_studies(args: &SweepArgs) -> Result<(), Failure> {
    let given = [
        ("small", args.changes.small),
        ("scale", args.changes.scale.is_some()),
        ("set", !args.changes.set.is_empty()),
        ("only", !args.changes.only.is_empty()),
        ("into", args.into.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::usage(format!(
            "--{flag}: expected a study (STUDY.toml), found traces"
        ))),
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
pub(super) fn check_seeds(study: &Study) -> Result<(), String> {
    let steps = study.axes.iter().flat_map(|axis| &axis.steps).flatten();
    let varied = steps.into_iter().any(|(flag, _)| flag == "seed");
    match varied && study.repetitions > 1 {
        true => Err("seed: expected either a list of seeds or repetitions, found both".into()),
        false => Ok(()),
    }
}
