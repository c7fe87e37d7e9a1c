//! Scans in both directions, a leaf at a time: the leaf's pairs, overridden by its buffered pairs,
//! under the node's lock.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::kv::Visitor;
use crate::pm::bytes::Bytes;
use crate::pm::leaves::scan::{self, Range};
use crate::pm::nodes::Change;
use crate::pm::records::RowValue;
use crate::rows;
use crate::sync::Backoff;

use super::Lodge;
use super::leaf::members;
use super::node::{Body, Sought};

impl Lodge {
    /// Returns the rows of `range` in the leaf and its buffered pairs.
    fn rows(&self, body: &Body, at: usize, range: Range<'_>) -> Result<BTreeMap<Bytes, RowValue>> {
        let value_of = |key: &Bytes, slot| self.records.row_value(slot, range.is_next(key));
        let mut rows = BTreeMap::new();
        let image = self.load(body.leaf(at))?;
        for slot in members(image.header().bits()).map(|at| image.slot(at)) {
            let key = self.records.key(slot)?;
            let value = value_of(&key, slot)?;
            rows.insert(key, value);
        }
        for pair in body.group(at) {
            let Change { slot, delete } = pair.change;
            let key = self.records.key(slot)?;
            if delete {
                rows.remove(&key);
            } else {
                let value = value_of(&key, slot)?;
                rows.insert(key, value);
            }
        }
        Ok(rows)
    }

    /// Visits the records at or after `from`.
    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        rows::scan(from, visit, |at, copied| {
            let body = self.read(at);
            let leaf = body.leaf_of(Sought::from(at));
            // The node's own upper bound changes only while the node is locked for writing.
            let fence = if leaf + 1 < body.leaves() {
                Some(body.low(leaf + 1))
            } else {
                self.index.fence_after(at)
            };
            let range = Range::up(at, fence.as_deref());
            let rows = self.rows(&body, leaf, range)?;
            Ok(scan::push_from(&rows, at, copied).or(fence))
        })
    }

    /// Visits the records below `before`, or all records, in descending order.
    pub(crate) fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        rows::scan_back(before, visit, |before, copied| {
            let mut backoff = Backoff::new();
            loop {
                let (lower, page) = self.index.before(before);
                let body = self.nodes.node(page.0).read();
                if self.index.before(before) != (lower, page) {
                    drop(body);
                    backoff.wait();
                    continue;
                }
                let leaf = body.leaf_before(before.map(Sought::from));
                let low = body.low(leaf);
                let rows = self.rows(&body, leaf, Range::down(&low, before))?;
                return Ok(scan::push_below(&rows, before, copied).unwrap_or(low));
            }
        })
    }
}
