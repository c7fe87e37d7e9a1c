//! The command line. What each flag means is said where it is defined, and is the same in every subcommand.

mod check;
mod r#gen;
mod life;
mod oracle;
mod replay;
mod small;

use clap::{Parser, Subcommand};

pub(crate) use check::{CheckArgs, CheckerArg, ExploreArgs, ModelSize};
pub(crate) use r#gen::GenArgs;
pub(crate) use life::{DumpArgs, LoadArgs, NewStoreArgs, RepairArgs};
pub(crate) use oracle::{ModeArg, OracleArgs};
pub(crate) use replay::{Before, CleaningArg, LoggingArg, NodeSplitArg, ReplayArgs, Reset, Tables};
pub(crate) use small::{
    CompletionsArgs, CrashWriterArgs, DevicesArgs, ImportArgs, InfoArgs, LayoutArgs, LayoutOrder,
    TreesArgs, VerifyArgs,
};

/// Replay traces through write-optimised B-trees on simulated devices.
#[derive(Debug, Parser)]
#[command(
    name = "treering",
    version,
    subcommand_required = true,
    disable_help_subcommand = true,
    after_help = "EXAMPLES:\n  \
        treering gen zipf --records 1M --writes 1 -o zipf.trz\n  \
        treering replay zipf.trz --store cow --cache 20%\n\n\
        Sizes take 64, 4KiB, 32MiB, and where a data set is known, a share of it (20%). Counts take 500k, 2M; \
        durations 1ms, 60s, 10m.\n\
        Exit codes: 0 holds / done, 1 a violation or damage was found, 2 bad input or usage, 3 could not run, \
        4 ran, but never reached what it was to exercise, 130 or 143 stopped by SIGINT or SIGTERM."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay a trace through a tree on a device and report write amplification, latency and space.
    Replay(Box<ReplayArgs>),
    /// Walk a store file: structure, checksums, reachability. Exit status 1 on damage.
    Verify(VerifyArgs),
    /// Save what is whole of a damaged store into a new one. Exit status 1 if something is missing.
    Repair(RepairArgs),
    /// Write all records of a store as sorted lines of JSON.
    Dump(DumpArgs),
    /// Make a store of lines of JSON.
    Load(LoadArgs),
    /// Turn a trace of another tool into one of ours.
    Import(ImportArgs),
    /// Generate a trace: YCSB, uniform, Zipf, latest, hotspot, mixgraph, load, sequential.
    Gen(Box<GenArgs>),
    /// Look at traces.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// List the built-in drives, or print one as the TOML that --device reads.
    Devices(DevicesArgs),
    /// List the trees, their parts and their parameters.
    Trees(TreesArgs),
    /// Say what each page layout takes of these keys, and which suits them.
    Layout(LayoutArgs),
    /// Check the specs with TLC, tla-mc and the mirrors. Exit status 1 on a counterexample or a difference.
    Check(CheckArgs),
    /// Explore a spec's mirror in the browser (Stateright Explorer).
    Explore(ExploreArgs),
    /// Judge an engine: programs beside a reference map, power cuts, threads. Exit status 1 on a violation.
    Oracle(Box<OracleArgs>),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write until killed (for the crash test).
    #[command(hide = true)]
    CrashWriter(CrashWriterArgs),
}

/// What to do with a trace.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Operations, keys, sizes, popularity and working set of a trace.
    Info(InfoArgs),
}
