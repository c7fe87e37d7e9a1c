//! A byte file on a block device, for redb's `StorageBackend`.
//!
//! ```text
//! block 0       magic, length, high-water mark, made?        like the file's inode
//! block 1 + i   bytes 4096 i to 4096 (i + 1) of the file
//! ```
//!
//! What a file system guarantees, and how it is provided here:
//!
//! - *The length is right after a crash*: it is the old one or the new one, and the new one once
//!   `sync_data` has returned. It is in block 0, written by `set_len`, and a block is written whole
//!   or not at all. As on a file system, nothing orders it with the data until `sync_data`. redb
//!   knows that, and syncs after growing and before using the new space.
//! - *New space holds zeros.* Blocks above the high-water mark have never been written: the mark is
//!   raised and flushed before the length. Blocks below it that a shorter file left behind are
//!   filled with zeros and flushed before the length, so that a crash cannot keep the length and
//!   lose the zeros. So growing flushes once more than redb asked for, before redb's own flush, and
//!   what redb had written until then becomes durable slightly too early.
//! - *A write changes no byte outside its range.* Its first and last block are read, changed and
//!   written under the lock, in one request. This is kinder than redb's assumption that "single
//!   byte writes are atomic": no write is torn within a block.
//! - *A file that is being created does not exist.* redb refuses a file with a length and no magic
//!   bytes, which is what a crash while creating one leaves. A user would create the file under
//!   another name and rename it. Until `made` was called and flushed, an open starts again with an
//!   empty file.

use std::io::{Error, ErrorKind};
use std::sync::Arc;

use ::redb::StorageBackend;
use parking_lot::Mutex;
use treering_engine::device::{BlockDevice, DeviceError};
use treering_engine::{BLOCK_SIZE, IoClass, Lba};

use super::NAME;
use crate::common::foreign;

const MAGIC: [u8; 8] = *b"TRfile01";
const BLOCK: u64 = BLOCK_SIZE as u64;

/// The number of blocks in one write of zeros.
const ZEROS_BLOCKS: u64 = 64;

/// The content of block 0.
#[derive(Clone, Copy, Default)]
struct Inode {
    /// Length of the file in bytes.
    len: u64,
    /// The greatest length so far.
    high: u64,
    /// Whether the database in the file has been created.
    made: bool,
}

impl Inode {
    fn encode(self) -> [u8; BLOCK_SIZE] {
        let mut block = [0; BLOCK_SIZE];
        block[..8].copy_from_slice(&MAGIC);
        block[8..16].copy_from_slice(&self.len.to_le_bytes());
        block[16..24].copy_from_slice(&self.high.to_le_bytes());
        block[24] = u8::from(self.made);
        block
    }

    fn decode(block: &[u8; BLOCK_SIZE]) -> Option<Inode> {
        if *block == [0; BLOCK_SIZE] {
            return Some(Inode::default());
        }
        let word = |at: usize| block[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        (block[..8] == MAGIC).then_some(Inode {
            len: word(8)?,
            high: word(16)?,
            made: block[24] == 1,
        })
    }
}

/// A file on a device.
pub(super) struct DeviceFile {
    device: Arc<dyn BlockDevice>,
    /// Held while block 0 changes and while a block is read, changed and written.
    inode: Mutex<Inode>,
}

impl DeviceFile {
    /// Opens the file on `device`. It is empty if there is none, or if its creation was not
    /// finished.
    pub(super) fn open(device: Arc<dyn BlockDevice>) -> treering_engine::Result<DeviceFile> {
        let mut block = [0; BLOCK_SIZE];
        device.read(Lba(0), &mut block, IoClass::Extra)?;
        let mut inode = Inode::decode(&block)
            .ok_or_else(|| foreign(NAME, "block 0 of the device holds no file of its own"))?;
        if !inode.made {
            inode.len = 0;
        }
        Ok(DeviceFile {
            device,
            inode: Mutex::new(inode),
        })
    }

    /// Whether [`DeviceFile::made`] was called in this or an earlier life.
    pub(super) fn is_made(&self) -> bool {
        self.inode.lock().made
    }

    /// Makes the file exist, so that later crashes keep it.
    pub(super) fn made(&self) -> treering_engine::Result<()> {
        let mut inode = self.inode.lock();
        let made = Inode {
            made: true,
            ..*inode
        };
        self.write_inode(made)?;
        self.device.flush()?;
        *inode = made;
        Ok(())
    }

