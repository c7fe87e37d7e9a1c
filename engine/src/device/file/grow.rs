//! A file that grows while it is written.
//!
//! ```text
//! blocks   0 ........ durable ........ end ................ capacity
//!          written    since the last   no file yet: reads
//!                     flush            give zeros
//! ```
//!
//! The file gets longer by a quarter of its length at a time, so that a store that fills up asks the
//! file system a few times and not at every page. Its end is durable with the next flush, like the
//! bytes before it: `fdatasync` covers a length that is needed to read them.

use std::io;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Fewest blocks by which a file grows: 4 MiB.
const LEAST: u64 = 1024;

/// Where a file ends now, and how long it may become.
pub(super) struct Extent {
    capacity: AtomicU64,
    end: AtomicU64,
    durable: AtomicU64,
    /// Held by whoever makes the file longer.
    growing: Mutex<()>,
}

impl Extent {
    /// Of a file of `blocks` blocks that does not grow.
    pub(super) fn fixed(blocks: u64) -> Extent {
        Extent {
            capacity: AtomicU64::new(blocks),
            end: AtomicU64::new(blocks),
            durable: AtomicU64::new(blocks),
            growing: Mutex::new(()),
        }
    }

    /// Blocks that the device has.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Acquire)
    }

    /// Blocks that the file has.
    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Blocks that the file has durably.
    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Lets the device have `blocks` blocks at least.
    pub(super) fn extend_to(&self, blocks: u64) {
        self.capacity.fetch_max(blocks, Ordering::AcqRel);
    }

    /// Makes the file long enough for blocks up to `needed`; `set_len` is told its length in blocks.
    ///
    /// # Errors
    /// What `set_len` returns; the file is as long as it was.
    pub(super) fn make_room(
        &self,
        needed: u64,
        set_len: impl FnOnce(u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if needed <= self.end() {
            return Ok(());
        }
        let _growing = self.growing.lock();
        let end = self.end();
        if needed <= end {
            return Ok(());
        }
        let wanted = (end + (end / 4).max(LEAST)).min(self.capacity());
        let longer = wanted.max(needed);
        set_len(longer)?;
        self.end.store(longer, Ordering::Release);
        Ok(())
    }

    /// A flush that began when the file had `end` blocks has succeeded.
    pub(super) fn flushed(&self, end: u64) {
        self.durable.fetch_max(end, Ordering::AcqRel);
    }
}
