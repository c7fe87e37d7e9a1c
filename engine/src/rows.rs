//! Scans of all page trees, up and down: page by page, without recursion (BUGS R4). The records of
//! a page are copied under its latch or lock and visited without it. Then the scan continues with
//! the next page.

use crate::error::Result;
use crate::kv::Visitor;
use crate::mutation;

/// Initial capacity: what a page usually holds, to avoid repeated growth.
const USUAL_BYTES: usize = 4096;
const USUAL_RECORDS: usize = 128;

/// The copied records of one page: keys and values one after the other, and where each ends.
pub(crate) struct Rows {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Rows {
    fn new() -> Rows {
        Rows {
            bytes: Vec::with_capacity(USUAL_BYTES),
            ends: Vec::with_capacity(USUAL_RECORDS),
        }
    }

    /// Adds a record, whose key is given in parts.
    pub(crate) fn push(&mut self, key: &[&[u8]], value: &[u8]) {
        key.iter()
            .for_each(|part| self.bytes.extend_from_slice(part));
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn row(&self, index: usize) -> (&[u8], &[u8]) {
        let (key_end, end) = self.ends[index];
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].1);
        (&self.bytes[start..key_end], &self.bytes[key_end..end])
    }
}

/// Visits records from `from` on in ascending order. `copy` copies the records at or after a key
/// that are on the key's page, and returns the page's upper fence.
pub(crate) fn scan(
    from: &[u8],
    visit: &mut Visitor<'_>,
    mut copy: impl FnMut(&[u8], &mut Rows) -> Result<Option<Vec<u8>>>,
) -> Result<()> {
    let mut at = from.to_vec();
    let mut rows = Rows::new();
    loop {
        rows.clear();
        let next = copy(&at, &mut rows)?;
        for index in 0..rows.ends.len() {
            let (key, value) = rows.row(index);
            if visit(key, value).is_break() && !mutation::on("scan-ignores-break") {
                return Ok(());
            }
        }
        let Some(mut fence) = next else {
            return Ok(());
        };
        if mutation::on("scan-skips-fence") {
            fence.push(0);
        }
        if mutation::on("scan-repeats-last")
            && let Some(last) = rows.ends.len().checked_sub(1)
        {
            let (key, value) = rows.row(last);
            if visit(key, value).is_break() {
                return Ok(());
            }
        }
        at = fence;
    }
}

/// Visits records below `before`, or all, in descending order. `copy` finds the page with the
/// greatest lower fence below a key, copies its records below that key, in ascending order, and
/// returns the page's lower fence.
pub(crate) fn scan_back(
    before: Option<&[u8]>,
    visit: &mut Visitor<'_>,
    mut copy: impl FnMut(Option<&[u8]>, &mut Rows) -> Result<Vec<u8>>,
) -> Result<()> {
    let mut before = before.map(<[u8]>::to_vec);
    let mut rows = Rows::new();
    // Nothing is below the empty key.
    while before.as_ref().is_none_or(|before| !before.is_empty()) {
        rows.clear();
        let lower = copy(before.as_deref(), &mut rows)?;
        for index in (0..rows.ends.len()).rev() {
            let (key, value) = rows.row(index);
            if visit(key, value).is_break() {
                return Ok(());
            }
        }
        let skips = mutation::on("scan-back-skips-page") && !lower.is_empty();
        before = Some(if skips {
            lower[..lower.len() - 1].to_vec()
        } else {
            lower
        });
    }
    Ok(())
}
