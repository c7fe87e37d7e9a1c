//! Structure changes: splits of full pages, and merges of pages that deletes left sparse.
//!
//! The rules are those of `engine/src/trees/notes.rs`: a delete, or a merge of records into a page,
//! notes a page that is three quarters unused; background work merges it with its right neighbour,
//! or else the left one, if both are as sparse or one is empty. A page in which something was
//! deleted no longer splits when the splits of [`LeafLevel`](crate::predict::leaf::LeafLevel) say
//! so, but when it is full; it splits where one of its final leaves begins.

use super::later::Gone;
use super::store::PageTree;
use crate::predict::log::varint_len;
use crate::predict::workload::Step;

/// Bytes of the log record of a split or merge besides page names, fences and records: its length,
/// kind, and four short numbers.
const RECORD_BYTES: f64 = 7.0;

impl PageTree<'_, '_> {
    /// A page is full: it is loaded, then half of it moves to a new page.
    pub(super) fn split(&mut self) {
        let Some(parted) = self.leaves.split() else {
            return;
        };
        let split = self.level.splits[parted.split];
        let (left, right) = (parted.left, parted.right);
        self.load_for_split(left, right);
        self.count_split(left, right);
        let bytes = f64::from(split.moved_bytes) + 2.0 * f64::from(split.separator_len);
        self.divide((left, right), bytes);
    }

    /// Loads a page that is to be split, and names the new one.
    pub(super) fn load_for_split(&mut self, left: u32, right: u32) {
        self.look(left);
        if self.is_sampled(right) {
            self.homes.create(right);
        }
    }

    /// Counts the records of both halves, if they are counted by their bytes.
    pub(super) fn count_split(&mut self, left: u32, right: u32) {
        let moved = self.leaves.ranks(right);
        if let Some(fill) = &mut self.fill {
            let live = &self.live;
            let records = fill.split((left, right), moved, |key| live[key as usize]);
            self.leaves.recount(left, right, records);
        }
    }

    /// Logs a split with so many bytes, and puts the new page into a frame.
    pub(super) fn divide(&mut self, (left, right): (u32, u32), bytes: f64) {
        let names = varint_len(self.homes.name(left)) + varint_len(self.homes.name(right));
        self.append(bytes + names as f64 + RECORD_BYTES);
        let end = self.redo.end();
        if self.is_sampled(right) {
            while self.frames.lacks_room_for(right) {
                self.write_back();
            }
            self.frames.create(right, end);
        }
        if self.is_sampled(left) {
            self.frames.change(left, end);
        }
        if let Some(deltas) = &mut self.deltas {
            deltas.split(left, right);
        }
    }

    /// Notes a page if it is sparse. From now on it may differ from a page without deletes.
    pub(super) fn note_sparse(&mut self, page: u32) {
        self.leaves.loosen(page);
        if self.is_sparse(page) && self.leaves.count() > 1 {
            // Merged in the order of their names.
            self.notes.insert((self.homes.name(page), page));
        }
    }

    /// Takes a noted page.
    pub(super) fn next_note(&mut self) -> Option<u32> {
        match self.notes.is_empty() {
            true => None,
            false => self.notes.pop_first().map(|(_, page)| page),
        }
    }

    pub(super) fn is_sparse(&self, page: u32) -> bool {
        let records = self.leaves.records(page);
        let fill = self.fill.as_ref();
        fill.is_some_and(|fill| fill.is_sparse(page, records))
    }

    /// Whether the rule asks for a merge of these neighbours.
    pub(super) fn may_merge(&self, left: u32, right: u32) -> bool {
        let Some(fill) = &self.fill else {
            return false;
        };
        let records = |page| self.leaves.records(page);
        let empty = records(left) == 0 || records(right) == 0;
        let sparse = self.is_sparse(left) && self.is_sparse(right);
        (empty || sparse) && fill.fit_one((left, records(left)), (right, records(right)))
    }

    /// Accesses a page of the sample.
    pub(super) fn look(&mut self, page: u32) {
        self.note_access();
        if self.is_sampled(page) {
            self.visit(page, None);
        }
    }

    /// The right one of two neighbours is needed: it is loaded, unless it is in a frame.
    pub(super) fn look_beside(&mut self, right: u32) {
        if self.is_sampled(right) && !self.frames.holds(right) {
            self.note_access();
            self.visit(right, None);
        }
    }

    /// Merges noted pages.
    pub(super) fn merge_noted(&mut self) {
        while let Some(page) = self.next_note() {
            if !self.leaves.exists(page) {
                continue;
            }
            self.look(page);
            if !self.is_sparse(page) {
                continue;
            }
            self.look(page);
            if let Some(right) = self.leaves.after(page) {
                self.look_beside(right);
                if self.may_merge(page, right) {
                    self.merge_pages(page, right);
                    continue;
                }
            }
            if let Some(left) = self.leaves.before(page) {
                self.look(left);
                self.look_beside(page);
                if self.may_merge(left, page) {
                    self.merge_pages(left, page);
                }
            }
            self.tidy();
        }
    }

    /// A page absorbs its right neighbour. Both are in frames.
    pub(super) fn merge_pages(&mut self, left: u32, right: u32) {
        let records = self.leaves.records(right);
        let Some(fill) = &mut self.fill else {
            return;
        };
        let moved = fill.moved_bytes(right, records);
        fill.merge(left, right);
        let names = varint_len(self.homes.name(left)) + varint_len(self.homes.name(right));
        self.append(moved + 2.0 * self.fence_bytes + names as f64 + RECORD_BYTES);
        let end = self.redo.end();
        self.leaves.merge(left, right);
        self.frames.change(left, end);
        self.frames.discard(right);
        if let Some(deltas) = &mut self.deltas {
            deltas.merge(left, right);
        }
        if self.is_sampled(right) {
            let freed = self.homes.detach(right);
            self.retired.push(end, Gone::Page(freed));
        }
        self.note_sparse(left);
        self.tidy();
    }

    /// If a page that no longer splits as without deletes lacks room for a put, the page and a new
    /// one for its right half.
    pub(super) fn overflowing(&self, step: Step) -> Option<(u32, u32)> {
        let page = self.leaves.page(step.key);
        if !self.leaves.is_loose(page) || self.is_live(step.key) {
            return None;
        }
        let fill = self.fill.as_ref()?;
        let (key_len, _) = self.workload.keys.lens(step.key);
        let bytes = key_len + self.leaf_bytes(step);
        if !fill.lacks_room(page, self.leaves.records(page), bytes) {
            return None;
        }
        let keys = self.leaves.ranks(page);
        let right = fill.middle(keys, self.leaves.starts_within(page), |key| {
            self.is_live(key)
        })?;
        Some((page, right))
    }

    /// Splits a page that lacks room.
    pub(super) fn split_full(&mut self, left: u32, right: u32) {
        self.leaves.make(left, right);
        self.load_for_split(left, right);
        self.count_split(left, right);
        let records = self.leaves.records(right);
        let moved = self.fill.as_ref();
        let moved = moved.map_or(0.0, |fill| fill.moved_bytes(right, records));
        self.divide((left, right), moved + 2.0 * self.fence_bytes);
    }
}
