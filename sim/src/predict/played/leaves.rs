//! Which page a key is in at any time, without a tree.
//!
//! [`LeafLevel::grow`] knows the leaves at the end of the trace and all splits. A split at rank `r`
//! makes the page that begins at `r`. So the page of a key is the last one that exists by now and
//! does not begin behind the key:
//!
//! ```text
//! final leaves   0 | 1 | 2 | 3 | 4 | 5        a page is named by the first final leaf in it
//! now            0       2           5        key in final leaf 4 ──▶ page 2
//! ```
//!
//! 4 bytes per key, 12 per final leaf; a search looks at three words or so.

use super::marks::Marks;
use crate::predict::grown::Split;
use crate::predict::leaf::LeafLevel;
use crate::predict::workload::Step;

/// A split that has just happened: the right page is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parted {
    pub(super) left: u32,
    pub(super) right: u32,
    /// Index in [`LeafLevel::splits`].
    pub(super) split: usize,
}

/// The pages that exist now.
pub(super) struct Leaves<'a> {
    splits: &'a [Split],
    /// Operations per unit of a split's time.
    tick: u64,
    next: usize,
    /// Final leaf of each key.
    of_key: &'a [u32],
    /// First rank of each final leaf.
    starts: &'a [u32],
    now: Marks,
    /// Records in each page that exists now.
    records: Vec<u32>,
    count: usize,
    /// Pages that no longer split as in a tree without deletes.
    loose: Vec<bool>,
}

impl<'a> Leaves<'a> {
    /// Begins with one empty page.
    pub(super) fn new(level: &'a LeafLevel, tick: u64) -> Leaves<'a> {
        let leaves = level.starts.len().max(1);
        let mut now = Marks::new(leaves);
        now.insert(0);
        Leaves {
            splits: &level.splits,
            tick,
            next: 0,
            of_key: level.leaf_of_key(),
            starts: &level.starts,
            now,
            records: vec![0; leaves],
            count: 1,
            loose: vec![false; leaves],
        }
    }

    /// Number of pages.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Number of pages that there will ever be.
    pub(super) fn limit(&self) -> usize {
        self.records.len()
    }

    /// The page of a key.
    #[inline]
    pub(super) fn page(&self, key: u32) -> u32 {
        // Page 0 always exists.
        let leaf = self.of_key[key as usize] as usize;
        self.now.at_or_below(leaf).unwrap_or(0) as u32
    }

    /// The page behind this one in key order.
    pub(super) fn after(&self, page: u32) -> Option<u32> {
        self.now.at_or_above(page as usize + 1).map(|p| p as u32)
    }

    /// The page before this one in key order.
    pub(super) fn before(&self, page: u32) -> Option<u32> {
        let before = (page as usize).checked_sub(1)?;
        self.now.at_or_below(before).map(|p| p as u32)
    }

    /// Whether a page exists now.
    pub(super) fn exists(&self, page: u32) -> bool {
        self.now.at_or_below(page as usize) == Some(page as usize)
    }

    /// Whether a page may differ from one in a tree without deletes.
    pub(super) fn is_loose(&self, page: u32) -> bool {
        self.loose[page as usize]
    }

    /// From now on a page may differ from one in a tree without deletes.
    pub(super) fn loosen(&mut self, page: u32) {
        self.loose[page as usize] = true;
    }

    /// The final leaves within a page behind its first, with their first ranks.
    pub(super) fn starts_within(&self, page: u32) -> impl Iterator<Item = (u32, usize)> {
        let end = self.after(page).map_or(self.starts.len(), |p| p as usize);
        (page as usize + 1..end).map(|leaf| (leaf as u32, self.starts[leaf] as usize))
    }

    /// Makes a page for the right half of a loose one.
    pub(super) fn make(&mut self, left: u32, right: u32) {
        self.loose[right as usize] = self.loose[left as usize];
        self.now.insert(right as usize);
        self.count += 1;
    }

    /// After a split, so many records are in the right half.
    pub(super) fn recount(&mut self, left: u32, right: u32, records: u32) {
        let both = self.records[left as usize] + self.records[right as usize];
        self.records[left as usize] = both.saturating_sub(records);
        self.records[right as usize] = records;
    }

    /// A page absorbs its right neighbour.
    pub(super) fn merge(&mut self, left: u32, right: u32) {
        self.now.remove(right as usize);
        self.count -= 1;
        self.loose[left as usize] = true;
        self.records[left as usize] += std::mem::take(&mut self.records[right as usize]);
    }

    /// Whether a split is due by operation number `time`.
    #[inline]
    pub(super) fn is_due(&self, time: u64) -> bool {
        let next = self.splits.get(self.next);
        next.is_some_and(|split| u64::from(split.time) * self.tick <= time)
    }

    /// The pages of the next split, left and right, and the first rank of the right one; `None` if
    /// it makes no page.
    pub(super) fn next_split(&self) -> Option<(u32, u32, u32)> {
        let split = self.splits.get(self.next)?;
        let leaf = self.starts.partition_point(|start| *start < split.from);
        let left = self.now.at_or_below(leaf)?;
        let makes_one = left != leaf && leaf < self.records.len() && !self.loose[left];
        makes_one.then_some((left as u32, leaf as u32, split.from))
    }

    /// Ranks of the keys in a page.
    pub(super) fn ranks(&self, page: u32) -> std::ops::Range<usize> {
        let end = self.after(page).map_or(self.of_key.len(), |next| {
            self.starts[next as usize] as usize
        });
        self.starts
            .get(page as usize)
            .map_or(0, |start| *start as usize)..end
    }

    /// Does the next split.
    pub(super) fn split(&mut self) -> Option<Parted> {
        let number = self.next;
        let next = self.next_split();
        self.next += 1;
        let split = self.splits.get(number)?;
        let (left, right, _) = next?;
        let leaf = right as usize;
        let moved = split.moved.min(self.records[left as usize]);
        self.records[left as usize] -= moved;
        self.records[leaf] = moved;
        self.now.insert(leaf);
        self.count += 1;
        Some(Parted {
            left,
            right,
            split: number,
        })
    }

    /// Notes a new record in a page.
    pub(super) fn add(&mut self, page: u32) {
        self.records[page as usize] += 1;
    }

    /// Notes that a page has a record less.
    pub(super) fn remove(&mut self, page: u32) {
        let records = &mut self.records[page as usize];
        *records = records.saturating_sub(1);
    }

    /// Records in a page.
    pub(super) fn records(&self, page: u32) -> u32 {
        self.records[page as usize]
    }

    /// The pages that a scan reads, in order.
    pub(super) fn scanned(&self, step: Step) -> Vec<u32> {
        let mut page = self.page(step.key);
        let mut pages = vec![page];
        let mut left = f64::from(step.len);
        let mut here = self.behind(page, step.key) * f64::from(self.records(page));
        // A scan that ends with the last record of a page does not look for more.
        while left > here
            && let Some(next) = self.after(page)
        {
            page = next;
            pages.push(page);
            left -= here;
            here = f64::from(self.records(page));
        }
        pages
    }

    /// The share of a page's records that are at or behind a key, if keys are spread evenly over
    /// the page's range.
    fn behind(&self, page: u32, key: u32) -> f64 {
        let (first, leaf) = (page as usize, self.of_key[key as usize] as usize);
        let end = self.after(page).map_or(self.starts.len(), |p| p as usize);
        (end as f64 - leaf as f64 - 0.5) / (end - first) as f64
    }
}
