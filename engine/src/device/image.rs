//! [`Image`], the bytes of a whole device. Blocks are shared until they change, so a copy costs one
//! pointer per block.

use crate::sync::Arc;
use crate::types::{BLOCK_SIZE, Lba};

/// The bytes of one block, and their hash.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Arc<[u8]>,
    hash: u64,
}

impl Block {
    /// Copies the bytes of one block.
    pub fn new(bytes: &[u8]) -> Block {
        debug_assert_eq!(bytes.len(), BLOCK_SIZE);
        Block {
            hash: xxhash_rust::xxh3::xxh3_64(bytes),
            bytes: Arc::from(bytes),
        }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The contents of a block device.
#[derive(Clone, Debug, Default)]
pub struct Image {
    blocks: Vec<Option<Block>>,
}

impl Image {
    /// Creates an image of `blocks` zero blocks.
    pub fn zeroed(blocks: u64) -> Image {
        Image {
            blocks: vec![None; blocks as usize],
        }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Copies the blocks from `lba` on into `buf`. The range must lie inside the image.
    pub fn read(&self, lba: Lba, buf: &mut [u8]) {
        let from = &self.blocks[lba.0 as usize..];
        for (into, block) in buf.chunks_exact_mut(BLOCK_SIZE).zip(from) {
            match block {
                Some(block) => into.copy_from_slice(&block.bytes),
                None => into.fill(0),
            }
        }
    }

    /// Returns whether a block holds data, that is, was written and not set to zeros since.
    pub fn holds(&self, lba: Lba) -> bool {
        self.blocks.get(lba.0 as usize).is_some_and(Option::is_some)
    }

    /// Replaces a block. `None` makes it zeros.
    pub fn set(&mut self, lba: Lba, block: Option<Block>) {
        self.blocks[lba.0 as usize] = block;
    }

    /// Returns a hash of all bytes. Images with different bytes have equal hashes with a
    /// probability of one in 2^64. O(blocks), without reading the bytes.
    pub fn fingerprint(&self) -> u64 {
        let hashes = self
            .blocks
            .iter()
            .map(|block| block.as_ref().map_or(0, |b| b.hash));
        hashes.fold(0, |sum: u64, hash| {
            (sum.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
}

impl From<Vec<u8>> for Image {
    /// The length must be a whole number of blocks.
    fn from(bytes: Vec<u8>) -> Image {
        assert!(bytes.len().is_multiple_of(BLOCK_SIZE), "whole blocks");
        let block = |bytes: &[u8]| bytes.iter().any(|b| *b != 0).then(|| Block::new(bytes));
        Image {
            blocks: bytes.chunks_exact(BLOCK_SIZE).map(block).collect(),
        }
    }
}
