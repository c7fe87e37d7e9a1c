//! The bytes of a whole device, in blocks that are shared until they change: a copy costs a pointer a block.

use crate::sync::Arc;
use crate::types::{BLOCK_SIZE, Lba};

/// One block's bytes and their hash.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Arc<[u8]>,
    hash: u64,
}

impl Block {
    /// A copy of one block's bytes.
    pub fn new(bytes: &[u8]) -> Block {
        debug_assert_eq!(bytes.len(), BLOCK_SIZE);
        Block {
            hash: xxhash_rust::xxh3::xxh3_64(bytes),
            bytes: Arc::from(bytes),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What a medium holds. `None` is a block of zeros.
#[derive(Clone, Debug, Default)]
pub struct Image {
    blocks: Vec<Option<Block>>,
}

impl Image {
    /// `blocks` blocks of zeros.
    pub fn zeroed(blocks: u64) -> Image {
        Image {
            blocks: vec![None; blocks as usize],
        }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Copies the blocks from `lba` on into `buf`. The range must lie inside.
    pub fn read(&self, lba: Lba, buf: &mut [u8]) {
        let from = &self.blocks[lba.0 as usize..];
        for (into, block) in buf.chunks_exact_mut(BLOCK_SIZE).zip(from) {
            match block {
                Some(block) => into.copy_from_slice(&block.bytes),
                None => into.fill(0),
            }
        }
    }

    /// Whether a block was written and not made zeros since.
    pub fn holds(&self, lba: Lba) -> bool {
        self.blocks.get(lba.0 as usize).is_some_and(Option::is_some)
    }

    /// Replaces a block; `None` makes it zeros.
    pub fn set(&mut self, lba: Lba, block: Option<Block>) {
        self.blocks[lba.0 as usize] = block;
    }

    /// Equal for equal bytes, and otherwise different but for one chance in 2^64. O(blocks), without reading their bytes.
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
    /// Its length must be a whole number of blocks.
    fn from(bytes: Vec<u8>) -> Image {
        assert!(bytes.len().is_multiple_of(BLOCK_SIZE), "whole blocks");
        let block = |bytes: &[u8]| bytes.iter().any(|b| *b != 0).then(|| Block::new(bytes));
        Image {
            blocks: bytes.chunks_exact(BLOCK_SIZE).map(block).collect(),
        }
    }
}
