//! Scans: leaf and mini-page merged, leaf by leaf, without recursion (Bf-Tree §5.3; BUGS R4).

use super::BfTree;
use crate::error::Result;
use crate::kv::Visitor;
use crate::mini::MiniRef;
use crate::mutation;

/// Records of one page, copied out: keys and values one behind the other, and where each ends.
#[derive(Default)]
struct Rows {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Rows {
    fn push(&mut self, key: &[&[u8]], value: &[u8]) {
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
}

impl BfTree {
    /// Visits records page by page. Each page's records are copied out under its lock and visited without it.
    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let mut at = from.to_vec();
        let mut rows = Rows::default();
        loop {
            rows.clear();
            let next = self.rows_from(&at, &mut rows)?;
            let mut start = 0;
            for &(key_end, end) in &rows.ends {
                let (key, value) = (&rows.bytes[start..key_end], &rows.bytes[key_end..end]);
                if visit(key, value).is_break() {
                    return Ok(());
                }
                start = end;
            }
            match next {
                Some(fence) => at = fence,
                None => return Ok(()),
            }
        }
    }

    /// Copies what the page of `at` has at or after it; returns the page's upper fence.
    fn rows_from(&self, at: &[u8], rows: &mut Rows) -> Result<Option<Vec<u8>>> {
        let (page, guard) = self.lock_shared(at)?;
        let leaf = self.read_leaf(page)?;
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
