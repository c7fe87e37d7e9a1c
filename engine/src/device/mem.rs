//! [`MemDevice`], a volatile block device in memory, for use where a drive's speed and failures do
//! not matter.
//!
//! Memory is allocated in chunks of 64 blocks when they are first written, and freed when all
//! blocks of a chunk are trimmed.

use super::{BlockDevice, DeviceError, check_request};
use crate::sync::RwLock;
use crate::types::{BLOCK_SIZE, IoClass, Lba};

/// Blocks per chunk: one bit each in [`Chunk::live`].
const CHUNK_BLOCKS: u64 = 64;

struct Chunk {
    /// Bit i is set if block i has been written since it was last trimmed. Other blocks hold zeros.
    live: u64,
    bytes: Box<[u8]>,
}

/// A volatile device with a fixed number of blocks. Each chunk has its own lock.
///
/// ```
/// use treering_engine::device::{BlockDevice, MemDevice};
/// use treering_engine::{BLOCK_SIZE, IoClass, Lba};
///
/// # fn main() -> Result<(), treering_engine::device::DeviceError> {
/// let device = MemDevice::new(1 << 20); // 4 GiB, none of it allocated yet
/// assert_eq!(device.resident_bytes(), 0);
/// device.write(Lba(1_000), &[7; BLOCK_SIZE], IoClass::Page)?;
/// assert!(device.resident_bytes() > 0);
///
/// device.trim(Lba(1_000), 1)?;
/// assert_eq!(device.resident_bytes(), 0);
/// # Ok(())
/// # }
/// ```
pub struct MemDevice {
    blocks: u64,
    chunks: Vec<RwLock<Option<Chunk>>>,
}

impl MemDevice {
    /// Creates a device of `blocks` blocks that read as zeros.
    pub fn new(blocks: u64) -> MemDevice {
        let chunks = (0..blocks.div_ceil(CHUNK_BLOCKS))
            .map(|_| RwLock::new(None))
            .collect();
        MemDevice { blocks, chunks }
    }

    /// Returns how many bytes of memory the blocks occupy now.
    pub fn resident_bytes(&self) -> u64 {
        let chunks = self.chunks.iter().filter(|c| c.read().is_some()).count() as u64;
        chunks * CHUNK_BLOCKS * BLOCK_SIZE as u64
    }
}

/// Splits `blocks` blocks from `lba` on at chunk boundaries, into (chunk, first block in it, number
/// of blocks).
fn pieces(lba: Lba, blocks: u64) -> impl Iterator<Item = (usize, u64, u64)> {
    let mut at = lba.0;
    let end = lba.0 + blocks;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let in_chunk = at % CHUNK_BLOCKS;
            let n = (CHUNK_BLOCKS - in_chunk).min(end - at);
            let piece = ((at / CHUNK_BLOCKS) as usize, in_chunk, n);
            at += n;
            piece
        })
    })
}

/// Returns the bits of `n` blocks from `first` on.
fn bits(first: u64, n: u64) -> u64 {
    (u64::MAX >> (CHUNK_BLOCKS - n)) << first
}

fn bytes_of(first: u64, n: u64) -> std::ops::Range<usize> {
    first as usize * BLOCK_SIZE..(first + n) as usize * BLOCK_SIZE
}

impl BlockDevice for MemDevice {
    fn capacity_blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, lba: Lba, mut buf: &mut [u8], _class: IoClass) -> Result<(), DeviceError> {
        let blocks = check_request("read", lba, buf.len(), self.blocks)?;
        for (chunk, first, n) in pieces(lba, blocks) {
            let (now, later) = buf.split_at_mut(n as usize * BLOCK_SIZE);
            match &*self.chunks[chunk].read() {
                Some(chunk) => now.copy_from_slice(&chunk.bytes[bytes_of(first, n)]),
                None => now.fill(0),
            }
            buf = later;
        }
        Ok(())
    }

    fn write(&self, lba: Lba, mut bytes: &[u8], _class: IoClass) -> Result<(), DeviceError> {
        let blocks = check_request("write", lba, bytes.len(), self.blocks)?;
        for (chunk, first, n) in pieces(lba, blocks) {
            let (now, later) = bytes.split_at(n as usize * BLOCK_SIZE);
            let mut slot = self.chunks[chunk].write();
            let chunk = slot.get_or_insert_with(|| Chunk {
                live: 0,
                bytes: vec![0; CHUNK_BLOCKS as usize * BLOCK_SIZE].into_boxed_slice(),
            });
            chunk.live |= bits(first, n);
            chunk.bytes[bytes_of(first, n)].copy_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn trim(&self, lba: Lba, blocks: u64) -> Result<(), DeviceError> {
        super::check_range("trim", lba, blocks, self.blocks)?;
        for (chunk, first, n) in pieces(lba, blocks) {
            let mut slot = self.chunks[chunk].write();
            if let Some(chunk) = &mut *slot {
                chunk.live &= !bits(first, n);
                if chunk.live == 0 {
                    *slot = None;
                } else {
                    chunk.bytes[bytes_of(first, n)].fill(0);
                }
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
