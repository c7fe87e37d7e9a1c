//! The `treering` command: it parses arguments, calls one of the libraries and prints results.
//!
//! | module | contents |
//! |---|---|
//! | [`args`] | all flags and their help |
//! | [`units`] | sizes, counts, shares, durations |
//! | `*_cmd` | one subcommand each |
//! | [`acks`] | what a program says it has written, and the judge of what is left |
//! | [`checkers`] | checkers of engines, for power cuts |
//! | [`counterexample`] | counterexamples of the specs as tests of the engine |
//! | [`specs`] | the folder of the specs |
//! | [`output`] | stdout, and files that are written completely or not at all |
//! | [`rows`], [`new_store`] | records as lines of JSON; new store files made of them |
//! | [`store_file`] | opening a store file, even if it was cut |
//! | [`progress`] | the progress bar |
//! | [`results_page`] | the page of a sweep's table, and its server |
//! | [`figures`] | the main figures of a report, by their paths |
//! | [`glossary`] | the terms of reports, which `docs/GLOSSARY.md` explains |
//! | [`reproduce`] | the command line that repeats a run |
//! | [`interrupt`] | SIGINT and SIGTERM |
//! | [`failure`] | one line on stderr and an exit status |

mod acks;
mod advise_cmd;
mod against_cmd;
mod args;
mod behaviour;
mod check_cmd;
mod checkers;
mod compare_cmd;
mod counterexample;
mod crash_writer_cmd;
mod cuts_cmd;
mod devices_cmd;
mod drive_cmd;
mod dump_cmd;
mod explore_cmd;
mod failure;
mod figures;
mod gen_cmd;
mod ghosts_cmd;
mod glossary;
mod import_cmd;
mod inductive_cmd;
mod info_cmd;
mod interrupt;
mod layout_cmd;
mod load_cmd;
mod mutate_cmd;
mod new_store;
mod oracle_cmd;
mod output;
mod predict_cmd;
mod predict_together_cmd;
mod program;
mod progress;
mod promises_cmd;
mod repair_cmd;
mod replay_cmd;
mod replay_config;
mod replay_early;
mod replay_together_cmd;
mod reproduce;
mod results_page;
mod rows;
mod specs;
mod store_file;
mod sweep_cmd;
mod tree;
mod trees_cmd;
mod units;
mod verify_cmd;

use std::io::Write;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use args::{Cli, Command, CompletionsArgs, TraceCommand};
use failure::Failure;

fn main() -> ExitCode {
    interrupt::end_with_parent();
    interrupt::listen();
    match parse().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If this fails, nothing can be reported; the exit status still tells.
            let line = format!("treering: {}\n", failure.message);
            let _ = std::io::stderr().write_all(line.as_bytes());
            ExitCode::from(failure.status)
        }
    }
}

/// A parsed command, and clap's matches that it was parsed from.
type Parsed = (Command, ArgMatches);

fn parse() -> Result<Option<Parsed>, Failure> {
    let parsed = Cli::command().try_get_matches().and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli.command, matches))
    });
    match parsed {
        Ok(parsed) => Ok(Some(parsed)),
        // `--help` and `--version`.
        Err(e) if !e.use_stderr() => {
            output::say(e.render().to_string().as_bytes())?;
            Ok(None)
        }
        Err(e) => Err(failure::clap(&e)),
    }
}

fn run(parsed: Option<Parsed>) -> Result<(), Failure> {
    let Some((command, matches)) = parsed else {
        return Ok(());
    };
    match command {
        Command::Replay(args) => replay_cmd::run(&args, &again(&matches)),
        Command::Predict(args) => predict_cmd::run(&args, &again(&matches)),
        Command::Sweep(args) => sweep_cmd::run(&args),
        Command::Serve(args) => results_page::run(&args),
        Command::Advise(args) => advise_cmd::run(&args),
        Command::Compare(args) => compare_cmd::run(&args),
        Command::Verify(args) => verify_cmd::run(&args),
        Command::Repair(args) => repair_cmd::run(&args),
        Command::Dump(args) => dump_cmd::run(&args),
        Command::Load(args) => load_cmd::run(&args),
        Command::Drive(args) => drive_cmd::run(&args, &again(&matches)),
        Command::Cuts(args) => cuts_cmd::run(&args, &again(&matches)),
        Command::Import(args) => import_cmd::run(&args),
        Command::Gen(args) => gen_cmd::run(&args),
        Command::Trace(TraceCommand::Info(args)) => info_cmd::run(&args),
        Command::Devices(args) => devices_cmd::run(&args),
        Command::Trees(args) => trees_cmd::run(&args),
        Command::Layout(args) => layout_cmd::run(&args),
        Command::Check(args) => check_cmd::run(&args),
        Command::Explore(args) => explore_cmd::run(&args),
        Command::Promises(args) => promises_cmd::run(&args),
        Command::Oracle(args) => oracle_cmd::run(&args),
        Command::Completions(args) => completions(&args),
        Command::CrashWriter(args) => crash_writer_cmd::run(&args),
        Command::ReplayTogether(args) => replay_together_cmd::run(&args),
        Command::PredictTogether(args) => predict_together_cmd::run(&args),
    }
}

/// The command line that repeats the run.
fn again(matches: &ArgMatches) -> String {
    let top = Cli::command();
    let (mut command, mut matches, mut names) = (&top, matches, Vec::new());
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else {
            break;
        };
        names.push(name);
        (command, matches) = (found, inner);
    }
    match names.is_empty() {
        true => String::new(),
        false => reproduce::line(&names, command, matches),
    }
}

fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "treering", &mut script);
    output::say(&script)
}
