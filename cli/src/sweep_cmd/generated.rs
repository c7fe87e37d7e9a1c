//! Traces that a study generates, so that it needs no other files.
//!
//! ```toml
//! [[generate]]
//! name = "128 B"                # what `traces` and the column `trace` call it
//! workload = "uniform"          # the rest is as in `treering gen`
//! records = "30k"
//! writes = 1
//! ```
//!
//! A trace is known by the command that generates it, so it is written only when a run needs it:
//! to `DIR/traces/`, which may be removed at any time.

use std::path::{Path, PathBuf};

use clap::{Args as _, Command, FromArgMatches as _};
use treering_traces::format::Encoding;
use treering_traces::generate::GenParams;
use xxhash_rust::xxh3::xxh3_64;

use super::points::Setting;
use crate::args::{GenArgs, Listed};
use crate::failure::{self, Failure};
use crate::{gen_cmd, output};

/// The flags of `gen` that are no settings.
const NOT_SET: [&str; 1] = ["output"];

/// A trace to generate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Generated {
    pub(super) name: String,
    /// The workload.
    pub(super) workload: String,
    /// Flags of `gen`, without dashes.
    pub(super) settings: Vec<Setting>,
}

/// Whether `gen` has this flag.
pub(super) fn has(flag: &str) -> bool {
    let command = GenArgs::augment_args(Command::new("gen"));
    let mut arguments = command.get_arguments();
    arguments.any(|arg| arg.get_long() == Some(flag) && !NOT_SET.contains(&flag))
}

impl Generated {
    /// Sets a flag.
    pub(super) fn set(&mut self, flag: &str, value: &str) {
        self.settings.retain(|(name, _)| name != flag);
        self.settings.push((flag.to_owned(), value.to_owned()));
    }

    /// The parameters of the generator.
    ///
    /// # Errors
    /// If a flag or a value is not one of `gen`, or they do not fit together.
    pub(super) fn params(&self) -> Result<GenParams, Failure> {
        let mut words = vec!["--output=trace.trz".to_owned()];
        for (flag, value) in &self.settings {
            match value.as_str() {
                "true" => words.push(format!("--{flag}")),
                "false" => {}
                value => words.push(format!("--{flag}={value}")),
            }
        }
        words.extend(["--".into(), self.workload.clone()]);
        let command = GenArgs::augment_args(Command::new("gen")).no_binary_name(true);
        let parsed = command.try_get_matches_from(words);
        let args = parsed.and_then(|matches| GenArgs::from_arg_matches(&matches));
        gen_cmd::params(&args.map_err(|error| failure::clap(&error))?)
    }
}

/// A generated trace with its place.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) name: String,
    pub(super) path: PathBuf,
    params: GenParams,
}

impl Placed {
    /// Places a trace in the folder of a sweep, with `scale` times the records and operations.
    ///
    /// # Errors
    /// If its settings are wrong.
    pub(super) fn new(it: &Generated, scale: f64, out: &Path) -> Result<Placed, Failure> {
        let told = |e: Failure| Failure::usage(format!("generate {}: {}", it.name, e.message));
        let mut params = it.params().map_err(told)?;
        params.records = times(params.records, scale);
        params.ops = params.ops.map(|ops| times(ops, scale));
        params.check().map_err(|e| told(e.into()))?;
        let simple = |c: char| match c {
            c if c.is_ascii_alphanumeric() || c == '.' => c.to_ascii_lowercase(),
            _ => '-',
        };
        let simple: String = it.name.chars().map(simple).collect();
        let file = format!("{simple}-{:016x}.trz", xxh3_64(params.command().as_bytes()));
        Ok(Placed {
            name: it.name.clone(),
            path: out.join("traces").join(file),
            params,
        })
    }

    /// The command that generates the trace.
    pub(super) fn command(&self) -> String {
        self.params.command()
    }

    /// A lower bound of the bytes of the file.
    pub(super) fn least_bytes(&self) -> u64 {
        self.params.least_bytes(Encoding::Packed)
    }

    /// Writes the file if it is missing.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn make(&self) -> Result<(), Failure> {
        if self.path.is_file() {
            return Ok(());
        }
        let folder = output::folder(&self.path);
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::file(&folder.display().to_string(), &e))?;
        output::check_room("--out", folder, self.least_bytes())?;
        gen_cmd::write(&self.params, &self.path).map(drop)
    }
}

fn times(count: u64, scale: f64) -> u64 {
    ((count as f64 * scale).round() as u64).max(1)
}

/// Sets a setting of all of them, if it is one.
///
/// # Errors
/// If several values are given.
pub(super) fn set(all: &mut [Generated], list: &Listed) -> Result<(), String> {
    let [value] = list.values.as_slice() else {
        return Err(format!(
            "{}: expected one value for generated traces, found {}",
            list.flag,
            list.values.len()
        ));
    };
    for generated in all {
        generated.set(&list.flag, value);
    }
    Ok(())
}
