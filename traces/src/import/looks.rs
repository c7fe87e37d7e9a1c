//! What format an input looks like that could not be read: that of its magic, or those as which the
//! same input can be read.
//!
//! Bytes of records without a magic may pass for records of another length, the first few at least.
//! Of those, the length of the input is evidence as well: it is a whole number of records.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use super::formats::Format;
use super::options::{ImportOptions, OracleOp};
use super::run;
use crate::input::Compression;
use crate::{Op, TraceError, input};

/// So many operations without a bad line are no accident.
const ENOUGH: u32 = 64;

/// The format whose magic the input begins with, if it begins with one.
fn by_magic(input: &Path) -> Option<Format> {
    let mut start = Vec::new();
    let input = input::open(input).ok()?;
    input.take(8).read_to_end(&mut start).ok()?;
    Format::by_magic(&start)
}

/// The formats, but for `csv`, which takes any text, and the one that was tried, as which the input
/// reads from its beginning.
fn looks_like(tried: Format, input: &Path) -> Vec<Format> {
    let others = Format::ALL
        .into_iter()
        .filter(|format| *format != Format::Csv);
    others
        .filter(|format| *format != tried && reads_as(*format, input))
        .collect()
}

fn reads_as(format: Format, input: &Path) -> bool {
    let oracle_op = (format == Format::OracleGeneral).then_some(OracleOp::Get);
    reads_with(format, oracle_op, input)
}

fn reads_with(format: Format, oracle_op: Option<OracleOp>, input: &Path) -> bool {
    let options = ImportOptions {
        oracle_op,
        ..ImportOptions::default()
    };
    let Ok(plugin) = format.plugin(&options) else {
        return false;
    };
    let mut ops = 0;
    let mut sink = |_: &Op| {
        ops += 1;
        match ops {
            ENOUGH => Err(TraceError::BadParameter {
                name: "format",
                why: "enough was read".into(),
            }),
            _ => Ok(()),
        }
    };
    let whole = run::run(plugin, input, &options, &mut sink, &mut |_, _| {
        ControlFlow::Continue(())
    })
    .is_ok();
    whole || ops >= ENOUGH
}

/// Records of a fixed length, without a magic.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Records {
    format: Format,
    /// What says that they are of this length, if an option does.
    oracle_op: Option<OracleOp>,
    bytes: u64,
    name: &'static str,
}

const RECORDS: [Records; 4] = [
    Records {
        format: Format::OracleGeneral,
        oracle_op: Some(OracleOp::Get),
        bytes: 24,
        name: "oracle-general with records of 24 bytes, which --oracle-op get or put reads",
    },
    Records {
        format: Format::OracleGeneral,
        oracle_op: Some(OracleOp::Recorded),
        bytes: 27,
        name: "oracle-general with records of 27 bytes, which --oracle-op recorded reads",
    },
    Records {
        format: Format::Vscsi,
        oracle_op: None,
        bytes: 32,
        name: "vscsi",
    },
    Records {
        format: Format::Vscsi,
        oracle_op: None,
        bytes: 40,
        name: "vscsi",
    },
];

/// Bytes of the records that were tried; `None` where their format has others.
fn tried_bytes(tried: Format, options: &ImportOptions) -> Option<u64> {
    match (tried, options.oracle_op) {
        (Format::OracleGeneral, Some(OracleOp::Recorded)) => Some(27),
        (Format::OracleGeneral, _) => Some(24),
        _ => None,
    }
}

/// The length of a file that is not compressed.
fn plain_len(input: &Path) -> Option<u64> {
    let mut start = Vec::new();
    let file = std::fs::File::open(input).ok()?;
    let len = file.metadata().ok()?.len();
    file.take(8).read_to_end(&mut start).ok()?;
    (Compression::of(&start) == Compression::None).then_some(len)
}

/// Records of another length than those that were tried, as which the input reads and of which it
/// has a whole number, as far as that is known.
fn other_records(tried: Format, options: &ImportOptions, input: &Path) -> Vec<&'static str> {
    let Some(bytes) = tried_bytes(tried, options) else {
        return vec![];
    };
    let len = plain_len(input);
    let others = RECORDS.iter().filter(|records| records.bytes != bytes);
    let mut names: Vec<_> = others
        .filter(|records| len.is_none_or(|len| len.is_multiple_of(records.bytes)))
        .filter(|records| reads_with(records.format, records.oracle_op, input))
        .map(|records| records.name)
        .collect();
    names.dedup();
    names
}

/// What an import that went well may have got wrong: it left out the end of an input that is a
/// whole number of other records.
pub(super) fn doubt(tried: Format, options: &ImportOptions, input: &Path) -> Option<String> {
    let bytes = tried_bytes(tried, options)?;
    let len = plain_len(input).filter(|len| !len.is_multiple_of(bytes))?;
    let names = other_records(tried, options, input);
    (!names.is_empty()).then(|| {
        format!(
            "{}: its {len} bytes are no whole number of records of {bytes}; the input also reads as {}",
            input.display(),
            names.join(" or ")
        )
    })
}

/// The error of an import, with what the input looks like, if anything. An input of which
/// operations came is of the format that was tried, unless its magic or its length is another's.
pub(super) fn hinted(
    error: TraceError,
    (tried, options): (Format, &ImportOptions),
    input: &Path,
    ops: u64,
) -> TraceError {
    let TraceError::Bad {
        file,
        place,
        expected,
        found,
    } = error
    else {
        return error;
    };
    let formats = match by_magic(input) {
        Some(format) if format == tried => vec![],
        Some(format) => vec![format],
        None if ops > 0 => vec![],
        None => looks_like(tried, input),
    };
    let mut names: Vec<_> = formats.into_iter().map(Format::name).collect();
    if by_magic(input).is_none() {
        let others = other_records(tried, options, input);
        let new = others.into_iter().filter(|name| !names.contains(name));
        names.extend(new.collect::<Vec<_>>());
    }
    let hint = match names.is_empty() {
        true => String::new(),
        false => format!(" (the input reads as {})", names.join(" or ")),
    };
    TraceError::Bad {
        file,
        place,
        expected,
        found: found + &hint,
    }
}
