//! Leaves with their mini-pages, as sets of records (Bf-Tree §3.1, §5): what is in them, what of it
//! is dirty, what was used.

use super::ring::BlockId;

/// A record of a mini-page: which of its leaf's keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) rank: u32,
    pub(super) bytes: u32,
    pub(super) dirty: bool,
}

/// Reference bits (§5.5): from the last on records share one; in a mirror each shares its own with
/// every so many others.
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

    /// Those at `index` and behind move up by one, and the new one counts as used.
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
    /// By key.
    pub(super) records: Vec<Record>,
    /// It has all of its leaf (§3.1, "Caching range gaps").
    pub(super) mirror: bool,
    marks: Marks,
    /// Bytes that its dirty records are taken to need of the leaf.
    pub(super) growth: u32,
    /// When a record was written last.
    pub(super) written: f64,
}

impl MiniPage {
    pub(super) fn new(block: BlockId, class: usize) -> MiniPage {
        MiniPage {
            block,
            class,
            records: Vec::new(),
            mirror: false,
            marks: Marks::default(),
            growth: 0,
            written: 0.0,
        }
    }

    pub(super) fn find(&self, rank: u32) -> Result<usize, usize> {
        self.records.binary_search_by_key(&rank, |r| r.rank)
    }

    pub(super) fn used(&mut self, index: usize, marks: usize) {
        self.marks.used(index, marks, self.mirror);
    }

    /// Puts a record before the one at `index`.
    pub(super) fn insert(&mut self, index: usize, record: Record, marks: usize) {
        self.marks.insert(index, marks);
        self.records.insert(index, record);
    }

    pub(super) fn dirty(&self) -> u32 {
        self.records.iter().map(|r| u32::from(r.dirty)).sum()
    }

    /// The leaf has all of it.
    pub(super) fn merged(&mut self) {
        self.records.iter_mut().for_each(|r| r.dirty = false);
        self.growth = 0;
    }

    /// Whether a record was written, but not used since the mini-page was at the tail last: then
    /// all that is dirty goes to the leaf.
    pub(super) fn leaves_dirty_behind(&self, marks: usize) -> bool {
        let mut records = self.records.iter().enumerate();
        records.any(|(i, r)| r.dirty && !self.marks.is_hot(i, marks, self.mirror))
    }

    /// Records that were used.
    pub(super) fn hot(&self, marks: usize) -> impl Iterator<Item = Record> {
        let (hot, mirror) = (self.marks, self.mirror);
        let records = self.records.iter().enumerate();
        (records.filter(move |(i, _)| hot.is_hot(*i, marks, mirror))).map(|(_, r)| *r)
    }

    /// Only what was used stays, and has to be used again.
    pub(super) fn cool(&mut self, marks: usize) {
        let (hot, mirror) = (self.marks, self.mirror);
        let mut index = 0;
        self.records.retain(|_| {
            index += 1;
            hot.is_hot(index - 1, marks, mirror)
        });
        self.mirror = false;
        self.marks = Marks::default();
    }

    /// All stays, and has to be used again.
    pub(super) fn cool_whole(&mut self) {
        self.marks = Marks::default();
    }

    /// Has all of its leaf from now on; what is dirty or was used is so still.
    pub(super) fn widen(&mut self, all: impl Iterator<Item = Record>, marks: usize) {
        let old = std::mem::take(&mut self.records);
        let was = std::mem::take(&mut self.marks);
        for (index, mut record) in all.enumerate() {
            if let Ok(at) = old.binary_search_by_key(&record.rank, |r| r.rank) {
                record.dirty = old[at].dirty;
                if was.is_hot(at, marks, self.mirror) {
                    self.marks.used(index, marks, true);
                }
            }
            self.records.push(record);
        }
        self.mirror = true;
    }
}
