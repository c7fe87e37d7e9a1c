//! Structure changes: leaves split and merge (B-Trees Are Back §2).
//!
//! Both are one log record that carries the records that move, so the two pages may reach the device in any order, or only one
//! of them before a crash: redo rebuilds each from the record if its own LSN says that it is behind.
//!
//! Order of steps, all under the latches of both leaves: append the record, change the pages, update the index. A reader
//! that descends in between lands on a leaf whose fences send it round again.

use super::{Attempt, BTree};
use crate::cache::{Fix, WriteGuard};
use crate::error::{Error, Result};
use crate::mutation;
use crate::node::{PageLayout, Remedy, SplitPlan, records};
use crate::sync::atomic::Ordering;
use crate::types::{Lsn, PageId};
use crate::wal::Record;

impl BTree {
    /// Splits a leaf that has refused a record, or lays it out anew; the caller tries its put again.
    pub(super) fn make_room(
        &self,
        page: PageId,
        mut leaf: WriteGuard<'_>,
        key: &[u8],
        value_len: usize,
    ) -> Result<Attempt<Lsn>> {
        // Whatever is done asks for the order, and more than once.
        leaf.edit().sort();
        match self.choice.remedy(&leaf.view(), key, value_len) {
            Some(Remedy::Split(plan)) => {
                let divided = self.divide_at(page, leaf, &plan)?;
                Ok(divided.and_then(|_| Attempt::Again))
            }
            Some(Remedy::Relayout(layout)) => Ok(match self.lay_out(page, &mut leaf, layout)? {
                true => Attempt::Again,
                false => Attempt::LogFull,
            }),
            None => Err(self.too_few(page)),
        }
    }

    /// Splits `left`, whose keeper finds that it has too few bytes, or no place, for a record, or lays it out anew; says which page is new, if one is.
    pub(in crate::trees) fn divide(
        &self,
        left_id: PageId,
        mut left: WriteGuard<'_>,
        key: &[u8],
        value_len: usize,
    ) -> Result<Attempt<Option<PageId>>> {
        let layout = match self.choice.remedy_in_bytes(&left.view(), key, value_len) {
            Some(Remedy::Split(plan)) => {
                return Ok(self.divide_at(left_id, left, &plan)?.map(Some));
            }
            Some(Remedy::Relayout(layout)) => layout,
            // Who counts in bytes leaves room for hints, which a page of one record may not have; without them it has room for another of any size.
            None if left.view().layout() == PageLayout::Hints => PageLayout::Slotted,
            None => return Err(self.too_few(left_id)),
        };
        Ok(match self.lay_out(left_id, &mut left, layout)? {
            true => Attempt::Done(None),
            false => Attempt::LogFull,
        })
    }

    fn too_few(&self, page: PageId) -> Error {
        Error::Damaged {
            what: page.to_string(),
            lba: self.pager.pages.place(page),
            expected: "two records or more in a full page".into(),
            found: "fewer".into(),
        }
    }

    /// Lays a leaf out anew, which must be possible; `false` if the log has no room.
    pub(super) fn lay_out(
        &self,
        page: PageId,
        leaf: &mut WriteGuard<'_>,
        layout: PageLayout,
    ) -> Result<bool> {
        let Some(_room) = self.room(0) else {
            return Ok(false);
        };
        (leaf.edit().relayout(layout)).map_err(|refused| self.impossible(page, &refused))?;
        let lsn = self.append(&Record::Relayout { page, layout })?;
        self.changed(leaf, page, lsn);
        Ok(true)
    }

    /// Splits `left` as planned, and says which page is new.
    pub(super) fn divide_at(
        &self,
        left_id: PageId,
        mut left: WriteGuard<'_>,
        plan: &SplitPlan,
    ) -> Result<Attempt<PageId>> {
        let skipped = usize::from(mutation::on("split-logs-too-little"));
        let moved = left.view().encode_records(plan.at + skipped);
        let upper = left.view().upper_fence().map(<[u8]>::to_vec);
        let fences = plan.separator.len() + upper.as_ref().map_or(0, Vec::len);
        let Some(_room) = self.room(moved.len() + fences) else {
            return Ok(Attempt::LogFull);
        };
        let right_id = match self.pager.pages.allocate(self.snapshot_slots()) {
            Ok(page) => page,
            // Pages may be waiting for their merges to become durable.
            Err(Error::Full { .. }) if self.pager.has_retired() => return Ok(Attempt::StoreFull),
            Err(e) => return Err(e),
        };
        let mut right = match self.pager.create(right_id) {
            Ok(right) => right,
            Err(e) => {
                self.pager.free_later(right_id);
                return Err(e);
            }
        };
        let lsn = self.append(&Record::Split {
            layout: plan.right,
            left: left_id,
            right: right_id,
            separator: &plan.separator,
            upper: upper.as_deref(),
            records: &moved,
        })?;
        left.edit()
            .split_into(&mut right.edit(), right_id, plan)
            .map_err(|refused| self.impossible(left_id, &refused))?;
        self.changed(&mut left, left_id, lsn);
        self.changed(&mut right, right_id, lsn);
        self.index.insert(&plan.separator, right_id);
        self.fence_bytes
            .fetch_add(plan.separator.len() as u64, Ordering::Relaxed);
        self.splits.fetch_add(1, Ordering::Relaxed);
        self.adapt(left_id, &mut left)?;
        self.adapt(right_id, &mut right)?;
        Ok(Attempt::Done(right_id))
    }

