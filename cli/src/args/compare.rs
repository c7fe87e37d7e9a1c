//! Flags of `treering compare`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `treering compare`.
#[derive(Debug, Args)]
#[command(after_help = "EXAMPLES:\n  \
    treering compare a.json b.json\n  \
    treering compare a.json b.json --fail-if 'wa.device.total > 5%'\n  \
    treering compare a.json b.json --fail-if 'cache.hit_ratio < -0.05' --json -\n\n\
    EXPR is a path of the report, one of > >= < <=, and a limit. With %, the limit is for the growth \
    relative to the first file; without, for the growth itself. Each further file is judged. The \
    exit status is 1 if an expression holds.\n\
    Glossary: docs/GLOSSARY.md")]
pub(crate) struct CompareArgs {
    /// Reports of `treering replay --json`; the others are compared with the first
    #[arg(value_name = "REPORT.json", required = true, num_args = 1..)]
    pub(crate) reports: Vec<PathBuf>,
    /// Exit status 1 if this holds, such as 'wa.device.total > 5%'; may be repeated
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<String>,
    /// List every figure that differs, not only the main ones
    #[arg(long)]
    pub(crate) all: bool,
    /// Write all differences as JSON; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
