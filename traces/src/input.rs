//! Input files of other tools: text or binary, plain or compressed.
//!
//! [`open`] recognises gzip, xz and zstd by the first bytes of the file and decompresses while
//! reading. Streams of several members or frames, which parallel compressors write, are read to the
//! end. A compressed stream that ends too early comes from an interrupted download or a full disk,
//! and everything before the end is good. So this is not an error: [`Input::cut`] describes it, and
//! the caller warns.
//!
//! [`Lines`] yields the lines of an input as slices of its own buffer, without a copy or an
//! allocation per line.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::TraceError;
use crate::error::shorten;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Compression {
    /// Not at all.
    None,
    /// gzip, `1f 8b`.
    Gzip,
    /// xz, `fd 37 7a 58 5a 00`.
    Xz,
    /// zstd, `28 b5 2f fd`.
    Zstd,
}

impl Compression {
    /// Detects the compression from a file's first bytes.
    pub(crate) fn of(start: &[u8]) -> Compression {
        match start {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

/// An open input that decompresses while it is read.
pub struct Input {
    name: String,
    decoder: Box<dyn Read + Send>,
    bytes_total: u64,
    bytes_read: Arc<AtomicU64>,
    cut: Option<String>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Opens a file and detects its compression from its content, not its name.
///
/// # Errors
/// The file cannot be opened or read.
pub fn open(path: impl AsRef<Path>) -> Result<Input, TraceError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let opened = (|| {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(io::Error::new(
                ErrorKind::IsADirectory,
                "is a folder, not a file",
            ));
        }
        let bytes_read = Arc::new(AtomicU64::new(0));
        let mut counted = Counted {
            inner: file,
            count: Arc::clone(&bytes_read),
        };
        let mut start = Vec::new();
        (&mut counted).take(6).read_to_end(&mut start)?;
        let compression = Compression::of(&start);
        let whole = io::Cursor::new(start).chain(counted);
        Ok((decoder(compression, whole)?, about.len(), bytes_read))
    })();
    let (decoder, bytes_total, bytes_read) = opened.map_err(|source| TraceError::Io {
        file: name.clone(),
        source,
    })?;
    Ok(Input {
        name,
        decoder,
        bytes_total,
        bytes_read,
        cut: None,
    })
}

fn decoder(
    compression: Compression,
    input: impl Read + Send + 'static,
) -> io::Result<Box<dyn Read + Send>> {
    let buffered = |input| BufReader::with_capacity(128 * 1024, input);
    Ok(match compression {
        Compression::None => Box::new(input),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(input))),
        Compression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(buffered(
            input,
        ))),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(buffered(input))?),
    })
}

impl Input {
    /// Returns the file's name as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes of the file consumed so far, for progress. Compressed bytes count as such.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Returns the size of the file in bytes.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// Describes how the compressed stream was cut short, once reading has reached the cut.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cut.is_some() {
            return Ok(0);
        }
        match self.decoder.read(buffer) {
            Err(why) if why.kind() == ErrorKind::UnexpectedEof => {
                self.cut = Some("the compressed file ends in the middle of its stream".into());
                Ok(0)
            }
            other => other,
        }
    }
}

struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A line of an input.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Its bytes, without the line end (`\n` or `\r\n`).
    pub bytes: &'a [u8],
    /// Its line number, counted from 1.
    pub number: u64,
    /// Whether a line end followed. `false` only for the last line of a file that lacks one; such a
    /// line may be cut short.
    pub ended: bool,
}

/// The lines of an input, as slices of one buffer.
///
/// ```
/// use treering_traces::input::Lines;
///
/// let mut lines = Lines::new(&b"one\ntwo"[..], 0);
/// let one = lines.next_line("input")?.unwrap();
/// assert_eq!((one.bytes, one.number, one.ended), (&b"one"[..], 1, true));
/// let two = lines.next_line("input")?.unwrap();
/// assert_eq!((two.bytes, two.number, two.ended), (&b"two"[..], 2, false));
/// assert!(lines.next_line("input")?.is_none());
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    // invariant: start <= end <= buffer.len(); buffer[start..end] is read and not handed out
    start: usize,
    end: usize,
    number: u64,
    bytes_read: u64,
    eof: bool,
}

impl<R: Read> Lines<R> {
    /// The longest line that is read. No trace has longer lines, and the limit bounds memory.
    pub const MAX_LINE: usize = 1024 * 1024;

    /// Creates a reader of `input`, of which `lines_before` lines were already read.
    pub fn new(input: R, lines_before: u64) -> Self {
        Lines {
            input,
            buffer: vec![0; 256 * 1024],
            start: 0,
            end: 0,
            number: lines_before,
            bytes_read: 0,
            eof: false,
        }
    }

    /// Returns the bytes handed out so far, line ends included.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Returns the underlying input.
    pub fn input(&self) -> &R {
        &self.input
    }

    /// Returns the next line, or `None` at the end. `file` names the input in errors.
    ///
    /// # Errors
    /// The input cannot be read; a line is longer than [`Lines::MAX_LINE`].
    pub fn next_line(&mut self, file: &str) -> Result<Option<Line<'_>>, TraceError> {
        let mut searched = self.start;
        let (line_end, ended) = loop {
            if let Some(i) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                break (searched + i, true);
            }
            if self.eof {
                if self.start == self.end {
                    return Ok(None);
                }
                break (self.end, false);
            }
            let unfinished = self.end - self.start;
            if unfinished > Self::MAX_LINE {
                return Err(TraceError::Bad {
                    file: file.into(),
                    place: format!("line {}", self.number + 1),
                    expected: format!("a line of at most {} bytes", Self::MAX_LINE),
                    found: shorten(&self.buffer[self.start..self.end]),
                });
            }
            self.refill().map_err(|source| TraceError::Io {
                file: file.into(),
                source,
            })?;
            searched = self.start + unfinished;
        };
        let line = self.start..line_end;
        self.start = if ended { line_end + 1 } else { line_end };
        self.number += 1;
        self.bytes_read += (self.start - line.start) as u64;
        let bytes = &self.buffer[line];
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        Ok(Some(Line {
            bytes,
            number: self.number,
            ended,
        }))
    }

    /// Moves the unfinished line to the front of the buffer and fills the rest.
    #[cold]
    fn refill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(n) => {
                    self.end += n;
                    self.eof = n == 0;
                    return Ok(());
                }
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
    }
}
