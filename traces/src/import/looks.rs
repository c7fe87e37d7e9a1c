//! Guesses the format of an input that failed to import.
//!
//! If the input begins with the magic number of a format, it is that format. Otherwise the
//! candidates are all formats that can read its beginning. Records without a magic number can pass
//! for records of another length, at least the first few. For these the length of the input also
//! counts as evidence: it must be a multiple of the record length.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use super::formats::Format;
use super::options::{ImportOptions, OracleOp};
use super::run;
use crate::input::Compression;
use crate::{Op, TraceError, input};

/// If this many operations parse without a bad line, it is not by chance.
const ENOUGH: u32 = 64;

/// Returns the format whose magic number the input begins with.
fn by_magic(input: &Path) -> Option<Format> {
    let mut start = Vec::new();
    let input = input::open(input).ok()?;
    input.take(8).read_to_end(&mut start).ok()?;
    Format::by_magic(&start)
}

/// Returns the formats, other than `tried`, that can read the beginning of the input. Leaves out
/// `csv`, which reads any text.
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

/// A format with records of fixed length and without a magic number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Records {
    format: Format,
    /// The option that selects this length, if there is one.
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

/// Returns the record length that was tried, or `None` for formats that are not in [`RECORDS`].
fn tried_bytes(tried: Format, options: &ImportOptions) -> Option<u64> {
    match (tried, options.oracle_op) {
        (Format::OracleGeneral, Some(OracleOp::Recorded)) => Some(27),
        (Format::OracleGeneral, _) => Some(24),
        _ => None,
    }
}

/// Returns the length of an uncompressed file.
fn plain_len(input: &Path) -> Option<u64> {
    let mut start = Vec::new();
    let file = std::fs::File::open(input).ok()?;
    let len = file.metadata().ok()?.len();
    file.take(8).read_to_end(&mut start).ok()?;
    (Compression::of(&start) == Compression::None).then_some(len)
}

/// Returns the formats with another record length that can read the input. If the length of the
/// input is known, it must be a multiple of the record length.
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

/// Returns a warning if a successful import may have used the wrong record length: the input ended
/// in the middle of a record, but is a whole number of other records.
pub(super) fn doubt(tried: Format, options: &ImportOptions, input: &Path) -> Option<String> {
    let bytes = tried_bytes(tried, options)?;
    let len = plain_len(input).filter(|len| !len.is_multiple_of(bytes))?;
    let names = other_records(tried, options, input);
    (!names.is_empty()).then(|| {
        format!(
            "{}: its length of {len} bytes is not a multiple of the record length, {bytes}; \
             the input also reads as {}",
            input.display(),
            names.join(" or ")
        )
    })
}

/// Adds to the error which formats can read the input. An input that yielded operations has the
/// format that was tried, unless its magic number or its length says otherwise.
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
