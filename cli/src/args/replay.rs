//! Flags of `treering replay`.

use std::path::PathBuf;

use clap::{Args, Command, FromArgMatches as _, ValueEnum};
use treering_engine::node::LayoutChoice;
use treering_engine::{LogPacking, Nanos, PageStoreKind, Promote};
use treering_sim::predict::{Effort, Method, Model};
use treering_sim::replay::{Acknowledge, Oversize, Preload, Size};

use crate::tree::Replayed;
use crate::units;

/// A model of predictors.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ModelName {
    #[default]
    Played,
    Independent,
}

/// How much a predictor plays.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum EffortName {
    Fast,
    #[default]
    Full,
}

impl EffortName {
    pub(crate) fn effort(self) -> Effort {
        match self {
            EffortName::Fast => Effort::Fast,
            EffortName::Full => Effort::Full,
        }
    }
}

impl ReplayArgs {
    /// The arguments after `treering replay`.
    pub(crate) fn of(arguments: &[String]) -> Result<ReplayArgs, clap::Error> {
        let command = ReplayArgs::augment_args(Command::new("replay")).no_binary_name(true);
        let matches = command.try_get_matches_from(arguments)?;
        ReplayArgs::from_arg_matches(&matches)
    }

    /// How to predict.
    pub(crate) fn method(&self) -> Method {
        Method {
            model: match self.model {
                ModelName::Played => Model::Played,
                ModelName::Independent => Model::Independent,
            },
            effort: self.effort.effort(),
            ..Method::default()
        }
    }
}

/// Flags of `treering replay`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering replay zipf.trz\n  \
    treering replay zipf.trz --store cow --page 8KiB --cache 20% --html zipf.html\n  \
    treering replay zipf.trz --tree bf --copy-on-access 20 --promote 5\n  \
    treering replay zipf.trz --tree bf --cache 20% --explain-wa\n  \
    treering replay zipf.trz --device csd --tree bminus\n  \
    treering replay vm.trz --preload none --warmup 0.2\n  \
    treering replay vm.trz --tree none --precondition steady --op 0.07\n  \
    treering replay zipf.trz --device csd --store cow --page 8KiB --threshold 2KiB\n  \
    treering replay zipf.trz --tree ccl --device pm --nbatch 4 --timing --clients 8\n  \
    treering replay zipf.trz --tree lodge --device pm --t-node 4 --node-split double\n  \
    treering replay zipf.trz --device my-drive.toml --timing --clients 8 --json - > zipf.json\n  \
    treering replay zipf.trz --device file:/mnt/store --durability commit --clients 4\n\n\
    Glossary: docs/GLOSSARY.md")]