    /// After a delete around `key`: merges the leaf that covers it with its right or else its left neighbour, if both are three
    /// quarters empty (§2), or if one of them holds nothing at all: a queue that is emptied from one side would otherwise leave a
    /// trail of empty leaves beside a full one.
    pub(crate) fn merge_around(&self, key: &[u8]) -> Result<()> {
        let page = self.index.find(key);
        let (lower, merged) = {
            let Fix::Got(leaf) = self.pager.write(page)? else {
                return Ok(());
            };
            if !leaf.view().covers(key) || !leaf.view().is_three_quarters_free() {
                return Ok(());
            }
            let lower = leaf.view().lower_fence().to_vec();
            (lower, self.merge_right(page, leaf)?)
        };
        if merged {
            return Ok(());
        }
        // Left before right: the left neighbour has to be latched first.
        let Some((_, left_id)) = self.index.find_before(&lower) else {
            return Ok(());
        };
        let Fix::Got(left) = self.pager.write(left_id)? else {
            return Ok(());
        };
        if left.view().upper_fence() == Some(&lower) {
            self.merge_right(left_id, left)?;
        }
        Ok(())
    }

    /// Merges `left` with its right neighbour if the rule says so and nobody is in the way; says whether it did.
    pub(in crate::trees) fn merge_right(
        &self,
        left_id: PageId,
        mut left: WriteGuard<'_>,
    ) -> Result<bool> {
        let Some(right_lower) = left.view().upper_fence().map(<[u8]>::to_vec) else {
            return Ok(false);
        };
        let right_id = self.index.find(&right_lower);
        if right_id == left_id {
            return Ok(false);
        }
        // Latches belong to frames: whoever holds this one may have come for another page, and wait for the left one.
        let Some(right) = self.pager.try_write(right_id)? else {
            return Ok(false);
        };
        if right.view().lower_fence() != right_lower || !wants_merge(&left, &right) {
            return Ok(false);
        }
        let general = self.choice.general();
        if left.view().layout().is_dense()
            && !(left.view().can_be(general) && self.lay_out(left_id, &mut left, general)?)
        {
            return Ok(false);
        }
        if !left.view().can_absorb(&right.view()) {
            return Ok(false);
        }
        let skipped = usize::from(mutation::on("merge-drops-first"));
        let moved = right.view().encode_records(skipped);
        // Records out of order pass the check of a page that is read.
        let records = records::decode(&moved).map_err(|damage| Error::Damaged {
            what: right_id.to_string(),
            lba: self.pager.pages.place(right_id),
            expected: "records in the order of their keys".into(),
            found: damage.to_string(),
        })?;
        let upper = right.view().upper_fence().map(<[u8]>::to_vec);
        let fences = right_lower.len() + upper.as_ref().map_or(0, Vec::len);
        let Some(_room) = self.room(moved.len() + fences) else {
            return Ok(false);
        };
        let lsn = self.append(&Record::Merge {
            left: left_id,
            right: right_id,
            right_lower: &right_lower,
            upper: upper.as_deref(),
            records: &moved,
        })?;
        left.edit()
            .absorb(upper.as_deref(), records)
            .map_err(|refused| self.impossible(left_id, &refused))?;
        self.changed(&mut left, left_id, lsn);
        self.index.remove(&right_lower);
        self.fence_bytes
            .fetch_sub(right_lower.len() as u64, Ordering::Relaxed);
        self.pager.retire(right, right_id, lsn);
        self.merges.fetch_add(1, Ordering::Relaxed);
        self.adapt(left_id, &mut left)?;
        Ok(true)
    }
}

/// Both neighbours at least three quarters unused, or one without a record; and what they hold fits one page, if the left one is none that takes over no others.
fn wants_merge(left: &WriteGuard<'_>, right: &WriteGuard<'_>) -> bool {
    let (l, r) = (left.view(), right.view());
    let sparse = l.is_three_quarters_free() && r.is_three_quarters_free();
    (sparse || l.is_empty() || r.is_empty()) && l.could_absorb(&r)
}
