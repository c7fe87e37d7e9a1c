//! Flags of `treering promises`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `treering promises`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering promises                                what is specified and checked\n  \
    treering promises --report oracle.json           and what the oracle has tried\n  \
    treering promises --tree bf --json -\n\n\
    The table is Markdown. .ci/promises runs what fills it, and writes docs/PROMISES.md.\n\
    Glossary: docs/GLOSSARY.md")]
pub(crate) struct PromisesArgs {
    /// A report of `treering oracle --json` or `treering check --mutate --json`; may be repeated
    #[arg(long = "report", value_name = "REPORT.json")]
    pub(crate) reports: Vec<PathBuf>,
    /// Only this tree; may be repeated
    #[arg(long = "tree", value_name = "TREE")]
    pub(crate) trees: Vec<String>,
    /// Write the table as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of the specs [default: the nearest specs/ with a manifest, in this folder or above]
    #[arg(long = "specs", value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}
