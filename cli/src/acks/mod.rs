//! Lines by which a program says what it writes and what is durable, and the judge of what a power
//! cut may leave of that.
//!
//! ```text
//! try ID put KEY VALUE [put KEY VALUE | delete KEY]...    one transaction is about to be asked for
//! did ID                                                  it has returned
//! durable ID                                              it and all before it are durable
//! failed ID                                               it ended with an error
//! store PATH                                              where the store is, if it is not obvious
//! ```
//!
//! - `ID` is `N` or `WRITER.N`. Each writer has keys of its own; its numbers rise.
//! - Keys and values are hexadecimal; `-` is the empty one. A value may be `#CRC32:LENGTH` instead:
//!   its checksum as of zlib, in hexadecimal, and its bytes in decimal.
//! - A line has at most 64 KiB. A longer transaction continues in another `try` of the same ID.
//! - What failed may be there or not, whatever comes after it; at most eight of a writer's may.
//! - Other lines are the program's own and ignored.
//!
//! After a power cut, each writer's keys must be as after some first part of its tries, one that
//! has all that is durable. No other keys may be there.

mod judge;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The content of a store.
pub(crate) type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// Values longer than this are told by their checksums.
const LONG: usize = 200;
/// The most tries of a writer that may fail: each of their subsets may be there.
pub(crate) const FAILED: usize = 8;

/// What a program has acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acks {
    /// The writers, by the word before the dot; "" if there is none.
    pub(crate) writers: BTreeMap<String, Writer>,
    /// The store's file or folder, relative to the directory.
    pub(crate) store: Option<PathBuf>,
}

/// One sequence of transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writer {
    /// The transactions that were asked for.
    pub(crate) tries: Vec<Try>,
    /// So many of them, from the first, are durable.
    pub(crate) durable: usize,
    /// Tries that failed, by their places, in order.
    pub(crate) failed: Vec<usize>,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Try {
    /// Its number.
    pub(crate) number: u64,
    /// What it changes.
    pub(crate) changes: Vec<Change>,
}

/// A key and its new value; `None` deletes it.
pub(crate) type Change = (Vec<u8>, Option<Value>);

/// A value, or what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// The value itself.
    Bytes(Vec<u8>),
    /// Its checksum and length.
    Digest { crc32: u32, len: usize },
}

impl Value {
    /// Whether these bytes are the value.
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        match self {
            Value::Bytes(value) => value == bytes,
            Value::Digest { crc32, len } => *len == bytes.len() && *crc32 == checksum(bytes),
        }
    }
}

impl Acks {
    /// Whether nothing was asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.writers.is_empty()
    }
}

/// The line that says what is about to be asked for.
pub(crate) fn attempt<'a>(
    number: usize,
    changes: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
) -> String {
    let mut line = format!("try {number}");
    for (key, value) in changes {
        match value {
            None => line.push_str(&format!(" delete {}", Hex(key))),
            Some(value) if value.len() <= LONG => {
                line.push_str(&format!(" put {} {}", Hex(key), Hex(value)));
            }
            Some(value) => {
                let (crc32, len) = (checksum(value), value.len());
                line.push_str(&format!(" put {} #{crc32:08x}:{len}", Hex(key)));
            }
        }
    }
    line
}

/// Bytes as the lines have them.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Decodes hexadecimal; `None` if it is none.
pub(crate) fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.chunks(2);
    let byte = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
    pairs.map(byte).collect()
}

/// CRC-32 as of zlib and gzip.
fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
