//! Flags of `treering cuts`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use treering_drive::cuts::Model;

use crate::checkers::{self, Check};
use crate::units;

/// Flags of `treering cuts`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering cuts app.rec -- ./my-checker\n  \
    treering cuts sqlite.rec --check sqlite\n  \
    treering cuts app.rec --model ext4-ordered --budget 10m --html cuts.html -- ./my-checker\n  \
    treering cuts app.rec --recovery-cuts --states 5000 --torn 4KiB -- ./my-checker\n  \
    treering cuts --replay app.rec.cuts/1.cut --keep state -- ./my-checker\n\n\
    Record with `treering drive run --page-cache write-through --record app.rec -- PROGRAM`: then \
    each write is in the recording where the program made it.\n\
    The checker runs in a directory that looks as after a power cut and a restart, which is also \
    $TREERING_DIR; $TREERING_ACKS names a file with the lines that were acknowledged before the \
    cut. It exits 0 if it can live with what it finds. What it prints tells failures apart.\n\
    --check needs no checker of yours: the engine's own tool verifies the store, and its content \
    is compared with the lines `try`, `did` and `durable` that the program has written to \
    $TREERING_ACKS (docs/CUTS.md).\n\
    Models: strict (the least that POSIX promises), ext4-ordered, ext4-writeback, xfs, btrfs. A \
    recording of a real file system is cut below it, and that file system recovers.\n\
    Exit codes: 0 nothing found, 1 a state that the checker cannot live with, 2 bad usage or a bad \
    recording, 3 could not run, 4 nothing in the recording could be lost.\n\
    Glossary: docs/GLOSSARY.md")]
pub(crate) struct CutsArgs {
    /// The recording
    #[arg(
        value_name = "LOG",
        required_unless_present_any = ["replay", "check_state"],
        conflicts_with_all = ["replay", "check_state"]
    )]
    pub(crate) log: Option<PathBuf>,
    /// Run the checker again on a state that was found
    #[arg(long, value_name = "FOUND", conflicts_with_all = [
        "model", "from", "torn", "window", "seed", "jobs", "states", "budget", "recovery_cuts", "found", "json",
        "html",
    ])]
    pub(crate) replay: Option<PathBuf>,
    /// What the file system promises [default: strict]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<Model>,
    /// No cut before the first acknowledged line that begins so: leaves out what a program sets up
    #[arg(long, value_name = "LINE")]
    pub(crate) from: Option<String>,
    /// Size of what is written whole or not at all, 512 or 4KiB; `none`: writes are never torn
    #[arg(long, value_name = "SIZE", value_parser = torn, default_value = "512")]
    pub(crate) torn: Torn,
    /// The most changes that are not durable at once; older ones are taken for durable
    #[arg(long, value_name = "N", value_parser = units::small_count, default_value = "10k")]
    pub(crate) window: u32,
    /// Seed of the states that are drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// States at once [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = units::small_count)]
    pub(crate) jobs: Option<u32>,
    /// The most states [default: unlimited with --budget, else 10k]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) states: Option<u64>,
    /// Time limit for exploring. Making what was found small comes after it
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) budget: Option<u64>,
    /// Time limit for the checker on one state
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "60s")]
    pub(crate) timeout: u64,
    /// Cut the checker's own recovery, too, at most N times for each state of a point's first ones
    #[arg(
        long,
        value_name = "N",
        value_parser = units::small_count,
        num_args = 0..=1,
        default_missing_value = "20",
        require_equals = true
    )]
    pub(crate) recovery_cuts: Option<u32>,
    /// Directory for found states [default: LOG.cuts]
    #[arg(long, value_name = "DIR")]
    pub(crate) found: Option<PathBuf>,
    /// Directory for copies of found states, for looking at them
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Write the report as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// A checker that comes along: sqlite, rocksdb, lmdb, postgres, wiredtiger, bbolt, leveldb, or
    /// exec:'ADAPTER ARGS' for any engine with an adapter (docs/EXEC.md)
    #[arg(long, value_name = "NAME", value_parser = checkers::named, conflicts_with = "checker")]
    pub(crate) check: Option<Check>,
    /// Check the state in $TREERING_DIR (used by --check)
    #[arg(long, requires = "check", conflicts_with = "replay", hide = true)]
    pub(crate) check_state: bool,
    /// The checker and its arguments
    #[arg(last = true, required_unless_present = "check", value_name = "CHECKER")]
    pub(crate) checker: Vec<OsString>,
}

/// Whether and how writes are torn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Torn {
    /// Bytes that are there or not as a whole.
    pub(crate) bytes: u64,
    /// Whether a write of more may be torn.
    pub(crate) tears: bool,
}

/// Parses how writes are torn.
pub(super) fn torn(text: &str) -> Result<Torn, String> {
    if text == "none" {
        return Ok(Torn {
            bytes: 4096,
            tears: false,
        });
    }
    match units::size(text)? {
        bytes @ (512 | 4096) => Ok(Torn { bytes, tears: true }),
        other => Err(format!("expected 512, 4KiB or none, found {other}")),
    }
}
