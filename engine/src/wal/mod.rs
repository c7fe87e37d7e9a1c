//! The redo log: packed or sparse, circular, group-committed.
//!
//! Packed, consecutive flushes rewrite the last block while it fills (B⁻-tree §3.3, "conventional redo logging", Fig. 7); sparse, each flush
//! ends with zeros up to the block's end, and the next begins another block (Fig. 8). Which of the two a log is, is chosen at each opening; blocks
//! say it themselves. Blocks are written whole and atomically (§2.4); nothing else is asked of the device but that a
//! flush makes completed writes durable.
//!
//! # Bytes
//!
//! ```text
//! region   | blk 8 | blk 9 | blk 2 | ... | blk 7 |     block i lies at start + i % blocks: laps overwrite each other
//!
//! block     0     4       8              16     18      20         22      23      24            used       4096
//!           | crc | epoch | index        | used | first | unforced | flags | version | records ... | zeros ... |
//!
//! records   | ...tail of a record | len body | len body | len bo...        a record may go on in the next block
//!                                 ^ first
//! ```
//!
//! Little-endian. `crc` (CRC-32) covers the rest of the block, the store id mixed in. `index` is
//! absolute (position / 4096), so a block of an earlier lap shows. `unforced` counts the blocks
//! just before this one in the same flush: all before those were durable when this one was written.
//! Bit 0 of `flags`: first block of its epoch; bit 1: closed, the log goes on in the next block
//! although this one is not full; bit 2: a witness, behind the log's end and without records, which
//! says that all before it is durable.
//!
//! # Positions
//!
//! An [`crate::Lsn`] counts bytes of blocks, headers included; the LSN of a record is the position just behind it, so it is durable
//! exactly when the durable position is at least its LSN. A record that ends with its block has the next block's beginning.
//!
//! # Epochs
//!
//! Every opening begins a new epoch at a fresh block ([`LogEnd::next_start`]), and the epoch is durable in the superblock before anything
//! is written under it. So what a crash left behind the end never joins what is written later (BUGS D9, D11): a smaller epoch ends the
//! log, a greater one must begin with its first block, and a record cut by an epoch's end is dead. The reader has to know the epoch at its
//! start: while a new epoch has written nothing yet, a left-over block may stand exactly there.
//!
//! # Invariants
//!
//! - `DurablePrefix`: a crash loses only a suffix of what was never acknowledged; `durable` moves only after the device's flush.
//! - `Bounded`: never more than two buffers of `log_buffer_bytes` and as much again, or 256 KiB, in memory; a full one is flushed by whoever appends.
//! - `Poisoned`: after a failed write or flush nothing is ever acknowledged again (D5).

mod block;
mod buffer;
mod log;
mod record;
mod replay;

pub(crate) use block::Header as BlockHeader;
pub use block::{BLOCK_HEADER, BLOCK_PAYLOAD};
pub use log::Log;
pub use record::{Frame, MAX_RECORD_BYTES, Record, RecordDamage, next_frame};
pub use replay::{replay, replay_to};

use crate::types::{Lba, Lsn, StoreId};

/// Where the log lies on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRegion {
    /// First block.
    pub start: Lba,
    /// Number of blocks; two or more.
    pub blocks: u64,
    /// Whose it is: the checksum of each block tells.
    pub store: StoreId,
}

impl LogRegion {
    /// The place of log block `index`.
    pub(crate) fn lba(&self, index: u64) -> Lba {
        Lba(self.start.0 + index % self.blocks)
    }
}

/// Where reading begins, and what is known of who wrote there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// A record boundary that was durable once: a former [`Log::end`] or [`LogEnd::next_start`].
    pub from: Lsn,
    /// The epoch that was being written there: blocks of a smaller one, left over behind an older
    /// end, are not part of the log.
    pub epoch: u32,
    /// [`Log::flush_blocks`] of the log that was written from there on: where the log ends, proof that it is damaged is looked for as far behind as
    /// two flushes reach.
    pub flush_blocks: u64,
}

/// How far the log on the device goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// LSN of the last record, or where reading began if there is none.
    pub end: Lsn,
    /// Where the next epoch begins: the first block boundary from `end` on.
    pub next_start: Lsn,
    /// Where the doubtful part begins: the blocks of the last flush, of which nothing proves that it succeeded. What lies before was
    /// durable when that flush began.
    pub doubtful: Lsn,
    /// Epoch of the last block read, or the one reading began with. Never greater than the superblock's.
    pub epoch: u32,
    /// Number of records.
    pub records: u64,
    /// What follows.
    pub reason: EndReason,
}

/// What stands where the log does not go on. All are ordinary after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Zeros, or a block of an earlier lap.
    Unwritten,
    /// A block whose checksum fails, or one that follows a version of its predecessor that was lost.
    Torn,
    /// A block of an older epoch, left over from before a crash.
    StaleEpoch,
    /// A later block of a new epoch whose first block was lost.
    EpochWithoutStart,
    /// The log fills its region.
    WholeRegion,
}