pub(crate) struct ReplayArgs {
    /// Trace file, .trz or .jsonl
    pub(crate) trace: PathBuf,
    /// Tree: btree, bf (Bf-Tree), bminus (B⁻-tree), ccl (CCL-BTree), lodge (LodgeTree), pmtree (no
    /// buffers), pmtree-global (one buffer), or a spec with parts and parameters such as
    /// `btree(page=8KiB)+shadow(T=2KiB)+sparse`; `treering trees` lists them. The flags below
    /// override the spec. `none` is no tree: puts write the record's blocks straight to a simulated
    /// drive, deletes trim and gets read them. Keys get blocks in their order, each as many as its
    /// longest value needs, at least one; a block of a block trace is one
    #[arg(long, value_name = "SPEC", default_value = "btree", value_parser = Replayed::parse)]
    pub(crate) tree: Replayed,
    /// Device: ssd, csd (compresses each block), pm (persistent memory), another name that
    /// `treering devices` lists, PROFILE.toml, or file:PATH (a new file) [default: ssd; pm with
    /// ccl, lodge and pmtree]
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// With file:PATH: use the page cache [default: bypass it if the file system can]
    #[arg(long)]
    pub(crate) buffered: bool,
    /// With file:PATH: keep free space allocated [default: return it to the file system, in
    /// batches]
    #[arg(long)]
    pub(crate) no_trim: bool,
    /// Page store: in-place (with a page journal), cow (with a page table) or shadow (two slots per
    /// page) [default: in-place, or the tree's]
    #[arg(long, value_parser = store)]
    pub(crate) store: Option<PageStoreKind>,
    /// When the cow store persists its page table [default: checkpoint]
    #[arg(long)]
    pub(crate) table: Option<Tables>,
    /// Redo log: packed, or sparse (each flush begins a new block) [default: packed, or the tree's]
    #[arg(long, value_parser = log)]
    pub(crate) log: Option<LogPacking>,
    /// Modification log: while a page differs from its stored image by less than this, write only
    /// the differences, to the page's log block; 0 is off [default: 0, or the tree's]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) threshold: Option<u64>,
    /// Modification log: granularity of differences [default: 128]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) segment: Option<u64>,
    /// Modification log: when a page that differs by exactly the threshold is written as a whole
    /// [default: at-threshold]
    #[arg(long)]
    pub(crate) reset: Option<Reset>,
    /// Leaf layout: baseline, prefix, slotted (or heads), hints, fingerprint, compact; semi-dense
    /// or fully-dense, for leaves whose keys are nearly consecutive numbers; or adaptive, which
    /// chooses for each leaf [default: adaptive; slotted with bminus, compact with bf]
    #[arg(long, value_parser = layout)]
    pub(crate) layout: Option<LayoutChoice>,
    /// Split leaves for which writers wait. Only with --tree btree or bminus; has an effect only
    /// with --clients on a file, because simulated clients never wait
    #[arg(long)]
    pub(crate) contention_split: bool,
    /// Page size, a power of two from 4KiB to 64KiB [default: 4KiB; 8KiB with bminus]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) page: Option<u64>,
    /// The rules of bf's mini-pages: those that write fewer bytes, or the paper's, which is
    /// --promote 30 --relog 0 --growth 100 --spare 0 --max-mini-page 50. Other trees have their
    /// papers' [default: frugal]
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<PolicyArg>,
    /// bf: part of the ring, in per cent, in which a used mini-page is copied to the tail [default:
    /// 10]
    #[arg(long, value_name = "PERCENT", value_parser = units::percent)]
    pub(crate) copy_on_access: Option<u8>,
    /// bf: per cent of lookups in a leaf that promote the record to the mini-page, or auto: as many
    /// as pay by what they answer later [default: auto]
    #[arg(long, value_name = "PERCENT", value_parser = units::promote)]
    pub(crate) promote: Option<Promote>,
    /// bf: what a checkpoint may log again of the dirty records in mini-pages instead of merging
    /// them, in per cent of the log between two checkpoints, up to 50 [default: 50]
    #[arg(long, value_name = "PERCENT", value_parser = units::percent)]
    pub(crate) relog: Option<u8>,
    /// bf: how much larger each size of mini-pages is than the one below, in per cent, from 10 to
    /// 100, which doubles them [default: 25]
    #[arg(long, value_name = "PERCENT", value_parser = units::percent)]
    pub(crate) growth: Option<u8>,
    /// bf: of the mini-pages with changes that the head of the ring reaches, per cent that go to the
    /// tail instead of being merged, because they have few, up to 90 [default: 75]
    #[arg(long, value_name = "PERCENT", value_parser = units::percent)]
    pub(crate) spare: Option<u8>,
    /// bf: the largest mini-page that is no mirror, in per cent of a page, from 50 to 100; one that
    /// needs more for a change is merged [default: 100]
    #[arg(long, value_name = "PERCENT", value_parser = units::percent)]
    pub(crate) max_mini_page: Option<u8>,
    /// Page cache, including bf's ring: bytes, or a share of the data set [default: 10%]
    #[arg(long, value_name = "SIZE", value_parser = units::size_or_share)]
    pub(crate) cache: Option<Size>,
    /// Number of clients; each begins an operation when its previous one is done
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::small_count)]
    pub(crate) clients: u32,
    /// When a write is acknowledged: deferred, commit, or interval:DURATION. The interval is in the
    /// device's virtual time (real time with file:PATH), not in the trace's times [default:
    /// interval:60s]
    #[arg(long, value_name = "WHEN", value_parser = durability)]
    pub(crate) durability: Option<Durability>,
    /// Share of the operations that is warm-up and not measured [default: what the trace marks]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    pub(crate) warmup: Option<f64>,
    /// End the warm-up and the measured part each with a checkpoint that leaves no change in
    /// memory. So what is measured pays for all of its own writes, and for no others. For trees of
    /// pages
    #[arg(long)]
    pub(crate) drain: bool,
    /// Maximum number of operations to replay
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) limit: Option<u64>,
    /// Records to load before the trace, as warm-up: auto (keys that the trace uses before it puts
    /// them; all keys of a block trace), none, all (all keys), or a trace FILE whose puts are
    /// loaded
    #[arg(long, value_name = "WHAT", default_value = "auto", value_parser = preload)]
    pub(crate) preload: Preload,
    /// File with the trace's statistics, which are read instead of the trace if they are of this
    /// trace and these options [default: the trace's name and .stats, if there]
    #[arg(long, value_name = "FILE")]
    pub(crate) statistics: Option<PathBuf>,
    /// Save the trace's statistics in that file, for further predictions and replays
    #[arg(long)]
    pub(crate) save_statistics: bool,
    /// Size of the circular log [default: half of the data set, between 1MiB and 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) log_size: Option<u64>,
    /// Flush the log when this much of it is unflushed [default: 256KiB, at most a quarter of the
    /// log]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) log_buffer: Option<u64>,
    /// Start a checkpoint when the log has grown by this much [default: half of the log]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) checkpoint_every: Option<u64>,
    /// Maximum number of pages per write-back [default: 32]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) write_batch: Option<u64>,
    /// Logical capacity of the drive [default: fitted to the store, see --fill]
    #[arg(long, value_name = "SIZE", value_parser = units::size, conflicts_with = "fill")]
    pub(crate) capacity: Option<u64>,
    /// Share of a fitted drive that the store takes [default: 90%]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    pub(crate) fill: Option<f64>,
    /// Over-provisioning of the drive, T/U - 1 [default: the profile's]
    #[arg(long = "op", value_name = "SHARE", value_parser = over_provisioning)]
    pub(crate) over_provisioning: Option<f64>,
    /// Garbage collection policy: greedy, fifo, random, d-choices:D, cost-benefit,
    /// windowed-greedy:W [default: the profile's]
    #[arg(long, value_name = "POLICY", value_parser = gc)]
    pub(crate) gc: Option<String>,
    /// State of the drive before the run [default: none]
    #[arg(long)]
    pub(crate) precondition: Option<Before>,
    /// What to do with records that do not fit: values longer than 16 MiB, which no store takes,
    /// and keys longer than an eighth of the page, which no store of pages takes [default: reject]
    #[arg(long)]
    pub(crate) oversize: Option<OversizeArg>,
    /// Bytes that the user writes per day, for the lifetime [default: derived from the trace's
    /// times, or the drive's logical capacity if it has none]
    #[arg(long, value_name = "SIZE", value_parser = daily)]
    pub(crate) daily: Option<u64>,
    /// Do not predict
    #[arg(long)]
    pub(crate) no_predict: bool,
    /// How trees of pages are predicted: played in the order of the trace, or as independent
    /// accesses
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    pub(crate) model: ModelName,
    /// How much of the played run is played: fast plays a sample of the pages, full all of them
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    pub(crate) effort: EffortName,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Model queues, channels and dies
    #[arg(long)]
    pub(crate) timing: bool,
    /// Also print where the bytes go: from the least that the memory allows to what was written,
    /// step by step; for trees of pages
    #[arg(long)]
    pub(crate) explain_wa: bool,
    /// Exit status 4 if garbage collection or eviction was never reached
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write the report as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pm: PmArgs,
}

