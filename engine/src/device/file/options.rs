//! How a file serves as a device.

use std::time::Duration;

/// Whether the operating system's page cache stands between store and device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileIo {
    /// It does not, where the file system allows that.
    #[default]
    Direct,
    /// It does: reads of pages that it has cost no I/O, memory is spent twice, and what is written
    /// reaches the device when the kernel likes, at the latest with a flush.
    Buffered,
}

/// Whether the file system keeps room for the whole file from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSpace {
    /// It does not: blocks are allocated when they are written, and a full file system refuses
    /// that.
    #[default]
    Sparse,
    /// It does (`fallocate`), so that no write fails for want of room. Nothing is given back
    /// either: a file that is allocated whole when it is opened stays so.
    Reserved,
}

/// What becomes of blocks that hold nothing any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileDiscards {
    /// The file system gets them back, in batches (`fallocate` with `PUNCH_HOLE`), where it can.
    #[default]
    Punch,
    /// They stay allocated: the file is as long as the store has ever been large.
    Ignore,
}

/// Who may do what with the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// One device object reads and writes; nobody else has the file meanwhile.
    #[default]
    ReadWrite,
    /// Any number of device objects read; a write fails. For [`crate::Options::read_only`], and
    /// files that may not be written.
    ReadOnly,
}

/// How a file is opened or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Page cache or not. Default: not.
    pub io: FileIo,
    /// Whether space is reserved when the file is made. Default: no.
    pub space: FileSpace,
    /// What becomes of discarded blocks. Default: they are given back.
    pub discards: FileDiscards,
    /// Who may do what. Default: one reads and writes.
    pub access: FileAccess,
    /// How long to wait for a lock that somebody else has. Default: five seconds, for the kernel
    /// finishes a dead process's io_uring requests in its own time, and until then they hold its
    /// lock.
    pub lock_wait: Duration,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        FileOptions {
            io: FileIo::Direct,
            space: FileSpace::Sparse,
            discards: FileDiscards::Punch,
            access: FileAccess::ReadWrite,
            lock_wait: Duration::from_secs(5),
        }
    }
}

impl From<FileIo> for FileOptions {
    fn from(io: FileIo) -> FileOptions {
        FileOptions {
            io,
            ..FileOptions::default()
        }
    }
}
