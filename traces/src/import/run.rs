//! Reads an input from start to end, in the same way for every format.
//!
//! The rules on bad input follow from one question: must the user decide (an error), or only know
//! (a warning)? A bad line is an error unless `skip_bad` covers it. An interrupted copy leaves a
//! text whose last line has no line end, or a compressed or binary file that stops short; this is a
//! warning if anything good came before. An input without any operation is an error.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use super::emit::{Emit, Fault};
use super::options::{ImportOptions, ImportReport, Progress, Sink};
use super::plugin::{BinaryFormat, MAX_TAIL, Plugin, TextFormat};
use crate::TraceError;
use crate::error::shorten;
use crate::input::{self, Input, Lines};

/// Progress is reported after this many lines or records.
const PROGRESS_EVERY: u64 = 1 << 15;

pub(super) fn run(
    plugin: Plugin,
    input: &Path,
    options: &ImportOptions,
    sink: &mut Sink<'_>,
    progress: &mut Progress<'_>,
) -> Result<ImportReport, TraceError> {
    let mut forward = |op: &crate::Op| sink(op);
    let mut run = Run {
        file: input.display().to_string(),
        skip_bad: options.skip_bad,
        report: ImportReport::default(),
        first_bad: None,
        out: Emit::new(options, &mut forward),
        progress,
    };
    match plugin {
        Plugin::Text(mut format) => {
            run.text(&mut *format, input::open(input)?)?;
            if run.out.ops() == 0 && format.read_again() {
                run.start_again();
                run.text(&mut *format, input::open(input)?)?;
            }
        }
        Plugin::Binary(mut format) => {
            run.binary(&mut *format, input::open(input)?)?;
            if run.out.ops() == 0 && format.read_again() {
                run.start_again();
                run.binary(&mut *format, input::open(input)?)?;
            }
        }
        #[cfg(feature = "parquet")]
        Plugin::Parquet(columns) => run.rows(input, columns.as_deref())?,
    }
    run.finish()
}

struct Run<'a> {
    file: String,
    skip_bad: u64,
    report: ImportReport,
    /// The error of the first skipped bad line.
    first_bad: Option<String>,
    out: Emit<'a>,
    progress: &'a mut (dyn FnMut(u64, u64) -> ControlFlow<()> + 'a),
}

