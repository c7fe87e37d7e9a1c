//! Shared by the scans of all trees: which rows of a leaf are passed on.
//!
//! A long value is read only when the scan reaches its row: the rows of a leaf end there, and the
//! scan continues as if the next leaf began with that row. So a scan that stops early reads no
//! value that it does not need, and a scan that continues has at most one long value in memory. The
//! price is one more look at the leaf for each long value in it.

use std::collections::BTreeMap;

use crate::mutation;
use crate::pm::bytes::Bytes;
use crate::pm::records::RowValue;
use crate::rows::Rows;

/// The range of keys whose rows a scan wants.
#[derive(Clone, Copy)]
pub(crate) struct Range<'a> {
    pub(crate) from: &'a [u8],
    pub(crate) below: Option<&'a [u8]>,
    /// The key whose row comes next, if known.
    next: Option<&'a [u8]>,
}

impl<'a> Range<'a> {
    /// Creates the range of an ascending scan.
    pub(crate) fn up(from: &'a [u8], below: Option<&'a [u8]>) -> Range<'a> {
        Range {
            from,
            below,
            next: Some(from),
        }
    }

    /// Creates the range of a descending scan.
    pub(crate) fn down(from: &'a [u8], below: Option<&'a [u8]>) -> Range<'a> {
        Range {
            from,
            below,
            // No other key lies between a key and the same key with a zero appended.
            next: below.and_then(|below| below.strip_suffix(&[0])),
        }
    }

    pub(crate) fn is_next(&self, key: &Bytes) -> bool {
        self.next == Some(&**key)
    }
}

/// Passes on the rows from `at` on, up to one whose value has not been read. Returns the key of
/// that row, from which the scan continues.
pub(crate) fn push_from(
    rows: &BTreeMap<Bytes, RowValue>,
    at: &[u8],
    copied: &mut Rows,
) -> Option<Vec<u8>> {
    for (key, value) in rows.iter().filter(|(key, _)| ***key >= *at) {
        match value {
            RowValue::Read(value) => copied.push(&[key], value),
            RowValue::Later if mutation::on("pm-scan-passes-long") => {}
            RowValue::Later => return Some(key.to_vec()),
        }
    }
    None
}

/// Passes on the rows below `before`, or all, down to one whose value has not been read. Returns
/// the key below which the scan continues.
pub(crate) fn push_below(
    rows: &BTreeMap<Bytes, RowValue>,
    before: Option<&[u8]>,
    copied: &mut Rows,
) -> Option<Vec<u8>> {
    let below = |key: &Bytes| before.is_none_or(|before| **key < *before);
    let later = rows
        .iter()
        .rfind(|(key, value)| below(key) && matches!(value, RowValue::Later))
        .map(|(key, _)| key);
    for (key, value) in rows.iter().filter(|(key, _)| below(key)) {
        if let RowValue::Read(value) = value
            && later.is_none_or(|later| key > later)
        {
            copied.push(&[key], value);
        }
    }
    later.map(|key| [key, &[0][..]].concat())
}
