//! The drive's bytes: memory, or a sparse file.
//!
//! A file is read and written by system calls: a full disk below is an error, not a signal, and a
//! killed drive leaves what was written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use parking_lot::RwLock;
use rustix::fs::{FallocateFlags, fallocate};
use treering_engine::BLOCK_SIZE;

use crate::error::DriveError;
use crate::memory::Memory;
use crate::recording::Extent;

/// The bytes of a drive. Blocks that were never written, or discarded, read as zeros.
#[derive(Debug)]
pub struct Image {
    medium: Medium,
    blocks: u64,
}

#[derive(Debug)]
enum Medium {
    Memory(RwLock<Memory>),
    File(File),
}

impl Image {
    /// An empty drive of `blocks` blocks: in memory if that is at most half of the memory that is
    /// free, else in a sparse file without a name in the directory for temporary files.
    ///
    /// # Errors
    /// [`DriveError::System`] if there is no room for it.
    pub fn new(blocks: u64) -> Result<Image, DriveError> {
        let what = "the bytes of the drive";
        let bytes = blocks.saturating_mul(BLOCK_SIZE as u64);
        if bytes > free_memory() / 2 {
            let file = tempfile::tempfile().and_then(|file| Image::of(file, blocks));
            return file.map_err(DriveError::system(what));
        }
        // Smaller than memory, so it is a `usize`.
        let memory = Memory::new(bytes as usize).map_err(DriveError::system(what))?;
        Ok(Image {
            medium: Medium::Memory(RwLock::new(memory)),
            blocks,
        })
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
        file.set_len(blocks.saturating_mul(BLOCK_SIZE as u64))?;
        Ok(Image {
            medium: Medium::File(file),
            blocks,
        })
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
        match &self.medium {
            Medium::File(file) => file.read_exact_at(bytes, at),
            Medium::Memory(memory) => {
                bytes.copy_from_slice(range(memory.read().bytes(), at, bytes.len())?);
                Ok(())
            }
        }
    }

    /// Writes bytes from the byte `at` on.
    ///
    /// # Errors
    /// Those of the medium below.
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match &self.medium {
            Medium::File(file) => file.write_all_at(bytes, at),
            Medium::Memory(memory) => {
                let mut memory = memory.write();
                let end = end_of(memory.bytes(), at, bytes.len())?;
                memory.bytes_mut()[at as usize..end].copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Forgets blocks; they read as zeros.
    ///
    /// # Errors
    /// Those of the medium below.
    pub fn discard(&self, extent: Extent) -> io::Result<()> {
        let block = BLOCK_SIZE as u64;
        let (at, len) = (extent.lba * block, extent.blocks * block);
        match &self.medium {
            Medium::File(file) => {
                let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(file, how, at, len).map_err(io::Error::from)
            }
            Medium::Memory(memory) => {
                let mut memory = memory.write();
                end_of(memory.bytes(), at, len as usize)?;
                memory.forget(at as usize, len as usize)
            }
        }
    }
}

/// The end of a range that must lie in the drive.
fn end_of(all: &[u8], at: u64, len: usize) -> io::Result<usize> {
    let end = usize::try_from(at).ok().and_then(|at| at.checked_add(len));
    end.filter(|end| *end <= all.len())
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn range(all: &[u8], at: u64, len: usize) -> io::Result<&[u8]> {
    let end = end_of(all, at, len)?;
    Ok(&all[end - len..end])
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
    fn what_is_discarded_reads_as_zeros_on_either_medium() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = Image::open(&dir.path().join("image"), 16).expect("a small drive");
        for image in [Image::new(16).expect("a small drive"), file] {
            image.write(4096, &[7; 8192]).expect("room");
            image.discard(Extent { lba: 1, blocks: 1 }).expect("a hole");
            let mut bytes = vec![1; 12288];
            image.read(4096, &mut bytes).expect("within the drive");
            assert!(bytes[..4096].iter().all(|b| *b == 0));
            assert!(bytes[4096..8192].iter().all(|b| *b == 7));
            assert!(bytes[8192..].iter().all(|b| *b == 0));
            assert!(
                image.read(16 * 4096 - 1, &mut [0; 2]).is_err(),
                "behind the end"
            );
        }
    }

    #[test]
    fn a_drive_in_memory_ends_where_it_ends() {
        let image = Image::new(1).expect("a small drive");
        assert!(image.write(4095, &[1; 2]).is_err());
        assert!(image.discard(Extent { lba: 1, blocks: 1 }).is_err());
        assert!(image.read(u64::MAX, &mut [0]).is_err());
        assert!(image.read(4095, &mut [0]).is_ok());
    }
}
