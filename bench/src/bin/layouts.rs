//! Compares page layouts with each other and with ordered maps; see `bench/LAYOUTS.md`.
//!
//! `cargo run --release -p treering-bench --bin layouts`
//!
//! Exit codes: 0 all rows are valid, 1 some are void, 2 bad input.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::{Parser, Subcommand};
use treering_bench::layouts::Failure;
use treering_bench::layouts::count::{by_callgrind, once};
use treering_bench::layouts::keys::KeySet;
use treering_bench::layouts::report;
use treering_bench::layouts::run::{ALLOCATED, Plan, run};
use treering_bench::layouts::subject::Entry;
use treering_bench::layouts::subjects;
use treering_bench::layouts::work::Kind;

/// Page layouts, the adaptive tree and other ordered maps: in memory, one thread, every answer
/// checked
///
/// Rates are operations per second: medians of rounds in which all subjects take turns. With
/// `--features maps`, ordered maps of other crates are included.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    common: Common,
    /// Lookups, and scans, per round; the last tenth of the records is inserted in as many rounds
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = positive)]
    operations: usize,
    /// Rounds of each kind of operation
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = positive)]
    rounds: usize,
    /// Write all figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Common {
    /// dense, sparse, urls, titles, or NAME=FILE with a key per line; can be repeated [default: the
    /// first four]
    #[arg(long = "set", value_name = "SET", global = true)]
    sets: Vec<String>,
    /// Only this layout or map; can be repeated
    #[arg(long, value_name = "NAME", global = true)]
    only: Vec<String>,
    /// Size of a key set with its values, in 10^6 bytes (the paper: 300)
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = positive, global = true)]
    megabytes: usize,
    /// Zipf exponent of the keys' popularity
    #[arg(long, value_name = "X", default_value_t = 0.99, global = true)]
    zipf: f64,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, global = true)]
    seed: u64,
}

#[derive(Subcommand)]
enum Command {
    /// Count instructions, cache misses and branches per operation under callgrind (needs valgrind)
    Count {
        /// Only these operations; can be repeated
        #[arg(long, value_name = "KIND", value_enum)]
        ops: Vec<Kind>,
        /// Operations to count, as the difference between a run with this many and one with twice
        /// as many
        #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = positive)]
        operations: usize,
    },
    /// Run some operations once, for a profiler
    Once {
        #[arg(long, value_name = "KIND", value_enum)]
        ops: Kind,
        /// Operations to do
        #[arg(long, value_name = "N")]
        count: usize,
        /// Operations to prepare
        #[arg(long, value_name = "N")]
        of: usize,
    },
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a number from 1 on".into())
}

/// The system's allocator, with a sum of the allocated bytes.
struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

/// Only one thread allocates, so an atomic addition is not needed.
fn add(bytes: usize) {
    let now = ALLOCATED.load(Ordering::Relaxed);
    ALLOCATED.store(now.wrapping_add(bytes), Ordering::Relaxed);
}

// SAFETY: every call is passed on to the system's allocator, which keeps the promises. The sum is
// only bookkeeping.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        add(layout.size().wrapping_neg());
        // SAFETY: as above. Everything allocated here was allocated by `System`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size.wrapping_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

fn main() -> ExitCode {
    match Args::parse().execute() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("layouts: {e}");
            ExitCode::from(2)
        }
    }
}

impl Common {
    fn sets(&self) -> Vec<String> {
        match &self.sets[..] {
            [] => ["dense", "sparse", "urls", "titles"]
                .map(String::from)
                .into(),
            sets => sets.to_vec(),
        }
    }

    fn set(&self, source: &str) -> Result<KeySet, Failure> {
        KeySet::of(source, self.megabytes * 1_000_000, self.seed)
    }

