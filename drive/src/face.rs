//! What a face is: a directory that a program works in, over a drive that is being recorded.
//!
//! | face | what the kernel sees | what is recorded |
//! |---|---|---|
//! | [`Face::Files`] | a FUSE file system | names, and writes of files with their place on the drive |
//! | [`Face::Disk`] | one FUSE file, a loop device on it, a real file system on that | writes of blocks |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::DriveError;
use crate::faults::Faults;

/// Which face a drive shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Face {
    /// A file system of our own, in FUSE.
    Files,
    /// A disk with a real file system on it.
    Disk(FileSystem),
}

impl Face {
    /// Its name, as `--fs` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Face::Files => "files",
            Face::Disk(FileSystem::Ext4) => "ext4",
            Face::Disk(FileSystem::Xfs) => "xfs",
            Face::Disk(FileSystem::Btrfs) => "btrfs",
            Face::Disk(FileSystem::None) => "none",
        }
    }
}

/// The file system on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
    /// None: the program gets the disk itself, as the file `disk` in its directory.
    None,
}

/// Whether the kernel may keep written bytes for a while, as it does for other file systems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageCache {
    /// Dirty pages are above the drive; they come with `fsync`, `msync` or write-back.
    #[default]
    WriteBack,
    /// Each `write` reaches the drive before it returns.
    WriteThrough,
}

/// How a drive is mounted.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Where; an empty directory.
    pub dir: PathBuf,
    /// Size of the drive, in blocks of 4 KiB.
    pub capacity_blocks: u64,
    /// Directory that holds the drive's bytes and survives the drive; `None`: they are gone with
    /// it.
    pub keep: Option<PathBuf>,
    /// The kernel's page cache.
    pub page_cache: PageCache,
    /// Threads that serve requests, at least 1. One is fastest for a program that waits for each
    /// answer: with more, the kernel wakes them in turn, mostly on another processor.
    pub threads: usize,
    /// Errors that the drive gives on purpose.
    pub faults: Arc<Faults>,
}

/// A drive that is being served.
pub trait Mounted: Send {
    /// The directory that a program works in.
    fn dir(&self) -> &Path;

    /// Whether it is still mounted (somebody else may have unmounted it).
    fn is_mounted(&self) -> bool;

    /// Unmounts, and waits until everything that was written has reached the recording. A busy
    /// mount is detached, and what still uses it is named.
    ///
    /// # Errors
    /// [`DriveError`] if it could not be unmounted at all.
    fn unmount(self: Box<Self>) -> Result<Unmounted, DriveError>;
}

/// How an unmount went.
#[derive(Clone, Debug, Default)]
pub struct Unmounted {
    /// What was still open, in words for a warning.
    pub busy: Option<String>,
}
