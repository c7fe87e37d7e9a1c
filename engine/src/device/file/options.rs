//! Options for opening or creating the file of a device.

use std::time::Duration;

/// Whether I/O goes through the operating system's page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileIo {
    /// I/O bypasses the page cache, where the file system supports that.
    #[default]
    Direct,
    /// I/O is buffered. Cached reads cost no I/O, memory is used twice, and the kernel writes data
    /// to the device when it likes, at the latest on a flush.
    Buffered,
}

/// Whether the file system reserves space for the whole file in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSpace {
    /// No space is reserved: blocks are allocated when they are written, and a full file system
    /// refuses the write.
    #[default]
    Sparse,
    /// The whole file is allocated (`fallocate`), so that no write fails for lack of space. Trimmed
    /// space is not given back either: a file that is fully allocated when it is opened stays so.
    Reserved,
}

/// What happens to trimmed blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileDiscards {
    /// They are returned to the file system in batches (`fallocate` with `PUNCH_HOLE`), where it
    /// supports that.
    #[default]
    Punch,
    /// They stay allocated: the file remains as large as the store has ever been.
    Ignore,
}

/// Who may use the file, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// One device object reads and writes; nobody else can open the file meanwhile.
    #[default]
    ReadWrite,
    /// Any number of device objects read; writes fail. For [`crate::Options::read_only`], and for
    /// files that may not be written.
    ReadOnly,
}

/// How a file is opened or created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Whether I/O bypasses the page cache. Default: it does.
    pub io: FileIo,
    /// Whether space is reserved when the file is created. Default: no.
    pub space: FileSpace,
    /// What happens to trimmed blocks. Default: they are given back.
    pub discards: FileDiscards,
    /// Who may use the file. Default: one device object, which reads and writes.
    pub access: FileAccess,
    /// How long to wait for a lock that another process holds. Default: five seconds. After a kill,
    /// the kernel finishes the dead process's io_uring requests in its own time, and they hold the
    /// lock until then.
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
