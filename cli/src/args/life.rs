//! Flags of the commands that move records out of and into store files.

use std::path::PathBuf;

use clap::Args;
use treering_engine::TreeSpec;

use crate::{tree, units};

/// Flags of `treering dump`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering dump /mnt/store > store.jsonl\n  \
    treering dump /mnt/store | jq -r .key | head\n  \
    treering dump /mnt/store -o store.jsonl && treering load other.store store.jsonl\n\n\
    Each line is {\"key\":\"…\",\"value\":\"…\"}; lines are in key order. A key or value that is not \
    UTF-8 is written as \"key_hex\" or \"value_hex\". The store is not changed. If the store cannot \
    be opened, use `treering repair`.")]
pub(crate) struct DumpArgs {
    /// The store file, which is not changed
    pub(crate) store: PathBuf,
    /// Output file for the lines; - is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

/// How to create a new store.
#[derive(Debug, Args)]
pub(crate) struct NewStoreArgs {
    /// Page store of the new store: in-place, cow or shadow
    #[arg(long, value_parser = ["in-place", "cow", "shadow"])]
    pub(crate) store_kind: Option<String>,
    /// Page size, a power of two from 4KiB to 64KiB
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) page: Option<u64>,
}

/// Flags of `treering load`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering load /mnt/store store.jsonl\n  \
    treering dump a.store | treering load b.store --store-kind cow --page 16KiB\n  \
    xz -dc store.jsonl.xz | treering load c.store --tree bminus\n\n\
    The input has the format of `treering dump`, in any order, each key once. If a line is bad, the \
    error names it and no store is created: the store is written under a temporary name and renamed \
    when it is complete. A key can have up to an eighth of a page, a value up to 16 MiB.")]
pub(crate) struct LoadArgs {
    /// Store file to create; it must not exist
    pub(crate) store: PathBuf,
    /// Input file with the lines; - is stdin
    #[arg(default_value = "-")]
    pub(crate) input: PathBuf,
    /// The tree: btree, bf or bminus, with parts and parameters such as
    /// `btree(page=8KiB)+cow+hints`
    #[arg(long, value_name = "SPEC", default_value = "btree", value_parser = tree::of_pages)]
    pub(crate) tree: TreeSpec,
    #[command(flatten)]
    pub(crate) new: NewStoreArgs,
    /// Write a summary as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Flags of `treering repair`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering repair /mnt/store -o saved.store\n  \
    treering repair /mnt/store -o saved.store --json - | jq .missing\n  \
    treering repair /mnt/store -o saved.store --page 8KiB\n\n\
    Repair reads every block. For each key range it takes the newest intact page image and applies \
    the log records that are newer. It needs no intact superblock, index or page table. `missing` \
    lists key ranges for which no current data was found. `doubtful` lists key ranges whose records \
    were saved although they may not be the newest. The exit status is 1 if either list is not \
    empty. The damaged store is not changed.")]
pub(crate) struct RepairArgs {
    /// The damaged store file, which is not changed
    pub(crate) store: PathBuf,
    /// Store file to create; it must not exist
    #[arg(short, long, value_name = "NEW")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) new: NewStoreArgs,
    /// Write what was saved and what is missing as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
