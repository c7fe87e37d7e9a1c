//! Structure changes: splits and merges of leaves (B-Trees Are Back §2).
//!
//! Each is one log record, which carries the records that move. So the two pages may reach the
//! device in any order, or only one of them before a crash: redo rebuilds each from the record if
//! the page's own LSN is older.
//!
//! The order of steps, all under the latches of both leaves: append the record, change the pages,
//! update the index. A reader that descends in between reaches a leaf whose fences send it back to
//! the index.

use super::log_room::Room;
use super::{Attempt, BTree, Keep};
use crate::cache::WriteGuard;
use crate::error::{Error, Result};
use crate::events::{Event, Leaf, Snapshot, fence_name};
use crate::mutation;
use crate::node::{PageLayout, Refused, Remedy, SplitPlan, records};
use crate::pager::Spare;
use crate::pages::PageStore as _;
use crate::sync::atomic::Ordering;
use crate::trees::notes::{Merge, MergeRule};
use crate::types::{Lsn, PageId};
use crate::wal::Record;

/// The resources for a split.
pub(super) struct Means<'a> {
    pub(super) spare: Spare<'a>,
    /// Log space for the records of a page, if the caller has reserved it.
    pub(super) room: Option<Room<'a>>,
    pub(super) keep: Keep,
}

impl<'a> Means<'a> {
    pub(super) fn new(spare: Spare<'a>) -> Means<'a> {
        Means {
            spare,
            room: None,
            keep: Keep::Reserve,
        }
    }
}

impl BTree {
    /// Splits or converts a leaf that has refused a record. The caller then tries its put again.
    pub(super) fn make_room(
        &self,
        page: PageId,
        mut leaf: WriteGuard<'_>,
        (key, value_len): (&[u8], usize),
        spare: Spare<'_>,
        room: Option<Room<'_>>,
    ) -> Result<Attempt<Lsn>> {
        // Every remedy needs the order, and more than once.
        leaf.edit().sort();
        match self.choice.remedy(&leaf.view(), key, value_len) {
            Some(Remedy::Split(plan)) => {
                let means = Means {
                    room,
                    ..Means::new(spare)
                };
                let divided = self.divide_at(page, leaf, &plan, means)?;
                Ok(divided.and_then(|_| Attempt::Again))
            }
            Some(Remedy::Relayout(layout)) => Ok(match self.lay_out(page, &mut leaf, layout)? {
                true => Attempt::Again,
                false => Attempt::LogFull,
            }),
            None => Err(self.too_few(page)),
        }
    }

    /// Splits or converts `left`, for which the caller computed that it has too few bytes, or no
    /// place, for a record. Returns the new page, if there is one.
    pub(in crate::trees) fn divide(
        &self,
        left_id: PageId,
        mut left: WriteGuard<'_>,
        key: &[u8],
        value_len: usize,
        spare: Spare<'_>,
    ) -> Result<Attempt<Option<PageId>>> {
        let layout = match self.choice.remedy_in_bytes(&left.view(), key, value_len) {
            Some(Remedy::Split(plan)) => {
                let divided = self.divide_at(left_id, left, &plan, Means::new(spare))?;
                return Ok(divided.map(Some));
            }
            Some(Remedy::Relayout(layout)) => layout,
            // A caller that counts in bytes reserves room for hints, which a page of one record may
            // not have. Without hints, it has room for another record of any size.
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
            expected: "at least two records in a full page".into(),
            found: "fewer".into(),
        }
    }

    /// The error of a leaf that refuses a change whose record is in the log. The store must not go
    /// on: once that record is durable, redo cannot make the change either.
    fn impossible_as_logged(&self, page: PageId, refused: &Refused) -> Error {
        let error = self.impossible(page, refused);
        self.pager.poison(&error);
        error
    }

    /// Converts a leaf, which must be possible. Returns `false` if the log has no room.
    pub(super) fn lay_out(
        &self,
        page: PageId,
        leaf: &mut WriteGuard<'_>,
        layout: PageLayout,
    ) -> Result<bool> {
        let Some(_room) = self.room(0) else {
            return Ok(false);
        };
        let before = leaf.view().lsn();
        (leaf.edit().relayout(layout)).map_err(|refused| self.impossible(page, &refused))?;
        if mutation::on("relayout-not-logged") {
            self.changed(leaf, page, before);
            return Ok(true);
        }
        let lsn = self.append(&Record::Relayout { page, layout })?;
        let converts = Leaf::Converts { lsn, page, layout };
        self.pager.volume.tell(|| Event::Leaf(converts));
        let keeps = mutation::on("relayout-keeps-lsn");
        self.changed(leaf, page, if keeps { before } else { lsn });
        Ok(true)
    }

