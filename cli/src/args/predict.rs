//! Flags of `treering predict`: those of `treering replay`, some of which take lists.
//!
//! clap's derive cannot say "the same flags, but some of them with lists". So the flags of `replay`
//! are taken over as they are defined there, and changed here: flags in [`LISTS`] take several
//! values, and flags in [`OF_RUNS`] are hidden and refused.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use treering_sim::replay::Size;

use super::ReplayArgs;

/// Flags that take lists, by the names of their fields in [`ReplayArgs`].
const LISTS: [&str; 5] = ["cache", "page", "over_provisioning", "threshold", "nbatch"];

/// Flags of `replay` that are about a run, by the names of their fields in [`ReplayArgs`].
const OF_RUNS: [&str; 7] = [
    "buffered",
    "no_trim",
    "contention_split",
    "daily",
    "no_predict",
    "timing",
    "strict",
];

const EXAMPLES: &str = "EXAMPLES:\n  \
    treering predict zipf.trz\n  \
    treering predict zipf.trz --cache 1%,2%,5%,10%,20%,50% --html cache.html\n  \
    treering predict zipf.trz --save-statistics    # the next prediction skips the trace\n  \
    treering predict zipf.trz --tree bf --cache 5%,20% --op 7%,28% --svg bf.svg\n  \
    treering predict zipf.trz --device csd --tree bminus --threshold 512,1KiB,2KiB --page 8KiB\n  \
    treering predict zipf.trz --tree ccl --nbatch 1,2,3,4 --json - | jq .passes\n  \
    treering predict vm.trz --tree none --precondition steady --op 7%,28%,50%\n\n\
    --cache, --page, --op, --threshold and --nbatch take lists; every combination is predicted. The \
    trace is read once, and again only if another page size changes which records fit. The numbers \
    are those that `treering replay` shows as predicted.\n\
    Glossary: docs/GLOSSARY.md";

/// Flags of `treering predict`.
#[derive(Debug)]
pub(crate) struct PredictArgs {
    /// The flags of `replay`; of lists, the first value.
    pub(crate) replay: ReplayArgs,
    pub(crate) caches: Vec<Size>,
    pub(crate) pages: Vec<u64>,
    pub(crate) over_provisionings: Vec<f64>,
    pub(crate) thresholds: Vec<u64>,
    pub(crate) nbatches: Vec<u64>,
    /// File for the charts.
    pub(crate) svg: Option<PathBuf>,
    /// The first flag that is only about runs, as it is typed.
    pub(crate) of_runs: Option<String>,
    /// The first value that is in a list twice, with its flag.
    pub(crate) twice: Option<(String, OsString)>,
}

impl PredictArgs {
    /// The arguments after `treering predict`.
    pub(crate) fn of(arguments: &[String]) -> Result<PredictArgs, clap::Error> {
        let command = PredictArgs::augment_args(Command::new("predict")).no_binary_name(true);
        let matches = command.try_get_matches_from(arguments)?;
        PredictArgs::from_arg_matches(&matches)
    }
}

impl Args for PredictArgs {
    fn augment_args(command: Command) -> Command {
        let mut command = ReplayArgs::augment_args(command);
        for id in LISTS {
            command = command.mut_arg(id, list);
        }
        for id in OF_RUNS {
            command = command.mut_arg(id, |arg| arg.hide(true));
        }
        let svg = Arg::new("svg")
            .long("svg")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Write the curves as one SVG; expects a list");
        command.arg(svg).after_help(EXAMPLES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        PredictArgs::augment_args(command)
    }
}

/// Lets a flag take several values.
fn list(arg: Arg) -> Arg {
    let help = arg.get_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let help = match help.split_once(" [default: ") {
        Some((what, default)) => format!("{what}; or a list [default: {default}"),
        None => format!("{help}; or a list"),
    };
    arg.action(ArgAction::Append)
        .value_delimiter(',')
        .help(help)
}

impl FromArgMatches for PredictArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PredictArgs, clap::Error> {
        Ok(PredictArgs {
            replay: ReplayArgs::from_arg_matches(matches)?,
            caches: all(matches, "cache"),
            pages: all(matches, "page"),
            over_provisionings: all(matches, "over_provisioning"),
            thresholds: all(matches, "threshold"),
            nbatches: all(matches, "nbatch"),
            svg: matches.get_one("svg").cloned(),
            of_runs: of_runs(matches),
            twice: twice(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = PredictArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

fn all<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Vec<T> {
    let values = matches.get_many(id);
    values.into_iter().flatten().cloned().collect()
}

fn of_runs(matches: &ArgMatches) -> Option<String> {
    let given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    OF_RUNS.iter().find(|id| given(id)).map(|id| flag(id))
}

/// Compares values, not words: 4KiB and 4096 are the same page size.
fn twice(matches: &ArgMatches) -> Option<(String, OsString)> {
    let parsed = |id: &str| -> Vec<String> {
        match id {
            "cache" => texts(&all::<Size>(matches, id)),
            "over_provisioning" => texts(&all::<f64>(matches, id)),
            _ => texts(&all::<u64>(matches, id)),
        }
    };
    LISTS.iter().find_map(|id| {
        let values = parsed(id);
        let again = (1..values.len()).find(|i| values[..*i].contains(&values[*i]))?;
        let word = matches.get_raw(id)?.nth(again)?;
        Some((flag(id), word.to_owned()))
    })
}

fn texts<T: std::fmt::Debug>(values: &[T]) -> Vec<String> {
    values.iter().map(|value| format!("{value:?}")).collect()
}

/// A flag, as it is typed.
fn flag(id: &str) -> String {
    match id {
        "over_provisioning" => "--op".into(),
        id => format!("--{}", id.replace('_', "-")),
    }
}
