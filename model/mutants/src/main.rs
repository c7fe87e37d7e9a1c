//! Generates mutants of the engine, and has the oracle judge them.
//!
//! ```text
//! engine/src ── find ── splice ──▶ a copy with all mutants behind switches ── one build
//!                                        │ TREERING_MUTANT=N
//!                                        ▼
//!              treering oracle, on the trees that come by: killed · alive · never reached
//! ```
//!
//! Hand-written seeded bugs (`engine/src/mutation.rs`) are limited to what people thought of.
//! Generated mutants are not. A surviving mutant is either equivalent to the original for
//! everything that a caller can see, or a gap in the oracle.

mod copy;
mod find;
mod judge;
mod splice;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// Make mutants of the engine, and let the oracle judge them.
#[derive(Parser)]
#[command(after_help = "EXAMPLES:\n  \
    cargo run --release -p treering-mutants -- make\n  \
    cargo run --release -p treering-mutants -- judge --count 30 --seed 1 --budget 40\n  \
    cargo run --release -p treering-mutants -- judge --only 1234 --only 77")]
struct Args {
    #[command(subcommand)]
    what: What,
    /// The folder for the copy with the mutants
    #[arg(long, default_value = "target/mutants", global = true)]
    copy: PathBuf,
}

#[derive(Subcommand)]
enum What {
    /// Copies the project, puts every mutant behind a switch, and builds that
    Make {
        /// Do not build the engine's tests, which then judge no mutant
        #[arg(long)]
        oracle_only: bool,
    },
    /// Let the oracle judge some of the mutants
    Judge(judge::JudgeArgs),
}

fn main() -> Result<()> {
    let args = Args::parse();
    let project = std::env::current_dir()?;
    let copy = project.join(&args.copy);
    match args.what {
        What::Make { oracle_only } => {
            let made = copy::make(&project, &copy, !oracle_only)?;
            println!(
                "{} mutants in {}, of {} found; the others do not compile",
                made.mutants.len(),
                copy.display(),
                made.found
            );
            Ok(())
        }
        What::Judge(judge) => {
            let list = copy.join(copy::LIST);
            let text = std::fs::read(&list)
                .with_context(|| format!("{}: `make` makes it", list.display()))?;
            let made: copy::Made = serde_json::from_slice(&text)
                .with_context(|| format!("{}: not what `make` wrote", list.display()))?;
            judge::run(&judge, &copy, &made)
        }
    }
}
