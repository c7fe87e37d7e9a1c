//! The redo log of a played run: where it ends, what is durable, which blocks a flush writes.
//!
//! ```text
//! packed   [....][....][..      a flush writes all blocks that records were added to since the
//!                 ^durable ^end    last one: the last, partly filled block is written again
//! sparse   [....][....][.. ]    a flush closes its last block, and the next record begins a new one
//! ```
//!
//! Positions are counted in bytes of records. A sampled run has a log for `1/scale` of the pages,
//! whose drive is as much smaller: only every `scale`-th block exists there.

use treering_engine::{BLOCK_SIZE, IoClass, LogPacking};

use super::blocks::Blocks;
use crate::predict::log::{BLOCK_HEADER_BYTES, PAYLOAD_BYTES};

const PAYLOAD: u64 = PAYLOAD_BYTES as u64;

/// Where the log lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogRegion {
    pub(super) start: u64,
    /// Blocks of the region on the drive of the sample.
    pub(super) blocks: u64,
    /// Blocks of the whole log that one block there stands for.
    pub(super) scale: u64,
}

/// Counts since they were last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RedoCounts {
    pub(super) flushes: u64,
    /// Bytes of records flushed.
    pub(super) flushed: u64,
}

/// The log.
#[derive(Debug)]
pub(super) struct Redo {
    packing: LogPacking,
    region: LogRegion,
    /// Bytes of records, with the rest of each closed block in the sparse log.
    end: u64,
    durable: u64,
    truncated: u64,
    /// Bytes that are appended but not whole yet, because of a weight.
    rest: f64,
    pub(super) counts: RedoCounts,
}

impl Redo {
    pub(super) fn new(packing: LogPacking, region: LogRegion) -> Redo {
        Redo {
            packing,
            region,
            // So that no position is zero, which marks a clean page.
            end: PAYLOAD,
            durable: PAYLOAD,
            truncated: PAYLOAD,
            rest: 0.0,
            counts: RedoCounts::default(),
        }
    }

    /// End of the records.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Whether all records up to a position are durable.
    #[inline]
    pub(super) fn is_durable(&self, position: u64) -> bool {
        position <= self.durable
    }

    /// Log position of the end in bytes of blocks.
    pub(super) fn position(&self) -> u64 {
        self.end / PAYLOAD * BLOCK_SIZE as u64 + BLOCK_HEADER_BYTES + self.end % PAYLOAD
    }

    /// Bytes that are not durable yet, as the engine counts them: with block headers.
    #[inline]
    pub(super) fn unflushed(&self) -> u64 {
        let blocks = self.end / PAYLOAD - self.durable / PAYLOAD;
        self.end - self.durable + blocks * BLOCK_HEADER_BYTES
    }

    /// Adds a record.
    #[inline]
    pub(super) fn append(&mut self, bytes: f64) {
        self.rest += bytes;
        let whole = self.rest as u64;
        self.rest -= whole as f64;
        self.end += whole;
    }

    /// Makes everything durable. Returns the number of blocks written; 0 if nothing was left to do.
    pub(super) fn flush(&mut self, blocks: &mut Blocks<'_>) -> u64 {
        if self.end == self.durable {
            return 0;
        }
        self.counts.flushes += 1;
        self.counts.flushed += self.end - self.durable;
        let (first, last) = (self.durable / PAYLOAD, (self.end - 1) / PAYLOAD);
        for block in first..=last {
            let filled = (self.end - block * PAYLOAD).min(PAYLOAD) + BLOCK_HEADER_BYTES;
            let stored = blocks.sizes.log(filled as f64);
            match self.on_drive(block) {
                Some(lba) => blocks.write(lba, 1, IoClass::Log, stored),
                None => blocks.count_only(IoClass::Log, stored),
            }
        }
        if self.packing == LogPacking::Sparse {
            self.end = (last + 1) * PAYLOAD;
        }
        self.durable = self.end;
        last + 1 - first
    }

    /// Where a block of the log is on the drive of the sample, if it is there.
    fn on_drive(&self, block: u64) -> Option<u64> {
        let LogRegion {
            start,
            blocks,
            scale,
        } = self.region;
        (block.is_multiple_of(scale)).then(|| start + block / scale % blocks)
    }

    /// Gives up the blocks before a position that was the end once.
    pub(super) fn truncate(&mut self, position: u64, blocks: &mut Blocks<'_>) {
        let position = position.min(self.durable);
        for block in self.truncated / PAYLOAD..position / PAYLOAD {
            if let Some(lba) = self.on_drive(block) {
                blocks.trim(lba, 1);
            }
        }
        self.truncated = self.truncated.max(position);
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::{Bytes, Flash, StoredSizes};
    use super::*;

    struct NoFlash;

    impl Flash for NoFlash {
        fn write(&mut self, _: u64, _: IoClass, _: u32) {}
        fn trim(&mut self, _: u64, _: u64) {}
        fn begin_measured(&mut self) {}
    }

    const REGION: LogRegion = LogRegion {
        start: 2,
        blocks: 64,
        scale: 1,
    };

    fn written(packing: LogPacking, records: &[u64]) -> Vec<u64> {
        let mut redo = Redo::new(packing, REGION);
        let mut blocks = Blocks {
            flash: &mut NoFlash,
            sizes: StoredSizes::whole(),
            bytes: Bytes::default(),
        };
        let flush = |bytes: &u64| {
            redo.append(*bytes as f64);
            redo.flush(&mut blocks)
        };
        records.iter().map(flush).collect()
    }

    #[test]
    fn the_last_block_is_written_again_unless_the_log_is_sparse() {
        let records = [10, 10, PAYLOAD, 2 * PAYLOAD - 20, 1, 0];
        assert_eq!(written(LogPacking::Packed, &records), [1, 1, 2, 2, 1, 0]);
        assert_eq!(written(LogPacking::Sparse, &records), [1, 1, 1, 2, 1, 0]);
    }
}