impl Run<'_> {
    /// Forgets what was read, because the input will be read again from the start.
    fn start_again(&mut self) {
        self.report = ImportReport::default();
        self.first_bad = None;
        self.out.forget_left_out();
    }

    fn text(&mut self, format: &mut dyn TextFormat, input: Input) -> Result<(), TraceError> {
        let mut lines = Lines::new(input, 0);
        loop {
            if self.report.lines.is_multiple_of(PROGRESS_EVERY) {
                self.tell(lines.input())?;
            }
            let Some(line) = lines.next_line(&self.file)? else {
                break;
            };
            self.report.lines += 1;
            if line.bytes.trim_ascii().is_empty() {
                continue;
            }
            let (ended, number) = (line.ended, line.number);
            if ended {
                if let Err(fault) = format.line(line.bytes, &mut self.out) {
                    self.bad(fault, || format!("line {number}"))?;
                }
                continue;
            }
            // The last line has no line end. It may be cut in the middle of a number and still
            // parse. If the compressed stream broke off, it certainly is cut.
            let bytes = line.bytes.to_vec();
            let cut = lines.input().cut().is_some();
            let fault = if cut {
                None
            } else {
                format.line(&bytes, &mut self.out).err()
            };
            match fault {
                None if !cut => {}
                Some(fault) if self.out.ops() == 0 => {
                    self.bad(fault, || format!("line {number}"))?
                }
                Some(Fault::Stop(error)) => return Err(error),
                _ => self.report.warnings.push(format!(
                    "{}: the last line ({number}) is cut short and was left out: {}",
                    self.file,
                    shorten(&bytes)
                )),
            }
        }
        self.input_end(lines.input());
        Ok(())
    }

    fn binary(
        &mut self,
        format: &mut dyn BinaryFormat,
        mut input: Input,
    ) -> Result<(), TraceError> {
        // Room for the header, or for a record with its tail, and for chunks of a useful size. A
        // record that crosses the end of a chunk is moved to the front of the next.
        let mut buffer = vec![0; 64 * 1024 + MAX_TAIL + format.header_len()];
        let (mut filled, mut offset, mut record_len) = (0, 0u64, None);
        loop {
            let n = self.fill(&mut input, &mut buffer, &mut filled)?;
            let mut at = 0;
            let len = match record_len {
                Some(len) => len,
                None if filled == 0 => break,
                None => {
                    at = self.header(format, &buffer[..filled])?;
                    offset = at as u64;
                    match format.record_len(&buffer[at..filled]) {
                        Ok(len) => *record_len.insert(len),
                        Err(fault) => {
                            return Err(self.error(fault, format!("record 1 at byte {offset}")));
                        }
                    }
                }
            };
            while let Some(record) = buffer[at..filled].get(..len) {
                let whole = len + format.tail_len(record);
                if filled - at < whole {
                    break;
                }
                if self.report.lines.is_multiple_of(PROGRESS_EVERY) {
                    self.tell(&input)?;
                }
                self.report.lines += 1;
                if let Err(fault) = format.record(record, &mut self.out) {
                    let number = self.report.lines;
                    self.bad(fault, || format!("record {number} at byte {offset}"))?;
                }
                at += whole;
                offset += whole as u64;
            }
            buffer.copy_within(at..filled, 0);
            filled -= at;
            if n == 0 {
                break;
            }
        }
        if filled > 0 {
            if self.report.lines == 0 {
                let fault = Fault::Bad {
                    expected: format!("records of {} bytes", record_len.unwrap_or(0)),
                    found: format!("{filled} bytes"),
                };
                return Err(self.error(fault, format!("record 1 at byte {offset}")));
            }
            self.report.warnings.push(format!(
                "{}: the last record is cut short after {filled} bytes and was left out",
                self.file
            ));
        }
        let warning = format.warning(self.report.lines);
        self.report.warnings.extend(warning);
        self.input_end(&input);
        Ok(())
    }

    /// Reads a Parquet file with its own reader, which needs to seek.
    #[cfg(feature = "parquet")]
    fn rows(&mut self, path: &Path, columns: Option<&str>) -> Result<(), TraceError> {
        let bytes_total = std::fs::metadata(path).map_or(0, |about| about.len());
        let mut rows = super::parquet::Rows::open(path, columns)?;
        loop {
            if self.report.lines.is_multiple_of(PROGRESS_EVERY) {
                let (done, all) = (self.report.lines, rows.total.max(1));
                let read = u128::from(bytes_total) * u128::from(done) / u128::from(all);
                self.tell_at((read as u64).min(bytes_total), bytes_total)?;
            }
            let row = rows.next_row(&self.file, &mut self.out);
            if matches!(row, Ok(false)) {
                break;
            }
            self.report.lines += 1;
            if let Err(fault) = row {
                let number = self.report.lines;
                self.bad(fault, || format!("row {number}"))?;
            }
        }
        // The import is complete, so a request to stop is ignored.
        let _ = (self.progress)(bytes_total, bytes_total);
        Ok(())
    }

    /// Passes the header to the format and returns its length.
    fn header(&self, format: &mut dyn BinaryFormat, start: &[u8]) -> Result<usize, TraceError> {
        let len = format.header_len();
        let taken = match start.get(..len) {
            Some(header) => format.header(header),
            None => Err(Fault::Bad {
                expected: format!("a header of {len} bytes"),
                found: format!("{} bytes: {}", start.len(), shorten(start)),
            }),
        };
        match taken {
            Ok(()) => Ok(len),
            Err(fault) => Err(self.error(fault, "header".into())),
        }
    }

    /// Reads until the buffer is full or the input ends. Returns 0 only at the end.
    fn fill(
        &mut self,
        input: &mut Input,
        buffer: &mut [u8],
        filled: &mut usize,
    ) -> Result<usize, TraceError> {
        let before = *filled;
        while *filled < buffer.len() {
            match input.read(&mut buffer[*filled..]) {
                Ok(0) => break,
                Ok(n) => *filled += n,
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(TraceError::Io {
                        file: self.file.clone(),
                        source,
                    });
                }
            }
        }
        Ok(*filled - before)
    }

    fn input_end(&mut self, input: &Input) {
        if let Some(cut) = input.cut() {
            self.report
                .warnings
                .push(format!("{}: {cut}; what came before was used", self.file));
        }
        // The import is complete, so a request to stop is ignored.
        let _ = (self.progress)(input.bytes_read(), input.bytes_total());
    }

    fn tell(&mut self, input: &Input) -> Result<(), TraceError> {
        self.tell_at(input.bytes_read(), input.bytes_total())
    }

    fn tell_at(&mut self, read: u64, total: u64) -> Result<(), TraceError> {
        match (self.progress)(read, total) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(TraceError::Interrupted {
                file: self.file.clone(),
                ops: self.out.ops(),
            }),
        }
    }

    /// Handles a bad line or record: skips it if `skip_bad` still allows that.
    #[cold]
    fn bad(&mut self, fault: Fault, place: impl Fn() -> String) -> Result<(), TraceError> {
        if matches!(fault, Fault::Bad { .. }) && self.report.skipped_bad < self.skip_bad {
            self.report.skipped_bad += 1;
            let error = self.error(fault, place());
            self.first_bad.get_or_insert_with(|| error.to_string());
            return Ok(());
        }
        Err(self.error(fault, place()))
    }

    fn error(&self, fault: Fault, place: String) -> TraceError {
        match fault {
            Fault::Bad { expected, found } => TraceError::Bad {
                file: self.file.clone(),
                place,
                expected,
                found,
            },
            Fault::Stop(error) => error,
        }
    }

    fn finish(mut self) -> Result<ImportReport, TraceError> {
        self.out.report(&mut self.report);
        if let Some(first) = self.first_bad {
            let skipped = self.report.skipped_bad;
            self.report
                .warnings
                .push(format!("{skipped} bad lines skipped; the first: {first}"));
        }
        if self.report.ops == 0 {
            let found = match &self.report.warnings[..] {
                [] => format!("none in {} lines or records", self.report.lines),
                warnings => format!("none ({})", warnings.join("; ")),
            };
            return Err(TraceError::Bad {
                file: self.file,
                place: "end of file".into(),
                expected: "at least one operation".into(),
                found,
            });
        }
        Ok(self.report)
    }
}
