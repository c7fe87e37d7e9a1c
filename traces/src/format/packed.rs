//! The `.trz` encoding: blocks of operations, compressed with zstd.
//!
//! ```text
//! block   0        4        8        12       16       20       24               32
//!         | magic  | stored | ops    | numbers| keys   | 0      | checksum (xxh3) | stored bytes …
//!                    length   count    length   length
//!
//! stored bytes, decompressed:
//!         | tags: 1 byte per operation | numbers: LEB128 varints | keys: end to end |
//!
//! tag     bit  0-1  kind: get, put, delete, scan
//!              2    the key's length differs from the last key's: it is in `numbers`
//!              3    the value length (put) or scan length (scan) differs: it is in `numbers`
//!              4    the client differs from the last one: it is in `numbers`
//!              5-6  time: 0 none, 1 as before, 2 later by a number in `numbers`, 3 earlier
//!              7    the share of zero bytes is in `numbers`
//! ```
//!
//! Numbers follow in the order of the tag's bits. All integers are little-endian. At the start of a
//! block, the "last" key length, value length, scan length, client and time are 0, so every block
//! can be decoded on its own. Operations are stored in three lanes rather than as records, because
//! tags and repeated numbers then compress to almost nothing.
//!
//! The checksum covers the first 24 bytes of the block and its stored bytes. Lengths are checked
//! against [`MAX_RAW`] before anything is allocated. Every number is checked against the end of its
//! lane while decoding. So any damage to a file is reported as an error that names the block.

use std::io::Read;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};
use zstd::bulk::{Compressor, Decompressor};

use super::beside::Beside;
use crate::op::MAX_KEY;
use crate::{Op, OpKind, TraceError};

const MAGIC: u32 = u32::from_le_bytes(*b"TRZ1");
const HEAD: usize = 32;
/// A block is written when its lanes hold this many bytes.
const FULL: usize = 256 * 1024;
/// The most decompressed bytes of a block: a full block less one byte, plus one operation with the
/// longest key.
const MAX_RAW: usize = FULL + MAX_KEY + 64;
/// The most stored bytes of a block. For incompressible input zstd adds at most 1/256 and a little
/// more.
const MAX_STORED: usize = MAX_RAW + MAX_RAW / 128 + 1024;
/// Level 1, because replays depend on decompression speed and higher levels hardly shrink the
/// lanes.
const LEVEL: i32 = 1;

const KEY_LEN: u8 = 1 << 2;
const SIZE: u8 = 1 << 3;
const CLIENT: u8 = 1 << 4;
const TIME_SHIFT: u32 = 5;
const TIME_SAME: u8 = 1;
const TIME_LATER: u8 = 2;
const TIME_EARLIER: u8 = 3;
const ZEROS: u8 = 1 << 7;

/// The fields of the block's previous operation.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    key_len: usize,
    value_len: u32,
    scan_len: u32,
    client: u32,
    time_ns: u64,
}

pub(crate) struct BlockWriter {
    tags: Vec<u8>,
    numbers: Vec<u8>,
    keys: Vec<u8>,
    last: Last,
    raw: Vec<u8>,
    stored: Vec<u8>,
    compressor: Compressor<'static>,
}

impl std::fmt::Debug for BlockWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockWriter")
            .field("ops", &self.tags.len())
            .finish_non_exhaustive()
    }
}

impl BlockWriter {
    pub(crate) fn new(file: String) -> Result<Self, TraceError> {
        let compressor =
            Compressor::new(LEVEL).map_err(|source| TraceError::Io { file, source })?;
        Ok(BlockWriter {
            tags: Vec::new(),
            numbers: Vec::new(),
            keys: Vec::new(),
            last: Last::default(),
            raw: Vec::new(),
            stored: Vec::with_capacity(MAX_STORED),
            compressor,
        })
    }

    pub(crate) fn write(&mut self, op: &Op, file: &mut Beside) -> Result<(), TraceError> {
        let mut tag = op.kind as u8;
        let last = &mut self.last;
        if op.key.len() != last.key_len {
            tag |= KEY_LEN;
            put_varint(&mut self.numbers, op.key.len() as u64);
            last.key_len = op.key.len();
        }
        let size = match op.kind {
            OpKind::Put => Some((op.value_len, &mut last.value_len)),
            OpKind::Scan => Some((op.scan_len, &mut last.scan_len)),
            OpKind::Get | OpKind::Delete => None,
        };
        if let Some((size, last_size)) = size.filter(|(size, last_size)| size != *last_size) {
            tag |= SIZE;
            put_varint(&mut self.numbers, u64::from(size));
            *last_size = size;
        }
        if op.client != last.client {
            tag |= CLIENT;
            put_varint(&mut self.numbers, u64::from(op.client));
            last.client = op.client;
        }
        if let Some(time) = op.time_ns {
            if time == last.time_ns {
                tag |= TIME_SAME << TIME_SHIFT;
            } else {
                let way = if time > last.time_ns {
                    TIME_LATER
                } else {
                    TIME_EARLIER
                };
                tag |= way << TIME_SHIFT;
                put_varint(&mut self.numbers, time.abs_diff(last.time_ns));
                last.time_ns = time;
            }
        }
        if let Some(zeros) = op.zeros {
            tag |= ZEROS;
            put_varint(&mut self.numbers, u64::from(zeros));
        }
        self.tags.push(tag);
        self.keys.extend_from_slice(&op.key);
        if self.tags.len() + self.numbers.len() + self.keys.len() >= FULL {
            self.flush(file)?;
        }
        Ok(())
    }

