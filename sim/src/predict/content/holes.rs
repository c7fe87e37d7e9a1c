//! Holes that deletes leave in pages, after compression.
//!
//! A hole has the bytes of its record until the page is compacted. When the key is put again, it is
//! in the page twice, and the second copy compresses to a reference to the first.

use treering_engine::BLOCK_SIZE;
use treering_engine::node::{ChangeMap, PageMut, PageRef};

use super::{Made, Sampler};
use crate::predict::played::{InUse, PageSize};

/// Bytes that a page keeps for slots and their index when a record is put again.
const SLOTS_TO_COME: usize = 64;

impl Sampler<'_> {
    /// Deletes some records of a leaf and puts them again, as long as the gap has room: what is in
    /// use then, and the size of a block.
    pub(super) fn with_holes(&mut self, page: &Made) -> Option<(InUse, f64)> {
        let mut bytes = page.bytes.clone();
        let view = PageRef::new(&page.bytes);
        if view.layout().is_dense() {
            return None;
        }
        let prefix = view.prefix().len();
        let mut used = InUse {
            bytes: view.used_bytes(),
            repeated: 0,
        };
        let mut changes = ChangeMap::new();
        for key in page.keys.iter().step_by(2) {
            let value = self.value(*key);
            let suffix = self.workload.key(*key).len().saturating_sub(prefix);
            let len = suffix + value.len();
            let mut page = PageMut::new(&mut bytes, &mut changes);
            if used.bytes + len + SLOTS_TO_COME > self.options.page_size {
                break;
            }
            let key = self.workload.key(*key);
            if !page.delete(key) || page.put(key, &value).is_err() {
                break;
            }
            used.bytes += len;
            used.repeated += suffix;
        }
        PageMut::new(&mut bytes, &mut changes).seal();
        let blocks = (bytes.len() / BLOCK_SIZE) as f64;
        let (size, _) = self.size(&bytes);
        (used.repeated > 0).then_some((used, size / blocks))
    }
}

/// How much less a repeated byte adds to a block than another, from pages with holes.
pub(super) fn repeated(line: &PageSize, pages: &[(InUse, f64)]) -> f64 {
    let (mut saved, mut bytes) = (0.0, 0.0);
    for (used, size) in pages {
        saved += line.empty + line.per_byte * used.bytes as f64 - size;
        bytes += used.repeated as f64;
    }
    (saved / f64::max(bytes, 1.0)).max(0.0)
}
