//! Mini-pages as sets of records (Bf-Tree §3.1, §5): which are present, dirty, or used.

use super::ring::BlockId;

/// A record of a mini-page, named by the rank of its key in the leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::predict) struct Record {
    pub(in crate::predict) rank: u32,
    pub(in crate::predict) bytes: u32,
    pub(in crate::predict) dirty: bool,
}

/// Reference bits (§5.5). If there are more records than bits, the last records share one; in a
/// mirror, bits are shared round robin.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks(u64);

impl Marks {
    fn bit(index: usize, count: usize, mirror: bool) -> u64 {
        if mirror {
            1 << (index % count)
        } else {
            1 << index.min(count - 1)
        }
    }

    fn is_hot(self, index: usize, count: usize, mirror: bool) -> bool {
        self.0 & Marks::bit(index, count, mirror) != 0
    }

    fn used(&mut self, index: usize, count: usize, mirror: bool) {
        self.0 |= Marks::bit(index, count, mirror);
    }

    /// Inserts a used record at `index` and moves up the bits behind it.
    fn insert(&mut self, index: usize, count: usize) {
        let bit = |index| Marks::bit(index, count, false);
        let below = bit(index) - 1;
        let all = u64::MAX >> (64 - count);
        let last = self.0 & bit(count - 1);
        let moved = (self.0 & !below) << 1 & all;
        self.0 = self.0 & below | moved | last | bit(index);
    }
}

/// A mini-page.
pub(super) struct MiniPage {
    pub(super) block: BlockId,
    pub(super) class: usize,
    /// In key order.
    pub(super) records: Vec<Record>,
    /// Whether it holds all records of its leaf (§3.1, "Caching range gaps").
    pub(super) mirror: bool,
    /// Whether, as a mirror, it was used for all records since it was last at the tail.
    pub(super) scanned: bool,
    marks: Marks,
    /// Bytes that its dirty records are assumed to need in the leaf.
    pub(super) growth: u32,
    /// When a record was last written.
    pub(super) written: u64,
}

impl MiniPage {
    pub(super) fn new(block: BlockId, class: usize) -> MiniPage {
        MiniPage {
            block,
            class,
            records: Vec::new(),
            mirror: false,
            scanned: false,
            marks: Marks::default(),
            growth: 0,
            written: 0,
        }
    }

    pub(super) fn find(&self, rank: u32) -> Result<usize, usize> {
        self.records.binary_search_by_key(&rank, |r| r.rank)
    }

    pub(super) fn used(&mut self, index: usize, marks: usize) {
        self.marks.used(index, marks, self.mirror);
    }

    /// Inserts a record before the one at `index`.
    pub(super) fn insert(&mut self, index: usize, record: Record, marks: usize) {
        self.marks.insert(index, marks);
        self.records.insert(index, record);
    }

    pub(super) fn dirty(&self) -> u32 {
        self.records.iter().map(|r| u32::from(r.dirty)).sum()
    }

    /// Bytes that its dirty records take in it.
    pub(super) fn bytes_of_changes(&self) -> u64 {
        let dirty = self.records.iter().filter(|r| r.dirty);
        dirty.map(|r| u64::from(r.bytes)).sum()
    }

    /// Marks all records clean, after a merge.
    pub(super) fn merged(&mut self) {
        self.records.iter_mut().for_each(|r| r.dirty = false);
        self.growth = 0;
    }

    /// Whether a dirty record was not used since the mini-page was last at the tail. If so, all
    /// dirty records are merged into the leaf.
    pub(super) fn leaves_dirty_behind(&self, marks: usize) -> bool {
        let mut records = self.records.iter().enumerate();
        records.any(|(i, r)| r.dirty && !self.marks.is_hot(i, marks, self.mirror))
    }

    /// The records that go with it to the tail: those that were used and, if these need not be
    /// merged for that, those that were changed.
    pub(super) fn wanted(&self, marks: usize, changes: bool) -> impl Iterator<Item = Record> {
        let (hot, mirror) = (self.marks, self.mirror);
        let wanted =
            move |(i, r): &(usize, &Record)| hot.is_hot(*i, marks, mirror) || changes && r.dirty;
        let records = self.records.iter().enumerate();
        records.filter(wanted).map(|(_, r)| *r)
    }

    /// Removes the other records, see [`MiniPage::wanted`], and clears the reference bits.
    pub(super) fn cool(&mut self, marks: usize, changes: bool) {
        self.records = self.wanted(marks, changes).collect();
        self.mirror = false;
        self.scanned = false;
        self.marks = Marks::default();
    }

    /// Keeps all records and clears the reference bits.
    pub(super) fn cool_whole(&mut self) {
        self.scanned = false;
        self.marks = Marks::default();
    }

    /// Adds all records of the leaf. Dirty and used records stay so.
    pub(super) fn widen(&mut self, all: impl Iterator<Item = Record>, marks: usize) {
        let old = std::mem::take(&mut self.records);
        let was = std::mem::take(&mut self.marks);
        // A deleted record whose leaf still has it is in the old records only.
        let mut left = old.iter().enumerate().peekable();
        let mut add = |records: &mut Vec<Record>, record: Record, hot: bool| {
            if hot {
                self.marks.used(records.len(), marks, true);
            }
            records.push(record);
        };
        let is_hot = |at| was.is_hot(at, marks, self.mirror);
        let mut records = Vec::with_capacity(old.len());
        for record in all {
            while let Some((at, before)) = left.next_if(|(_, r)| r.rank < record.rank) {
                if before.dirty {
                    add(&mut records, *before, is_hot(at));
                }
            }
            match left.next_if(|(_, r)| r.rank == record.rank) {
                Some((at, same)) => add(&mut records, *same, is_hot(at)),
                None => add(&mut records, record, false),
            }
        }
        for (at, behind) in left.filter(|(_, r)| r.dirty) {
            add(&mut records, *behind, is_hot(at));
        }
        self.records = records;
        self.mirror = true;
    }
}
