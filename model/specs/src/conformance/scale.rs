//! Translates between the engine's bytes and the spec's slots.
//!
//! ```text
//! engine   | 24 | record 1 | record 2 | record 3 | record 4 | 24 | record 5 ...
//!                                                         positions in bytes, headers included
//! spec          0          1          2          3          4          5
//!                                                         positions in records
//! ```
//!
//! The spec has records of one length, and a fixed number of them in a block. In an episode every
//! record is padded to that length: a slot is the payload of a block divided by the number of
//! records in it. The recording begins with an epoch, and so with a block. Its beginning is the
//! spec's position 0 in epoch 1. Nothing before it counts.

use treering_engine::wal::{BLOCK_HEADER, BLOCK_PAYLOAD};
use treering_engine::{BLOCK_SIZE, LogBlock, Lsn};

use crate::mirror::wide::wal_recovery::unbounded::BlockName;

/// The engine's positions of the spec's zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The number of records in a block.
    pub per_block: u64,
    /// The log block at which the recording begins.
    pub first_block: u64,
    /// The epoch in which it begins.
    pub first_epoch: u32,
}

const BLOCK: u64 = BLOCK_SIZE as u64;

impl Scale {
    /// The bytes of a record, including its framing.
    #[must_use]
    pub fn slot_bytes(per_block: u64) -> u64 {
        BLOCK_PAYLOAD as u64 / per_block
    }

    /// Translates a position of the engine to the spec's.
    ///
    /// # Errors
    /// If the position lies between two slots, or before the recording.
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

    /// Translates a page's LSN. Returns 0 if the page is older than the recording.
    ///
    /// # Errors
    /// As [`Scale::position`].
    pub(crate) fn page_lsn(&self, lsn: Lsn) -> Result<u64, String> {
        if lsn.0 <= self.first_block * BLOCK {
            return Ok(0);
        }
        self.position(lsn)
    }

    /// Translates an epoch. Returns 0 if the epoch is older than the recording.
    #[must_use]
    pub fn epoch(&self, epoch: u32) -> u64 {
        (u64::from(epoch) + 1).saturating_sub(u64::from(self.first_epoch))
    }

    /// Translates a block on the device. Returns `None` if its epoch is older than the recording.
    ///
    /// # Errors
    /// If the block ends inside a slot.
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

    /// Translates a place in the engine's ring of `ring` blocks. The recording begins at the spec's
    /// place 0.
    #[must_use]
    pub fn place(&self, place: usize, ring: usize) -> usize {
        let first = (self.first_block % ring as u64) as usize;
        (place + ring - first) % ring
    }
}
