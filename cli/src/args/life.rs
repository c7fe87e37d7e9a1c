//! Flags of the commands with which records leave a store file and enter one.

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
    A line is {\"key\":\"…\",\"value\":\"…\"}, in the order of keys. A key or value that is not UTF-8 stands as \
    \"key_hex\" or \"value_hex\". The store is not changed; one that does not open is a case for `treering repair`.")]
pub(crate) struct DumpArgs {
    /// The store file; it is not changed
    pub(crate) store: PathBuf,
    /// Where the lines go; - is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

/// How a new store is made.
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
    Lines are those of `treering dump`, in any order, each key once. A bad line is named, and then there is no new \
    store: it is written beside its place and renamed when it is whole. A key may be an eighth of a page long, a value \
    16 MiB.")]
pub(crate) struct LoadArgs {
    /// The store file to make; it must not be there
    pub(crate) store: PathBuf,
    /// The lines; - is stdin
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
    Reads every block, and takes for each key range the newest page image that is whole and what the log says later. \
    No superblock, index or page table needs to be whole. `missing` names key ranges of which nothing current was \
    found, `doubtful` those whose records were saved though nothing proves that they are the newest. Exit status 1 if \
    there is either. The store is not changed.")]
pub(crate) struct RepairArgs {
    /// The damaged store file; it is not changed
    pub(crate) store: PathBuf,
    /// The store file to make; it must not be there
    #[arg(short, long, value_name = "NEW")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) new: NewStoreArgs,
    /// Write what was saved and what is missing as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
