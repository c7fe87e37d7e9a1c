//! The engine's bytes and the spec's slots.
//!
//! ```text
//! engine   | 24 | record 1 | record 2 | record 3 | record 4 | 24 | record 5 ...      positions in bytes, headers included
//! spec          0          1          2          3          4          5             positions in records
//! ```
//!
//! The spec has records of one length, so many to a block. In an episode every record is made as
//! long as that: a slot is the payload of a block divided by the records in it. The beginning of
//! the recording, which is the beginning of an epoch and so of a block, is the spec's position 0 in
//! epoch 1; what was before is not there.

use treering_engine::wal::{BLOCK_HEADER, BLOCK_PAYLOAD};
use treering_engine::{BLOCK_SIZE, LogBlock, Lsn};

use crate::mirror::wide::wal_recovery::unbounded::BlockName;

/// Where the spec's zeros are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Records in a block.
    pub per_block: u64,
    /// The log's block at which the recording begins.
    pub first_block: u64,
    /// The epoch in which it begins.
    pub first_epoch: u32,
}

const BLOCK: u64 = BLOCK_SIZE as u64;

impl Scale {
    /// Bytes of a record, framing included.
    #[must_use]
    pub fn slot_bytes(per_block: u64) -> u64 {
        BLOCK_PAYLOAD as u64 / per_block
    }

    /// The spec's position for the engine's.
    ///
    /// # Errors
    /// It lies between two slots, or before the recording.
    pub fn position(&self, lsn: Lsn) -> Result<u64, String> {
        let (block, offset) = (lsn.0 / BLOCK, lsn.0 % BLOCK);
        let block = block
            .checked_sub(self.first_block)
            .ok_or_else(|| format!("{lsn} lies before the recording"))?;
        let slot = Self::slot_bytes(self.per_block);
        let payload = offset.saturating_sub(BLOCK_HEADER as u64);
        if !payload.is_multiple_of(slot) {
            return Err(format!("{lsn} lies inside a slot of {slot} bytes"));
        }
        Ok(block * self.per_block + payload / slot)
    }

    /// The spec's LSN for a page's: 0 for pages that are older than the recording.
    ///
    /// # Errors
    /// As [`Scale::position`].
    pub fn page_lsn(&self, lsn: Lsn) -> Result<u64, String> {
        if lsn.0 <= self.first_block * BLOCK {
            return Ok(0);
        }
        self.position(lsn)
    }

    /// The spec's epoch for the engine's; 0 for all that are older than the recording.
    #[must_use]
    pub fn epoch(&self, epoch: u32) -> u64 {
        (u64::from(epoch) + 1).saturating_sub(u64::from(self.first_epoch))
    }

    /// The spec's block for one on the device; `None` if it is of an epoch before the recording.
    ///
    /// # Errors
    /// It ends inside a slot.
    pub fn block(&self, block: &LogBlock) -> Result<Option<BlockName>, String> {
        let epoch = self.epoch(block.epoch);
        if epoch == 0 {
            return Ok(None);
        }
        let slot = Self::slot_bytes(self.per_block) as usize;
        let payload = block.used - BLOCK_HEADER;
        if !payload.is_multiple_of(slot) {
            return Err(format!("log block {} ends inside a slot", block.index));
        }
        let index = block.index.checked_sub(self.first_block);
        let index = index.ok_or_else(|| format!("block {} is too old", block.index))?;
        Ok(Some((epoch, index, payload / slot)))
    }

    /// The spec's place for a place of the engine's ring of `ring` blocks: the recording begins at
    /// the spec's place 0.
    #[must_use]
    pub fn place(&self, place: usize, ring: usize) -> usize {
        let first = (self.first_block % ring as u64) as usize;
        (place + ring - first) % ring
    }
}
