//! Scans, up and down, a leaf at a time: the leaf's pairs with what is buffered for it over them, under the node's lock.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::kv::Visitor;
use crate::pm::nodes::Change;
use crate::pm::records::Bytes;
use crate::sync::Backoff;
use crate::trees::rows;

use super::Lodge;
use super::leaf::members;
use super::node::{Body, Sought};

impl Lodge {
    /// What a leaf and the buffer hold of the leaf's keys.
    fn rows(&self, body: &Body, at: usize) -> Result<BTreeMap<Bytes, Bytes>> {
        let mut rows = BTreeMap::new();
        let image = self.load(body.leaf(at))?;
        for slot in members(image.header().bits()).map(|at| image.slot(at)) {
            rows.insert(self.records.key(slot)?, self.records.value(slot)?);
        }
        for pair in body.group(at) {
            let Change { slot, delete } = pair.change;
            let key = self.records.key(slot)?;
            if delete {
                rows.remove(&key);
            } else {
                rows.insert(key, self.records.value(slot)?);
            }
        }
        Ok(rows)
    }

    /// Visits records from `from` on.
    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        rows::scan(from, visit, |at, copied| {
            let body = self.read(at);
            let leaf = body.leaf_of(Sought::from(at));
            // The node's own upper bound moves only while it is locked for writing.
            let fence = if leaf + 1 < body.leaves() {
                Some(body.low(leaf + 1))
            } else {
                self.index.fence_after(at)
            };
            for (key, value) in &self.rows(&body, leaf)? {
                if **key >= *at {
                    copied.push(&[key], value);
                }
            }
            Ok(fence)
        })
    }

    /// Visits records below `before`, or all, downwards.
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
                for (key, value) in &self.rows(&body, leaf)? {
                    if before.is_none_or(|before| **key < *before) {
                        copied.push(&[key], value);
                    }
                }
                return Ok(body.low(leaf));
            }
        })
    }
}
