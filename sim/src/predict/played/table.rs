//! Blocks of the page table after compression: a block of places that were taken one after the
//! other compresses well, one of places taken at random hardly.
//!
//! Names and places are played, so the block that a run writes is known. It is made and compressed
//! for one write in [`EVERY`]; the writes between have its size.

use treering_engine::BLOCK_SIZE;

use crate::csd::{Codec, Compressor};

/// A block changes little from one write to the next.
const EVERY: u32 = 64;
/// Bytes before the entries.
const HEADER_BYTES: usize = 16;

/// Sizes of the table's blocks.
pub(super) struct TableBlocks {
    compressor: Compressor,
    /// Writes of each block, and its last known size in bytes.
    known: Vec<(u32, f64)>,
    dice: u32,
}

impl TableBlocks {
    pub(super) fn new(codec: Codec) -> TableBlocks {
        TableBlocks {
            compressor: Compressor::new(codec),
            known: Vec::new(),
            dice: 1,
        }
    }

    /// Bytes of a block with these entries: places plus one, or 0 for names without a page.
    pub(super) fn size(&mut self, block: u64, entries: impl Iterator<Item = u64>) -> f64 {
        let block = block as usize;
        if self.known.len() <= block {
            self.known.resize(block + 1, (0, 0.0));
        }
        let (writes, size) = self.known[block];
        if writes % EVERY != 0 {
            self.known[block].0 += 1;
            return size;
        }
        let mut bytes = [0; BLOCK_SIZE];
        // Checksum, magic, number, and the store's own number.
        self.dice = self
            .dice
            .wrapping_mul(0x2545_f491)
            .wrapping_add(0x9e37_79b9);
        let fields = [self.dice, 0x4c42_5454, block as u32, 0x7a31_95c3];
        for (bytes, field) in bytes.chunks_exact_mut(4).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        for (bytes, entry) in bytes[HEADER_BYTES..].chunks_exact_mut(8).zip(entries) {
            bytes.copy_from_slice(&entry.to_le_bytes());
        }
        let size = f64::from(self.compressor.size(&bytes));
        self.known[block] = (writes + 1, size);
        size
    }
}