/// Flags of trees in persistent memory, and of the memory.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Persistent memory")]
pub(crate) struct PmArgs {
    /// Slots of ccl's buffer nodes, 1 to 6 [default: 2]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) nbatch: Option<u64>,
    /// Which writes ccl logs [default: conservative]
    #[arg(long)]
    pub(crate) logging: Option<LoggingArg>,
    /// How ccl cleans its logs [default: locality-aware]
    #[arg(long)]
    pub(crate) cleaning: Option<CleaningArg>,
    /// Slots of lodge's last-level inner nodes, 4 to 29 [default: 29]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) slots: Option<u64>,
    /// Maximum number of leaves that one flush of lodge goes to [default: 2]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) t_node: Option<u64>,
    /// Number of keys above which a leaf of lodge is split, 2 to 27 [default: 26]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) t_split: Option<u64>,
    /// Number of nodes into which lodge splits a last-level inner node [default: hotness-aware]
    #[arg(long)]
    pub(crate) node_split: Option<NodeSplitArg>,
    /// Number of entries in one of lodge's logs, at least 2 [default: 256]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    pub(crate) log_entries: Option<u32>,
    /// Number of DIMMs that the memory is interleaved over [default: the profile's, 1]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    pub(crate) dimms: Option<u32>,
    /// Make the CPU cache persistent: lines reach the memory only when they are evicted
    #[arg(long)]
    pub(crate) eadr: bool,
}

impl PmArgs {
    /// The first of these flags that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        self.of_ccl().or_else(|| self.of_lodge()).or_else(|| {
            [("--dimms", self.dimms.is_some()), ("--eadr", self.eadr)]
                .into_iter()
                .find_map(|(flag, given)| given.then_some(flag))
        })
    }

    /// The first given flag of those that only `ccl` has.
    pub(crate) fn of_ccl(&self) -> Option<&'static str> {
        [
            ("--nbatch", self.nbatch.is_some()),
            ("--logging", self.logging.is_some()),
            ("--cleaning", self.cleaning.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }

    /// The first given flag of those that only `lodge` has.
    pub(crate) fn of_lodge(&self) -> Option<&'static str> {
        [
            ("--slots", self.slots.is_some()),
            ("--t-node", self.t_node.is_some()),
            ("--t-split", self.t_split.is_some()),
            ("--node-split", self.node_split.is_some()),
            ("--log-entries", self.log_entries.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }
}

/// Number of nodes into which a last-level inner node is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodeSplitArg {
    /// More than two if splits follow each other quickly (LodgeTree §III-C)
    HotnessAware,
    /// Always two
    Double,
}

