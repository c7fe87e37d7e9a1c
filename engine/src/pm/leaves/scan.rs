//! What scans of all trees have in common: which rows of a leaf they hand on.
//!
//! A long value is read when the scan gets to its row, not before: the rows of a leaf end at it, and
//! the scan goes on from there as if the next leaf began with it. So a scan that is ended early
//! reads no value that it does not need, and one that goes on has no more than one long value in
//! memory. Up to a leaf's end that takes one more look at the leaf for each of them.

use std::collections::BTreeMap;

use crate::mutation;
use crate::pm::bytes::Bytes;
use crate::pm::records::RowValue;
use crate::rows::Rows;

/// Keys of which a scan wants the rows.
#[derive(Clone, Copy)]
pub(crate) struct Range<'a> {
    pub(crate) from: &'a [u8],
    pub(crate) below: Option<&'a [u8]>,
    /// The one whose row comes next, if there is one.
    next: Option<&'a [u8]>,
}

impl<'a> Range<'a> {
    /// Upwards.
    pub(crate) fn up(from: &'a [u8], below: Option<&'a [u8]>) -> Range<'a> {
        Range {
            from,
            below,
            next: Some(from),
        }
    }

    /// Downwards.
    pub(crate) fn down(from: &'a [u8], below: Option<&'a [u8]>) -> Range<'a> {
        Range {
            from,
            below,
            // No other key is between a key and the same with a zero behind it.
            next: below.and_then(|below| below.strip_suffix(&[0])),
        }
    }

    pub(crate) fn is_next(&self, key: &Bytes) -> bool {
        self.next == Some(&**key)
    }
}

/// Hands on the rows from `at` on, up to one whose value is not read yet: its key, from which to go
/// on.
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

/// Hands on the rows below `before`, or all, down to one whose value is not read yet: below which
/// key to go on.
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
