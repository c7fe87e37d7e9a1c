//! What a tree of pages takes.

use std::collections::BTreeMap;

use treering_engine::node::{PageLayout, PageRef};

/// The first four bytes behind a prefix: what heads are (§3.2).
fn head(suffix: &[u8]) -> [u8; 4] {
    let mut head = [0; 4];
    let len = suffix.len().min(4);
    head[..len].copy_from_slice(&suffix[..len]);
    head
}

/// Leaves of one layout in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// How many leaves.
    pub leaves: usize,
    /// Records in them.
    pub records: usize,
}

/// What a tree takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Bytes of a node, its envelope aside.
    pub node_bytes: usize,
    /// Number of leaves.
    pub leaves: usize,
    /// Number of nodes above them.
    pub inner: usize,
    /// Number of records.
    pub records: usize,
    /// Sum over leaves of the bytes that their keys leave out.
    pub prefix_bytes: usize,
    /// Pairs of neighbours in a leaf.
    pub pairs: usize,
    /// Those of them whose heads differ.
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

    /// Records in a leaf on average.
    #[must_use]
    pub fn records_per_leaf(&self) -> f64 {
        self.records as f64 / self.leaves.max(1) as f64
    }

    /// Bytes of leaves for each record.
    #[must_use]
    pub fn bytes_per_record(&self) -> f64 {
        self.node_bytes as f64 * self.leaves as f64 / self.records.max(1) as f64
    }

    /// Bytes of all nodes for each record.
    #[must_use]
    pub fn bytes_per_record_with_inner(&self) -> f64 {
        self.node_bytes as f64 * (self.leaves + self.inner) as f64 / self.records.max(1) as f64
    }

    /// Bytes that keys of a leaf leave out, on average over leaves.
    #[must_use]
    pub fn prefix_bytes_mean(&self) -> f64 {
        self.prefix_bytes as f64 / self.leaves.max(1) as f64
    }

    /// Share of neighbours in leaves whose heads differ.
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