/// Whose rules mini-pages follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyArg {
    /// Those that write fewer bytes
    Frugal,
    /// The paper's
    Published,
}

/// The writes that are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoggingArg {
    /// All except those that trigger a flush (CCL-BTree §3.3)
    Conservative,
    /// All writes
    Naive,
}

/// How logs are cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CleaningArg {
    /// Copy buffered records (CCL-BTree §3.4)
    LocalityAware,
    /// Flush buffered records while all clients wait
    Naive,
}

/// When the page table is persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tables {
    /// After each page flush, as the baseline of B⁻-tree §4 does
    EachFlush,
    /// At checkpoints only
    Checkpoint,
}

/// Whether a page is written as a whole when its differences reach or exceed the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reset {
    /// When the differences reach the threshold, as in B⁻-tree Table 2
    AtThreshold,
    /// When the differences exceed the threshold, as in the text of B⁻-tree §3.2
    AboveThreshold,
}

/// State of the drive before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Before {
    /// Factory-fresh
    None,
    /// Every page written once, in order
    Fill,
    /// The same, then overwritten at random until garbage collection is steady
    Steady,
}

impl ReplayArgs {
    /// The value of `--oversize`.
    pub(crate) fn oversize(&self) -> Oversize {
        match self.oversize {
            None | Some(OversizeArg::Reject) => Oversize::Reject,
            Some(OversizeArg::Clamp) => Oversize::Clamp,
            Some(OversizeArg::Skip) => Oversize::Skip,
        }
    }
}

/// Handling of records that do not fit into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OversizeArg {
    /// End with an error
    Reject,
    /// Cut the value to the maximum length
    Clamp,
    /// Skip the operation and count it
    Skip,
}

/// The value of `--durability`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Durability(pub(crate) Acknowledge);

fn preload(text: &str) -> Result<Preload, String> {
    match text {
        "auto" => Ok(Preload::Auto),
        "none" => Ok(Preload::None),
        "all" => Ok(Preload::All),
        path if path.contains(['.', '/']) => Ok(Preload::File(path.into())),
        _ => Err("expected auto, none, all, or a trace file, .trz or .jsonl".into()),
    }
}

fn store(text: &str) -> Result<PageStoreKind, String> {
    PageStoreKind::named(text).ok_or_else(|| expected(PageStoreKind::ALL.map(PageStoreKind::name)))
}

fn log(text: &str) -> Result<LogPacking, String> {
    let names = LogPacking::NAMED.iter().map(|(name, _)| *name);
    LogPacking::named(text).ok_or_else(|| expected(names))
}

/// The error message for an unknown name.
fn expected(names: impl IntoIterator<Item = &'static str>) -> String {
    let mut names: Vec<_> = names.into_iter().collect();
    names.dedup();
    format!("expected {}", names.join(" or "))
}

fn layout(text: &str) -> Result<LayoutChoice, String> {
    LayoutChoice::named(text).ok_or_else(|| {
        let names: Vec<_> = LayoutChoice::all().map(LayoutChoice::name).collect();
        format!("expected {}", names.join(", "))
    })
}

pub(super) fn durability(text: &str) -> Result<Durability, String> {
    let acknowledge = match text.split_once(':') {
        None if text == "deferred" => Acknowledge::Deferred,
        None if text == "commit" => Acknowledge::Commit,
        Some(("interval", every)) => match units::duration(every)? {
            0 => return Err("expected an interval above 0, or commit".into()),
            ns => Acknowledge::Interval(Nanos(ns)),
        },
        _ => return Err("expected deferred, commit or interval:DURATION".into()),
    };
    Ok(Durability(acknowledge))
}

pub(super) fn daily(text: &str) -> Result<u64, String> {
    match units::size(text)? {
        0 => Err("expected a size above 0, such as 100GiB".into()),
        bytes => Ok(bytes),
    }
}

pub(super) fn over_provisioning(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().map(|share| share / unit);
    share
        .ok()
        .filter(|share| (0.001..=100.0).contains(share))
        .ok_or_else(|| "expected 0.001 to 100, such as 0.07 or 7%".into())
}

pub(super) fn gc(text: &str) -> Result<String, String> {
    match treering_sim::ssd::GcPolicy::parse(text) {
        Some(_) => Ok(text.into()),
        None => Err(
            "expected greedy, fifo, random, d-choices:D, cost-benefit or windowed-greedy:W".into(),
        ),
    }
}
