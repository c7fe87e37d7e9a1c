//! Persistent memory: 64-byte lines that are stored, written back and fenced.
//!
//! ```text
//! store ─▶ CPU cache ──clwb──▶ on its way ──fence──▶ persistent
//! ntstore ─────────────────▶ on its way
//! ```
//!
//! The contract a [`PmDevice`] gives, and all of it:
//!
//! - A load returns what was last stored, persistent or not.
//! - A store of eight aligned bytes (a word) is atomic; so is one of a part of a word. A longer one is a store of each word that it touches.
//! - A stored word may become persistent at once, as the CPU evicts lines when it likes, and does so at the latest at the first
//!   [`PmDevice::fence`] after a write-back of its line. In between a crash may leave any value that the word has had since it was last
//!   known to be persistent, whatever it leaves of the words beside it: words of one line are in no order, either.
//! - What is stored after a write-back is in doubt until it is written back itself, even if it is the same word.
//!
//! Today's processors give a little more: stores to one line reach the medium in program order. An engine that leans on that is refused
//! here.

mod doubt;
mod image;
mod mem;

pub use image::PmImage;
pub use mem::{MemPm, PmRequest};

use std::ops::Range;

use super::DeviceError;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

/// Bytes in a cache line, the unit of write-back.
pub const LINE_SIZE: usize = 64;

/// Bytes that are stored at once or not at all, if they are aligned.
pub const WORD_SIZE: usize = 8;

/// A byte-addressable persistent device. Shared by threads.
pub trait PmDevice: Send + Sync {
    /// Size in bytes; a multiple of [`LINE_SIZE`].
    fn len(&self) -> u64;

    /// Whether the device has no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads `buf.len()` bytes from `offset` on, as last stored, persistent or not.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device.
    fn load(&self, offset: u64, buf: &mut [u8]) -> Result<(), DeviceError>;

    /// Stores into the CPU cache.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device.
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Starts writing back the line that holds `offset`.
    ///
    /// # Errors
    /// [`DeviceError`] if `offset` lies outside the device.
    fn clwb(&self, offset: u64) -> Result<(), DeviceError>;

    /// Stores past the cache; persistent after the next fence.
    ///
    /// # Errors
    /// [`DeviceError`] if the range lies outside the device.
    fn ntstore(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Returns when all write-backs and non-temporal stores that were started are persistent.
    fn fence(&self);

    /// Says what the bytes of `range` are used for from now on, as an allocator does when it hands them out: chunks of a log are
    /// [`IoClass::Log`], leaves [`IoClass::Page`], a superblock and the rest, which is what nobody has spoken of, [`IoClass::Extra`].
    ///
    /// It changes no byte, orders nothing and survives no crash: whoever opens the device says it again. A device that counts writes by class
    /// listens, in units of its own (its XPLines, of 256 bytes); the others do nothing.
    fn set_class(&self, range: Range<u64>, class: IoClass) {
        let _ = (range, class);
    }
}

/// Refuses a range of bytes outside a device of `capacity` bytes.
///
/// # Errors
/// [`DeviceError::Io`], at the block that the range begins in.
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
