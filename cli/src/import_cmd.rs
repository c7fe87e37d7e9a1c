//! `treering import`.

use std::ops::ControlFlow;

use treering_drive::export;
use treering_traces::TraceError;
use treering_traces::import::{Format, ImportOptions, import_file};

use crate::args::ImportArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::progress::Progress;

/// The format that is no trace of another tool: a recording of `treering drive`.
const RECORDING: &str = "drive";

/// Imports a trace, prints a summary on stdout and warnings on stderr.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    if args.format == RECORDING {
        return recording(args);
    }
    let format: Format = args.format.parse()?;
    let options = ImportOptions {
        value_size: args.value_size,
        skip_bad: args.skip_bad,
        columns: args.columns.clone(),
        oracle_op: args.oracle_op.as_deref().map(str::parse).transpose()?,
    };
    let columns = match (format, options.columns.is_some()) {
        (Format::Csv, false) => Err("csv needs the column of each field, such as op=1,key=2"),
        (Format::Csv | Format::Parquet, _) | (_, false) => Ok(()),
        (_, true) => Err("only the formats csv and parquet take it"),
    };
    if let Err(why) = columns {
        return Err(Failure::usage(format!("--columns: {why}")));
    }
    if options.oracle_op.is_some() && !matches!(format, Format::OracleGeneral | Format::Lcs) {
        return Err(Failure::usage(
            "--oracle-op: only the formats oracle-general and lcs take it",
        ));
    }
    output::check_target("--output", &args.output)?;
    output::check_not_input("--output", &args.output, &args.input)?;
    let mut progress = Progress::new();
    let imported = import_file(
        format,
        &args.input,
        &options,
        &args.output,
        &mut |done, total| {
            progress.tell("importing", done, total);
            match interrupt::stopped() {
                None => ControlFlow::Continue(()),
                Some(_) => ControlFlow::Break(()),
            }
        },
    );
    drop(progress);
    let (header, report) = match imported {
        Err(TraceError::Interrupted { file, ops }) => {
            let output = args.output.display();
            return interrupt::check(|| {
                format!("{ops} operations of {file} were imported; {output} was not written")
            });
        }
        imported => imported?,
    };
    report.warnings.iter().for_each(|w| output::warn(w));
    let mut summary = format!(
        "{}: {} operations from {} lines or records",
        args.output.display(),
        header.ops,
        report.lines
    );
    if report.devices > 0 {
        summary += &format!(", {} device(s)", report.devices);
    }
    if report.expired > 0 {
        summary += &format!(", {} deletes of expired keys", report.expired);
    }
    if report.skipped_bad > 0 {
        summary += &format!(", {} bad lines skipped", report.skipped_bad);
    }
    if report.left_out > 0 {
        summary += &format!(
            ", {} without an equivalent operation skipped",
            report.left_out
        );
    }
    if let Some(blocks) = report.blocks {
        summary += &format!("\n  {blocks}");
    }
    output::say(format!("{summary}\n").as_bytes())
}

/// Imports a recording of `treering drive`.
fn recording(args: &ImportArgs) -> Result<(), Failure> {
    for (flag, given) in [
        ("--columns", args.columns.is_some()),
        ("--oracle-op", args.oracle_op.is_some()),
        ("--skip-bad", args.skip_bad > 0),
    ] {
        if given {
            let why = format!("{flag}: a recording of a drive does not take it");
            return Err(Failure::usage(why));
        }
    }
    output::check_target("--output", &args.output)?;
    output::check_not_input("--output", &args.output, &args.input)?;
    let mut progress = Progress::new();
    let imported = export::import(
        &args.input,
        &args.output,
        args.value_size,
        &mut |done, total| {
            progress.tell("importing", done, total);
            match interrupt::stopped() {
                None => ControlFlow::Continue(()),
                Some(_) => ControlFlow::Break(()),
            }
        },
    );
    drop(progress);
    let imported = imported?;
    let (input, output) = (args.input.display(), args.output.display());
    if imported.interrupted {
        return interrupt::check(|| {
            let events = imported.events;
            format!("{events} events of {input} were imported; {output} was not written")
        });
    }
    if let Some(cut) = imported.truncated {
        output::warn(&format!(
            "{input}: the recording has no end: it was cut off after {} events, at byte {}",
            cut.events, cut.offset
        ));
    }
    let mut summary = format!(
        "{output}: {} operations from {} events",
        imported.header.ops, imported.events
    );
    if imported.flushes > 0 {
        summary += &format!(", {} flushes left out", imported.flushes);
    }
    if imported.empty_discards > 0 {
        summary += &format!(
            ", {} discards of blocks that held nothing left out",
            imported.empty_discards
        );
    }
    output::say(format!("{summary}\n  {}\n", imported.blocks).as_bytes())
}
