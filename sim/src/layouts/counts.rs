//! Space statistics of a tree of pages.

use std::collections::BTreeMap;

use treering_engine::node::{PageLayout, PageRef};

/// Heads: the first four key bytes after the prefix (§3.2).
fn head(suffix: &[u8]) -> [u8; 4] {
    let mut head = [0; 4];
    let len = suffix.len().min(4);
    head[..len].copy_from_slice(&suffix[..len]);
    head
}

/// Leaves of one layout in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// Number of leaves.
    pub leaves: usize,
    /// Records in them.
    pub records: usize,
}

/// Space statistics of a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Bytes of a node, without its envelope.
    pub node_bytes: usize,
    /// Number of leaves.
    pub leaves: usize,
    /// Number of inner nodes.
    pub inner: usize,
    /// Number of records.
    pub records: usize,
    /// Sum over leaves of the bytes that prefix truncation saves per key.
    pub prefix_bytes: usize,
    /// Number of pairs of adjacent records in a leaf.
    pub pairs: usize,
    /// Number of those pairs whose heads differ.
    pub distinct: usize,
    /// Leaves by layout (Figure 15).
    pub kinds: BTreeMap<&'static str, Kind>,
}

impl Counts {
    pub(super) fn add_leaf(&mut self, page: PageRef<'_>) {
        let records = page.count();
        self.leaves += 1;
        self.records += records;
        self.prefix_bytes += page.prefix().len();
        let kind = self.kinds.entry(page.layout().name()).or_default();
        kind.leaves += 1;
        kind.records += records;
        let mut last = None;
        for (suffix, _) in page.iter() {
            let head = head(&suffix);
            if let Some(last) = last {
                self.pairs += 1;
                self.distinct += usize::from(last != head);
            }
            last = Some(head);
        }
    }

    /// Mean number of records in a leaf.
    #[must_use]
    pub fn records_per_leaf(&self) -> f64 {
        self.records as f64 / self.leaves.max(1) as f64
    }

    /// Bytes of leaves per record.
    #[must_use]
    pub fn bytes_per_record(&self) -> f64 {
        self.node_bytes as f64 * self.leaves as f64 / self.records.max(1) as f64
    }

    /// Bytes of all nodes per record.
    #[must_use]
    pub fn bytes_per_record_with_inner(&self) -> f64 {
        self.node_bytes as f64 * (self.leaves + self.inner) as f64 / self.records.max(1) as f64
    }

    /// Bytes that prefix truncation saves per key, averaged over leaves.
    #[must_use]
    pub fn prefix_bytes_mean(&self) -> f64 {
        self.prefix_bytes as f64 / self.leaves.max(1) as f64
    }

    /// Share of adjacent records in leaves whose heads differ.
    #[must_use]
    pub fn distinct_heads(&self) -> f64 {
        self.distinct as f64 / self.pairs.max(1) as f64
    }

    /// Share of the leaves that have this layout.
    #[must_use]
    pub fn share_of(&self, layout: PageLayout) -> f64 {
        let kind = self.kinds.get(layout.name()).copied().unwrap_or_default();
        kind.leaves as f64 / self.leaves.max(1) as f64
    }
}
