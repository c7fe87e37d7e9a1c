//! The project's trace format: one header line of JSON, then operations, in one of two encodings chosen by the
//! file's extension.
//!
//! ```text
//!   *.jsonl   {"schema":"treering.trace/1","name":…,"ops":3,…}      \n     header, padded with spaces
//!             {"op":"put","key":"user7","value":100,"t":1200}\n            one object an operation
//!             {"op":"get","hex":"00000000000a1b2c","client":3}\n
//!
//!   *.trz     {"schema":"treering.trace/1","name":…,"ops":3,…}      \n     the same header line
//!             [block][block]…                                              zstd blocks, see `packed`
//! ```
//!
//! The header's counts are exact though nobody knows them before the last operation: a [`Writer`] pads the line with
//! spaces to the width that the largest counts would need, and rewrites it in place when it finishes. A writer works
//! on a temporary file beside its target and renames it at the very end, so a target either does not exist or is whole; a
//! writer dropped unfinished leaves nothing behind.
//!
//! Readers check, at the end, that they met as many operations as the header says: a file cut at a block or line
//! boundary is noticed too. Both directions stream; memory does not depend on the trace's length.
//!
//! What is stored of an operation: kind, key (up to [`MAX_KEY`] bytes), value length of a put, scan length of a scan
//! (other kinds have none by definition), client, time and share of zero bytes.

mod beside;
mod jsonl;
mod packed;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::shorten;
use crate::input::Lines;
use crate::{Header, Op, OpKind, OpSource, TraceError};
use beside::Beside;

pub use crate::op::MAX_KEY;

/// The longest header line that is read, in bytes: a file that is no trace must not be swallowed whole.
const MAX_HEADER: u64 = 64 * 1024;

/// The two encodings of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `.jsonl`: one JSON object a line, to read and to write by hand.
    JsonLines,
    /// `.trz`: zstd-compressed blocks, to replay.
    Packed,
}

impl Encoding {
    /// The encoding that a file name's extension stands for.
    ///
    /// # Errors
    /// Neither `.jsonl` nor `.trz`.
    pub fn of(path: &Path) -> Result<Encoding, TraceError> {
        match path.extension().and_then(OsStr::to_str) {
            Some("jsonl") => Ok(Encoding::JsonLines),
            Some("trz") => Ok(Encoding::Packed),
            other => Err(TraceError::Bad {
                file: path.display().to_string(),
                place: "file name".into(),
                expected: "a trace ending in .jsonl or .trz".into(),
                found: other.map_or("no extension".into(), |e| format!(".{e}")),
            }),
        }
    }
}

/// Opens a trace file and reads its header.
///
/// # Errors
/// The file cannot be read, has neither extension, or its first line is no header.
pub fn open(path: impl AsRef<Path>) -> Result<Reader, TraceError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let io = |source| TraceError::Io {
        file: name.clone(),
        source,
    };
    // A missing file is missing, whatever its ending.
    path.metadata().map_err(io)?;
    let encoding = Encoding::of(path)?;
    let file = File::open(path).map_err(io)?;
    let bytes_total = file.metadata().map_err(io)?.len();
    let mut input = BufReader::with_capacity(256 * 1024, file);
    let mut line = Vec::new();
    (&mut input)
        .take(MAX_HEADER)
        .read_until(b'\n', &mut line)
        .map_err(io)?;
    let header = parse_header(&name, &line)?;
    let header_bytes = line.len() as u64;
    let body = match encoding {
        Encoding::JsonLines => Body::Lines(jsonl::LineReader::new(Lines::new(input, 1))),
        Encoding::Packed => Body::Packed(packed::BlockReader::new(input, header_bytes)?),
    };
    Ok(Reader {
        name,
        header,
        header_bytes,
        bytes_total,
        ops_read: 0,
        body,
    })
}