    /// Splits `left` as planned. Returns the new page.
    pub(super) fn divide_at(
        &self,
        left_id: PageId,
        mut left: WriteGuard<'_>,
        plan: &SplitPlan,
        means: Means<'_>,
    ) -> Result<Attempt<PageId>> {
        let skipped = usize::from(mutation::on("split-logs-too-little"));
        let moved = left.view().encode_records(plan.at + skipped);
        let upper = left.view().upper_fence().map(<[u8]>::to_vec);
        let fences = plan.separator.len() + upper.as_ref().map_or(0, Vec::len);
        let Some(_room) = means.room.or_else(|| self.room(moved.len() + fences)) else {
            return Ok(Attempt::LogFull);
        };
        let right_id = match self.pager.pages.allocate(self.kept_slots(means.keep)) {
            Ok(page) => page,
            Err(Error::Full { .. }) => return Ok(Attempt::StoreFull),
            Err(e) => return Err(e),
        };
        self.pager.overflow.mark_as(right_id, left_id);
        let mut right = match self.pager.create(right_id, means.spare) {
            Ok(right) => right,
            Err(e) => {
                self.pager.free_later(right_id);
                return Err(e);
            }
        };
        let own = mutation::on("split-logs-its-layout");
        let lsn = self.append(&Record::Split {
            layout: if own {
                left.view().layout()
            } else {
                plan.right
            },
            left: left_id,
            right: right_id,
            separator: &plan.separator,
            upper: upper.as_deref(),
            records: &moved,
        })?;
        self.tell(|| Snapshot::Splits {
            lsn,
            left: left_id,
            right: right_id,
            fence: fence_name(&plan.separator),
            layout: plan.right,
        });
        left.edit()
            .split_into(&mut right.edit(), right_id, plan)
            .map_err(|refused| self.impossible_as_logged(left_id, &refused))?;
        self.changed(&mut left, left_id, lsn);
        self.changed(&mut right, right_id, lsn);
        self.index.insert(&plan.separator, right_id);
        self.tell(|| Snapshot::Indexed { lsn });
        self.fence_bytes
            .fetch_add(plan.separator.len() as u64, Ordering::Relaxed);
        self.splits.fetch_add(1, Ordering::Relaxed);
        self.adapt(left_id, &mut left)?;
        self.adapt(right_id, &mut right)?;
        Ok(Attempt::Done(right_id))
    }

    /// Merges `left` with its right neighbour if the rule allows it and no other thread is in the
    /// way.
    pub(in crate::trees) fn merge_right(
        &self,
        left_id: PageId,
        mut left: WriteGuard<'_>,
        rule: MergeRule,
        spare: Option<Spare<'_>>,
    ) -> Result<Merge> {
        let Some(right_lower) = left.view().upper_fence().map(<[u8]>::to_vec) else {
            return Ok(Merge::NotWanted);
        };
        let right_id = self.index.find(&right_lower);
        if right_id == left_id {
            return Ok(Merge::NotWanted);
        }
        // Latches belong to frames: the thread that holds this one may have come for another page,
        // and wait for the left one.
        let right = if self.pager.cache.is_absent(right_id) {
            let spare = match spare {
                Some(spare) => Some(spare),
                None => self.pager.spare_under_latch()?,
            };
            let Some(spare) = spare else {
                return Ok(Merge::NeedsSpare);
            };
            self.pager.load(right_id, spare)?
        } else {
            self.pager.cache.try_resident(right_id)
        };
        let Some(right) = right else {
            return Ok(Merge::PutOff);
        };
        if right.view().lower_fence() != right_lower || !rule.wants(&left.view(), &right.view()) {
            return Ok(Merge::NotWanted);
        }
        let general = self.choice.general();
        if mutation::on("merge-not-prepared") && left.view().can_be(general) {
            let converted = left.edit().relayout(general);
            converted.map_err(|refused| self.impossible(left_id, &refused))?;
        }
        if left.view().layout().is_dense()
            && !(left.view().can_be(general) && self.lay_out(left_id, &mut left, general)?)
        {
            return Ok(Merge::NotWanted);
        }
        if !left.view().can_absorb(&right.view()) {
            return Ok(Merge::NotWanted);
        }
        let skipped = usize::from(mutation::on("merge-drops-first"));
        let moved = right.view().encode_records(skipped);
        // A page whose records are out of order passes the check on reading.
        let records = records::decode(&moved).map_err(|damage| Error::Damaged {
            what: right_id.to_string(),
            lba: self.pager.pages.place(right_id),
            expected: "records in the order of their keys".into(),
            found: damage.to_string(),
        })?;
        let upper = right.view().upper_fence().map(<[u8]>::to_vec);
        let fences = right_lower.len() + upper.as_ref().map_or(0, Vec::len);
        let Some(_room) = self.room(moved.len() + fences) else {
            return Ok(Merge::PutOff);
        };
        self.pager.overflow.mark_as(left_id, right_id);
        let lsn = self.append(&Record::Merge {
            left: left_id,
            right: right_id,
            right_lower: &right_lower,
            upper: upper.as_deref(),
            records: &moved,
        })?;
        self.tell(|| Snapshot::Merges {
            lsn,
            left: left_id,
            right: right_id,
            fence: fence_name(&right_lower),
        });
        left.edit()
            .absorb(upper.as_deref(), records)
            .map_err(|refused| self.impossible_as_logged(left_id, &refused))?;
        self.changed(&mut left, left_id, lsn);
        self.index.remove(&right_lower);
        self.fence_bytes
            .fetch_sub(right_lower.len() as u64, Ordering::Relaxed);
        self.pager.retire(right, right_id, lsn);
        self.tell(|| Snapshot::Indexed { lsn });
        self.merges.fetch_add(1, Ordering::Relaxed);
        self.adapt(left_id, &mut left)?;
        if left.view().is_three_quarters_free() {
            // Otherwise, in a row of empty leaves, every other one would stay.
            self.notes.note(left_id);
        }
        Ok(Merge::Done)
    }

    /// Reports a step of the tree's structure.
    pub(super) fn tell(&self, event: impl FnOnce() -> Snapshot) {
        self.pager.volume.tell(|| Event::Snapshot(event()));
    }
}
