//! Persistent memory: 64-byte lines that are stored, written back and fenced.
//!
//! ```text
//! store ─▶ CPU cache ──clwb──▶ on its way ──fence──▶ persistent
//! ntstore ─────────────────▶ on its way
//! ```
//!
//! A [`PmDevice`] promises this much and no more:
//!
//! - A load returns the bytes last stored, persistent or not.
//! - A store of eight aligned bytes (a word), or of a part of a word, is atomic. A longer store is
//!   a sequence of stores of the words that it touches.
//! - A stored word may become persistent at any time, since the CPU evicts cache lines when it
//!   likes. It is persistent at the latest after the first [`PmDevice::fence`] that follows a
//!   write-back of its line. In between, a crash may leave any value that the word has had since it
//!   was last known to be persistent, independently of all other words. Words of one line are not
//!   ordered either.
//! - A value stored after a write-back is in doubt until it is written back itself, even if it is
//!   stored to the same word.
//!
//! Today's processors promise slightly more: stores to one line reach the medium in program order.
//! These devices do not, so that an engine that relies on it fails its tests.

mod doubt;
mod image;
mod mem;

pub use image::PmImage;
pub use mem::{MemPm, PmRequest};

use std::ops::Range;

use super::DeviceError;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

/// The size of a cache line in bytes, the unit of write-back.
pub const LINE_SIZE: usize = 64;

/// The number of bytes that are stored atomically if they are aligned.
pub const WORD_SIZE: usize = 8;

/// A byte-addressable persistent device, shared by threads.
pub trait PmDevice: Send + Sync {
    /// Returns the size in bytes, a multiple of [`LINE_SIZE`].
    fn len(&self) -> u64;

    /// Returns whether the device has no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads `buf.len()` bytes at `offset` as last stored, persistent or not.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device.
    fn load(&self, offset: u64, buf: &mut [u8]) -> Result<(), DeviceError>;

    /// Stores bytes into the CPU cache.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device.
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Starts the write-back of the line that holds `offset`.
    ///
    /// # Errors
    /// [`DeviceError`] if `offset` lies outside the device.
    fn clwb(&self, offset: u64) -> Result<(), DeviceError>;

    /// Stores bytes past the cache. They are persistent after the next fence.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device.
    fn ntstore(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Waits until all write-backs and non-temporal stores started so far are persistent.
    fn fence(&self);

    /// Declares what the bytes of `range` are used for from now on. An allocator calls this when it
    /// hands them out: log chunks are [`IoClass::Log`], leaves are [`IoClass::Page`], and a
    /// superblock and all bytes not declared otherwise are [`IoClass::Extra`].
    ///
    /// The call changes no byte, orders nothing and does not survive a crash: after opening the
    /// device, it has to be made again. It matters only to a device that counts writes by class, in
    /// units of its own (XPLines of 256 bytes).
    fn set_class(&self, range: Range<u64>, class: IoClass) {
        let _ = (range, class);
    }
}

/// Checks that a range of bytes lies within a device of `capacity` bytes.
///
/// # Errors
/// [`DeviceError::Io`], at the block in which the range begins.
pub fn check_bytes(
    what: &'static str,
    offset: u64,
    len: usize,
    capacity: u64,
) -> Result<(), DeviceError> {
    let end = offset.checked_add(len as u64);
    if end.is_some_and(|end| end <= capacity) {
        return Ok(());
    }
    let source = std::io::Error::other(format!(
        "{len} bytes at offset {offset} are outside the device of {capacity} bytes"
    ));
    Err(DeviceError::Io {
        what,
        lba: Lba(offset / BLOCK_SIZE as u64),
        source,
    })
}
