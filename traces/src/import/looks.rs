//! What format an input looks like of which nothing came: the same input, read as each of the others.

use std::path::Path;

use super::{Format, ImportOptions, OracleOp, run};
use crate::{Op, TraceError};

/// So many operations without a bad line are no accident.
const ENOUGH: u32 = 64;

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
    let whole = run::run(plugin, input, &options, &mut sink, &mut |_, _| {}).is_ok();
    whole || ops >= ENOUGH
}

/// The error of an import without a single operation, with what the input looks like, if anything.
pub(super) fn hinted(error: TraceError, tried: Format, input: &Path) -> TraceError {
    let TraceError::Bad {
        file,
        place,
        expected,
        found,
    } = error
    else {
        return error;
    };
    let names: Vec<_> = looks_like(tried, input)
        .into_iter()
        .map(Format::name)
        .collect();
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
