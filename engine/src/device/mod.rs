//! Devices: the traits through which the engine uses storage, and their implementations.
//!
//! The same engine code runs on real files, in memory, on simulated drives and on a device that
//! crashes (DESIGN, "A device is a trait, not a file"). A [`BlockDevice`] promises this much and no
//! more:
//!
//! - A read after a completed write of the same block returns the written bytes.
//! - A write of one block is atomic. A crash may tear a write of several blocks at block
//!   boundaries, in any subset (B⁻-tree §2.4).
//! - A write is durable only after a [`BlockDevice::flush`] that began after the write completed
//!   has returned `Ok`. Until then a crash may keep or drop each block independently.
//! - After a failed write, each block holds its old bytes or its new ones. After a failed flush,
//!   nothing written since the last good flush is known to be durable *until it is rewritten*.
//! - A trim is a hint: a trimmed block may read as its old bytes or as zeros until it is written
//!   again.

mod aligned;
mod claim;
mod crash;
mod file;
mod hints;
mod image;
mod mem;
mod overlay;
mod pm;
mod requests;
#[cfg(all(target_os = "linux", not(miri)))]
mod uring;
mod volume;

pub use aligned::AlignedBuf;
pub(crate) use claim::{Claim, Claims};
pub use crash::CrashDevice;
pub use file::{FileAccess, FileDevice, FileDiscards, FileIo, FileOptions, FileSpace, Kernel};
pub use hints::Trims;
pub use image::{Block, Image};
pub use mem::MemDevice;
pub use overlay::OverlayDevice;
pub use pm::{LINE_SIZE, MemPm, PmDevice, PmImage, PmRequest, WORD_SIZE, check_bytes};
pub use requests::{Request, RequestKind, Served};
pub(crate) use volume::Stamp;
pub use volume::Volume;

use std::io::ErrorKind;
use std::ops::Range;

pub use crate::types::Access;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

/// One write of a batch, in whole blocks.
#[derive(Clone, Copy, Debug)]
pub struct BlockWrite<'a> {
    /// First block.
    pub lba: Lba,
    /// The bytes; a non-zero multiple of [`crate::BLOCK_SIZE`].
    pub bytes: &'a [u8],
    /// What the write is for.
    pub class: IoClass,
}

/// One read of a batch, in whole blocks.
#[derive(Debug)]
pub struct BlockRead<'a> {
    /// First block.
    pub lba: Lba,
    /// The destination; its length is a non-zero multiple of [`crate::BLOCK_SIZE`].
    pub buf: &'a mut [u8],
    /// What the read is for.
    pub class: IoClass,
}

/// A device of 4 KiB blocks. Threads share it: every method takes `&self`.
///
/// A device of your own needs only five methods. This one counts the flushes of another:
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use treering_engine::device::{BlockDevice, DeviceError, MemDevice};
/// use treering_engine::{IoClass, Kv, Lba, Options, Store, SystemClock, required_blocks};
///
/// struct Counting {
///     inner: MemDevice,
///     flushes: AtomicU64,
/// }
///
/// impl BlockDevice for Counting {
///     fn capacity_blocks(&self) -> u64 {
///         self.inner.capacity_blocks()
///     }
///     fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError> {
///         self.inner.read(lba, buf, class)
///     }
///     fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError> {
///         self.inner.write(lba, bytes, class)
///     }
///     fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
///         self.inner.trim(lba, blocks)
///     }
///     fn flush(&self) -> Result<(), DeviceError> {
///         self.flushes.fetch_add(1, Ordering::Relaxed);
///         self.inner.flush()
///     }
/// }
///
/// # fn main() -> treering_engine::Result<()> {
/// let options = Options::default();
/// let inner = MemDevice::new(required_blocks(&options, 64));
/// let device = Arc::new(Counting { inner, flushes: AtomicU64::new(0) });
/// let store = Store::open(device.clone(), Arc::new(SystemClock::new()), &options)?;
/// let before = device.flushes.load(Ordering::Relaxed);
/// let lsn = store.put(b"key", b"value")?;
/// store.sync(lsn)?;
/// assert!(device.flushes.load(Ordering::Relaxed) > before);
/// # Ok(())
/// # }
/// ```
pub trait BlockDevice: Send + Sync {
    /// Returns the number of addressable blocks. It changes only through
    /// [`BlockDevice::extend_to`].
    fn capacity_blocks(&self) -> u64;

    /// Returns how the medium is accessed. Constant while the device is open.
    fn access(&self) -> Access {
        Access::Memory
    }

    /// Reads `buf.len() / 4096` blocks starting at `lba`. Blocks never written read as zeros.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device or the medium fails. The contents of
    /// `buf` are then meaningless; other blocks can still be read.
    fn read(&self, lba: Lba, buf: &mut [u8], class: IoClass) -> Result<(), DeviceError>;

