//! The redo log: circular, group-committed, and packed or sparse.
//!
//! In a packed log, consecutive flushes rewrite the last block while it fills (B⁻-tree §3.3,
//! "conventional redo logging", Fig. 7). In a sparse log, each flush fills the rest of its last
//! block with zeros, and the next one begins a new block (Fig. 8). The choice is made at each
//! opening, and blocks record it themselves. Blocks are written whole and atomically (§2.4). The
//! only other requirement on the device is that a flush makes completed writes durable.
//!
//! # Bytes
//!
//! ```text
//! region   | blk 8 | blk 9 | blk 2 | ... | blk 7 |   block i lies at start + i % blocks:
//!                                                    laps overwrite each other
//!
//! block    0     4       8       16     18      20         22      23        24       used   4096
//!          | crc | epoch | index | used | first | unforced | flags | version | records| zeros|
//!
//! records   | ...tail of a record | len body | len body | len bo...      a record may continue in
//!                                 ^ first                                the next block
//! ```
//!
//! All numbers are little-endian. `crc` (CRC-32) covers the rest of the block, with the store id
//! mixed in. `index` is absolute (position / 4096), so a block of an earlier lap is recognised.
//! `unforced` counts the blocks just before this one in the same flush: everything before those was
//! durable when this block was written. Bit 0 of `flags` marks the first block of its epoch. Bit 1
//! marks a closed block: the log continues in the next block although this one is not full. Bit 2
//! marks a witness: a block without records behind the log's end, which states that everything
//! before it is durable. Bit 3 marks an end mark: a block without records, of a recovery that found
//! the log's end there ([`Log::mark_end`]).
//!
//! # Positions
//!
//! An [`crate::Lsn`] counts bytes of blocks, including headers. The LSN of a record is the position
//! just behind it, so the record is durable exactly when the durable position is at least its LSN.
//! A record that ends with its block has the start of the next block as its LSN.
//!
//! # Epochs
//!
//! Every opening begins a new epoch at a fresh block, and the epoch is durable in the superblock
//! before anything is written under it. The block is the first one behind the log's end
//! ([`LogEnd::next_start`]), or behind the last record that has an effect, if a batch must be
//! completed (`intent`). So what a crash left behind is never joined with what is written later
//! (BUGS D9, D11). A block of a smaller epoch ends
//! the log, a greater epoch must begin with its first block, and a record that is cut by the end of
//! an epoch is dead. The reader must know the epoch at its start: as long as a new epoch has
//! written nothing, a left-over block may be exactly there.
//!
//! # Invariants
//!
//! - `DurablePrefix`: a crash loses only a suffix, none of which was acknowledged; `durable`
//!   advances only after the device's flush.
//! - `Bounded`: memory never holds more than two buffers of `log_buffer_bytes` plus slack (the same
//!   again, at most 256 KiB); a thread that appends to a full one flushes it.
//! - `Poisoned`: after a failed write or flush, nothing is ever acknowledged again (D5).

mod block;
mod buffer;
mod end;
mod intent;
mod log;
mod open_batch;
mod record;
mod replay;
mod told;

pub(crate) use block::Header as BlockHeader;
pub use block::{BLOCK_HEADER, BLOCK_PAYLOAD};
pub(crate) use intent::{Intent, Intents, parts};
pub use log::Log;
pub use record::{Frame, MAX_RECORD_BYTES, Record, RecordDamage, next_frame};
pub(crate) use replay::damaged_record;
pub use replay::{replay, replay_to};

use crate::types::{Lba, Lsn, StoreId};

/// The log's place on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRegion {
    /// The first block.
    pub start: Lba,
    /// The number of blocks: two or more.
    pub blocks: u64,
    /// The store that owns the log; the checksum of each block depends on it.
    pub store: StoreId,
}

impl LogRegion {
    /// The device address of log block `index`.
    pub(crate) fn lba(&self, index: u64) -> Lba {
        Lba(self.start.0 + index % self.blocks)
    }
}

/// Where reading begins, and what is known of the log there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// A record boundary that was once durable: a former [`Log::end`] or [`LogEnd::next_start`].
    pub from: Lsn,
    /// The epoch that was being written there. Blocks of a smaller epoch, left over behind an older
    /// end, are not part of the log.
    pub epoch: u32,
    /// [`Log::flush_blocks`] of the log that was written from there on. Behind the log's end, the
    /// reader searches for proof of damage as far as two flushes reach.
    pub flush_blocks: u64,
}

/// The end of the log on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// LSN of the last record, or the start of reading if there is none.
    pub end: Lsn,
    /// The start of the next epoch: the first block boundary at or behind `end`.
    pub next_start: Lsn,
    /// The start of the doubtful part: the blocks of the last flush, which may have failed.
    /// Everything before was durable when that flush began.
    pub doubtful: Lsn,
    /// Epoch of the last block read, or the one at the start of reading. Never greater than the
    /// superblock's.
    pub epoch: u32,
    /// Where that epoch begins, or the start of reading if it began before.
    pub epoch_start: Lsn,
    /// The number of records.
    pub records: u64,
    /// Why the log ends there.
    pub reason: EndReason,
}

/// Why the log does not continue. All reasons are ordinary after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Zeros, or a block of an earlier lap.
    Unwritten,
    /// A block whose checksum fails, or one that follows a lost version of its predecessor.
    Torn,
    /// A block of an older epoch, left over from before a crash.
    StaleEpoch,
    /// A later block of a new epoch whose first block was lost.
    EpochWithoutStart,
    /// The log fills its region.
    WholeRegion,
}
