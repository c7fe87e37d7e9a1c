//! Flags of `treering oracle`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use treering_drive::cuts::Model;
use treering_oracle::exec::Durable;

use super::cuts::{Torn, torn};
use super::drive::FsName;
use super::replay::{Durability, durability};
use crate::units;

/// Flags of `treering oracle`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering oracle                                       every mode, every variant of our trees\n  \
    treering oracle --tree bminus --mode crash            power cuts on the B⁻-tree\n  \
    treering oracle --mode crash --budget 10m             ten minutes of power cuts\n  \
    treering oracle --engine btree:cow --mode differential --ops 5000 --runs 1000\n  \
    treering oracle --tree bf --budget 75s --fail-fast    stop at the first violation\n  \
    treering oracle --budget 5m --coverage met.html       and a page of what was never met\n  \
    treering oracle --engine btree:cow/per-commit/64k     durable writes, pages of 64 KiB\n  \
    treering oracle --engine btree:cow --mode events --budget 1m --tla .   a finding as TLA+\n  \
    treering oracle --replay found.program                run a saved program again\n  \
    treering oracle --replay wal.case                     run a counterexample of a spec\n  \
    treering oracle --exec 'python3 adapter.py'           any engine that speaks docs/EXEC.md\n  \
    treering oracle --exec ./adapter --self-test          does it speak it?\n  \
    treering oracle --exec 'python3 adapter.py' --fs files    power cuts on a drive\n  \
    treering oracle --tree bf --as-adapter                our tree, for another --exec\n  \
    treering oracle --so ./libmine.so                     a shared library of nine functions\n  \
    cargo run --release --features redb -- oracle --engine redb\n\n\
    Modes of an engine behind --exec: differential, crash (the process is killed, as by kill -9, \
    and the store opened again), concurrent (overlapping requests, and transactions, judged by \
    what the adapter claims).\n\n\
    Modes: differential (random programs beside a reference map), crash (recovery from the crash \
    states that a power cut could leave, all of them or a sample, and from damage to pages and \
    their logs), concurrent (threads, judged for linearizability), events (the engine's protocol \
    steps, judged by the mirror of WalRecovery, and for pages in place the tree and the snapshot of \
    its index by that of IndexSnapshot, and its leaves by that of LeafLayout; those of shadowed \
    pages by that of PageShadowing, and with them the blocks of their redo log by that of RedoLog; \
    those of bf by the mirrors of MiniPage and CircularBuffer), damage (bit rot, lost and \
    misdirected writes).\n\n\
    An engine's name can be followed by options, each after a slash: per-commit, grouped, closes \
    (close the store when it is dropped), cramped (hardly any room), long-flush, file (on a \
    simulated file system that may write less than asked), 8k to 64k (page size); in persistent \
    memory logs=N, chunk=Nk, cramped, tight (a few writes fill it). Without options, each program \
    draws its own; those that may differ between openings are drawn for each opening.\n\n\
    The same seed, operations and runs give the same programs and the same verdict. With a budget, \
    the number of programs varies, and the report names what there was no time for.\n\
    Exit codes: 0 nothing found, 1 a violation, 2 bad usage, a bad program file or an adapter that \
    breaks the protocol, 3 not in this build or not to be started, 4 something was never \
    exercised: with a budget and without --strict, what a mode is for; otherwise anything.\n\
    Glossary: docs/GLOSSARY.md")]
pub(crate) struct OracleArgs {
    /// All variants of one of our trees: btree, bf, bminus, ccl, lodge or pmtree; or one spec such
    /// as `btree+cow+hints`
    #[arg(long, value_name = "TREE", conflicts_with_all = ["engine", "exec"])]
    pub(crate) tree: Option<String>,
    /// One engine: btree:in-place, btree:in-place-16k, btree:in-place-logged, btree:cow,
    /// btree:cow-lazy, btree:cow-logged, btree:shadow, btree:shadow-16k, bf with the suffixes of
    /// btree or bf:bminus, bminus, bminus-small, pmtree, pmtree:global, ccl, ccl:1, ccl:6,
    /// ccl:every-write, ccl:naive, lodge, lodge:small, lodge:smallest, lodge:double, lodge:full, or
    /// another engine of this build
    #[arg(long, value_name = "NAME", conflicts_with = "exec")]
    pub(crate) engine: Option<String>,
    /// The engine behind this program, which speaks JSON lines on its standard input and output;
    /// see docs/EXEC.md
    #[arg(long, value_name = "COMMAND")]
    pub(crate) exec: Option<String>,
    /// The engine in this shared library, which has the nine functions of treering_kv.h; faster
    /// than --exec, but it cannot be killed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tree", "engine", "exec", "mutations"])]
    pub(crate) so: Option<PathBuf>,
    /// Serve the tree of --tree as an adapter on standard input and output, in the file `store` of
    /// the folder that `open` names; see docs/EXEC.md
    #[arg(long, requires = "tree", conflicts_with_all = ["engine", "exec", "so", "self_test",
        "replay", "mutations", "mode", "ops", "runs", "budget", "coverage", "save", "json"])]
    pub(crate) as_adapter: bool,
    /// With --as-adapter: when writes are durable: commit, deferred (until `sync`) or
    /// interval:DURATION [default: commit]
    #[arg(long, value_name = "WHEN", requires = "as_adapter", value_parser = durability)]
    pub(crate) durability: Option<Durability>,
    /// With --as-adapter: size of the cache [default: the least, so that short programs evict]
    #[arg(long, value_name = "SIZE", requires = "as_adapter", value_parser = units::size)]
    pub(crate) cache: Option<u64>,
    /// With --as-adapter: size of the circular log; in a small one a large batch is refused
    /// [default: 2MiB]
    #[arg(long, value_name = "SIZE", requires = "as_adapter", value_parser = units::size)]
    pub(crate) log_size: Option<u64>,
    /// With --as-adapter: start a checkpoint when the log has grown by this much [default: 16KiB,
    /// so that short programs do]
    #[arg(long, value_name = "SIZE", requires = "as_adapter", value_parser = units::size)]
    pub(crate) checkpoint_every: Option<u64>,
    /// Judge the adapter itself: does it keep to the protocol, and has it what it claims?
    #[arg(long, requires = "exec", conflicts_with_all = ["replay", "mutations", "mode", "ops", "runs", "budget"])]
    pub(crate) self_test: bool,
    /// Kill the program behind --exec if an answer takes longer [default: 10s]
    #[arg(long, value_name = "DURATION", requires = "exec", value_parser = units::duration)]
    pub(crate) timeout: Option<u64>,
    /// Run the engine behind --exec on a simulated drive with this file system, and cut the power:
    /// files (no root needed), ext4, xfs or btrfs (as root)
    #[arg(long, value_name = "FS", value_enum, requires = "exec",
        conflicts_with_all = ["self_test", "replay", "mutations", "coverage", "save", "strict"])]
    pub(crate) fs: Option<FsName>,
    /// With --fs files: what the file system promises, as of `treering cuts` [default: strict]
    #[arg(long, value_name = "MODEL", requires = "fs")]
    pub(crate) model: Option<Model>,
    /// With --fs: the most states of a program [default: 2,000; unlimited with --budget]
    #[arg(long, value_name = "N", requires = "fs", value_parser = units::count)]
    pub(crate) states: Option<u64>,
    /// With --fs: judge writes as durable on `return`, on `sync` or on `close` [default: what the
    /// adapter claims]; shows what a weaker setting loses
    #[arg(long, value_name = "WHEN", requires = "fs", value_parser = promise)]
    pub(crate) promise: Option<Durable>,
    /// With --fs: no cut before the first acknowledged line that begins so, such as `try 0`, which
    /// leaves out the making of the store
    #[arg(long, value_name = "LINE", requires = "fs")]
    pub(crate) from: Option<String>,
    /// With --fs: size of what is written whole or not at all, 512 or 4KiB; `none`: writes are never
    /// torn [default: what the adapter takes for granted, mostly 512]
    #[arg(long, value_name = "SIZE", requires = "fs", value_parser = torn)]
    pub(crate) torn: Option<Torn>,
    /// With --fs: let the N-th flush fail, as of `treering drive run`; without N, of the first
    /// program the first one, of the second the second, and so on
    #[arg(long, value_name = "N", requires = "fs", value_parser = which, num_args = 0..=1,
        require_equals = true, default_missing_value = "each")]
    pub(crate) fail_fsync: Option<u64>,
    /// With --fs files: let the drive be full from the N-th write on that needs room
    #[arg(long, value_name = "N", requires = "fs", value_parser = which, num_args = 0..=1,
        require_equals = true, default_missing_value = "each")]
    pub(crate) fail_space: Option<u64>,
    /// With --fs: let the N-th read that reaches the drive fail
    #[arg(long, value_name = "N", requires = "fs", value_parser = which, num_args = 0..=1,
        require_equals = true, default_missing_value = "each")]
    pub(crate) fail_read: Option<u64>,
    /// With --fs: cut the engine's recovery, too
    #[arg(long, requires = "fs")]
    pub(crate) recovery_cuts: bool,
    /// Check the state in $TREERING_DIR against what was acknowledged (used by --fs)
    #[arg(long, requires = "exec", hide = true)]
    pub(crate) check_state: bool,
    /// Kind of test
    #[arg(long, value_name = "MODE", default_value = "all")]
    pub(crate) mode: ModeArg,
    /// Number of operations in a program [default: 1,000; crash 200]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    pub(crate) ops: Option<u32>,
    /// Number of programs for each mode and engine [default: 500; crash 60, 12 in persistent
    /// memory; unlimited with --budget]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) runs: Option<u64>,
    /// Number of threads [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    pub(crate) threads: Option<u32>,
    /// Time limit for the whole command. All modes and engines get turns, short ones first;
    /// programs still running at the end are interrupted. Only shrinking a failing program may
    /// exceed the limit
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) budget: Option<u64>,
    /// Stop at the first violation [default: the other modes and engines continue]
    #[arg(long, conflicts_with_all = ["replay", "mutations"])]
    pub(crate) fail_fast: bool,
    /// With --budget: exit status 4 if anything was never reached [default: only if a mode never
    /// did what it is for]
    #[arg(long, conflicts_with_all = ["replay", "mutations"])]
    pub(crate) strict: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Run this saved program or history again, or the counterexample that `treering check
    /// --to-oracle` has written. The engine must not follow that, or lose nothing; a build with
    /// seeded bugs then runs it with the bug that it names
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tree", "mode", "ops", "runs", "threads", "budget", "seed"])]
    pub(crate) replay: Option<PathBuf>,
    /// Enable every seeded bug of our engine, one at a time; each must be caught by the check that
    /// is named for it
    #[arg(long, conflicts_with_all = ["tree", "engine", "exec", "mode", "ops", "replay"])]
    pub(crate) mutations: bool,
    /// Only the mutation with this name; can be repeated
    #[arg(long, value_name = "NAME", requires = "mutations")]
    pub(crate) only: Vec<String>,
    /// File for the program that shows a violation [default: oracle-ENGINE-SEED.program in this
    /// folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Write an event that a mirror refuses in the mode events as a TLA+ behaviour, Finding.tla and
    /// Finding.cfg in this folder: TLC follows the engine up to it, and finds that the spec does
    /// not allow it
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["replay", "mutations", "exec", "so"])]
    pub(crate) tla: Option<PathBuf>,
    /// Write an HTML page of what the runs met and what they never met; - is stdout
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "mutations"])]
    pub(crate) coverage: Option<PathBuf>,
    /// Write the result as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Ways to judge an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// Compare random programs with a reference map
    Differential,
    /// Cut the power during random programs, and recover
    Crash,
    /// Run threads, and check their histories for linearizability
    Concurrent,
    /// Compare the engine's protocol steps with the specs' mirrors
    Events,
    /// Damage stores: bit rot, lost and misdirected writes
    Damage,
    /// All of these
    All,
}

/// When writes are durable.
fn promise(text: &str) -> Result<Durable, String> {
    match text {
        "return" => Ok(Durable::Return),
        "sync" => Ok(Durable::Sync),
        "close" => Ok(Durable::Close),
        _ => Err("expected return, sync or close".into()),
    }
}

/// Which one of a program's; 0 is the number of the program.
fn which(text: &str) -> Result<u64, String> {
    match text {
        "each" => Ok(0),
        text => units::ordinal(text),
    }
}