    /// Writes whole blocks starting at `lba`. They are not durable before the next
    /// [`BlockDevice::flush`].
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device or the buffer is not whole blocks;
    /// nothing was written. If the medium fails, each of the blocks holds its old bytes or its new
    /// ones.
    fn write(&self, lba: Lba, bytes: &[u8], class: IoClass) -> Result<(), DeviceError>;

    /// Performs several writes in any order, and returns when all have completed. A device with
    /// queues serves them concurrently.
    ///
    /// # Errors
    /// The first [`DeviceError`]; the other writes may or may not have been performed.
    fn write_batch(&self, writes: &[BlockWrite<'_>]) -> Result<(), DeviceError> {
        writes
            .iter()
            .try_for_each(|w| self.write(w.lba, w.bytes, w.class))
    }

    /// Performs several reads in any order, and returns when all have completed. A device with
    /// queues serves them concurrently.
    ///
    /// # Errors
    /// The first [`DeviceError`]; the other reads may or may not have been performed.
    fn read_batch(&self, reads: &mut [BlockRead<'_>]) -> Result<(), DeviceError> {
        reads
            .iter_mut()
            .try_for_each(|r| self.read(r.lba, r.buf, r.class))
    }

    /// Tells the device that `blocks` blocks starting at `lba` no longer hold data.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device or the medium fails. The blocks hold
    /// old bytes or zeros, as after a successful trim.
    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError>;

    /// Suggests that the device now give trimmed space back to its provider, except for blocks in
    /// `keep`, which will soon be written again. A hint: a device with no provider does nothing.
    fn reclaim(&self, keep: Range<Lba>) {
        let _ = keep;
    }

    /// Lets the device grow to `blocks` blocks, if its medium supports that. Blocks never written
    /// read as zeros. Returns whether the device has that many blocks from now on.
    fn extend_to(&self, blocks: u64) -> bool {
        blocks <= self.capacity_blocks()
    }

    /// Returns the number of blocks, from the first on, that are known to exist on the medium after
    /// a power cut. The blocks behind them are zeros that occupy no space yet. A device that does
    /// not grow returns its capacity.
    fn durable_blocks(&self) -> u64 {
        self.capacity_blocks()
    }

    /// Makes every write durable that completed before this call.
    ///
    /// # Errors
    /// [`DeviceError`]; then nothing written since the last good flush is known to be durable.
    fn flush(&self) -> Result<(), DeviceError>;
}

/// An error of a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The request lies outside the device.
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
    /// The operating system or the medium reported an error.
    #[error("{what} at {lba} failed: {source}")]
    Io {
        /// `read`, `write`, `trim` or `flush`.
        what: &'static str,
        /// First block, 0 for a flush.
        lba: Lba,
        /// The cause.
        source: std::io::Error,
    },
    /// A thinly provisioned medium has no room for the write, which changed nothing.
    #[error(
        "write at {lba} failed: the medium is full: {needed} bytes would be live after \
         compression, of {capacity}; \
         expected data that shrink more, fewer of them, or a larger medium"
    )]
    Full {
        /// The block that does not fit.
        lba: Lba,
        /// Live bytes after compression, including the write.
        needed: u64,
        /// The greatest number of live bytes that the medium can hold.
        capacity: u64,
    },
    /// The file cannot be used as a device.
    #[error("{path}: {why}", path = path.display())]
    Open {
        /// The file.
        path: std::path::PathBuf,
        /// What was found, and what is expected.
        why: String,
    },
}

impl DeviceError {
    /// Returns whether the medium had no room for a write. The write may have changed some of its
    /// blocks, like any failed write. Everything else is unchanged, and the same write may succeed
    /// once there is room.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        match self {
            DeviceError::Full { .. } => true,
            // A failed flush has lost the writes that it was to make durable, whatever reason it
            // gives.
            DeviceError::Io { what, source, .. } => {
                let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
                *what != "flush" && full.contains(&source.kind())
            }
            _ => false,
        }
    }
}

/// Checks that a range of blocks lies within a device of `capacity` blocks.
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

/// Checks that a read or write is a whole number of blocks within the device, and returns that
/// number.
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

/// Checks all reads of a batch by [`check_request`].
///
/// # Errors
/// The first that is wrong.
pub fn check_reads(reads: &[BlockRead<'_>], capacity: u64) -> Result<(), DeviceError> {
    let check = |r: &BlockRead<'_>| check_request("read", r.lba, r.buf.len(), capacity).map(drop);
    reads.iter().try_for_each(check)
}

/// Checks all writes of a batch by [`check_request`].
///
/// # Errors
/// The first that is wrong.
pub fn check_writes(writes: &[BlockWrite<'_>], capacity: u64) -> Result<(), DeviceError> {
    let check = |w: &BlockWrite<'_>| check_request("write", w.lba, w.bytes.len(), capacity);
    writes.iter().try_for_each(|w| check(w).map(drop))
}
