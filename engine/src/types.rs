//! Basic types used everywhere: block addresses, page names, log positions, I/O classes, time.

use std::fmt;

/// Bytes in one device block. Devices promise atomic writes of one block and nothing larger
/// (B⁻-tree §2.4).
pub const BLOCK_SIZE: usize = 4096;

/// A logical block address: the index of a block of [`BLOCK_SIZE`] bytes on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// The name of a tree page. It does not change during the page's life, wherever the page lies on
/// the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

/// A position in the redo log, in bytes from the log's beginning. The LSN of a record is the
/// position just *behind* it, so a record is durable exactly when the durable position is at least
/// its LSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// A random number that distinguishes one store's bytes from those of another store that used the
/// same device before. It is drawn when a store is formatted, kept in the superblock, and mixed
/// into the checksum of every block and page, so that blocks left by another store fail their
/// check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u64);

impl StoreId {
    /// Returns the CRC-32 of `bytes`, mixed with this id as in all blocks of the store.
    #[must_use]
    pub(crate) fn crc(self, bytes: &[u8]) -> u32 {
        let seed = self.folded();
        let mut hasher = crc32fast::Hasher::new_with_initial(seed);
        hasher.update(bytes);
        hasher.finalize()
    }

    /// Folds the id into 32 bits by combining its two halves.
    #[must_use]
    pub(crate) fn folded(self) -> u32 {
        (self.0 ^ (self.0 >> 32)) as u32
    }
}

/// Nanoseconds since an arbitrary origin, in wall-clock or virtual time depending on the
/// [`crate::Clock`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.0)
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}", self.0)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log position {}", self.0)
    }
}

/// The purpose of an I/O. Write amplification is split by these classes, as in B⁻-tree eq. (1):
/// `WA = WA_log + WA_pg + WA_e`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoClass {
    /// Redo log.
    Log,
    /// Tree pages written to their places.
    Page,
    /// Everything that keeps page writes atomic and pages findable: page journal, page table, index
    /// snapshot, superblock.
    Extra,
}

impl IoClass {
    /// All classes, in the order of reports.
    pub const ALL: [IoClass; 3] = [IoClass::Log, IoClass::Page, IoClass::Extra];
}

/// The source of time. The engine reads no other clock, so a simulator can control time (DESIGN,
/// "Time").
pub trait Clock: Send + Sync {
    /// Returns the current time, which never goes backwards.
    fn now(&self) -> Nanos;
}

/// The operating system's monotonic clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: std::time::Instant,
}

impl SystemClock {
    /// Creates a clock whose origin is now.
    pub fn new() -> Self {
        SystemClock {
            origin: std::time::Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// How the engine reaches the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// In memory: the device is simulated, or is memory itself.
    #[default]
    Memory,
    /// Through a file.
    File {
        /// Whether I/O bypasses the operating system's page cache.
        direct: bool,
        /// Whether batches are submitted through io_uring, in one system call.
        io_uring: bool,
    },
}

/// The result of one bounded step of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The task has nothing left to do now.
    Idle,
    /// More work is waiting: call again.
    More,
}
