//! A cache of compressed sizes by content, so that a page written to the journal and then to its
//! home is compressed once.
//!
//! It is a direct-mapped table keyed by the XXH3 hash of the block. Two blocks have the same hash
//! with a probability of 2⁻⁶⁴; then a size could be wrong, but never the data.

use treering_engine::BLOCK_SIZE;
use xxhash_rust::xxh3::xxh3_64;

use super::codec::{Codec, Compressor};

/// Number of remembered sizes, a power of two; each takes 16 bytes.
const SLOTS: usize = 1 << 13;

/// A codec with a cache of sizes.
pub(super) struct Sizes {
    codec: Codec,
    compressor: Compressor,
    slots: Vec<(u64, u16)>,
    /// Blocks that the codec compressed.
    pub(super) compressed: u64,
    /// Blocks whose size was cached.
    pub(super) remembered: u64,
}

impl Sizes {
    pub(super) fn new(codec: Codec) -> Sizes {
        Sizes {
            codec,
            compressor: Compressor::new(codec),
            // No block compresses to size 0, so that marks an empty slot.
            slots: vec![(0, 0); SLOTS],
            compressed: 0,
            remembered: 0,
        }
    }

    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    /// The compressed size of `block`.
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
