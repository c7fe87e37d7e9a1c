//! Flags of the smaller subcommands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use treering_engine::TreeSpec;

use crate::{tree, units};

/// Flags of `treering import`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering import mqsim tpcc.trace.xz -o tpcc.trz\n  \
    treering import csv io.csv.gz --columns time=1:s,op=3,offset=5:bytes,size=6:bytes -o io.trz\n  \
    treering import parquet io.parquet --columns time=ts,op=type,offset=lba:sectors,size=len \
    -o io.trz\n  \
    treering import drive app.rec -o app.trz\n  \
    treering import oracle-general wiki.oracleGeneral.zst --oracle-op get --skip-bad 10 -o wiki.trz\n\n\
    Formats of block traces: mqsim, disksim, msr, spc, cloudphysics, vscsi, alibaba, tencent, \
    systor, fio (iolog 2 and 3), blkparse, blktrace (merge the files of its CPUs with \
    `blkparse -d`) or drive (a recording of `treering drive`). Formats of key-value traces: \
    twitter, cachelib, rocksdb, block-cache (of block_cache_trace_analyzer), ycsb, oracle-general \
    or lcs. Format of memory traces: vans. csv and parquet can hold block or key-value traces. \
    Inputs can be plain, .gz, .xz or .zst. Keys with a time to live (twitter, cachelib, lcs, csv, \
    parquet) are deleted when it has passed.")]
pub(crate) struct ImportArgs {
    /// Format of the input
    pub(crate) format: String,
    /// Trace file to import
    pub(crate) input: PathBuf,
    /// Trace file to write, .trz or .jsonl
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
    /// Value length of the puts made from a block or memory trace
    #[arg(long, value_name = "N", default_value = "120", value_parser = units::small_size)]
    pub(crate) value_size: u32,
    /// Number of bad lines to skip before a bad line is an error
    #[arg(long, value_name = "N", default_value = "0", value_parser = units::count)]
    pub(crate) skip_bad: u64,
    /// For csv and parquet: the column of each field, `FIELD=COLUMN[:UNIT],…` (fields: time op
    /// offset size device key value scan client ttl; sep=…)
    #[arg(long, value_name = "SPEC")]
    pub(crate) columns: Option<String>,
    /// For oracle-general and lcs: operation that each request becomes: get, put or recorded
    #[arg(long, value_name = "OP")]
    pub(crate) oracle_op: Option<String>,
}

/// Flags of `treering trace info`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering trace info zipf.trz\n  \
    treering trace info zipf.trz --html zipf.html\n  \
    treering trace info zipf.trz --page 16KiB\n  \
    treering trace info zipf.trz --json - | jq .popularity.theta\n  \
    treering trace info zipf.trz --json - | jq '.windows[] | {end_op, distinct_keys}'")]
pub(crate) struct InfoArgs {
    /// Trace file, .trz or .jsonl
    pub(crate) trace: PathBuf,
    /// Write the result as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a self-contained HTML page with charts
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Size of the pages in caches of pages, 512 to 1MiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = units::small_size)]
    pub(crate) page: u32,
}

/// Flags of `treering serve`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering sweep zipf.trz --tree btree,bf --cache 5%,20% --out trees\n  \
    treering serve trees\n  \
    treering serve trees --port 8080\n\n\
    Only this machine can open the page. The table is read anew each time, so a sweep that is going \
    on can be watched. docs/SWEEP.md")]
pub(crate) struct ServeArgs {
    /// The folder of a sweep (its --out)
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Port on localhost; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 3000)]
    pub(crate) port: u16,
}

/// Flags of `treering trees`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering trees\n  \
    treering trees 'btree(page=8KiB)+shadow(T=2KiB)+sparse+slotted'\n  \
    treering trees --json - | jq -r '.trees[].name'")]
