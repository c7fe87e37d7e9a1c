//! Flags of `treering advise`: those of `treering replay`, which narrow what is considered, and its
//! own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum, value_parser};

use super::sweep::{Listed, listed, lists};
use crate::units;

/// The heading of the flags that `replay` does not have.
const HEADING: &str = "Advice";

const EXAMPLES: &str = "EXAMPLES:\n  \
    treering advise zipf.trz --cache 5%\n  \
    treering advise zipf.trz --device csd --tree btree,bminus --page 8KiB\n  \
    treering advise zipf.trz --constraint 'space.physical_bytes < 40MiB' --replays 1\n  \
    treering advise zipf.trz --objective latency --constraint 'cache.hit_ratio >= 0.3'\n  \
    treering advise zipf.trz --device pm --json - | jq .ranking[0]\n  \
    treering advise app.rec --op 7%,28%,50%      # a recording of `treering drive`\n\n\
    A flag of `treering replay` that is given is not varied, or only among the values of its list. \
    Designs are predicted; the leading ones are replayed on a sample, and then whole. The exit \
    status is 4 if no design keeps the constraints. For a recording, drives are advised.\n\
    How it searches, and how good its advice is: docs/ADVISE.md. Glossary: docs/GLOSSARY.md";

/// What is to be least, or most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Objective {
    /// Least bytes written to flash or persistent memory per user byte
    #[default]
    Wa,
    /// Most years until the drive is worn out
    Lifetime,
    /// Least 99th percentile of the latency, mean of all operations
    Latency,
    /// Least space of the store
    Space,
    /// Least money for flash that wears out, and for the memory of the cache
    Cost,
}

/// Flags of `treering advise`.
#[derive(Clone, Debug)]
pub(crate) struct AdviseArgs {
    pub(crate) trace: PathBuf,
    /// The given flags of `replay`, with the values among which they may vary.
    pub(crate) flags: Vec<Listed>,
    pub(crate) objective: Objective,
    pub(crate) constraints: Vec<String>,
    /// Number of designs that are replayed whole.
    pub(crate) replays: u64,
    /// Dollars per GiB of flash, and of memory.
    pub(crate) prices: (f64, f64),
    /// Whether to look at what would change the answer.
    pub(crate) what_if: bool,
    /// Folder for results.
    pub(crate) out: Option<PathBuf>,
    /// Maximum number of processes.
    pub(crate) jobs: Option<u32>,
    /// Memory budget of all processes.
    pub(crate) memory: Option<u64>,
    pub(crate) json: Option<PathBuf>,
    /// A value that is not UTF-8, with its flag.
    pub(crate) not_text: Option<(String, OsString)>,
}

impl Args for AdviseArgs {
    fn augment_args(command: Command) -> Command {
        let json = "Write the ranking as JSON; - is stdout";
        lists(command, (json, None), HEADING)
            .args(own())
            .after_help(EXAMPLES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        AdviseArgs::augment_args(command)
    }
}

/// The flags that `replay` does not have.
fn own() -> Vec<Arg> {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).help_heading(HEADING)
    };
    vec![
        flag("objective", "What is to be least, or most")
            .value_name("WHAT")
            .value_parser(value_parser!(Objective))
            .default_value("wa"),
        flag(
            "constraint",
            "Leave out designs for which this does not hold: a figure of the report, one of > >= < \
             <=, and a number, size or duration; may be repeated",
        )
        .value_name("EXPR")
        .action(ArgAction::Append),
        flag("replays", "Number of designs that are replayed whole; 0 only predicts")
            .value_name("N")
            .value_parser(units::count)
            .default_value("2"),
        flag("price-flash", "Dollars for a GiB of flash, for the objective cost")
            .value_name("PRICE")
            .value_parser(units::price)
            .default_value("0.08"),
        flag("price-memory", "Dollars for a GiB of memory, for the objective cost")
            .value_name("PRICE")
            .value_parser(units::price)
            .default_value("3"),
        flag("no-what-if", "Do not look at other sizes of the cache").action(ArgAction::SetTrue),
        flag(
            "out",
            "Folder for reports, as of `treering sweep`: the same command, or a sweep, goes on with \
             them [default: a temporary one]",
        )
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf)),
        flag(
            "jobs",
            "Maximum number of runs at the same time [default: number of cores]",
        )
        .value_name("N")
        .value_parser(units::small_count),
        flag(
            "memory",
            "Memory for all runs at the same time [default: three quarters of what is available]",
        )
        .value_name("SIZE")
        .value_parser(units::size),
    ]
}

impl FromArgMatches for AdviseArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<AdviseArgs, clap::Error> {
        let (flags, not_text) = listed(matches, "advice", &["json"])?;
        let price = |id: &str| matches.get_one(id).copied().unwrap_or_default();
        let constraints = matches.get_many("constraint");
        Ok(AdviseArgs {
            trace: (matches.get_one::<PathBuf>("trace").cloned()).unwrap_or_default(),
            flags,
            objective: matches.get_one("objective").copied().unwrap_or_default(),
            constraints: constraints.into_iter().flatten().cloned().collect(),
            replays: matches.get_one("replays").copied().unwrap_or_default(),
            prices: (price("price-flash"), price("price-memory")),
            what_if: !matches.get_flag("no-what-if"),
            out: matches.get_one("out").cloned(),
            jobs: matches.get_one("jobs").copied(),
            memory: matches.get_one("memory").copied(),
            json: matches.get_one("json").cloned(),
            not_text,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = AdviseArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
