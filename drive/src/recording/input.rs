//! Reads the chunks of a recording: frames are checked here, and nowhere else.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chunk::{Codec, HEAD, Head, Kind, PREAMBLE, Unfit, version_of};
use super::header::Header;
use crate::error::DriveError;

#[derive(Clone)]
enum Source {
    File(Arc<File>),
    Memory(Arc<[u8]>),
}

/// A recording's bytes.
#[derive(Clone)]
pub(super) struct Input {
    source: Source,
    path: PathBuf,
    len: u64,
}

/// What comes at a place of a recording.
pub(super) enum Next {
    /// A chunk with this header.
    Chunk(Head),
    /// The end of the file, or a chunk that the file ends within.
    FileEnd,
}

impl Input {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> Result<Input, DriveError> {
        let what = || format!("read the recording {}", path.display());
        let file = File::open(path).map_err(DriveError::system(what()))?;
        let meta = file.metadata().map_err(DriveError::system(what()))?;
        let input = Input {
            source: Source::File(Arc::new(file)),
            path: path.into(),
            len: meta.len(),
        };
        if !meta.is_file() {
            return Err(input.bad("its beginning", "a regular file", "something else"));
        }
        Ok(input)
    }

    /// Takes a recording in memory.
    pub(super) fn memory(bytes: Vec<u8>) -> Input {
        Input {
            len: bytes.len() as u64,
            source: Source::Memory(bytes.into()),
            path: PathBuf::from("(memory)"),
        }
    }

    /// The error that this is not what it should be.
    pub(super) fn bad(
        &self,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> DriveError {
        DriveError::Bad {
            file: self.path.clone(),
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    fn unfit(&self, offset: u64, (expected, found): Unfit) -> DriveError {
        self.bad(format!("offset {offset}"), expected, found)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), DriveError> {
        let what = || format!("read the recording {} at {offset}", self.path.display());
        match &self.source {
            Source::File(file) => file.read_exact_at(into, offset),
            Source::Memory(bytes) => usize::try_from(offset)
                .ok()
                .and_then(|at| bytes.get(at..)?.get(..into.len()))
                .map(|bytes| into.copy_from_slice(bytes))
                .ok_or_else(|| io::ErrorKind::UnexpectedEof.into()),
        }
        .map_err(DriveError::system(what()))
    }

    /// Reads the preamble and the header. Returns where the next chunk begins.
    pub(super) fn header(&self) -> Result<(Header, u64), DriveError> {
        let mut bytes = [0; PREAMBLE];
        if self.len < PREAMBLE as u64 {
            let found = format!("a file of {} bytes", self.len);
            return Err(self.bad("its beginning", "a recording of `treering drive`", found));
        }
        self.read(0, &mut bytes)?;
        let version = version_of(&bytes).map_err(|unfit| self.unfit(0, unfit))?;
        if version != Header::VERSION {
            let expected = format!("version {} of the format", Header::VERSION);
            let found = format!("version {version}; another version of treering reads it");
            return Err(self.bad("its version", expected, found));
        }
        let begin = PREAMBLE as u64;
        let head = match self.next(begin)? {
            Next::Chunk(head) if head.kind == Kind::Header => head,
            Next::Chunk(head) => return Err(self.misplaced(begin, "the header", &head)),
            Next::FileEnd => {
                let found = format!("the end of the file, {} bytes", self.len);
                return Err(self.bad(format!("offset {begin}"), "the header", found));
            }
        };
        let mut json = Vec::new();
        self.payload(begin, &head, &mut Vec::new(), &mut json)?;
        let header = serde_json::from_slice(&json).map_err(|error| {
            self.bad(
                "its header",
                "the header of a recording as JSON",
                error.to_string(),
            )
        })?;
        Ok((header, begin + Self::size(&head)))
    }

    /// The error that a chunk is where it should not be.
    pub(super) fn misplaced(&self, offset: u64, expected: &str, head: &Head) -> DriveError {
        self.bad(format!("offset {offset}"), expected, head.kind.name())
    }

    /// Bytes of a chunk with its header.
    pub(super) fn size(head: &Head) -> u64 {
        HEAD as u64 + u64::from(head.stored_len)
    }

    /// Reads the header of the chunk at `offset`.
    pub(super) fn next(&self, offset: u64) -> Result<Next, DriveError> {
        let left = self.len.saturating_sub(offset);
        if left < HEAD as u64 {
            return Ok(Next::FileEnd);
        }
        let mut bytes = [0; HEAD];
        self.read(offset, &mut bytes)?;
        let head = Head::from_bytes(&bytes).map_err(|unfit| self.unfit(offset, unfit))?;
        if left < Self::size(&head) {
            return Ok(Next::FileEnd);
        }
        Ok(Next::Chunk(head))
    }

    /// The length of the file when it was opened.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Reads the payload of the chunk at `offset` into `raw`.
    pub(super) fn payload(
        &self,
        offset: u64,
        head: &Head,
        stored: &mut Vec<u8>,
        raw: &mut Vec<u8>,
    ) -> Result<(), DriveError> {
        stored.resize(head.stored_len as usize, 0);
        self.read(offset + HEAD as u64, stored)?;
        let crc = crc32fast::hash(stored);
        if crc != head.payload_crc {
            let expected = format!(
                "{} with checksum {:08x}",
                head.kind.name(),
                head.payload_crc
            );
            let found = format!("bytes with checksum {crc:08x}");
            return Err(self.bad(format!("offset {offset}"), expected, found));
        }
        if head.codec == Codec::Raw {
            std::mem::swap(stored, raw);
            return Ok(());
        }
        raw.resize(head.raw_len as usize, 0);
        let len = zstd::bulk::decompress_to_buffer(&stored[..], &mut raw[..]);
        match len {
            Ok(len) if len == raw.len() => Ok(()),
            other => {
                let expected = format!("a zstd frame of {} bytes", raw.len());
                let found = match other {
                    Ok(len) => format!("one of {len} bytes"),
                    Err(error) => error.to_string(),
                };
                Err(self.bad(format!("offset {offset}"), expected, found))
            }
        }
    }
}