pub(crate) struct TreesArgs {
    /// Print this spec in its shortest form instead of the list
    #[arg(value_name = "SPEC", value_parser = tree::spec)]
    pub(crate) spec: Option<TreeSpec>,
    /// Write the list as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Flags of `treering devices`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering devices\n  \
    treering devices ssd > my-drive.toml")]
pub(crate) struct DevicesArgs {
    /// Print this drive as TOML instead of the list
    pub(crate) name: Option<String>,
    /// Write the list as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Orders in which keys are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutOrder {
    /// Random order.
    Random,
    /// Ascending order.
    Sorted,
}

/// Flags of `treering layout`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering layout dense --records 2500k\n  \
    treering layout dense --density 0.5 --order sorted\n  \
    treering layout urls.txt.xz --json - | jq '.layouts[] | {layout, bytes_per_record}'\n  \
    treering layout sparse --sample 10% --html sparse.html\n  \
    treering layout --trace zipf.trz\n\n\
    The page size counts only the space of the layout: the 28-byte envelope that a page has in a \
    store is not included.")]
pub(crate) struct LayoutArgs {
    /// File with one key per line (plain, .gz, .xz or .zst), or generated keys. dense: consecutive
    /// four-byte numbers; sparse: random four-byte numbers
    #[arg(value_name = "KEYFILE|dense|sparse")]
    pub(crate) keys: Option<PathBuf>,
    /// Lay out the puts of a trace (.trz or .jsonl), with their values
    #[arg(long, value_name = "TRACE", conflicts_with = "keys")]
    pub(crate) trace: Option<PathBuf>,
    /// Maximum number of records taken from a file or trace
    #[arg(long, value_name = "N", default_value = "1M", value_parser = units::count)]
    pub(crate) records: u64,
    /// For dense: share of the numbers that are present
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = units::share)]
    pub(crate) density: f64,
    /// Value length, unless a trace gives it
    #[arg(long, value_name = "N", default_value = "8", value_parser = units::small_size)]
    pub(crate) value_size: u32,
    /// Order in which keys are inserted; a trace keeps its own order
    #[arg(long, value_enum, default_value = "random")]
    pub(crate) order: LayoutOrder,
    /// Page size without its envelope, a power of two from 4KiB to 32KiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = units::size)]
    pub(crate) page: u64,
    /// Predict from a sample: this share of the keys, taken as whole key ranges; 1 takes all
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = units::share)]
    pub(crate) sample: f64,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) seed: u64,
    /// Write the result as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a self-contained HTML page with charts
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the charts as one SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// Flags of `treering verify`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering verify /mnt/store\n  \
    treering verify /mnt/store --json - | jq .damage")]
pub(crate) struct VerifyArgs {
    /// The store file, which is not changed
    pub(crate) store: PathBuf,
    /// Write the result as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Flags of `treering completions`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering completions bash > ~/.local/share/bash-completion/completions/treering\n  \
    treering completions fish > ~/.config/fish/completions/treering.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to write the completion script for
    pub(crate) shell: clap_complete::Shell,
}

/// Flags of `treering crash-writer`.
#[derive(Debug, Args)]
pub(crate) struct CrashWriterArgs {
    /// The store file, created if it is missing
    pub(crate) store_file: PathBuf,
    /// File to which intents and acknowledgements are appended
    #[arg(long)]
    pub(crate) ack: PathBuf,
    /// Seed of keys and kinds of operations
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// The tree; it must be one of pages
    #[arg(long, value_name = "SPEC", default_value = "btree", value_parser = tree::of_pages)]
    pub(crate) tree: TreeSpec,
    /// Number of operations of each thread
    #[arg(long, default_value = "1M", value_parser = units::count)]
    pub(crate) ops: u64,
    /// The first sequence number; it must be above all that earlier runs on this store used
    #[arg(long, default_value_t = 1)]
    pub(crate) first: u64,
}

/// Flags of `treering replay-together` and `treering predict-together`.
#[derive(Debug, Args)]
pub(crate) struct TogetherArgs {
    /// JSON file: a list of objects with `json`, where the report goes, and `arguments`, those of
    /// `treering replay` or `treering predict`
    pub(crate) list: PathBuf,
}
