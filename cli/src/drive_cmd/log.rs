//! `treering drive info` and `treering drive export`: a recording as it is.

use std::io::Write;

use treering_drive::export::{IologVersion, blkparse, fio_iolog};
use treering_drive::info::info;
use treering_drive::recording::Reader;

use crate::args::{DriveExportArgs, DriveInfoArgs, ExportFormat};
use crate::failure::Failure;
use crate::output::{self, Documents, Output};

/// Reports what is in a recording.
pub(super) fn report(args: &DriveInfoArgs) -> Result<(), Failure> {
    let paths = [args.json.as_deref(), args.html.as_deref(), None];
    let outputs = Documents::new(paths, &[&args.log])?;
    let report = info(&args.log, &args.cause)?;
    if let Some(to) = &outputs.html {
        to.write(report.render_html().as_bytes())?;
    }
    if let Some(to) = &outputs.json {
        to.write(&output::json(&report)?)?;
    }
    match outputs.json {
        Some(Output::Stdout) => Ok(()),
        _ => output::say(report.render_text().as_bytes()),
    }
}

/// Writes a recording as another tool reads it.
pub(super) fn export(args: &DriveExportArgs) -> Result<(), Failure> {
    output::check_target("--output", &args.output)?;
    output::check_not_input("--output", &args.output, &args.log)?;
    let mut reader = Reader::open(&args.log)?;
    output::write_with(&args.output, |out: &mut dyn Write| {
        match args.format {
            ExportFormat::Blkparse => blkparse(&mut reader, out)?,
            ExportFormat::Fio => fio_iolog(&mut reader, IologVersion::Three, &args.file, out)?,
            ExportFormat::Fio2 => fio_iolog(&mut reader, IologVersion::Two, &args.file, out)?,
        }
        Ok(())
    })?;
    let (log, to) = (args.log.display(), args.output.display());
    if let Some(cut) = reader.truncated() {
        output::warn(&format!(
            "{log}: the recording has no end: it was cut off after {} events, at byte {}",
            cut.events, cut.offset
        ));
    }
    output::say(format!("{to}: written from {log}\n").as_bytes())
}
