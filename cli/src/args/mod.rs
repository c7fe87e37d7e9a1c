//! The command line. Each flag is documented where it is defined, and means the same in every
//! subcommand.

mod advise;
mod check;
mod compare;
mod cuts;
mod drive;
mod r#gen;
mod life;
mod oracle;
mod predict;
mod promises;
mod replay;
mod small;
mod sweep;

use clap::{Parser, Subcommand};

pub(crate) use advise::{AdviseArgs, Objective};
pub(crate) use check::{CheckArgs, CheckerArg, ExploreArgs, ModelSize};
pub(crate) use compare::CompareArgs;
pub(crate) use cuts::CutsArgs;
pub(crate) use drive::{
    DriveCommand, DriveExportArgs, DriveInfoArgs, DriveMountArgs, DriveReplayArgs, DriveRunArgs,
    ExportFormat, MeasureArgs, MountArgs,
};
pub(crate) use r#gen::GenArgs;
pub(crate) use life::{DumpArgs, LoadArgs, NewStoreArgs, RepairArgs};
pub(crate) use oracle::{ModeArg, OracleArgs};
pub(crate) use predict::PredictArgs;
pub(crate) use promises::PromisesArgs;
pub(crate) use replay::{
    Before, CleaningArg, LoggingArg, NodeSplitArg, PolicyArg, ReplayArgs, Reset, Tables,
};
pub(crate) use small::{
    CompletionsArgs, CrashWriterArgs, DevicesArgs, ImportArgs, InfoArgs, LayoutArgs, LayoutOrder,
    ServeArgs, TogetherArgs, TreesArgs, VerifyArgs,
};
pub(crate) use sweep::{Changes, Extent, Listed, SweepArgs, swept};

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
        Sizes are written as 64, 4KiB or 32MiB or, where a data set is known, as a share of it \
        (20%); counts as 500k or 2M; durations as 1ms, 60s or 10m.\n\
        Exit codes: 0 success, 1 a violation or damage was found, 2 bad input or usage, 3 could not \
        run, 4 finished, but never reached what it was meant to exercise, 130 or 143 stopped by \
        SIGINT or SIGTERM."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay a trace through a tree on a device and report write amplification, latency and space.
    Replay(Box<ReplayArgs>),
    /// Predict write amplification and hits from the statistics of a trace, for many
    /// configurations at once. Nothing is run.
    Predict(Box<PredictArgs>),
    /// Replay every combination of flags, side by side and resumable, into one table.
    Sweep(Box<SweepArgs>),
    /// Serve the page of a sweep on this machine: charts and the table of its results.
    Serve(ServeArgs),
    /// Say which tree and settings to use for a workload, why, and how sure that is.
    Advise(Box<AdviseArgs>),
    /// Say how replays differ, in input and outcome. Exit status 1 if --fail-if holds.
    Compare(CompareArgs),
    /// Check a store file: structure, checksums, reachability. Exit status 1 on damage.
    Verify(VerifyArgs),
    /// Save what is intact in a damaged store into a new one. Exit status 1 if something is
    /// missing.
    Repair(RepairArgs),
    /// Write all records of a store as lines of JSON, sorted by key.
    Dump(DumpArgs),
    /// Create a store from lines of JSON.
    Load(LoadArgs),
    /// Run any program on a simulated drive, and replay what it wrote on others.
    #[command(subcommand)]
    Drive(DriveCommand),
    /// Cut the power at any place of a recording, and run a checker on what is left. Exit status 1
    /// if it cannot live with a state.
    Cuts(Box<CutsArgs>),
    /// Convert a trace of another tool to Treering's format.
    Import(ImportArgs),
    /// Generate a trace: YCSB, uniform, Zipf, latest, hotspot, mixgraph, load, sequential.
    Gen(Box<GenArgs>),
    /// Inspect traces.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// List the built-in drives, or print one as the TOML that --device reads.
    Devices(DevicesArgs),
    /// List the trees, their parts and their parameters.
    Trees(TreesArgs),
    /// Measure how much space each page layout needs for a set of keys, and predict it.
    Layout(LayoutArgs),
    /// Check the specs with TLC, tla-mc and the mirrors. Exit status 1 on a counterexample or a
    /// difference.
    Check(CheckArgs),
    /// Explore a spec's mirror in the browser (Stateright Explorer).
    Explore(ExploreArgs),
    /// Tell what each tree promises, and what stands behind each promise: specs, models, mutants, the
    /// engine's own steps, and attacks. Nothing is run.
    Promises(PromisesArgs),
    /// Test a storage engine: against a reference map, through power cuts, with threads. Exit
    /// status 1 on a violation.
    Oracle(Box<OracleArgs>),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write until killed (used by the crash test).
    #[command(hide = true)]
    CrashWriter(CrashWriterArgs),
    /// Replay on several drives with one run of the tree (used by `sweep`).
    #[command(hide = true)]
    ReplayTogether(TogetherArgs),
    /// Predict many configurations in one process (used by `sweep`).
    #[command(hide = true)]
    PredictTogether(TogetherArgs),
}

/// Subcommands of `treering trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Report a trace's operations, keys, sizes, popularity and working set.
    Info(InfoArgs),
}