    /// Writes the current block, unless it is empty.
    pub(crate) fn flush(&mut self, file: &mut Beside) -> Result<(), TraceError> {
        if self.tags.is_empty() {
            return Ok(());
        }
        self.raw.clear();
        self.raw.extend_from_slice(&self.tags);
        self.raw.extend_from_slice(&self.numbers);
        self.raw.extend_from_slice(&self.keys);
        // invariant: a block that readers would reject is never written
        assert!(self.raw.len() <= MAX_RAW);
        self.stored.clear();
        self.compressor
            .compress_to_buffer(&self.raw, &mut self.stored)
            .map_err(|source| TraceError::Io {
                file: file.name(),
                source,
            })?;
        let mut head = [0; HEAD];
        let lengths = [
            self.stored.len(),
            self.tags.len(),
            self.numbers.len(),
            self.keys.len(),
        ];
        head[..4].copy_from_slice(&MAGIC.to_le_bytes());
        for (field, length) in head[4..20].chunks_exact_mut(4).zip(lengths) {
            field.copy_from_slice(&(length as u32).to_le_bytes());
        }
        let checksum = checksum(&head[..24], &self.stored);
        head[24..].copy_from_slice(&checksum.to_le_bytes());
        file.write(&head)?;
        file.write(&self.stored)?;
        self.tags.clear();
        self.numbers.clear();
        self.keys.clear();
        self.last = Last::default();
        Ok(())
    }
}

fn checksum(head: &[u8], stored: &[u8]) -> u64 {
    xxh3_64_with_seed(stored, xxh3_64(head))
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads one varint at `*at`. Returns `None` if it runs past the end or past 64 bits.
#[inline]
fn get_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut number = u64::from(first & 0x7f);
    let mut shift = 7;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
        if shift > 63 {
            return None;
        }
    }
}

/// The lengths in a block's header, in bytes; `ops` counts operations.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    stored: usize,
    ops: usize,
    numbers: usize,
    keys: usize,
}

pub(crate) struct BlockReader<R> {
    input: R,
    bytes_read: u64,
    /// Number of the block in `raw`, counted from 1; 0 before the first.
    block: u64,
    stored: Vec<u8>,
    raw: Vec<u8>,
    decompressor: Decompressor<'static>,
    // invariant: tag <= ops <= number <= numbers_end <= key <= raw.len()
    ops: usize,
    numbers_end: usize,
    tag: usize,
    number: usize,
    key: usize,
    last: Last,
}

impl<R> std::fmt::Debug for BlockReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockReader")
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}

