//! Treering's trace format: a header line of JSON, then operations. The file's extension selects
//! one of two encodings.
//!
//! ```text
//!   *.jsonl   {"schema":"treering.trace/1","name":…,"ops":3,…}   \n   header, padded
//!             {"op":"put","key":"user7","value":100,"t":1200}\n       one object per operation
//!             {"op":"get","hex":"00000000000a1b2c","client":3}\n
//!
//!   *.trz     {"schema":"treering.trace/1","name":…,"ops":3,…}   \n   the same header line
//!             [block][block]…                                         zstd blocks, see `packed`
//! ```
//!
//! A [`Writer`] knows the header's counts only after the last operation. So it pads the header line
//! to the width of the largest counts, and overwrites it in place when it finishes. It writes to a
//! temporary file next to its target and renames that file at the end, so the target is either
//! absent or complete. A writer that is dropped before it finishes leaves nothing behind.
//!
//! A reader compares the number of operations with the header at the end. So it also notices a file
//! that was cut at a block or line boundary. Readers and writers stream: memory does not depend on
//! the length of the trace.
//!
//! An operation is stored as its kind, key (up to [`MAX_KEY`] bytes), value length (puts), scan
//! length (scans), client, time and share of zero bytes.

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

/// The longest header line, in bytes. It bounds what is read of a file that is not a trace.
const MAX_HEADER: u64 = 64 * 1024;

/// The two encodings of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `.jsonl`: one JSON object per line, for reading and writing by hand.
    JsonLines,
    /// `.trz`: zstd-compressed blocks, for replays.
    Packed,
}

impl Encoding {
    /// Returns the encoding that the file name's extension selects.
    ///
    /// ```
    /// use treering_traces::format::Encoding;
    ///
    /// assert_eq!(Encoding::of("trace.trz".as_ref())?, Encoding::Packed);
    /// assert!(Encoding::of("trace.csv".as_ref()).is_err());
    /// # Ok::<(), treering_traces::TraceError>(())
    /// ```
    ///
    /// # Errors
    /// The extension is neither `.jsonl` nor `.trz`.
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
/// ```
/// let trace = treering_traces::open("samples/zipf.trz")?;
/// let header = trace.header();
/// assert!(header.warmup_ops < header.ops);
/// assert!(header.source.starts_with("gen ycsb-a"));
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
///
/// # Errors
/// The file cannot be read, its extension is unknown, or its first line is not a header.
pub fn open(path: impl AsRef<Path>) -> Result<Reader, TraceError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let io = |source| TraceError::Io {
        file: name.clone(),
        source,
    };
    // If the file is missing, report that rather than its extension.
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

/// A trace file being read. It is an [`OpSource`] that does not allocate per operation.
#[derive(Debug)]
pub struct Reader {
    name: String,
    header: Header,
    header_bytes: u64,
    bytes_total: u64,
    ops_read: u64,
    body: Body,
}

// There is one per reader and its buffers are on the heap, so the size difference does not matter.
#[derive(Debug)]
enum Body {
    Lines(jsonl::LineReader<BufReader<File>>),
    Packed(packed::BlockReader<BufReader<File>>),
}

impl Reader {
    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the file's name as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes of the file consumed so far, for progress. Of a packed trace these are
    /// compressed bytes.
    pub fn bytes_read(&self) -> u64 {
        match &self.body {
            Body::Lines(lines) => self.header_bytes + lines.bytes_read(),
            Body::Packed(blocks) => blocks.bytes_read(),
        }
    }

    /// Returns the size of the file in bytes.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
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

/// A trace file being written. The file appears at its path only when [`Writer::finish`] returns.
///
/// ```
/// use treering_traces::{Header, Op, OpKind, OpSource, Writer, open};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("mine.jsonl");
/// let header = Header::named("mine", "written by hand");
/// let mut writer = Writer::create(&path, header)?;
/// let put = Op { kind: OpKind::Put, key: b"k".to_vec(), value_len: 9, ..Op::default() };
/// writer.write(&put)?;
/// writer.finish()?;
///
/// let text = std::fs::read_to_string(&path).unwrap();
/// assert_eq!(text.lines().nth(1), Some(r#"{"op":"put","key":"k","value":9}"#));
///
/// let (mut trace, mut op) = (open(&path)?, Op::default());
/// assert!(trace.next_op(&mut op)?);
/// assert_eq!((op, trace.header().ops), (put, 1));
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
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
    /// Starts a trace file. The writer sets `schema` and `ops` of the header itself. It keeps
    /// `warmup_ops`, `records` and `addresses` unless they are set later.
    ///
    /// # Errors
    /// The extension is unknown, `zeros` is outside 0 to 1, or the folder is not writable.
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
    /// The key is longer than [`MAX_KEY`], the operation has a value or scan length that its kind
    /// does not have, or the disk is full.
    pub fn write(&mut self, op: &Op) -> Result<(), TraceError> {
        check_op(op)?;
        match &mut self.body {
            Sink::Lines(lines) => lines.write(op, &mut self.file)?,
            Sink::Packed(blocks) => blocks.write(op, &mut self.file)?,
        }
        self.header.ops += 1;
        Ok(())
    }

    /// Returns the number of operations written so far.
    pub fn ops(&self) -> u64 {
        self.header.ops
    }

    /// Sets how many of the first operations are warm-up.
    pub fn set_warmup_ops(&mut self, warmup_ops: u64) {
        self.header.warmup_ops = warmup_ops;
    }

    /// Sets the number of distinct keys.
    pub fn set_records(&mut self, records: Option<u64>) {
        self.header.records = records;
    }

    /// Sets whether keys are blocks of a drive.
    pub(crate) fn set_addresses(&mut self, addresses: bool) {
        self.header.addresses = addresses;
    }

    /// Writes the remaining operations, fills in the header's counts and moves the file to its
    /// path. Returns the final header.
    ///
    /// # Errors
    /// There are more warm-up operations than operations, or the disk is full. No file is left
    /// behind.
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
        // The counts only get narrower: `create` reserved room for the largest, and nothing else
        // can change.
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
