//! What a store writes to its drive, block by block: counted by class, and passed on to the flash
//! below.

use treering_engine::{BLOCK_SIZE, IoClass};

/// A drive that is only told which blocks are written and given up.
pub(super) trait Flash {
    /// A block of this class is written. `stored` bytes of it are left after compression.
    fn write(&mut self, lba: u64, class: IoClass, stored: u32);
    /// These blocks hold nothing any more.
    fn trim(&mut self, lba: u64, blocks: u64);
    /// The measured part begins.
    fn begin_measured(&mut self);
}

/// Sizes of blocks after compression, in bytes. Without compression a block stays what it is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredSizes {
    /// The blocks of a page written whole, on average.
    pub(super) page: f64,
    /// The log block of a page, by number of segments from 0 on; numbers beyond are like the last.
    pub(super) delta: Vec<f64>,
    /// A block of the redo log by sixteenths of its fill, from empty to full.
    pub(super) log: Vec<f64>,
    pub(super) table: f64,
    pub(super) snapshot: f64,
    pub(super) superblock: f64,
    pub(super) overflow: f64,
}

impl StoredSizes {
    /// Without compression.
    pub(super) fn whole() -> StoredSizes {
        let block = BLOCK_SIZE as f64;
        StoredSizes {
            page: block,
            delta: vec![block],
            log: vec![block],
            table: block,
            snapshot: block,
            superblock: block,
            overflow: block,
        }
    }

    pub(super) fn delta(&self, segments: usize) -> f64 {
        let last = self.delta.len().saturating_sub(1);
        self.delta.get(segments.min(last)).copied().unwrap_or(0.0)
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
pub(super) struct Bytes {
    pub(super) host: [f64; 3],
    pub(super) stored: [f64; 3],
}

/// The blocks on their way to the drive.
pub(super) struct Blocks<'f> {
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