    fn write_inode(&self, inode: Inode) -> Result<(), DeviceError> {
        self.device.write(Lba(0), &inode.encode(), IoClass::Extra)
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut inode = self.inode.lock();
        let room = (self.device.capacity_blocks() - 1) * BLOCK;
        if len > room {
            let why = format!("a file of {len} bytes does not fit a device with room for {room}");
            return Err(Error::new(ErrorKind::StorageFull, why));
        }
        if len > inode.len {
            self.fill_zeros(inode.len, len.min(inode.high))?;
            let high = inode.high.max(len);
            self.write_inode(Inode { high, ..*inode })
                .and_then(|()| self.device.flush())
                .map_err(Error::other)?;
            inode.high = high;
        }
        let new = Inode { len, ..*inode };
        self.write_inode(new).map_err(Error::other)?;
        *inode = new;
        Ok(())
    }

    /// Writes zeros from byte `from` up to byte `to`. The caller holds the lock.
    fn fill_zeros(&self, from: u64, to: u64) -> Result<(), Error> {
        let zeros = vec![0; ZEROS_BLOCKS as usize * BLOCK_SIZE];
        let mut at = from;
        while at < to {
            let n = (to - at).min(zeros.len() as u64);
            self.write_bytes(at, &zeros[..n as usize])?;
            at += n;
        }
        Ok(())
    }

    /// Refuses a range outside the file, as `StorageBackend::read` must.
    fn check(inode: &Inode, what: &str, offset: u64, len: usize) -> Result<(), Error> {
        if offset
            .checked_add(len as u64)
            .is_some_and(|end| end <= inode.len)
        {
            return Ok(());
        }
        let why = format!(
            "{what} of {len} bytes at {offset} in a file of {} bytes",
            inode.len
        );
        Err(Error::new(ErrorKind::UnexpectedEof, why))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        // Held to the end, so that the file cannot become shorter during the read.
        let inode = self.inode.lock();
        Self::check(&inode, "read", offset, out.len())?;
        let mut blocks = Blocks::around(offset, out.len());
        self.read_blocks(blocks.first, &mut blocks.bytes)?;
        out.copy_from_slice(blocks.inner());
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let inode = self.inode.lock();
        Self::check(&inode, "write", offset, data.len())?;
        self.write_bytes(offset, data)
    }

    /// Writes `data` at `offset`, in one request. The caller holds the lock.
    fn write_bytes(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut blocks = Blocks::around(offset, data.len());
        let end = blocks.bytes.len();
        if end == 0 {
            return Ok(());
        }
        let last = blocks.first + (end / BLOCK_SIZE) as u64 - 1;
        if blocks.skip > 0 {
            self.read_blocks(blocks.first, &mut blocks.bytes[..BLOCK_SIZE])?;
        }
        if blocks.skip + data.len() < end {
            self.read_blocks(last, &mut blocks.bytes[end - BLOCK_SIZE..])?;
        }
        blocks.inner().copy_from_slice(data);
        self.device
            .write(Lba(blocks.first), &blocks.bytes, IoClass::Page)
            .map_err(Error::other)
    }

    fn read_blocks(&self, first: u64, bytes: &mut [u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.device
            .read(Lba(first), bytes, IoClass::Page)
            .map_err(Error::other)
    }
}

/// The whole blocks around a range of bytes.
struct Blocks {
    /// The address of the first block.
    first: u64,
    bytes: Vec<u8>,
    /// The number of bytes in the first block before the range.
    skip: usize,
    len: usize,
}

impl Blocks {
    fn around(offset: u64, len: usize) -> Blocks {
        let skip = (offset % BLOCK) as usize;
        let blocks = match len {
            0 => 0,
            _ => (skip + len).div_ceil(BLOCK_SIZE),
        };
        Blocks {
            first: 1 + offset / BLOCK,
            bytes: vec![0; blocks * BLOCK_SIZE],
            skip: if len == 0 { 0 } else { skip },
            len,
        }
    }

    /// The range itself.
    fn inner(&mut self) -> &mut [u8] {
        &mut self.bytes[self.skip..self.skip + self.len]
    }
}

/// A [`DeviceFile`] that redb owns and the adapter can still use.
pub(super) struct Shared(pub(super) Arc<DeviceFile>);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let blocks = self.0.device.capacity_blocks();
        write!(f, "a file on a device of {blocks} blocks")
    }
}

impl StorageBackend for Shared {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.0.inode.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.0.device.flush().map_err(Error::other)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.0.write(offset, data)
    }
}
