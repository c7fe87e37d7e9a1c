//! The small words everything is said in: blocks, pages, log positions, I/O classes, time.

use std::fmt;

/// Bytes in one device block. Devices promise atomic writes of one block and nothing larger
/// (B⁻-tree §2.4).
pub const BLOCK_SIZE: usize = 4096;

/// A logical block address: the index of a [`BLOCK_SIZE`] block on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// The name of a tree page, stable for the page's life whatever its place on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

/// A position in the redo log, in bytes from the log's beginning. The LSN of a record is the position
/// just *behind* it, so a record is durable exactly when the durable position is at least its LSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// Tells the bytes of one store from those of another that had the device before. It is drawn when
/// a store is formatted, kept in the superblock, and mixed into the checksum of every block and
/// page: what another store left behind fails its check here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u64);

impl StoreId {
    /// CRC-32 of `bytes`, as blocks of this store carry it.
    #[must_use]
    pub(crate) fn crc(self, bytes: &[u8]) -> u32 {
        let seed = self.folded();
        let mut hasher = crc32fast::Hasher::new_with_initial(seed);
        hasher.update(bytes);
        hasher.finalize()
    }

    /// Both halves in one.
    #[must_use]
    pub(crate) fn folded(self) -> u32 {
        (self.0 ^ (self.0 >> 32)) as u32
    }
}

/// Nanoseconds since an arbitrary origin: wall-clock or virtual, as the [`crate::Clock`] says.
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

/// What an I/O is for. Write amplification is split along these lines, B⁻-tree eq. (1):
/// `WA = WA_log + WA_pg + WA_e`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoClass {
    /// Redo log.
    Log,
    /// Tree pages written to their home.
    Page,
    /// All that keeps page writes atomic and findable: page journal, page table, index snapshot,
    /// superblock.
    Extra,
}

impl IoClass {
    /// All classes, in report order.
    pub const ALL: [IoClass; 3] = [IoClass::Log, IoClass::Page, IoClass::Extra];
}

/// Where time comes from. Nothing in the engine reads a clock in any other way, so a simulator can own
/// time (DESIGN, "Time").
pub trait Clock: Send + Sync {
    /// The current time; never goes backwards.
    fn now(&self) -> Nanos;
}

/// The operating system's monotonic clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: std::time::Instant,
}

impl SystemClock {
    /// A clock whose origin is now.
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

/// What stands between the engine and the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Memory: the device is simulated, or lives there.
    #[default]
    Memory,
    /// A file.
    File {
        /// Past the page cache.
        direct: bool,
        /// Batches are one system call, through io_uring.
        io_uring: bool,
    },
}

/// How far a bounded step of background work got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing of this task is left to do now.
    Idle,
    /// More is waiting: call again.
    More,
}
