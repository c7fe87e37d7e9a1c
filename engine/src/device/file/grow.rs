//! The end of a file that grows as it is written.
//!
//! ```text
//! blocks   0 ........ durable ........ end ................ capacity
//!          written    since the last   no file yet: reads
//!                     flush            give zeros
//! ```
//!
//! The file grows by a quarter of its length at a time, so that a store that fills up extends it a
//! few times and not for every page. The new length becomes durable with the next flush, like the
//! bytes before it: `fdatasync` covers a length that is needed to read them.

use std::io;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The smallest number of blocks by which a file grows: 4 MiB.
const LEAST: u64 = 1024;

/// The current end of a file, and the length to which it may grow.
pub(super) struct Extent {
    capacity: AtomicU64,
    end: AtomicU64,
    durable: AtomicU64,
    /// Held while a thread extends the file.
    growing: Mutex<()>,
}

impl Extent {
    /// Creates the extent of a file of `blocks` blocks that does not grow.
    pub(super) fn fixed(blocks: u64) -> Extent {
        Extent {
            capacity: AtomicU64::new(blocks),
            end: AtomicU64::new(blocks),
            durable: AtomicU64::new(blocks),
            growing: Mutex::new(()),
        }
    }

    /// Returns the number of blocks of the device.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Acquire)
    }

    /// Returns the number of blocks of the file.
    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Returns the number of blocks that the file is known to have durably.
    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Raises the device's capacity to at least `blocks` blocks.
    pub(super) fn extend_to(&self, blocks: u64) {
        self.capacity.fetch_max(blocks, Ordering::AcqRel);
    }

    /// Extends the file so that it has blocks up to `needed`. `set_len` receives the new length in
    /// blocks.
    ///
    /// # Errors
    /// The error of `set_len`; the file's length is unchanged.
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

    /// Records that a flush has succeeded which began when the file had `end` blocks.
    pub(super) fn flushed(&self, end: u64) {
        self.durable.fetch_max(end, Ordering::AcqRel);
    }
}
