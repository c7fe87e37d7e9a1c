//! Flags of `treering check` and `treering explore`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Flags of `treering check`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering check                                   every spec, small models, all checkers\n  \
    treering check WalRecovery --graph --mutations   its state graphs and its seeded bugs\n  \
    treering check --model full                      models of millions of states (takes minutes)\n  \
    treering check WalRecovery --model large         ... of tens of millions (takes minutes)\n  \
    treering check WalRecovery --only full --walks 100   random walks\n  \
    treering check WalRecovery --against-engine      the engine against the mirror (takes minutes)\n  \
    treering check CircularBuffer --against-engine   the engine's ring against its mirror\n  \
    treering check CircularBuffer --mutate --sample 20         every 20th mutant of its actions\n  \
    treering check --mutate --list                   the names of all mutants\n  \
    treering check WalRecovery --ghosts              do history variables decide anything?\n  \
    treering check PageShadowing --inductive         from states that need not be reachable\n  \
    treering check PageShadowing --inductive --mutations   \
    the same for each seeded bug\n  \
    treering check SurrogateBuffer --inductive       crash, replay, split, logs that are used again\n  \
    treering check WalRecovery --only published_free-reads --checker mirror   \
    print a counterexample\n  \
    treering check WalRecovery --only page-before-log --to-oracle wal.case   as a test of the engine\n\n\
    TLC is fetched through Maven and tla-mc through cargo on first use, into specs/target/; \
    set TLC_JAR and TLA_MC to use your own.\n\
    Exit codes: 0 all as expected, 1 a counterexample or a difference was found, or a score is below \
    --at-least, 2 bad usage or a \
    faulty spec, 3 Java, Maven or a tool is missing, 4 not everything was reached \
    (--against-engine: an action was never taken, or edges were left when the time was up).\n\
    Glossary: docs/GLOSSARY.md")]
pub(crate) struct CheckArgs {
    /// Specs to check, by module name [default: all]
    #[arg(value_name = "SPEC")]
    pub(crate) specs: Vec<String>,
    /// Size of the models to check
    #[arg(long, value_name = "SIZE", default_value = "smoke")]
    pub(crate) model: ModelSize,
    /// Check only the model or mutation with this name, and print its counterexample
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Checker to run
    #[arg(long, value_name = "CHECKER", default_value = "all")]
    pub(crate) checker: CheckerArg,
    /// Walk N times at random, up to 200 states each, in TLC and the mirror, instead of visiting all
    /// states: for models that have too many. A walk may miss a violation
    #[arg(
        long,
        value_name = "N",
        value_parser = crate::units::ordinal,
        conflicts_with_all = ["graph", "record", "against_engine", "mutate", "ghosts", "to_oracle"]
    )]
    pub(crate) walks: Option<u64>,
    /// Memory of a mirror for states that it has not visited yet [default: 1G]. More of them are
    /// kept in temporary files
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = crate::units::size,
        conflicts_with_all = ["walks", "against_engine", "mutate", "ghosts", "inductive", "to_oracle"]
    )]
    pub(crate) memory: Option<u64>,
    /// Compare the mirrors' labelled state graphs with TLC's, edge by edge
    #[arg(long)]
    pub(crate) graph: bool,
    /// Enable each seeded bug in turn; each must violate the property that is named for it
    #[arg(long)]
    pub(crate) mutations: bool,
    /// Compare the engine with the mirror's small model. WalRecovery and CircularBuffer: drive the
    /// engine (log, pages, checkpoint and recovery; the ring) along every labelled edge that it can
    /// take. LeafBuffering, SurrogateBuffer, MiniPage, PageShadowing, CopyOnWrite, RedoLog,
    /// IndexSnapshot and LeafLayout: record episodes of the engine, and count in how many of the
    /// situations in which the graph's edges begin the engine took the step. A situation is what
    /// the step depends on: the call, the buffer, the leaf and the kind of word (LeafBuffering,
    /// SurrogateBuffer); the call and the state of the mini-page, record and leaf (MiniPage); what
    /// is known about a page, in memory and on the device (PageShadowing, CopyOnWrite); the call,
    /// the blocks written, and why the log ends where it does (RedoLog); the change of the
    /// structure and the step of the checkpoint (IndexSnapshot); or the layout of a leaf, and why
    /// it refuses a write (LeafLayout, in six small models together)
    #[arg(long, conflicts_with_all = ["only", "graph", "mutations", "record", "save_test"])]
    pub(crate) against_engine: bool,
    /// With --against-engine: write an event that the mirror refuses as a TLA+ behaviour,
    /// Finding.tla and Finding.cfg in this folder. TLC follows the engine up to it, and finds that
    /// the spec does not allow it. Not for WalRecovery and CircularBuffer, along whose edges the
    /// engine is driven
    #[arg(long, value_name = "FOLDER", requires = "against_engine")]
    pub(crate) tla: Option<PathBuf>,
    /// Make mutants of the protocols by machine: drop a condition, forget an assignment, and so on.
    /// Run each with tla-mc on the small models of its spec until a property is violated, and
    /// report how many are killed, module by module, and which survive
    #[arg(long, conflicts_with_all = ["only", "graph", "mutations", "record", "save_test", "against_engine", "checker", "model"])]
    pub(crate) mutate: bool,
    /// With --mutate: run only this mutant, by its name Module:line:column:operator
    #[arg(long, value_name = "NAME", requires = "mutate")]
    pub(crate) mutant: Vec<String>,
    /// With --mutate: run one mutant in N, always the same ones
    #[arg(long, value_name = "N", requires = "mutate", conflicts_with = "mutant", value_parser = crate::units::ordinal)]
    pub(crate) sample: Option<u64>,
    /// With --mutate: exit with 1 if the score of a module is lower. The score is
    /// killed / (killed + alive). Modules with fewer than ten of these count together, spec by spec, and
    /// are not judged if these are fewer than ten, too
    #[arg(long, value_name = "SHARE", requires = "mutate", value_parser = crate::units::share)]
    pub(crate) at_least: Option<f64>,
    /// With --mutate: print the names of the mutants, and run none
    #[arg(long, requires = "mutate", conflicts_with_all = ["json", "at_least", "budget"])]
    pub(crate) list: bool,
    /// Show by projection that the ghosts, variables that only serve the checking, decide nothing: two
    /// states that differ in them alone have the same steps. Uses the mirrors. Exit status 1 if a
    /// ghost decides a step
    #[arg(long, conflicts_with_all = ["graph", "mutations", "record", "save_test", "against_engine", "mutate", "checker", "budget"])]
    pub(crate) ghosts: bool,
    /// Check that a spec's inductive invariant (IndX.tla) is one, with the mirror. Sample typed states,
    /// which need not be reachable, keep those with the invariant, take every step from each, and
    /// look whether the invariant holds after it. It must imply the protocol's own invariants, too.
    /// Exit status 1 with the state, the step and the conjunct if not. With --mutations, each seeded
    /// bug must break it, unless it is one of liveness or of what clients are told. For WalRecovery,
    /// PageShadowing, SurrogateBuffer and LeafBuffering
    #[arg(long, conflicts_with_all = [
        "graph", "record", "save_test", "against_engine", "mutate", "ghosts", "checker", "budget",
        "to_oracle", "walks",
    ])]
    pub(crate) inductive: bool,
    /// With --inductive: how many different states with the invariant to look for in each model, or
    /// `all` [default: 10000]. All takes hours with more than one version of each block
    #[arg(long, value_name = "N", requires = "inductive", value_parser = states)]
    pub(crate) states: Option<States>,
    /// With --inductive: the most versions of a block, or of a word, that a crash may choose from
    #[arg(
        long,
        value_name = "N",
        requires = "inductive",
        default_value = "2",
        value_parser = clap::value_parser!(u8).range(1..=3)
    )]
    pub(crate) versions: u8,
    /// With --inductive: leave out this conjunct, to see what it is for
    #[arg(long, value_name = "CONJUNCT", requires = "inductive")]
    pub(crate) without: Option<String>,
    /// With --inductive: seed of the sample [default: 0]
    #[arg(long, value_name = "N", requires = "inductive")]
    pub(crate) seed: Option<u64>,
    /// With --against-engine: time limit for each spec [default: 15m; LeafBuffering,
    /// SurrogateBuffer, MiniPage, PageShadowing, CopyOnWrite and RedoLog 1m, which they always use
    /// up]. With --mutate: no mutant is begun later [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = crate::units::duration)]
    pub(crate) budget: Option<u64>,
    /// Write the result as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Save the counterexample of the model that --only names as a Rust test
    #[arg(long, value_name = "FILE", requires = "only")]
    pub(crate) save_test: Option<PathBuf>,
    /// Write the counterexample of the model that --only names as a test of the engine, which
    /// `treering oracle --replay FILE` runs; - is stdout. The mirror finds it; no other checker
    /// runs. For CircularBuffer and WalRecovery
    #[arg(long, value_name = "FILE", requires = "only", conflicts_with_all = ["checker", "graph", "mutations", "record", "save_test", "json", "against_engine", "mutate"])]
    pub(crate) to_oracle: Option<PathBuf>,
    /// Accept TLC's results as the expected ones: rewrite specs/manifest.json (after changing a
    /// spec on purpose)
    #[arg(long)]
    pub(crate) record: bool,
    /// Folder of the specs [default: the nearest specs/ with a manifest, in this folder or above]
    #[arg(long = "specs", value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

