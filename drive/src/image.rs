//! The drive's bytes: a sparse file, or anonymous memory that behaves like one.
//!
//! Both are file descriptors, so reads, writes and holes are system calls: a full disk below is an
//! error, not a signal, and a killed drive leaves what was written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use treering_engine::BLOCK_SIZE;

use crate::error::DriveError;
use crate::recording::Extent;

/// The bytes of a drive. Blocks that were never written, or discarded, read as zeros.
#[derive(Debug)]
pub struct Image {
    file: File,
    blocks: u64,
}

impl Image {
    /// An empty drive of `blocks` blocks: in memory if that is at most half of the memory that is
    /// free, else in a sparse file without a name in the directory for temporary files.
    ///
    /// # Errors
    /// [`DriveError::System`] if there is no room for it.
    pub fn new(blocks: u64) -> Result<Image, DriveError> {
        let what = "the bytes of the drive";
        let file = match blocks * BLOCK_SIZE as u64 <= free_memory() / 2 {
            true => memfd_create("treering-drive", MemfdFlags::CLOEXEC)
                .map(File::from)
                .map_err(io::Error::from),
            false => tempfile::tempfile(),
        };
        let file = file.map_err(DriveError::system(what))?;
        Image::of(file, blocks).map_err(DriveError::system(what))
    }

    /// A drive whose bytes are in a file, which is made if it does not exist.
    ///
    /// # Errors
    /// [`DriveError::System`] if the file cannot be opened or has no room.
    pub fn open(path: &Path, blocks: u64) -> Result<Image, DriveError> {
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false);
        let opened = how.open(path).and_then(|file| Image::of(file, blocks));
        opened.map_err(DriveError::system(path.display().to_string()))
    }

    fn of(file: File, blocks: u64) -> io::Result<Image> {
        file.set_len(blocks * BLOCK_SIZE as u64)?;
        Ok(Image { file, blocks })
    }

    /// Size in blocks of 4 KiB.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Reads bytes from the byte `at` on.
    ///
    /// # Errors
    /// Those of the medium below.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    /// Writes bytes from the byte `at` on.
    ///
    /// # Errors
    /// Those of the medium below.
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    /// Forgets blocks; they read as zeros.
    ///
    /// # Errors
    /// Those of the medium below.
    pub fn discard(&self, extent: Extent) -> io::Result<()> {
        let block = BLOCK_SIZE as u64;
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let (at, len) = (extent.lba * block, extent.blocks * block);
        fallocate(&self.file, how, at, len).map_err(io::Error::from)
    }
}

/// Bytes of memory that could be used without swapping; 0 if unknown.
fn free_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_discarded_reads_as_zeros() {
        let image = Image::new(16).expect("a small drive");
        image.write(4096, &[7; 8192]).expect("room");
        image.discard(Extent { lba: 1, blocks: 1 }).expect("a hole");
        let mut bytes = vec![1; 12288];
        image.read(4096, &mut bytes).expect("within the drive");
        assert!(bytes[..4096].iter().all(|b| *b == 0));
        assert!(bytes[4096..8192].iter().all(|b| *b == 7));
        assert!(bytes[8192..].iter().all(|b| *b == 0));
    }
}
