//! Compressed sizes of blocks, remembered by content: a page that goes to the journal and then to
//! its home is compressed once.
//!
//! A direct-mapped table keyed by the XXH3 hash of the block. Two blocks share a hash with a
//! probability of 2⁻⁶⁴; a size could then be wrong, data never.

use treering_engine::BLOCK_SIZE;
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{Codec, Compressor};

/// Remembered sizes: a power of two. 16 bytes each.
const SLOTS: usize = 1 << 13;

/// A codec with a memory.
pub(super) struct Sizes {
    codec: Codec,
    compressor: Compressor,
    slots: Vec<(u64, u16)>,
    /// Blocks that went through the codec.
    pub(super) compressed: u64,
    /// Blocks whose size was remembered.
    pub(super) remembered: u64,
}

impl Sizes {
    pub(super) fn new(codec: Codec) -> Sizes {
        Sizes {
            codec,
            compressor: Compressor::new(codec),
            // No block has size 0 after compression, so an empty slot is told by it.
            slots: vec![(0, 0); SLOTS],
            compressed: 0,
            remembered: 0,
        }
    }

    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    /// Bytes that `block` takes after compression.
    pub(super) fn of(&mut self, block: &[u8; BLOCK_SIZE]) -> u16 {
        let hash = xxh3_64(block);
        let slot = &mut self.slots[hash as usize % SLOTS];
        if slot.0 == hash && slot.1 > 0 {
            self.remembered += 1;
            return slot.1;
        }
        self.compressed += 1;
        let size = self.compressor.size(block);
        *slot = (hash, size);
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_before_is_not_compressed_again() {
        let mut sizes = Sizes::new(Codec::Zlib(1));
        let mut block = [7; BLOCK_SIZE];
        let first = sizes.of(&block);
        assert_eq!(sizes.of(&block), first);
        assert_eq!((sizes.compressed, sizes.remembered), (1, 1));
        block[4095] = 8;
        sizes.of(&block);
        assert_eq!((sizes.compressed, sizes.remembered), (2, 1));
    }
}
