//! Devices: what the engine asks of storage, and nothing more.
//!
//! The same engine code runs on real files, on memory, on simulated drives and on a device that crashes
//! (DESIGN, "A device is a trait, not a file"). The contract a [`BlockDevice`] gives:
//!
//! - A read after a completed write of the same block returns the written bytes.
//! - A write of one block is atomic; a write of several may be torn at block boundaries by a crash, in any
//!   subset (B⁻-tree §2.4).
//! - Nothing written is durable until a [`BlockDevice::flush`] that began after the write completed has
//!   returned `Ok`. Until then a crash may keep or drop each block by itself.
//! - After a failed write a block holds the old bytes, the new ones, or (multi-block writes) a mix; after a
//!   failed flush nothing written since the last good one is known to be durable *until it is rewritten*.
//! - A trim is a hint: a trimmed block may read as its old bytes or as zeros until it is written again.

mod aligned;
mod claim;
mod crash;
mod file;
mod image;
mod mem;
mod overlay;
mod pm;
#[cfg(all(target_os = "linux", not(miri)))]
mod uring;
mod volume;

pub use aligned::AlignedBuf;
pub(crate) use claim::{Claim, Claims};
pub use crash::{CrashDevice, Request, RequestKind, Served};
pub use file::{FileAccess, FileDevice, FileDiscards, FileIo, FileOptions, FileSpace, Kernel};
pub use image::{Block, Image};
pub use mem::MemDevice;
pub use overlay::OverlayDevice;
pub use pm::{LINE_SIZE, MemPm, PmDevice, PmImage, PmRequest, WORD_SIZE, check_bytes};
pub(crate) use volume::Stamp;
pub use volume::Volume;

use std::io::ErrorKind;
use std::ops::Range;

pub use crate::types::Access;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

/// One write of a batch: whole blocks, in class `class`.
#[derive(Clone, Copy, Debug)]
pub struct BlockWrite<'a> {
    /// First block.
    pub lba: Lba,
    /// The bytes; a non-zero multiple of [`crate::BLOCK_SIZE`].
    pub bytes: &'a [u8],
    /// What the write is for.
    pub class: IoClass,
}

/// One read of a batch: whole blocks, in class `class`.
#[derive(Debug)]
pub struct BlockRead<'a> {
    /// First block.
    pub lba: Lba,
    /// Where the bytes go; a non-zero multiple of [`crate::BLOCK_SIZE`].
    pub buf: &'a mut [u8],
    /// What the read is for.
    pub class: IoClass,
}

/// A device of 4 KiB blocks. Shared by threads: every method takes `&self`.
pub trait BlockDevice: Send + Sync {
    /// Number of addressable blocks. Constant while the device is open.
    fn capacity_blocks(&self) -> u64;

    /// How the medium is reached. Constant while the device is open.
    fn access(&self) -> Access {
        Access::Memory
    }

    /// Reads `buf.len() / 4096` blocks from `lba` on. Blocks never written read as zeros.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device or the medium fails. What is in `buf`
    /// then means nothing; other blocks can be read.
    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError>;

    /// Writes whole blocks from `lba` on. Not durable before the next [`BlockDevice::flush`].
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device, or a buffer is not whole blocks:
    /// nothing was written. If the medium fails, each of the blocks holds its old bytes or its new
    /// ones.
    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError>;

    /// Several writes without order among them; returns when all have completed. A device that has queues
    /// serves them at once.
    ///
    /// # Errors
    /// The first [`DeviceError`]; the others may or may not have been written.
    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Result<(), DeviceError> {
        writes
            .iter()
            .try_for_each(|w| self.write(w.lba, w.bytes, w.class))
    }

    /// Several reads without order among them; returns when all have completed. A device that has queues serves them at once.
    ///
    /// # Errors
    /// The first [`DeviceError`]; the others may or may not have been read.
    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Result<(), DeviceError> {
        reads
            .iter_mut()
            .try_for_each(|r| self.read(r.lba, r.buf, r.class))
    }

    /// Says that `blocks` blocks from `lba` on hold nothing any more.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device or the medium fails; the blocks hold
    /// old bytes or zeros, as after a trim that did not fail.
    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError>;

