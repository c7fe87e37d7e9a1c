//! Leaves with their mini-pages, as sets of records (Bf-Tree §3.1, §5): what is in them, what of it is dirty, what was used.

use super::ring::BlockId;

/// A record of a mini-page: which of its leaf's keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) rank: u32,
    pub(super) bytes: u32,
    pub(super) dirty: bool,
}

/// Reference bits (§5.5): from the last on records share one.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks(u64);

impl Marks {
    fn bit(index: usize, count: usize) -> u64 {
        1 << index.min(count - 1)
    }

    fn is_hot(self, index: usize, count: usize) -> bool {
        self.0 & Marks::bit(index, count) != 0
    }

    fn used(&mut self, index: usize, count: usize) {
        self.0 |= Marks::bit(index, count);
    }

    /// Those at `index` and behind move up by one, and the new one counts as used.
    fn insert(&mut self, index: usize, count: usize) {
        let below = Marks::bit(index, count) - 1;
        let all = u64::MAX >> (64 - count);
        let last = self.0 & Marks::bit(count - 1, count);
        let moved = (self.0 & !below) << 1 & all;
        self.0 = self.0 & below | moved | last | Marks::bit(index, count);
    }
}

/// A mini-page.
pub(super) struct MiniPage {
    pub(super) block: BlockId,
    pub(super) class: usize,
    /// By key.
    pub(super) records: Vec<Record>,
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
            marks: Marks::default(),
            growth: 0,
            written: 0.0,
        }
    }

    pub(super) fn find(&self, rank: u32) -> Result<usize, usize> {
        self.records.binary_search_by_key(&rank, |r| r.rank)
    }

    pub(super) fn used(&mut self, index: usize, marks: usize) {
        self.marks.used(index, marks);
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

    /// Whether a record was written, but not used since the mini-page was at the tail last: then all that is dirty goes to the leaf.
    pub(super) fn leaves_dirty_behind(&self, marks: usize) -> bool {
        let mut records = self.records.iter().enumerate();
        records.any(|(i, r)| r.dirty && !self.marks.is_hot(i, marks))
    }

    /// Records that were used.
    pub(super) fn hot(&self, marks: usize) -> impl Iterator<Item = Record> {
        let hot = self.marks;
        let records = self.records.iter().enumerate();
        (records.filter(move |(i, _)| hot.is_hot(*i, marks))).map(|(_, r)| *r)
    }

    /// Only what was used stays, and has to be used again.
    pub(super) fn cool(&mut self, marks: usize) {
        let hot = self.marks;
        let mut index = 0;
        self.records.retain(|_| {
            index += 1;
            hot.is_hot(index - 1, marks)
        });
        self.marks = Marks::default();
    }
}