impl<R: Read> BlockReader<R> {
    pub(crate) fn new(input: R, bytes_read: u64) -> Result<Self, TraceError> {
        let decompressor = Decompressor::new().map_err(|source| TraceError::Io {
            file: "zstd".into(),
            source,
        })?;
        Ok(BlockReader {
            input,
            bytes_read,
            block: 0,
            stored: Vec::new(),
            raw: Vec::with_capacity(MAX_RAW),
            decompressor,
            ops: 0,
            numbers_end: 0,
            tag: 0,
            number: 0,
            key: 0,
            last: Last::default(),
        })
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    #[inline]
    pub(crate) fn next_op(&mut self, file: &str, op: &mut Op) -> Result<bool, TraceError> {
        if self.tag == self.ops && !self.next_block(file)? {
            return Ok(false);
        }
        match self.decode(op) {
            Some(()) => Ok(true),
            None => Err(self.bad(
                file,
                format!("operation {} to be within its block", self.tag),
                "a length or number that is not".into(),
            )),
        }
    }

    /// Decodes the operation at the cursors. Returns `None` if a number is malformed or runs past
    /// its lane.
    #[inline]
    fn decode(&mut self, op: &mut Op) -> Option<()> {
        let numbers = self.raw.get(..self.numbers_end)?;
        let tag = *self.raw.get(self.tag)?;
        self.tag += 1;
        let at = &mut self.number;
        let last = &mut self.last;
        if tag & KEY_LEN != 0 {
            last.key_len = usize::try_from(get_varint(numbers, at)?).ok()?;
        }
        (op.value_len, op.scan_len) = (0, 0);
        let changed = tag & SIZE != 0;
        match tag & 3 {
            0 => op.kind = OpKind::Get,
            1 => {
                op.kind = OpKind::Put;
                if changed {
                    last.value_len = u32::try_from(get_varint(numbers, at)?).ok()?;
                }
                op.value_len = last.value_len;
            }
            2 => op.kind = OpKind::Delete,
            _ => {
                op.kind = OpKind::Scan;
                if changed {
                    last.scan_len = u32::try_from(get_varint(numbers, at)?).ok()?;
                }
                op.scan_len = last.scan_len;
            }
        }
        if tag & CLIENT != 0 {
            last.client = u32::try_from(get_varint(numbers, at)?).ok()?;
        }
        op.client = last.client;
        op.time_ns = match (tag >> TIME_SHIFT) & 3 {
            0 => None,
            TIME_SAME => Some(last.time_ns),
            way => {
                let difference = get_varint(numbers, at)?;
                last.time_ns = if way == TIME_LATER {
                    last.time_ns.checked_add(difference)?
                } else {
                    last.time_ns.checked_sub(difference)?
                };
                Some(last.time_ns)
            }
        };
        op.zeros = match tag & ZEROS {
            0 => None,
            _ => Some(u8::try_from(get_varint(numbers, at)?).ok()?),
        };
        let key = self.raw.get(self.key..)?.get(..last.key_len)?;
        self.key += last.key_len;
        op.key.clear();
        op.key.extend_from_slice(key);
        Some(())
    }

    /// Reads and decompresses the next block. Returns `false` at the end of the file.
    #[cold]
    fn next_block(&mut self, file: &str) -> Result<bool, TraceError> {
        if self.number != self.numbers_end || self.key != self.raw.len() {
            return Err(self.bad(
                file,
                "a block whose operations fill it".into(),
                "bytes left over".into(),
            ));
        }
        self.block += 1;
        let mut head = [0; HEAD];
        match self.read(file, &mut head)? {
            0 => return Ok(false),
            HEAD => {}
            found => {
                let found = format!("the file's end after {found}");
                return Err(self.bad(file, format!("a block header of {HEAD} bytes"), found));
            }
        }
        let lengths = self.lengths(file, &head)?;
        let raw = lengths.ops + lengths.numbers + lengths.keys;
        self.read_stored(file, &head, lengths.stored)?;
        self.raw.clear();
        match self
            .decompressor
            .decompress_to_buffer(&self.stored, &mut self.raw)
        {
            Ok(found) if found == raw => {}
            Ok(found) => {
                return Err(self.bad(file, format!("{raw} bytes decompressed"), found.to_string()));
            }
            Err(why) => {
                return Err(self.bad(file, format!("zstd data of {raw} bytes"), why.to_string()));
            }
        }
        self.ops = lengths.ops;
        self.numbers_end = lengths.ops + lengths.numbers;
        self.tag = 0;
        self.number = self.ops;
        self.key = self.numbers_end;
        self.last = Last::default();
        Ok(true)
    }

    /// Parses a block's header. Fails if it is not a header or its lengths are implausible.
    fn lengths(&self, file: &str, head: &[u8; HEAD]) -> Result<Lengths, TraceError> {
        let field = |i: usize| {
            u32::from_le_bytes([
                head[4 * i],
                head[4 * i + 1],
                head[4 * i + 2],
                head[4 * i + 3],
            ])
        };
        if field(0) != MAGIC {
            return Err(self.bad(
                file,
                "a block beginning with TRZ1".into(),
                "other bytes".into(),
            ));
        }
        let [stored, ops, numbers, keys] = [1, 2, 3, 4].map(|i| field(i) as usize);
        let raw = ops + numbers + keys;
        if ops == 0 || stored > MAX_STORED || raw > MAX_RAW {
            return Err(self.bad(
                file,
                format!("1 or more operations in at most {MAX_RAW} bytes"),
                format!("{ops} operations in {raw} bytes, {stored} stored"),
            ));
        }
        Ok(Lengths {
            stored,
            ops,
            numbers,
            keys,
        })
    }

    /// Reads a block's stored bytes and checks them and the header against the checksum.
    fn read_stored(
        &mut self,
        file: &str,
        head: &[u8; HEAD],
        stored: usize,
    ) -> Result<(), TraceError> {
        let mut bytes = std::mem::take(&mut self.stored);
        bytes.resize(stored, 0);
        let found = self.read(file, &mut bytes)?;
        self.stored = bytes;
        if found != stored {
            let found = format!("the file's end after {found}");
            return Err(self.bad(file, format!("{stored} stored bytes"), found));
        }
        if checksum(&head[..24], &self.stored).to_le_bytes() != head[24..] {
            return Err(self.bad(
                file,
                "its checksum".into(),
                "another (damaged bytes)".into(),
            ));
        }
        Ok(())
    }

    /// Fills `buffer` as far as the file reaches.
    fn read(&mut self, file: &str, buffer: &mut [u8]) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(TraceError::Io {
                        file: file.into(),
                        source,
                    });
                }
            }
        }
        self.bytes_read += filled as u64;
        Ok(filled)
    }

    #[cold]
    fn bad(&self, file: &str, expected: String, found: String) -> TraceError {
        TraceError::Bad {
            file: file.into(),
            place: format!("block {} before byte {}", self.block, self.bytes_read),
            expected,
            found,
        }
    }
}
