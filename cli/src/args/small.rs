//! Flags of the smaller subcommands.

use std::path::PathBuf;

use clap::Args;

use crate::units;

/// Flags of `treering import`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering import mqsim tpcc.trace.xz -o tpcc.trz\n  \
    treering import csv io.csv.gz --columns time=1:s,op=3,device=4,offset=5:bytes,size=6:bytes -o io.trz\n  \
    treering import oracle-general wiki.oracleGeneral.zst --oracle-op get --skip-bad 10 -o wiki.trz\n\n\
    FORMAT is mqsim, disksim, msr, spc, cloudphysics, vscsi, fio, blkparse, csv, twitter, cachelib, rocksdb, ycsb, \
    vans or oracle-general. Plain, .gz, .xz and .zst inputs are read as they are.")]
pub(crate) struct ImportArgs {
    /// Format of the input
    pub(crate) format: String,
    /// The trace to import
    pub(crate) input: PathBuf,
    /// The trace to write, .trz or .jsonl
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
    /// Value length of a put of a block or memory trace
    #[arg(long, value_name = "N", default_value = "120", value_parser = units::small_size)]
    pub(crate) value_size: u32,
    /// Skip so many bad lines before the next is an error
    #[arg(long, value_name = "N", default_value = "0", value_parser = units::count)]
    pub(crate) skip_bad: u64,
    /// For csv: which column is what, `FIELD=COLUMN[:UNIT],…` (fields: time op offset size device key value scan client; sep=…)
    #[arg(long, value_name = "SPEC")]
    pub(crate) columns: Option<String>,
    /// For oracle-general: what a request is, get, put or recorded
    #[arg(long, value_name = "OP")]
    pub(crate) oracle_op: Option<String>,
}

/// Flags of `treering trace info`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering trace info zipf.trz\n  \
    treering trace info zipf.trz --json - | jq .popularity.theta")]
pub(crate) struct InfoArgs {
    /// Trace file, .trz or .jsonl
    pub(crate) trace: PathBuf,
    /// Write it as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Flags of `treering devices`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering devices\n  \
    treering devices ssd > my-drive.toml")]
pub(crate) struct DevicesArgs {
    /// The drive to print
    pub(crate) name: Option<String>,
    /// Write it as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Flags of `treering verify`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering verify /mnt/store\n  \
    treering verify /mnt/store --json - | jq .damage")]
pub(crate) struct VerifyArgs {
    /// The store file; it is not changed
    pub(crate) store: PathBuf,
    /// Write it as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Flags of `treering completions`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering completions bash > ~/.local/share/bash-completion/completions/treering\n  \
    treering completions fish > ~/.config/fish/completions/treering.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Flags of `treering crash-writer`.
#[derive(Debug, Args)]
pub(crate) struct CrashWriterArgs {
    /// The store file, created if it is missing
    pub(crate) store_file: PathBuf,
    /// Where intents and acknowledgements are appended
    #[arg(long)]
    pub(crate) ack: PathBuf,
    /// Decides keys and kinds of operations
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// in-place, cow, or bminus: shadowed pages with modification logs, and a sparse log
    #[arg(long, default_value = "in-place", value_parser = ["in-place", "cow", "bminus"])]
    pub(crate) store: String,
    /// btree or bf
    #[arg(long, default_value = "btree", value_parser = ["btree", "bf"])]
    pub(crate) tree: String,
    /// Operations of each thread
    #[arg(long, default_value = "1M", value_parser = units::count)]
    pub(crate) ops: u64,
    /// The first sequence number: above all that earlier runs on this store used
    #[arg(long, default_value_t = 1)]
    pub(crate) first: u64,
}
