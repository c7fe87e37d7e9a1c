//! Flags of `treering sweep`: those of `treering replay`, all of which take lists.
//!
//! As for `treering predict`, the flags are taken over from [`ReplayArgs`] and changed here, so that
//! a new flag of `replay` can be swept without further work.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::ReplayArgs;
use crate::units;

/// Flags of `replay` that a sweep refuses, by the names of their fields: it decides where reports
/// and statistics go, and real files give other results each time.
const NOT_SWEPT: [&str; 6] = [
    "json",
    "html",
    "statistics",
    "save_statistics",
    "buffered",
    "no_trim",
];

/// The heading of the flags that `replay` does not have.
const HEADING: &str = "Sweep";

const EXAMPLES: &str = "EXAMPLES:\n  \
    treering sweep zipf.trz --tree btree,bf --cache 5%,20% --out caches\n  \
    treering sweep zipf.trz vm.trz --store in-place,cow,shadow --out stores --jobs 2\n  \
    treering sweep studies/trees-on-drives.toml --out trees-on-drives --dry-run\n  \
    treering sweep studies/bminus.toml --small --out bminus-small\n  \
    treering sweep studies/bminus.toml --set records=10k --only page=8KiB --out bminus-10k\n  \
    treering sweep zipf.trz --device ssd,csd --op 7%,28% --predict-only --out drives\n  \
    treering sweep zipf.trz --cache 1%,5%,20% --page 4KiB,8KiB --predict-first 2 --out best\n\n\
    Every flag with a value takes a list. Every combination is replayed, each in a process of its \
    own. The results are DIR/results.csv, \
    DIR/results.parquet and DIR/runs. The same command goes on where it was stopped or killed; with \
    more values, only the new combinations are run. Failed runs are listed in the table. The exit \
    status is then 3 if one could not run, else 4 if --strict failed, else 2. It is 1 if all could \
    run, and a claim of the study does not hold that is not listed as differing.\n\
    Studies, columns and files: docs/SWEEP.md. Glossary: docs/GLOSSARY.md";

/// What is done with the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All are replayed.
    Replay,
    /// All are predicted, none is replayed.
    Predict,
    /// All are predicted, and this many of the best are replayed.
    PredictFirst(u64),
}

/// A flag of `replay` with its values, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The flag without its dashes.
    pub(crate) flag: String,
    /// The values; a switch that was given has the value `true`.
    pub(crate) values: Vec<String>,
}

/// How a study is changed from the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Changes {
    /// The study's own small version.
    pub(crate) small: bool,
    /// Factor of the records and operations of generated traces.
    pub(crate) scale: Option<f64>,
    /// Other values.
    pub(crate) set: Vec<Listed>,
    /// Points with another value of these parameters are left out.
    pub(crate) only: Vec<Listed>,
}

/// Flags of `treering sweep`.
#[derive(Clone, Debug)]
pub(crate) struct SweepArgs {
    /// Traces, or one study.
    pub(crate) inputs: Vec<PathBuf>,
    /// The given flags of `replay`.
    pub(crate) flags: Vec<Listed>,
    /// Folder for results.
    pub(crate) out: PathBuf,
    /// Maximum number of processes.
    pub(crate) jobs: Option<u32>,
    /// Memory budget of all processes.
    pub(crate) memory: Option<u64>,
    pub(crate) extent: Extent,
    /// Number of seeds of each point.
    pub(crate) repetitions: Option<u64>,
    pub(crate) dry_run: bool,
    /// How a study is changed.
    pub(crate) changes: Changes,
    /// The page whose tables are rewritten.
    pub(crate) into: Option<PathBuf>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) html: Option<PathBuf>,
    /// A value that is not UTF-8, with its flag.
    pub(crate) not_text: Option<(String, OsString)>,
}

/// The flags of `replay` that a sweep varies.
pub(crate) fn swept() -> Vec<Arg> {
    let command = ReplayArgs::augment_args(Command::new("replay"));
    let is_swept = |arg: &&Arg| !arg.is_positional() && !NOT_SWEPT.contains(&arg.get_id().as_str());
    let found = command.get_arguments().filter(is_swept);
    found
        .filter(|arg| arg.get_long().is_some())
        .cloned()
        .collect()
}