/// How many states a search looks for; `None`: all.
pub(crate) type States = Option<u64>;

fn states(text: &str) -> Result<States, String> {
    match text {
        "all" => Ok(None),
        _ => crate::units::ordinal(text).map(Some),
    }
}

/// Sizes of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelSize {
    /// Models that take seconds each.
    Smoke,
    /// Models of a hundred thousand to millions of states each.
    Full,
    /// Models of tens of millions of states each. The mirror visits all, on all cores; TLC walks.
    Large,
}

/// Programs that check a spec.
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
    treering explore CircularBuffer --model mutation --address 127.0.0.1:3001\n  \
    treering explore WalRecovery --only page-before-log          a counterexample as a story\n  \
    treering explore 'WalRecovery 1' --html story.html           that of a finding, as a file\n\n\
    A story has a lane for each client, one for background work and one for the device. At each \
    step it shows what differs from the step before, the lines of TLA+, and the engine's function \
    that their comment names. The arrow keys step through it.")]
pub(crate) struct ExploreArgs {
    /// The spec, by module name; or a finding of specs/FINDINGS.md such as 'WalRecovery 1' or
    /// WalRecovery-1, or a model, whose counterexample is shown as a story
    #[arg(value_name = "SPEC|FINDING|MODEL")]
    pub(crate) spec: String,
    /// Name of the model
    #[arg(long, value_name = "NAME", default_value = "smoke")]
    pub(crate) model: String,
    /// Show the counterexample of the model or mutation with this name as a story
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    pub(crate) only: Option<String>,
    /// Write the story as an HTML page, and serve nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["address", "model"])]
    pub(crate) html: Option<PathBuf>,
    /// Address to serve the explorer or the story on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3000")]
    pub(crate) address: SocketAddr,
    /// Folder of the specs [default: the nearest specs/ with a manifest, in this folder or above]
    #[arg(long = "specs", value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}
