//! The drive's bytes: memory, or a sparse file.
//!
//! A file is read and written by system calls: a full disk below is an error, not a signal, and a
//! killed drive leaves what was written. A drive may also lie over blocks that stay as they are:
//! what is written is then kept apart.

use std::collections::hash_map::Entry;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
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

/// Blocks that an image lies over, and does not change.
pub(crate) trait Under: Send + Sync {
    /// Reads a block of the drive.
    fn read(&self, lba: u64, into: &mut Block) -> io::Result<()>;
}

/// The bytes of a block.
pub(crate) type Block = [u8; BLOCK_SIZE];

/// What has changed over other blocks; a discarded block has no bytes.
type Changed = FxHashMap<u64, Option<Box<Block>>>;

enum Medium {
    Memory(RwLock<Memory>),
    File(File),
    Over(Arc<dyn Under>, RwLock<Changed>),
}

impl std::fmt::Debug for Medium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Medium::Memory(_) => "Memory",
            Medium::File(_) => "File",
            Medium::Over(..) => "Over",
        })
    }
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

    /// A drive that begins with the blocks of another. Copying it costs nothing.
    pub(crate) fn over(under: Arc<dyn Under>, blocks: u64) -> Image {
        Image {
            medium: Medium::Over(under, RwLock::default()),
            blocks,
        }
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
            Medium::Over(under, changed) => {
                let changed = changed.read();
                self.each_block(at, bytes.len(), |lba, skip, part| {
                    let mut below = [0; BLOCK_SIZE];
                    let block = match changed.get(&lba) {
                        Some(Some(block)) => &**block,
                        Some(None) => &below,
                        None => {
                            under.read(lba, &mut below)?;
                            &below
                        }
                    };
                    let len = part.len();
                    bytes[part].copy_from_slice(&block[skip..skip + len]);
                    Ok(())
                })
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
            Medium::Over(under, changed) => {
                let mut changed = changed.write();
                self.each_block(at, bytes.len(), |lba, skip, part| {
                    let new = match changed.entry(lba) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => {
                            let mut block = Box::new([0; BLOCK_SIZE]);
                            if part.len() < BLOCK_SIZE {
                                under.read(lba, &mut block)?;
                            }
                            new.insert(Some(block))
                        }
                    };
                    let block = new.get_or_insert_with(|| Box::new([0; BLOCK_SIZE]));
                    block[skip..skip + part.len()].copy_from_slice(&bytes[part]);
                    Ok(())
                })
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
            Medium::Over(_, changed) => {
                let mut changed = changed.write();
                let end = extent.lba.saturating_add(extent.blocks);
                if end > self.blocks {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                changed.extend((extent.lba..end).map(|lba| (lba, None)));
                Ok(())
            }
        }
    }

    /// Calls `each` with the blocks of a range: the block, where in it the range begins, and which
    /// bytes of the range lie in it.
    fn each_block(
        &self,
        at: u64,
        len: usize,
        mut each: impl FnMut(u64, usize, Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let size = self.blocks.saturating_mul(BLOCK_SIZE as u64);
        if at.checked_add(len as u64).is_none_or(|end| end > size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        while done < len {
            let place = at + done as u64;
            let skip = (place % BLOCK_SIZE as u64) as usize;
            let part = (BLOCK_SIZE - skip).min(len - done);
            each(place / BLOCK_SIZE as u64, skip, done..done + part)?;
            done += part;
        }
        Ok(())
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
        let over = Image::over(Arc::new(Nines), 16);
        for (image, below) in [
            (Image::new(16).expect("a small drive"), 0),
            (file, 0),
            (over, 9),
        ] {
            image.write(4096, &[7; 8192]).expect("room");
            image.discard(Extent { lba: 1, blocks: 1 }).expect("a hole");
            let mut bytes = vec![1; 12288];
            image.read(4096, &mut bytes).expect("within the drive");
            assert!(bytes[..4096].iter().all(|b| *b == 0));
            assert!(bytes[4096..8192].iter().all(|b| *b == 7));
            assert!(bytes[8192..].iter().all(|b| *b == below));
            assert!(
                image.read(16 * 4096 - 1, &mut [0; 2]).is_err(),
                "behind the end"
            );
        }
    }

    /// A drive full of nines.
    struct Nines;

    impl Under for Nines {
        fn read(&self, _: u64, into: &mut Block) -> io::Result<()> {
            into.fill(9);
            Ok(())
        }
    }

    #[test]
    fn what_was_not_written_is_as_it_is_below() {
        let image = Image::over(Arc::new(Nines), 4);
        image.write(4000, &[1; 200]).expect("room");
        let mut bytes = [0; 16384];
        image.read(0, &mut bytes).expect("within the drive");
        let expected = |at: usize| if (4000..4200).contains(&at) { 1 } else { 9 };
        assert!((0..16384).all(|at| bytes[at] == expected(at)));
        let none = |count| image.read(16384 - 1, &mut vec![0; count]).is_err();
        assert!(none(2) && !none(1));
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
