//! What format an input looks like of which nothing came: that of its magic, or those as which the
//! same input can be read.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use super::{Format, ImportOptions, OracleOp, blktrace, lcs, run};
use crate::{Op, TraceError, input};

/// So many operations without a bad line are no accident.
const ENOUGH: u32 = 64;

/// The format whose magic the input begins with, if it begins with one.
fn by_magic(input: &Path) -> Option<Format> {
    let mut start = Vec::new();
    let input = input::open(input).ok()?;
    input.take(8).read_to_end(&mut start).ok()?;
    if start.starts_with(b"PAR1") {
        Some(Format::Parquet)
    } else if start == lcs::MAGIC.to_le_bytes() {
        Some(Format::Lcs)
    } else if blktrace::begins(&start) {
        Some(Format::Blktrace)
    } else {
        None
    }
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
    let options = ImportOptions {
        oracle_op: (format == Format::OracleGeneral).then_some(OracleOp::Get),
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

/// The error of an import, with what the input looks like, if anything. An input of which
/// operations came is of the format that was tried, unless its magic is another's.
pub(super) fn hinted(error: TraceError, tried: Format, input: &Path, ops: u64) -> TraceError {
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
    let names: Vec<_> = formats.into_iter().map(Format::name).collect();
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
