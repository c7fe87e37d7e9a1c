//! The encoding of a list of whole records, which split and merge records of the log carry.
//!
//! ```text
//!   count varint | prefix len varint | prefix |
//!     suffix len varint | value len varint | suffix | value |
//!     suffix len ...
//! ```
//!
//! Varints are LEB128: 7 bits a byte, low bits first, at most 4 bytes. A key is the prefix followed
//! by its suffix, as in the page of the records, so a list is never much longer than that page.
//! Keys ascend strictly. [`decode`] checks the whole list before it returns the first record.
//!
//! ```
//! use treering_engine::node::records;
//!
//! let list = records::encode([("apple", "red"), ("pear", "green")]);
//! let keys: Vec<Vec<u8>> = records::decode(&list)?.map(|(key, _value)| key).collect();
//! assert_eq!(keys, [b"apple".to_vec(), b"pear".to_vec()]);
//! assert!(records::decode(&list[1..]).is_err());
//! # Ok::<(), records::RecordsDamage>(())
//! ```

use std::fmt;

use super::suffix::Suffix;

/// The longest varint accepted: 28 bits, far more than any length within a page.
const VARINT_MAX: usize = 4;

/// Encodes `records`. Keys must ascend strictly, or [`decode`] will refuse the list.
pub fn encode<K, V>(records: impl IntoIterator<Item = (K, V)>) -> Vec<u8>
where
    K: AsRef<[u8]>,
    V: AsRef<[u8]>,
{
    let mut body = Vec::new();
    let mut count = 0;
    for (key, value) in records {
        push(&mut body, key.as_ref(), value.as_ref());
        count += 1;
    }
    let mut list = Vec::with_capacity(body.len() + 2 * VARINT_MAX);
    push_varint(&mut list, count);
    push_varint(&mut list, 0);
    list.extend_from_slice(&body);
    list
}

/// Encodes `count` records whose keys are `prefix` followed by a suffix.
pub(super) fn encode_suffixes<'a>(
    prefix: &[u8],
    count: usize,
    records: impl Iterator<Item = (Suffix<'a>, &'a [u8])> + Clone,
) -> Vec<u8> {
    let body: usize = (records.clone())
        .map(|(suffix, value)| suffix.len() + value.len() + 2 * VARINT_MAX)
        .sum();
    let mut list = Vec::with_capacity(body + prefix.len() + 2 * VARINT_MAX);
    push_varint(&mut list, count);
    push_varint(&mut list, prefix.len());
    list.extend_from_slice(prefix);
    records.for_each(|(suffix, value)| push(&mut list, &suffix, value));
    list
}

/// Checks an encoded list and returns its records.
///
/// # Errors
/// [`RecordsDamage`] if the bytes are not exactly one list with strictly ascending keys.
pub fn decode(bytes: &[u8]) -> Result<RecordList<'_>, RecordsDamage> {
    let mut rest = bytes;
    let damage = |rest: &[u8], why| RecordsDamage {
        at: bytes.len() - rest.len(),
        why,
    };
    let count = take_varint(&mut rest).map_err(|why| damage(rest, why))?;
    let prefix_len = take_varint(&mut rest).map_err(|why| damage(rest, why))?;
    let Some((prefix, suffixes)) = rest.split_at_checked(prefix_len) else {
        return Err(damage(rest, RecordsFlaw::Cut));
    };
    rest = suffixes;
    let list = RecordList {
        prefix,
        bytes: rest,
        left: count,
    };
    let mut last: Option<&[u8]> = None;
    for _ in 0..count {
        let before = rest;
        let (key, _) = take(&mut rest).map_err(|why| damage(before, why))?;
        if last.is_some_and(|last| last >= key) {
            return Err(damage(before, RecordsFlaw::OutOfOrder));
        }
        last = Some(key);
    }
    if !rest.is_empty() {
        return Err(damage(rest, RecordsFlaw::TrailingBytes(rest.len())));
    }
    Ok(list)
}

/// The records of a checked list as (key, value), in key order.
#[derive(Clone, Debug)]
pub struct RecordList<'a> {
    prefix: &'a [u8],
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Iterator for RecordList<'a> {
    type Item = (Vec<u8>, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (suffix, value) = take(&mut self.bytes).ok()?;
        Some(([self.prefix, suffix].concat(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for RecordList<'_> {}

/// Why and where bytes are not a record list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record list, byte {at}: {why}")]
pub struct RecordsDamage {
    /// Offset of the first invalid byte.
    pub at: usize,
    /// What is wrong there.
    pub why: RecordsFlaw,
}

/// What is wrong with a record list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordsFlaw {
    /// The bytes end within a record.
    Cut,
    /// A length is not a varint of at most 28 bits in its shortest form.
    BadLength,
    /// A key is not greater than the one before.
    OutOfOrder,
    /// This many bytes follow the last record.
    TrailingBytes(usize),
}

impl fmt::Display for RecordsFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordsFlaw::Cut => write!(f, "expected more bytes, found the end"),
            RecordsFlaw::BadLength => {
                write!(f, "expected a length of at most 28 bits, found none")
            }
            RecordsFlaw::OutOfOrder => {
                write!(f, "expected a key greater than the one before")
            }
            RecordsFlaw::TrailingBytes(n) => write!(f, "expected the end, found {n} more bytes"),
        }
    }
}

fn push(list: &mut Vec<u8>, suffix: &[u8], value: &[u8]) {
    push_varint(list, suffix.len());
    push_varint(list, value.len());
    list.extend_from_slice(suffix);
    list.extend_from_slice(value);
}

fn push_varint(list: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        list.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    list.push(n as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<usize, RecordsFlaw> {
    let mut n = 0;
    for i in 0..VARINT_MAX {
        let (&byte, rest) = bytes.split_first().ok_or(RecordsFlaw::Cut)?;
        *bytes = rest;
        n |= usize::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            // Each length has exactly one encoding, so equal lists are equal bytes.
            return if byte == 0 && i > 0 {
                Err(RecordsFlaw::BadLength)
            } else {
                Ok(n)
            };
        }
    }
    Err(RecordsFlaw::BadLength)
}

fn take<'a>(bytes: &mut &'a [u8]) -> Result<(&'a [u8], &'a [u8]), RecordsFlaw> {
    let key_len = take_varint(bytes)?;
    let value_len = take_varint(bytes)?;
    let (key, rest) = bytes.split_at_checked(key_len).ok_or(RecordsFlaw::Cut)?;
    let (value, rest) = rest.split_at_checked(value_len).ok_or(RecordsFlaw::Cut)?;
    *bytes = rest;
    Ok((key, value))
}
