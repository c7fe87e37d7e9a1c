//! The regions of a store on its drive, as the engine lays them out: superblocks, log, journal or
//! page table, and places for pages. A sampled store has `1/scale` of each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use treering_engine::{BLOCK_SIZE, Options};

use super::redo::LogRegion;
use crate::predict::blocks_per_place;

/// Entries of a page-table block.
pub(super) const TABLE_ENTRIES: u64 = ((BLOCK_SIZE - 16) / 8) as u64;
/// Superblocks at the start.
const SUPERBLOCKS: u64 = 2;

/// Where everything lies, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Regions {
    pub(super) log: LogRegion,
    /// First block of the journal or of the page table.
    pub(super) middle: u64,
    /// Pages in each half of the journal; 0 without one.
    pub(super) journal_pages: u64,
    /// First block of the places.
    pub(super) pages: u64,
    pub(super) per_page: u64,
    pub(super) per_place: u64,
    pub(super) places: u64,
}

impl Regions {
    /// Divides a drive of `capacity` blocks for a store with these options, and scales the result.
    pub(super) fn new(options: &Options, capacity: u64, scale: u64) -> Regions {
        let per_page = (options.page_size / BLOCK_SIZE) as u64;
        let per_place = blocks_per_place(options);
        let scaled = |count: u64| count.div_ceil(scale);
        let log = scaled(options.log_bytes.div_ceil(BLOCK_SIZE as u64));
        let journal_pages = match options.store.has_journal() {
            true => scaled(options.write_batch_pages as u64),
            false => 0,
        };
        let capacity = capacity / scale;
        let fixed = SUPERBLOCKS + log + 2 * journal_pages * per_page;
        let left = capacity.saturating_sub(fixed);
        let table = match options.store.table() {
            Some(_) => left.div_ceil(TABLE_ENTRIES * per_place + 1),
            None => 0,
        };
        let pages = fixed + table;
        Regions {
            log: LogRegion {
                start: SUPERBLOCKS,
                blocks: log.max(1),
                scale,
            },
            middle: SUPERBLOCKS + log,
            journal_pages,
            pages,
            per_page,
            per_place,
            places: capacity.saturating_sub(pages) / per_place,
        }
    }

    /// First block of a place.
    pub(super) fn place(&self, place: u64) -> u64 {
        self.pages + place * self.per_place
    }

    /// The modification-log block of a place.
    pub(super) fn log_block(&self, place: u64) -> u64 {
        self.place(place) + self.per_page
    }
}

/// Numbers that are handed out smallest first.
#[derive(Debug, Default)]
pub(super) struct Places {
    freed: BinaryHeap<Reverse<u64>>,
    /// All numbers from here on are free.
    fresh: u64,
    limit: u64,
    /// Whether it ever mattered how many there are.
    lacked: bool,
}

impl Places {
    pub(super) fn new(limit: u64) -> Places {
        Places {
            limit,
            ..Places::default()
        }
    }

    /// The smallest free number. A store that is fuller than its drive, which a prediction may
    /// think it is, begins again with the last one.
    pub(super) fn take(&mut self) -> u64 {
        if let Some(Reverse(place)) = self.freed.pop() {
            return place;
        }
        self.fresh += 1;
        self.lacked |= self.fresh > self.limit;
        (self.fresh - 1).min(self.limit.saturating_sub(1))
    }

    pub(super) fn give_back(&mut self, place: u64) {
        self.freed.push(Reverse(place));
    }

    /// Whether so many numbers are free.
    pub(super) fn has(&mut self, count: u64) -> bool {
        let left = self.limit.saturating_sub(self.fresh) + self.freed.len() as u64;
        self.lacked |= left < count;
        left >= count
    }

    /// Whether numbers were ever lacking. If not, all would have been the same with more of them.
    pub(super) fn lacked(&self) -> bool {
        self.lacked
    }
}