    fn entries(&self, set: &KeySet) -> Result<Vec<Entry>, Failure> {
        let mut entries = subjects::all(set.keys.are_numbers());
        for name in &self.only {
            if !entries.iter().any(|entry| entry.name == name) {
                let names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
                return Err(Failure(format!(
                    "--only {name}: expected one of {}",
                    names.join(", ")
                )));
            }
        }
        entries.retain(|entry| {
            self.only.is_empty() || self.only.iter().any(|name| name == entry.name)
        });
        Ok(entries)
    }
}

impl Args {
    fn plan(&self) -> Plan {
        Plan {
            operations: self.operations,
            rounds: self.rounds,
            zipf: self.common.zipf,
            seed: self.common.seed,
        }
    }

    fn execute(&self) -> Result<bool, Failure> {
        match &self.command {
            None => self.time(),
            Some(Command::Count { ops, operations }) => self.count(ops, *operations).map(|()| true),
            Some(Command::Once { ops, count, of }) => {
                let [source] = &self.common.sets[..] else {
                    return Err(Failure("once: expected one --set".into()));
                };
                let set = self.common.set(source)?;
                for entry in self.common.entries(&set)? {
                    once(&set, &entry, *ops, *count, *of, self.plan())?;
                }
                Ok(true)
            }
        }
    }

    fn time(&self) -> Result<bool, Failure> {
        if let Some(path) = &self.json {
            // Fail now rather than after all rounds.
            std::fs::write(beside(path), "").map_err(|e| not_written(path, &e))?;
        }
        let mut tables = Vec::new();
        let mut sound = true;
        for source in self.common.sets() {
            let set = self.common.set(&source)?;
            let entries = self.common.entries(&set)?;
            let table = run(&set, &entries, self.plan(), progress)?;
            progress("");
            say(&report::text(&table));
            sound &= table.rows.iter().all(|row| row.void.is_none());
            tables.push(table);
        }
        if let Some(path) = &self.json {
            let document = report::document(self.plan(), self.common.megabytes, &tables);
            write_whole(path, &format!("{document:#}\n"))?;
        }
        Ok(sound)
    }

    fn count(&self, ops: &[Kind], operations: usize) -> Result<(), Failure> {
        let kinds = if ops.is_empty() { &Kind::ALL } else { ops };
        let out = std::env::temp_dir().join(format!("treering-callgrind-{}", std::process::id()));
        for source in self.common.sets() {
            let set = self.common.set(&source)?;
            let entries = self.common.entries(&set)?;
            for kind in kinds {
                let mut costs = Vec::new();
                for entry in &entries {
                    progress(&format!("{source}: {}, {}", kind.name(), entry.name));
                    let arguments = self.once_arguments(&source, entry, *kind, 2 * operations);
                    let cost = by_callgrind(&arguments, operations, &out);
                    let _ = std::fs::remove_file(&out);
                    costs.push((entry.name, cost?));
                }
                progress("");
                say(&report::costs(&set.name, *kind, &costs));
            }
        }
        Ok(())
    }

    fn once_arguments(&self, source: &str, entry: &Entry, kind: Kind, of: usize) -> Vec<String> {
        let common = &self.common;
        let arguments = [
            ("--set", source.to_owned()),
            ("--only", entry.name.to_owned()),
            ("--megabytes", common.megabytes.to_string()),
            ("--zipf", common.zipf.to_string()),
            ("--seed", common.seed.to_string()),
            ("--ops", kind.name().to_owned()),
            ("--of", of.to_string()),
        ];
        let pairs = arguments
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value]);
        std::iter::once("once".to_owned()).chain(pairs).collect()
    }
}

/// Prints progress if somebody is watching.
fn progress(what: &str) {
    let mut to = std::io::stderr();
    if to.is_terminal() {
        let _ = write!(to, "\r\x1b[K{what}");
        let _ = to.flush();
    }
}

fn say(text: &str) {
    // A reader that closes the pipe has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("partial")
}

fn not_written(path: &Path, e: &std::io::Error) -> Failure {
    Failure(format!("--json {}: {e}", path.display()))
}

/// Writes to a temporary file and renames it, so that a file is never incomplete.
fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let beside = beside(path);
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|e| not_written(path, &e))
}
