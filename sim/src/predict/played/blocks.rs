//! What a store writes to its drive, block by block: counted by class, and passed on to the flash
//! below.

use treering_engine::{BLOCK_SIZE, IoClass};

use super::deltas::Marked;

/// A drive that is only told which blocks are written and given up.
pub(in crate::predict) trait Flash {
    /// A block of this class is written. `stored` bytes of it are left after compression.
    fn write(&mut self, lba: u64, class: IoClass, stored: u32);
    /// These blocks hold nothing any more.
    fn trim(&mut self, lba: u64, blocks: u64);
    /// The measured part begins.
    fn begin_measured(&mut self);
}

/// Sizes of blocks after compression, in bytes. Without compression a block stays what it is.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::predict) struct StoredSizes {
    /// A block of a page written whole.
    pub(in crate::predict) page: PageSize,
    /// Blocks of a page that are not all zeros.
    pub(in crate::predict) page_extents: f64,
    /// The log block of a page.
    pub(in crate::predict) delta: DeltaSizes,
    /// A block of the redo log by its fill, in even steps from empty to full.
    pub(in crate::predict) log: Vec<f64>,
    pub(in crate::predict) table: f64,
    pub(in crate::predict) snapshot: f64,
    pub(in crate::predict) superblock: f64,
    pub(in crate::predict) overflow: f64,
}

/// Log blocks of pages after compression: for some numbers of segments with slots, ascending, the
/// sizes by number of other segments from 0 on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::predict) struct DeltaSizes {
    pub(in crate::predict) rows: Vec<(usize, Vec<f64>)>,
    /// What a segment adds into which whole records were laid.
    pub(in crate::predict) laid: f64,
}

impl DeltaSizes {
    pub(super) fn with(&self, marked: Marked) -> f64 {
        self.of(marked.slots, marked.heap) + self.laid * marked.laid as f64
    }

    /// The size with these numbers of segments. Numbers beyond are like the last.
    pub(in crate::predict) fn of(&self, slots: usize, heap: usize) -> f64 {
        let rows = &self.rows;
        let size = |row: &[f64]| {
            let last = row.len().saturating_sub(1);
            row.get(heap.min(last)).copied().unwrap_or(0.0)
        };
        let above = rows.partition_point(|(n, _)| *n < slots);
        match (
            above.checked_sub(1).map(|below| &rows[below]),
            rows.get(above),
        ) {
            (Some((low, from)), Some((high, to))) => {
                let share = (slots - low) as f64 / (high - low) as f64;
                size(from) + (size(to) - size(from)) * share
            }
            (Some((_, row)), None) | (None, Some((_, row))) => size(row),
            (None, None) => 0.0,
        }
    }
}

/// A block of a page after compression, averaged over the blocks of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::predict) struct PageSize {
    /// Averaged over writes of pages.
    pub(in crate::predict) mean: f64,
    /// If the page is all gap.
    pub(in crate::predict) empty: f64,
    /// What a byte of the page adds that is not in its gap.
    pub(in crate::predict) per_byte: f64,
    /// How much less a byte of a key adds that another copy of the record, in a hole, has too.
    pub(in crate::predict) per_repeated: f64,
}

/// What of a page written whole is not zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::predict) struct InUse {
    /// Bytes that are not in its gap.
    pub(in crate::predict) bytes: usize,
    /// Bytes of keys among these that are there once more, in a hole.
    pub(in crate::predict) repeated: usize,
}

impl PageSize {
    /// The size for a page with this in it.
    pub(super) fn of(&self, used: InUse) -> f64 {
        let bytes = self.empty + self.per_byte * used.bytes as f64;
        (bytes - self.per_repeated * used.repeated as f64).max(0.0)
    }
}

impl StoredSizes {
    /// Without compression.
    pub(in crate::predict) fn whole() -> StoredSizes {
        let block = BLOCK_SIZE as f64;
        StoredSizes {
            page: PageSize {
                mean: block,
                empty: block,
                per_byte: 0.0,
                per_repeated: 0.0,
            },
            page_extents: 1.0,
            delta: DeltaSizes {
                rows: vec![(0, vec![block])],
                laid: 0.0,
            },
            log: vec![block],
            table: block,
            snapshot: block,
            superblock: block,
            overflow: block,
        }
    }

    /// A log block with `filled` bytes in it.
    pub(super) fn log(&self, filled: f64) -> f64 {
        let last = self.log.len().saturating_sub(1);
        let at = (filled / BLOCK_SIZE as f64).clamp(0.0, 1.0) * last as f64;
        let (low, share) = (at as usize, at.fract());
        let size = |i: usize| self.log.get(i.min(last)).copied().unwrap_or(0.0);
        size(low) + (size(low + 1) - size(low)) * share
    }
}

/// Bytes written since the counts were last reset, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::predict) struct Bytes {
    pub(in crate::predict) host: [f64; 3],
    pub(in crate::predict) stored: [f64; 3],
}

/// The blocks on their way to the drive.
pub(in crate::predict) struct Blocks<'f> {
    pub(super) flash: &'f mut dyn Flash,
    pub(super) sizes: StoredSizes,
    pub(super) bytes: Bytes,
}

impl Blocks<'_> {
    /// Writes `count` blocks from `lba` on, each with this size after compression.
    #[inline]
    pub(super) fn write(&mut self, lba: u64, count: u64, class: IoClass, stored: f64) {
        self.bytes.host[class as usize] += (count * BLOCK_SIZE as u64) as f64;
        self.bytes.stored[class as usize] += count as f64 * stored;
        for lba in lba..lba + count {
            self.flash.write(lba, class, stored.round() as u32);
        }
    }

    /// Counts a block that the drive of the sample does not see.
    pub(super) fn count_only(&mut self, class: IoClass, stored: f64) {
        self.bytes.host[class as usize] += BLOCK_SIZE as f64;
        self.bytes.stored[class as usize] += stored;
    }

    pub(super) fn trim(&mut self, lba: u64, blocks: u64) {
        self.flash.trim(lba, blocks);
    }
}
