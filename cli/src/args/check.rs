//! Flags of `treering check` and `treering explore`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Flags of `treering check`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering check                                   every spec, small models, all three checkers\n  \
    treering check WalRecovery --graph --mutations   its state graphs, and its seeded bugs\n  \
    treering check --model full                      the large models: minutes\n  \
    treering check WalRecovery --against-engine      the engine along the mirror's edges: minutes\n  \
    treering check CircularBuffer --against-engine   its ring along the mirror's edges: minutes\n  \
    treering check WalRecovery --only published_free-reads --checker mirror   tell a counterexample\n\n\
    TLC is fetched through Maven and tla-mc through cargo on first use, into specs/target/; TLC_JAR and TLA_MC name your own.\n\
    Exit codes: 0 all as expected, 1 a counterexample or a difference, 2 usage or a spec at fault, 3 Java, Maven or a tool is missing, \
    4 not all was reached (--against-engine: an action never taken, or edges left for want of time).\n\
    Words: docs/GLOSSARY.md")]
pub(crate) struct CheckArgs {
    /// Specs, by module name; all if none is named
    #[arg(value_name = "SPEC")]
    pub(crate) specs: Vec<String>,
    /// Which models
    #[arg(long, value_name = "SIZE", default_value = "smoke")]
    pub(crate) model: ModelSize,
    /// Only the model or mutation of this name, and tell its counterexample
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// By whom
    #[arg(long, value_name = "CHECKER", default_value = "all")]
    pub(crate) checker: CheckerArg,
    /// Compare the mirrors' labelled state graphs with TLC's, edge by edge
    #[arg(long)]
    pub(crate) graph: bool,
    /// Switch every seeded bug on, one at a time: each must violate the property that is named for it
    #[arg(long)]
    pub(crate) mutations: bool,
    /// Hold the engine against the mirror's small graph: drive log, pages, checkpoint and recovery (WalRecovery) and the ring
    /// (CircularBuffer) along every labelled edge that they can take; of MiniPage, whose small pages the engine cannot have, and of
    /// PageShadowing, whose log has a device of its own, record episodes and count in which of the situations that the graph's edges begin in
    /// (call, mini-page, record, leaf, others; what of a page is known, in memory, on the device) the engine took the step
    #[arg(long, conflicts_with_all = ["only", "graph", "mutations", "record", "save_test"])]
    pub(crate) against_engine: bool,
    /// With --against-engine: how long at most, each [default: 15m, of MiniPage and PageShadowing 1m, which they take]
    #[arg(long, value_name = "DURATION", value_parser = crate::units::duration, requires = "against_engine")]
    pub(crate) budget: Option<u64>,
    /// Write it as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Save the counterexample of the one model that --only names as a Rust test
    #[arg(long, value_name = "FILE", requires = "only")]
    pub(crate) save_test: Option<PathBuf>,
    /// Take what TLC finds as what is expected: rewrite specs/manifest.json (after a spec was changed on purpose)
    #[arg(long)]
    pub(crate) record: bool,
    /// The folder of the specs; default: the nearest specs/ with a manifest, here or above
    #[arg(long = "specs", value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

/// Which models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelSize {
    /// Seconds each.
    Smoke,
    /// A hundred thousand to millions of states each.
    Full,
}

/// By whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckerArg {
    /// TLC.
    Tlc,
    /// tla-mc.
    TlaMc,
    /// The stateright mirror.
    Mirror,
    /// All three.
    All,
}

/// Flags of `treering explore`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering explore WalRecovery\n  \
    treering explore CircularBuffer --model mutation --address 127.0.0.1:3001")]
pub(crate) struct ExploreArgs {
    /// The spec, by module name
    pub(crate) spec: String,
    /// Which model, by name
    #[arg(long, value_name = "NAME", default_value = "smoke")]
    pub(crate) model: String,
    /// Where to serve it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3000")]
    pub(crate) address: SocketAddr,
    /// The folder of the specs; default: the nearest specs/ with a manifest, here or above
    #[arg(long = "specs", value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}