fn parse_header(file: &str, line: &[u8]) -> Result<Header, TraceError> {
    let bad = |expected: String, found: String| TraceError::Bad {
        file: file.into(),
        place: "line 1".into(),
        expected,
        found,
    };
    if line.is_empty() {
        return Err(bad("a trace's header line".into(), "an empty file".into()));
    }
    let header: Header = serde_json::from_slice(line).map_err(|why| {
        bad(
            format!("a header line with \"schema\":\"{}\"", Header::SCHEMA),
            format!("{} ({why})", shorten(line)),
        )
    })?;
    if header.schema != Header::SCHEMA {
        return Err(bad(
            format!("schema {}", Header::SCHEMA),
            shorten(header.schema.as_bytes()),
        ));
    }
    if !(0.0..=1.0).contains(&header.zeros) {
        return Err(bad(
            "zeros between 0 and 1".into(),
            header.zeros.to_string(),
        ));
    }
    if header.warmup_ops > header.ops {
        return Err(bad(
            format!("at most {} warm-up operations (all there are)", header.ops),
            header.warmup_ops.to_string(),
        ));
    }
    Ok(header)
}

/// A trace file being read: an [`OpSource`] that allocates nothing per operation.
#[derive(Debug)]
pub struct Reader {
    name: String,
    header: Header,
    header_bytes: u64,
    bytes_total: u64,
    ops_read: u64,
    body: Body,
}

// One reader a file: the variants' difference in size (buffers live on the heap) does not matter.
#[derive(Debug)]
enum Body {
    Lines(jsonl::LineReader<BufReader<File>>),
    Packed(packed::BlockReader<BufReader<File>>),
}

impl Reader {
    /// What the trace says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The file's name as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the file consumed so far, for progress bars (compressed bytes of a packed trace).
    pub fn bytes_read(&self) -> u64 {
        match &self.body {
            Body::Lines(lines) => self.header_bytes + lines.bytes_read(),
            Body::Packed(blocks) => blocks.bytes_read(),
        }
    }

    /// Bytes of the whole file.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// Operations read so far.
    pub fn ops_read(&self) -> u64 {
        self.ops_read
    }

    fn check_end(&self) -> Result<(), TraceError> {
        if self.ops_read == self.header.ops {
            return Ok(());
        }
        Err(TraceError::Bad {
            file: self.name.clone(),
            place: "end of file".into(),
            expected: format!("{} operations, as the header says", self.header.ops),
            found: self.ops_read.to_string(),
        })
    }
}

impl OpSource for Reader {
    #[inline]
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let more = match &mut self.body {
            Body::Packed(blocks) => blocks.next_op(&self.name, op)?,
            Body::Lines(lines) => lines.next_op(&self.name, op)?,
        };
        if more {
            self.ops_read += 1;
        } else {
            self.check_end()?;
        }
        Ok(more)
    }
}

/// A trace file being written. Nothing is at `path` before [`Writer::finish`] returns.
#[derive(Debug)]
pub struct Writer {
    header: Header,
    header_width: usize,
    file: Beside,
    body: Sink,
}

#[derive(Debug)]
enum Sink {
    Lines(jsonl::LineWriter),
    Packed(Box<packed::BlockWriter>),
}

