//! Scans: leaf and mini-page merged, leaf by leaf, without recursion (Bf-Tree §5.3; BUGS R4). If
//! the mini-page is a mirror, the leaf is not read.

use super::BfTree;
use super::counters::Counters;
use super::mirror::both;
use super::page::{locate_and_lock, lock_before, note_use};
use super::promotion::{LeafReads, bytes_of};
use crate::error::Result;
use crate::kv::Visitor;
use crate::mini::events::Event as Told;
use crate::mini::{Marks, MiniRef};
use crate::node::adapt::Use;
use crate::ring::Shared;
use crate::rows::{self, Rows};
use crate::types::PageId;

/// Only the first leaves of a scan, this many, may become mirrors: a long scan passes each leaf
/// once, and would fill the ring with mirrors that are not used again.
const MIRRORED: u64 = 8;

impl BfTree {
    /// Visits records page by page in ascending order, see [`rows`].
    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visitor<'_>) -> Result<()> {
        let mut leaves = 0;
        rows::scan(from, visit, |at, rows| {
            let index = &self.leaves.index;
            let (located, guard) =
                locate_and_lock(index, &self.hook, at, |page| self.ring.shared(page))?;
            // Fences do not move while the page is locked.
            let upper = index.fence_behind(at, &located);
            leaves += 1;
            self.copy_rows(located.page, guard, (at, None), leaves <= MIRRORED, rows)?;
            Ok(upper)
        })
    }

    /// Visits records page by page in descending order.
    pub(crate) fn scan_back(&self, before: Option<&[u8]>, visit: &mut Visitor<'_>) -> Result<()> {
        let mut leaves = 0;
        rows::scan_back(before, visit, |before, rows| {
            let (lower, page, guard) =
                lock_before(&self.leaves.index, &self.hook, &self.ring, before)?;
            leaves += 1;
            self.copy_rows(page, guard, (&lower, before), leaves <= MIRRORED, rows)?;
            Ok(lower)
        })
    }

    /// Copies the records of a page that are at or after `from` and below `before`. Also makes
    /// mirrors of pages that are scanned often, if that is allowed.
    fn copy_rows(
        &self,
        page: PageId,
        guard: Shared<'_>,
        (from, before): (&[u8], Option<&[u8]>),
        may_mirror: bool,
        rows: &mut Rows,
    ) -> Result<()> {
        let mini = guard.bytes().map(MiniRef::new);
        let mut copy = |exists: bool, key: &[u8], value: &[u8]| {
            if exists && before.is_none_or(|before| key < before) {
                rows.push(&[key], value);
            }
        };
        if let Some(mirror) = mini.filter(|mini| mini.is_whole()) {
            let (Ok(first) | Err(first)) = mirror.search(from);
            for entry in (first..mirror.count()).map(|index| mirror.entry(index)) {
                copy(entry.kind.exists(), entry.key, entry.value);
            }
            note_use(guard.marks(), Marks::SCANNED);
            Counters::add(&self.counters.mirror_scans, 1);
            self.hook.tell(|| Told::Scanned { page });
            if guard.in_copy_on_access_region() {
                self.copy_to_tail(guard);
            }
            return Ok(());
        }
        if self.leaves.counts(Use::Scan) {
            self.leaves.note_use(page, Use::Scan);
        }
        let leaf = self.leaf_of(page, from)?;
        let view = leaf.view();
        if mini.is_none() {
            self.leaves.note_if_empty(&view);
        }
        if mini.is_none() && before.is_none() {
            // Nothing to merge with, as for most leaves of a scan.
            let prefix = view.prefix();
            view.iter_from(from)
                .for_each(|(suffix, value)| rows.push(&[prefix, &suffix], value));
        } else {
            both(&view, mini, from, |kind, key, value| {
                copy(kind.exists(), key, value);
            });
        }
        self.hook.tell(|| Told::Scanned { page });
        let ring = (&self.counters, &self.ring);
        let bytes = || bytes_of(&leaf.view());
        if may_mirror && self.promoter.wants(LeafReads::Scans, ring, bytes) {
            self.promote_all(guard, leaf);
        }
        Ok(())
    }
}