    /// A good moment to give back what was trimmed to whoever lends the space, but for blocks of
    /// `keep`, which will soon be written again. A hint: a device that has nobody to give it to
    /// does nothing.
    fn reclaim(&self, keep: Range<Lba>) {
        let _ = keep;
    }

    /// Lets the device grow to `blocks` blocks, if its medium can; blocks that nobody has written
    /// read as zeros. Returns whether the device has so many blocks from now on.
    fn extend_to(&self, blocks: u64) -> bool {
        blocks <= self.capacity_blocks()
    }

    /// Blocks from the beginning that the medium is known to keep through a power cut. Those behind
    /// are zeros that take no room yet. All of them, unless the device grows.
    fn durable_blocks(&self) -> u64 {
        self.capacity_blocks()
    }

    /// Makes every write that completed before this call durable.
    ///
    /// # Errors
    /// [`DeviceError`]; then nothing since the last good flush is known to be durable.
    fn flush(&self) -> Result<(), DeviceError>;
}

/// What can go wrong below the engine.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The request does not fit the device.
    #[error("{what} of {blocks} blocks at {lba} is outside the device of {capacity} blocks")]
    OutOfRange {
        /// `read`, `write` or `trim`.
        what: &'static str,
        /// First block asked for.
        lba: Lba,
        /// Number of blocks asked for.
        blocks: u64,
        /// Number of blocks the device has.
        capacity: u64,
    },
    /// The buffer is not a whole number of blocks.
    #[error("{what} at {lba}: {bytes} bytes are not a whole number of 4,096-byte blocks")]
    Misaligned {
        /// `read` or `write`.
        what: &'static str,
        /// First block asked for.
        lba: Lba,
        /// Buffer length in bytes.
        bytes: usize,
    },
    /// The operating system or the medium refused.
    #[error("{what} at {lba} failed: {source}")]
    Io {
        /// `read`, `write`, `trim` or `flush`.
        what: &'static str,
        /// First block, 0 for a flush.
        lba: Lba,
        /// The cause.
        source: std::io::Error,
    },
    /// A thinly provisioned medium has no room for what is written; the write changed nothing.
    #[error(
        "write at {lba} failed: the medium is full: {needed} bytes would be live after compression, of {capacity}; \
         expected data that shrink more, fewer of them, or a larger medium"
    )]
    Full {
        /// The block that does not fit.
        lba: Lba,
        /// Live bytes after compression, with what is written.
        needed: u64,
        /// Bytes that may be live.
        capacity: u64,
    },
    /// A file cannot serve as a device.
    #[error("{path}: {why}", path = path.display())]
    Open {
        /// The file.
        path: std::path::PathBuf,
        /// What was found and what is expected.
        why: String,
    },
}

impl DeviceError {
    /// Whether the medium had no room for what was written. The write may have changed some of its
    /// blocks, as any failed write; everything else is as it was, and the same write may succeed
    /// when there is room.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        match self {
            DeviceError::Full { .. } => true,
            // A flush that fails has forgotten what it was to make durable, whatever it gives for a
            // reason.
            DeviceError::Io { what, source, .. } => {
                let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
                *what != "flush" && full.contains(&source.kind())
            }
            _ => false,
        }
    }
}

/// Refuses a range of blocks outside a device of `capacity` blocks.
///
/// # Errors
/// [`DeviceError::OutOfRange`].
pub fn check_range(
    what: &'static str,
    lba: Lba,
    blocks: u64,
    capacity: u64,
) -> Result<(), DeviceError> {
    if lba.0.checked_add(blocks).is_some_and(|end| end <= capacity) {
        return Ok(());
    }
    Err(DeviceError::OutOfRange {
        what,
        lba,
        blocks,
        capacity,
    })
}

/// Refuses a read or write that is not a number of whole blocks inside the device; says how many blocks it is.
///
/// # Errors
/// [`DeviceError::Misaligned`], [`DeviceError::OutOfRange`].
pub fn check_request(
    what: &'static str,
    lba: Lba,
    bytes: usize,
    capacity: u64,
) -> Result<u64, DeviceError> {
    if bytes == 0 || !bytes.is_multiple_of(BLOCK_SIZE) {
        return Err(DeviceError::Misaligned { what, lba, bytes });
    }
    let blocks = (bytes / BLOCK_SIZE) as u64;
    check_range(what, lba, blocks, capacity)?;
    Ok(blocks)
}
