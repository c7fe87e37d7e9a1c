//! Flags of `treering oracle`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::units;

/// Flags of `treering oracle`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering oracle                                       every mode on every variant of our trees: some minutes\n  \
    treering oracle --tree bminus --mode crash            power cuts on shadowed pages with modification logs, and a sparse log\n  \
    treering oracle --mode crash --budget 10m             ten minutes of power cuts\n  \
    treering oracle --engine btree:cow --mode differential --ops 5000 --runs 1000\n  \
    treering oracle --tree bf --budget 75s --fail-fast    is there a bug? ends with the first\n  \
    treering oracle --budget 5m --coverage met.html       and a page of what was met, and what never\n  \
    treering oracle --engine btree:cow/per-commit/64k     large pages, each write durable when it returns\n  \
    treering oracle --replay found.program                what was found, again\n  \
    cargo run --release --features redb -- oracle --engine redb\n\n\
    Modes: differential (random programs beside a reference map), crash (every way, or a sample of the ways, in which a power cut could have \
    ended a program, and recovery from it; and damage to pages and their logs), concurrent (threads, judged for linearizability), events (the engine's protocol steps, judged by the \
    mirror of WalRecovery; those of shadowed pages by that of PageShadowing, those of bf by the mirrors of MiniPage and CircularBuffer).\n\n\
    Behind an engine's name may stand options, each behind a slash: per-commit, grouped, closes, \
    cramped (hardly any room), long-flush, file (on a system that \
    writes less than it is given), 8k to 64k (pages); in persistent memory logs=N, chunk=Nk, cramped, \
    tight (a few writes fill it). \
    Without them each program draws its own, and each opening draws those that may differ.\n\n\
    The same seed, operations and runs give the same programs and the same verdict; a budget stops sooner or later, \
    and names what it had no time for.\n\
    Exit codes: 0 nothing found, 1 a violation, 2 usage or a bad program file, 3 not in this build, 4 something was never \
    exercised: anything without a budget or with --strict, else what a mode is for.\n\
    Words: docs/GLOSSARY.md explains those of reports and help, each in a sentence.")]
pub(crate) struct OracleArgs {
    /// All variants of one of our trees: btree, bf, bminus, ccl, lodge or pmtree; or one spec such
    /// as `btree+cow+hints`
    #[arg(long, value_name = "TREE", conflicts_with = "engine")]
    pub(crate) tree: Option<String>,
    /// One engine: btree:in-place, btree:in-place-16k, btree:in-place-logged, btree:cow, btree:cow-lazy, btree:cow-logged, btree:shadow,
    /// btree:shadow-16k, bf with the names of btree or bf:bminus, bminus, bminus-small, pmtree, pmtree:global, ccl, ccl:1, ccl:6, ccl:every-write, ccl:naive, lodge, lodge:small,
    /// lodge:smallest, lodge:double, lodge:full, or another that is in this build
    #[arg(long, value_name = "NAME")]
    pub(crate) engine: Option<String>,
    /// How it is judged
    #[arg(long, value_name = "MODE", default_value = "all")]
    pub(crate) mode: ModeArg,
    /// Operations of a program [default: 1,000; crash 200]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    pub(crate) ops: Option<u32>,
    /// Programs for each mode and engine [default: 500; crash 60, 12 in persistent memory; without end if there is a budget]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) runs: Option<u64>,
    /// Threads [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    pub(crate) threads: Option<u32>,
    /// How long in all; all modes and engines have turns, short ones first, and what is under way at the
    /// end is interrupted. Only making a violation small may take longer
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) budget: Option<u64>,
    /// Stop at the first violation; without this the other modes and engines go on
    #[arg(long, conflicts_with_all = ["replay", "mutations"])]
    pub(crate) fail_fast: bool,
    /// With a budget, too, end with 4 if anything was never reached; without this only if a mode never did what it is for
    #[arg(long, conflicts_with_all = ["replay", "mutations"])]
    pub(crate) strict: bool,
    /// Decides everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Run a saved program instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tree", "mode", "ops", "runs", "threads", "budget", "seed"])]
    pub(crate) replay: Option<PathBuf>,
    /// Switch every seeded bug of our engine on, one at a time: each must be caught by the check that is named for it
    #[arg(long, conflicts_with_all = ["tree", "engine", "mode", "ops", "replay"])]
    pub(crate) mutations: bool,
    /// Only the mutations of these names
    #[arg(long, value_name = "NAME", requires = "mutations")]
    pub(crate) only: Vec<String>,
    /// Where the program goes that shows what was found [default: oracle-ENGINE-SEED.program, here]
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Write a page of what the runs have met, and what never; - is stdout
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "mutations"])]
    pub(crate) coverage: Option<PathBuf>,
    /// Write it as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// How an engine is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// Random programs beside a reference map
    Differential,
    /// Power cuts
    Crash,
    /// Threads
    Concurrent,
    /// Protocol events
    Events,
    /// Rotten bits, lost and misdirected writes
    Damage,
    /// All of these
    All,
}
