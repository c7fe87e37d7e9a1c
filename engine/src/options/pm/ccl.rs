//! Options of the CCL-BTree.

use super::facts::{LeafFormat, PmBuffer, PmFacts};
use super::part::PmPart;
use crate::error::{Error, Result};
use crate::options::limits::{PM_BATCH, PM_ENTRY_BYTES};
use crate::options::param::{Param, choice, number, percent, show, show_choice, show_percent};

/// Which writes of a CCL-BTree are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logging {
    /// Only writes that stay in a buffer (§3.3; *+WLog* of §5.2).
    WriteConservative,
    /// All writes, including trigger writes (*+BNode* of §5.2).
    EveryWrite,
}

impl Logging {
    /// The choices by name.
    pub const NAMED: &[(&'static str, Logging)] = &[
        ("conservative", Logging::WriteConservative),
        ("naive", Logging::EveryWrite),
    ];
}

/// How a CCL-BTree's log is cleaned (§3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cleaning {
    /// Unflushed entries are copied to new chunks.
    LocalityAware,
    /// All operations wait while every buffer is flushed.
    Naive,
}

impl Cleaning {
    /// The choices by name.
    pub const NAMED: &[(&'static str, Cleaning)] = &[
        ("locality-aware", Cleaning::LocalityAware),
        ("naive", Cleaning::Naive),
    ];
}

/// Options of a CCL-BTree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CclOptions {
    /// N_batch: slots of a buffer node, 1 to 6. Default: 2 (§3.2).
    pub batch: usize,
    /// Which writes are logged. Default: write-conservative.
    pub logging: Logging,
    /// How the log is cleaned. Default: locality-aware.
    pub cleaning: Cleaning,
    /// TH_log: the log is cleaned only when its entries take more than this percentage of the
    /// leaves' bytes. Default: 20 (§3.4).
    pub log_percent: u8,
    /// The log is cleaned only when, in addition, more than this percentage of its entries is
    /// garbage. Without this rule, a tree with a large N_batch would clean without end. Default:
    /// 50, as in the published code (CLAIMS CC-32); the paper has no such rule.
    pub garbage_percent: u8,
    /// Number of logs. If there are more threads, they share them. Default: 8; the paper has one
    /// log per thread.
    pub logs: usize,
}

impl PmPart for CclOptions {
    const NAME: &'static str = "ccl";
    const ABOUT: &'static str = "a buffer node for each leaf, over a log that trigger writes skip";
    const SOURCE: &'static str = "CCL-BTree";
    const PARAMS: &'static [Param<CclOptions>] = &[
        Param {
            name: "nbatch",
            about: "slots of a buffer node (N_batch)",
            get: |ccl| show(ccl.batch),
            set: |ccl, text| number(&mut ccl.batch, text),
        },
        Param {
            name: "logging",
            about: "which writes are logged",
            get: |ccl| show_choice(&ccl.logging, Logging::NAMED),
            set: |ccl, text| choice(&mut ccl.logging, text, Logging::NAMED),
        },
        Param {
            name: "cleaning",
            about: "how the log is cleaned",
            get: |ccl| show_choice(&ccl.cleaning, Cleaning::NAMED),
            set: |ccl, text| choice(&mut ccl.cleaning, text, Cleaning::NAMED),
        },
        Param {
            name: "log-share",
            about: "the log is cleaned when it takes more than this share of the leaves (TH_log)",
            get: |ccl| show_percent(ccl.log_percent),
            set: |ccl, text| percent(&mut ccl.log_percent, text),
        },
        Param {
            name: "garbage-share",
            about: "and when more than this share of it is garbage",
            get: |ccl| show_percent(ccl.garbage_percent),
            set: |ccl, text| percent(&mut ccl.garbage_percent, text),
        },
        Param {
            name: "logs",
            about: "logs that threads share",
            get: |ccl| show(ccl.logs),
            set: |ccl, text| number(&mut ccl.logs, text),
        },
    ];

    fn facts(&self) -> PmFacts {
        // Four times what buffer nodes hold, or twice the share at which the log is cleaned.
        let buffered =
            4.0 * PM_ENTRY_BYTES as f64 * self.batch as f64 / LeafFormat::Block.bytes() as f64;
        PmFacts {
            buffer: PmBuffer::PerLeaf(self.batch),
            cleaning: Some(self.cleaning),
            logs: self.logs,
            log_share: buffered.max(2.0 * f64::from(self.log_percent) / 100.0),
            ..PmFacts::PLAIN
        }
    }

    fn check(&self, _chunk_bytes: u64) -> Result<()> {
        let bad = |name, why| Err(Error::BadOption { name, why });
        if !PM_BATCH.contains(&self.batch) {
            let why = format!("{}; expected 1 to {}", self.batch, PM_BATCH.end());
            return bad("nbatch", why);
        }
        if self.log_percent == 0 {
            return bad("log-share", "0 %; expected 1 to 255".into());
        }
        if self.garbage_percent > 90 {
            let why = format!("{} %; expected 0 to 90", self.garbage_percent);
            return bad("garbage-share", why);
        }
        Ok(())
    }
}

impl Default for CclOptions {
    fn default() -> Self {
        CclOptions {
            batch: 2,
            logging: Logging::WriteConservative,
            cleaning: Cleaning::LocalityAware,
            log_percent: 20,
            garbage_percent: 50,
            logs: 8,
        }
    }
}