/// Splits a list at commas. Commas inside parentheses belong to a tree's parameters:
/// `btree+shadow(T=2KiB,Ds=128)` is one value.
fn split(list: &str) -> Vec<String> {
    let (mut depth, mut values) = (0_i32, vec![String::new()]);
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match values.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => values.push(String::new()),
        }
    }
    values
}

/// The flags of `replay`, those with values as lists. `json` and
/// `html` are the help of `--json` and `--html`, under `heading`; without it, `--html` is hidden.
pub(super) fn lists(
    command: Command,
    (json, html): (&'static str, Option<&'static str>),
    heading: &'static str,
) -> Command {
    let mut command = ReplayArgs::augment_args(command);
    for arg in swept() {
        let id = arg.get_id().as_str().to_owned();
        command = match arg.get_action().takes_values() {
            true if id == "tree" => command.mut_arg(id, trees),
            true => command.mut_arg(id, list),
            false => command,
        };
    }
    for id in NOT_SWEPT {
        command = match id {
            "json" => command.mut_arg(id, |arg| arg.help(json).help_heading(heading)),
            "html" if html.is_some() => {
                let help = html.unwrap_or_default();
                command.mut_arg(id, |arg| arg.help(help).help_heading(heading))
            }
            _ => command.mut_arg(id, |arg| arg.hide(true)),
        };
    }
    command
}

/// The given flags, and a value that is not UTF-8, with its flag.
pub(super) type Given = (Vec<Listed>, Option<(String, OsString)>);

/// The given flags of [`lists`], and a value that is not UTF-8, with its flag. Refuses flags that
/// are only of `replay`, but not those in `taken`; `command` is who refuses.
pub(super) fn listed(
    matches: &ArgMatches,
    command: &str,
    taken: &[&str],
) -> Result<Given, clap::Error> {
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    refuse(&given, command, taken)?;
    let (mut flags, mut not_text) = (Vec::new(), None);
    for arg in swept() {
        let (id, flag) = (arg.get_id().as_str(), arg.get_long().unwrap_or_default());
        if !given(id) {
            continue;
        }
        let mut values = Vec::new();
        for raw in matches.get_raw(id).into_iter().flatten() {
            match raw.to_str() {
                Some(text) if id == "tree" => values.extend(split(text)),
                Some(text) => values.push(text.to_owned()),
                None => not_text = Some((flag.to_owned(), raw.to_owned())),
            }
        }
        if !arg.get_action().takes_values() {
            values = vec!["true".into()];
        }
        let flag = flag.to_owned();
        flags.push(Listed { flag, values });
    }
    Ok((flags, not_text))
}

impl Args for SweepArgs {
    fn augment_args(command: Command) -> Command {
        let json = "Write all rows as JSON; - is stdout";
        let html =
            "Write the page of the table: axes chosen by hand, facets, filters, Pareto front";
        let command = lists(command, (json, Some(html)), HEADING);
        let command = command.mut_arg("trace", |arg| {
            arg.action(ArgAction::Append)
                .num_args(1..)
                .value_name("TRACE|STUDY.toml")
                .help("Trace files, .trz or .jsonl, or one study, .toml")
        });
        command.args(own()).after_help(EXAMPLES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        SweepArgs::augment_args(command)
    }
}

/// Lets a flag take several values.
fn list(arg: Arg) -> Arg {
    arg.action(ArgAction::Append).value_delimiter(',')
}

/// Lets `--tree` take several specs, which are split by [`split`].
fn trees(arg: Arg) -> Arg {
    arg.action(ArgAction::Append)
        .value_parser(value_parser!(String))
}

/// The flags that `replay` does not have.
fn own() -> Vec<Arg> {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).help_heading(HEADING)
    };
    vec![
        flag("out", "Folder for results; made if it is missing")
            .value_name("DIR")
            .required(true)
            .value_parser(value_parser!(PathBuf)),
        flag(
            "jobs",
            "Maximum number of runs at the same time [default: number of cores]",
        )
        .value_name("N")
        .value_parser(units::small_count),
        flag(
            "memory",
            "Memory for all runs at the same time; a run that needs more runs alone [default: three \
             quarters of what is available]",
        )
        .value_name("SIZE")
        .value_parser(units::size),
        flag("repetitions", "Number of seeds for each combination, from --seed on [default: 1]")
            .value_name("N")
            .value_parser(units::ordinal),
        flag("predict-only", "Predict every combination; replay none")
            .action(ArgAction::SetTrue)
            .conflicts_with("predict-first"),
        flag(
            "predict-first",
            "Predict every combination; replay the N with the lowest predicted write amplification \
             of the device",
        )
        .value_name("N")
        .value_parser(units::ordinal),
        flag("dry-run", "List the combinations and which of them are done; run nothing")
            .action(ArgAction::SetTrue),
        flag("small", "Study: run its small version").action(ArgAction::SetTrue),
        flag("scale", "Study: multiply records and operations of the traces that it generates")
            .value_name("X")
            .value_parser(factor),
        flag("set", "Study: other values of a flag, or of a setting of its generated traces")
            .value_name("NAME=VALUE,...")
            .value_parser(assigned)
            .action(ArgAction::Append),
        flag("only", "Study: leave out points that have other values of this parameter")
            .value_name("NAME=VALUE,...")
            .value_parser(assigned)
            .action(ArgAction::Append),
        flag(
            "into",
            "Study: rewrite its tables between their marks in this page, and its pictures beside it",
        )
        .value_name("PAGE.md")
        .value_parser(value_parser!(PathBuf)),
    ]
}

