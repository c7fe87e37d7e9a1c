//! Finds the end of the log when a store is opened, and makes it final.
//!
//! ```text
//!   ... | last flush: written again | end mark | what was there before
//! ```
//!
//! A flush or a write that failed leaves both ends of doubt (BUGS D5). What the device then dropped
//! may still be read back, although no later flush would make it durable: so the blocks of the last
//! flush are written again. And what cannot be read back may be there after the next power cut, as
//! a write that failed may have reached the medium: so a block behind the end is written, too. Its
//! *end mark* has the epoch of this recovery, and no records. Without it, a recovery that is itself
//! cut short could have given the places of a value to a page, and the next one would read the
//! record that refers to the value.
//!
//! The end mark is written when the superblock that was read is durable. If the log fills its region,
//! the block behind its end is one that the superblock before needs.

use super::block::{Header, block_of};
use super::{Log, LogEnd, LogRegion, LogStart, Record, told};
use crate::device::{AlignedBuf, Volume};
use crate::error::Result;
use crate::events::{Event, Redo};
use crate::mutation;
use crate::types::{BLOCK_SIZE, IoClass, Lsn};

impl Log {
    /// Finds the end of the log that begins at `start`. Calls `visit` with every record. After the
    /// next successful device flush, the log is durable up to its end.
    ///
    /// # Errors
    /// As [`super::replay()`].
    pub fn scan_end(
        volume: &Volume,
        region: LogRegion,
        start: LogStart,
        visit: impl FnMut(Lsn, Record<'_>) -> Result<()>,
    ) -> Result<LogEnd> {
        let end = super::replay(volume, region, start, visit)?;
        volume.tell(|| told::read(start, &end));
        if !mutation::on("restart-trusts-log") {
            rewrite(volume, region, end.doubtful, end.next_start)?;
        }
        Ok(end)
    }

    /// Writes the end mark behind the end of the log that was read from `start` on, and flushes the
    /// device. From then on the log is never longer, whatever a failed write has left. `epoch` is
    /// that of this recovery: greater than any before. The superblock that has `start` must be
    /// durable.
    ///
    /// A witness stays: a log that has failed gets none, so no write of its block can have failed.
    ///
    /// # Errors
    /// Device failures.
    pub fn mark_end(
        volume: &Volume,
        region: LogRegion,
        start: LogStart,
        end: &LogEnd,
        epoch: u32,
    ) -> Result<()> {
        let index = block_of(end.next_start.0);
        let limit = block_of(start.from.0) + region.blocks;
        if index >= limit || mutation::on("restart-trusts-end") {
            return Ok(());
        }
        let lba = region.lba(index);
        let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
        volume.read(lba, &mut block, IoClass::Log)?;
        let header = Header::read(&block, index, region.store);
        if header.is_ok_and(|h| h.witness && h.epoch == end.epoch) {
            return Ok(());
        }
        let header = Header {
            end_mark: true,
            ..Header::bare(epoch, index)
        };
        block.fill(0);
        header.seal(&mut block, region.store);
        volume.tell(|| Event::Redo(Redo::MarksEnd { epoch, index }));
        match volume.write(lba, &block, IoClass::Log) {
            // The device has no room for the block, so it has never taken a write there.
            Err(e) if e.is_no_space() => Ok(()),
            written => written.and_then(|()| volume.flush()),
        }
    }
}

/// Writes the blocks from `from` up to `to` again, unchanged.
fn rewrite(volume: &Volume, region: LogRegion, from: Lsn, to: Lsn) -> Result<()> {
    volume.tell(|| Event::Redo(Redo::Rewrites { from, to }));
    let mut block = AlignedBuf::zeroed(BLOCK_SIZE);
    for index in block_of(from.0)..block_of(to.0) {
        let lba = region.lba(index);
        volume.read(lba, &mut block, IoClass::Log)?;
        volume.write(lba, &block, IoClass::Log)?;
    }
    Ok(())
}
