//! What an import is asked for, and what it reports.

use std::ops::ControlFlow;
use std::str::FromStr;

use crate::{Blocks, Op, TraceError};

/// How requests of a trace without a write flag are imported (`oracle-general`, `lcs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OracleOp {
    /// Every request is a get.
    Get,
    /// Every request is a put, whose value has the object's size.
    Put,
    /// Each request is what its record says. The 27-byte variant of `oracle-general` says so, and
    /// so does `lcs` from version 2 on.
    Recorded,
}

impl FromStr for OracleOp {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<OracleOp, TraceError> {
        match name {
            "get" => Ok(OracleOp::Get),
            "put" => Ok(OracleOp::Put),
            "recorded" => Ok(OracleOp::Recorded),
            _ => Err(TraceError::BadParameter {
                name: "oracle-op",
                why: format!("expected get, put or recorded, found {name}"),
            }),
        }
    }
}

/// How to import.
///
/// ```
/// use treering_traces::import::ImportOptions;
///
/// let options = ImportOptions { skip_bad: 10, ..ImportOptions::default() };
/// assert_eq!(options.value_size, 120);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// Value length in bytes of each put of a block or memory trace. Such traces have no records,
    /// so the length must be chosen.
    pub value_size: u32,
    /// How many bad lines (or records) to skip. The next one is an error.
    pub skip_bad: u64,
    /// Which column holds what, for [`Format::Csv`](super::Format::Csv) and
    /// [`Format::Parquet`](super::Format::Parquet). [`columns`](super::columns) has the grammar and
    /// examples.
    pub columns: Option<String>,
    /// How to import requests of [`Format::OracleGeneral`](super::Format::OracleGeneral) and
    /// [`Format::Lcs`](super::Format::Lcs). With `None` each request is what its record says;
    /// requests whose records do not say are gets, and a warning tells so.
    pub oracle_op: Option<OracleOp>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions {
            value_size: 120,
            skip_bad: 0,
            columns: None,
            oracle_op: None,
        }
    }
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Operations handed to the sink.
    pub ops: u64,
    /// Lines (or records) read, including those that yield no operation.
    pub lines: u64,
    /// How many of the operations are deletes of keys whose time to live had passed.
    pub expired: u64,
    /// Distinct devices (disks, volumes, files) of a block trace.
    pub devices: u64,
    /// What the blocks of a block trace become; `None` for other traces.
    pub blocks: Option<Blocks>,
    /// Bad lines (or records) skipped.
    pub skipped_bad: u64,
    /// Operations of the input that were left out because a key-value store has no counterpart.
    pub left_out: u64,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
}

/// Receives the operations.
pub type Sink<'a> = dyn FnMut(&Op) -> Result<(), TraceError> + 'a;

/// Called now and then with the bytes of the file read so far and in all. It may end the import.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;