/// Parses `NAME=VALUE,…`.
fn assigned(text: &str) -> Result<Listed, String> {
    match text.split_once('=') {
        Some((flag, values)) if !flag.is_empty() && !values.is_empty() => Ok(Listed {
            flag: flag.to_owned(),
            values: split(values),
        }),
        _ => Err("expected NAME=VALUE, or NAME=VALUE,VALUE".into()),
    }
}

/// Parses a factor above 0.
fn factor(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.parse().ok();
    factor
        .filter(|factor| factor.is_finite() && *factor > 0.0)
        .ok_or_else(|| "expected a number above 0".into())
}

impl FromArgMatches for SweepArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SweepArgs, clap::Error> {
        let (flags, not_text) = listed(matches, "a sweep", &["json", "html"])?;
        let extent = match matches.get_one::<u64>("predict-first") {
            Some(best) => Extent::PredictFirst(*best),
            None if matches.get_flag("predict-only") => Extent::Predict,
            None => Extent::Replay,
        };
        let all = |id| {
            matches
                .get_many(id)
                .into_iter()
                .flatten()
                .cloned()
                .collect()
        };
        Ok(SweepArgs {
            inputs: matches
                .get_many("trace")
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
            flags,
            out: matches
                .get_one::<PathBuf>("out")
                .cloned()
                .unwrap_or_default(),
            jobs: matches.get_one("jobs").copied(),
            memory: matches.get_one("memory").copied(),
            extent,
            repetitions: matches.get_one("repetitions").copied(),
            dry_run: matches.get_flag("dry-run"),
            changes: Changes {
                small: matches.get_flag("small"),
                scale: matches.get_one("scale").copied(),
                set: all("set"),
                only: all("only"),
            },
            into: matches.get_one("into").cloned(),
            json: matches.get_one("json").cloned(),
            html: matches.get_one("html").cloned(),
            not_text,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SweepArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Refuses a flag that a sweep, or whoever `command` is, does not take.
fn refuse(given: &impl Fn(&str) -> bool, command: &str, taken: &[&str]) -> Result<(), clap::Error> {
    let unwanted = NOT_SWEPT.iter().filter(|id| !taken.contains(id));
    match unwanted.into_iter().find(|id| given(id)) {
        None => Ok(()),
        Some(id) => Err(clap::Error::raw(
            clap::error::ErrorKind::UnknownArgument,
            format!(
                "--{}: applies only to `treering replay`, not to {command}\n",
                id.replace('_', "-")
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_trees_is_split_outside_parentheses() {
        assert_eq!(
            split("bf,btree+shadow(T=2KiB,Ds=128)+sparse,none"),
            ["bf", "btree+shadow(T=2KiB,Ds=128)+sparse", "none"]
        );
    }
}