impl Writer {
    /// Begins a trace file. Of `header`, `schema` and `ops` are filled in by the writer; `warmup_ops` and `records` are
    /// kept unless set later.
    ///
    /// # Errors
    /// A file name of neither encoding, `zeros` outside 0 to 1, a folder that cannot be written.
    pub fn create(path: impl AsRef<Path>, header: Header) -> Result<Writer, TraceError> {
        let path = path.as_ref();
        let encoding = Encoding::of(path)?;
        if !(0.0..=1.0).contains(&header.zeros) {
            return Err(TraceError::BadParameter {
                name: "zeros",
                why: format!("expected a share between 0 and 1, found {}", header.zeros),
            });
        }
        let header = Header {
            schema: Header::SCHEMA.into(),
            ..header
        };
        let widest = Header {
            ops: u64::MAX,
            warmup_ops: u64::MAX,
            records: Some(u64::MAX),
            addresses: true,
            ..header.clone()
        };
        let header_width = header_json(&widest).len();
        if header_width as u64 >= MAX_HEADER {
            return Err(TraceError::BadParameter {
                name: "name",
                why: format!("expected name and source of under {MAX_HEADER} bytes, found more"),
            });
        }
        let mut file = Beside::create(path)?;
        file.write(&vec![b' '; header_width])?;
        file.write(b"\n")?;
        let body = match encoding {
            Encoding::JsonLines => Sink::Lines(jsonl::LineWriter::default()),
            Encoding::Packed => Sink::Packed(Box::new(packed::BlockWriter::new(file.name())?)),
        };
        Ok(Writer {
            header: Header { ops: 0, ..header },
            header_width,
            file,
            body,
        })
    }

    /// Appends an operation.
    ///
    /// # Errors
    /// A key longer than [`MAX_KEY`], a value or scan length on a kind that has none, a full disk.
    pub fn write(&mut self, op: &Op) -> Result<(), TraceError> {
        check_op(op)?;
        match &mut self.body {
            Sink::Lines(lines) => lines.write(op, &mut self.file)?,
            Sink::Packed(blocks) => blocks.write(op, &mut self.file)?,
        }
        self.header.ops += 1;
        Ok(())
    }

    /// Operations written so far.
    pub fn ops(&self) -> u64 {
        self.header.ops
    }

    /// States how many of the first operations are warm-up (default: what [`Writer::create`] was given).
    pub fn set_warmup_ops(&mut self, warmup_ops: u64) {
        self.header.warmup_ops = warmup_ops;
    }

    /// States the number of distinct keys (default: what [`Writer::create`] was given).
    pub fn set_records(&mut self, records: Option<u64>) {
        self.header.records = records;
    }

    /// States whether keys are addresses (default: what [`Writer::create`] was given).
    pub fn set_addresses(&mut self, addresses: bool) {
        self.header.addresses = addresses;
    }

    /// Writes what is left, fills in the header's counts and puts the file in its place. Returns the final header.
    ///
    /// # Errors
    /// More warm-up operations than operations; a full disk. Nothing is left at or beside the path then.
    pub fn finish(mut self) -> Result<Header, TraceError> {
        if self.header.warmup_ops > self.header.ops {
            return Err(TraceError::BadParameter {
                name: "warmup_ops",
                why: format!(
                    "expected at most {} (all operations), found {}",
                    self.header.ops, self.header.warmup_ops
                ),
            });
        }
        if let Sink::Packed(blocks) = &mut self.body {
            blocks.flush(&mut self.file)?;
        }
        let mut line = header_json(&self.header);
        // Widths only shrink: `create` reserved room for the largest counts, and nothing else can change.
        assert!(
            line.len() <= self.header_width,
            "the header fits the room reserved for it"
        );
        line.resize(self.header_width, b' ');
        self.file.finish(&line)?;
        Ok(self.header)
    }
}

fn header_json(header: &Header) -> Vec<u8> {
    serde_json::to_vec(header).expect("a header of strings and finite numbers is JSON")
}

fn check_op(op: &Op) -> Result<(), TraceError> {
    if op.key.len() > MAX_KEY {
        return Err(TraceError::BadParameter {
            name: "key",
            why: format!("expected at most {MAX_KEY} bytes, found {}", op.key.len()),
        });
    }
    let stray_value = op.value_len != 0 && op.kind != OpKind::Put;
    let stray_scan = op.scan_len != 0 && op.kind != OpKind::Scan;
    if stray_value || stray_scan {
        return Err(TraceError::BadParameter {
            name: "op",
            why: format!(
                "expected a value length on puts and a scan length on scans only, found {op:?}"
            ),
        });
    }
    Ok(())
}
