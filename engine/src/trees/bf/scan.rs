//! Scans: leaf and mini-page merged, leaf by leaf, without recursion (Bf-Tree §5.3; BUGS R4).

use super::BfTree;
use crate::error::Result;
use crate::kv::Visitor;
use crate::mini::MiniRef;
use crate::mutation;
use crate::trees::rows::{self, Rows};

impl BfTree {
    /// Visits records page by page, see [`rows`].
    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        rows::scan(from, visit, |at, rows| self.rows_from(at, rows))
    }

    /// Copies what the page of `at` has at or after it; returns the page's upper fence.
    fn rows_from(&self, at: &[u8], rows: &mut Rows) -> Result<Option<Vec<u8>>> {
        let (page, guard) = self.lock_shared(at)?;
        let leaf = self.leaf_of(page, at)?;
        let view = leaf.view();
        let prefix = view.prefix();
        let mini = guard.bytes().map(MiniRef::new);
        let first = mini.map_or(0, |mini| mini.search(at).unwrap_or_else(|place| place));
        let mut newer = mini
            .into_iter()
            .flat_map(|mini| (first..mini.count()).map(move |index| mini.entry(index)))
            .peekable();
        let mut key = Vec::new();
        for (suffix, value) in view.iter_from(at) {
            key.clear();
            key.extend_from_slice(prefix);
            key.extend_from_slice(suffix);
            while let Some(entry) = newer.next_if(|entry| entry.key < &key[..]) {
                if entry.kind.exists() {
                    rows.push(&[entry.key], entry.value);
                }
            }
            // The mini-page has the last word.
            match newer.next_if(|entry| entry.key == key) {
                Some(_) if mutation::on("bf-scan-leaf-wins") => rows.push(&[&key], value),
                Some(entry) if entry.kind.exists() => rows.push(&[entry.key], entry.value),
                Some(_) => {}
                None => rows.push(&[&key], value),
            }
        }
        for entry in newer.filter(|entry| entry.kind.exists()) {
            rows.push(&[entry.key], entry.value);
        }
        Ok(view.upper_fence().map(<[u8]>::to_vec))
    }
}
