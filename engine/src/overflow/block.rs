//! The format of one block of a long value.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | CRC-32 of bytes 4.., with the store id mixed in, all bits inverted |
//! | 4 | 4 | magic `OVFL` |
//! | 8 | 8 | number of the value in its epoch |
//! | 16 | 4 | epoch |
//! | 20 | 4 | index of the block in the value, from 0 |
//! | 24 | 8 | first block of the next run, in the first block of a run; 0: there is none |
//! | 32 | 4 | blocks of the next run |
//! | 36 | 4 | bytes of the value |
//! | 40 | 8 | xxh3 of the value's key |
//! | 48 | 4,048 | bytes of the value, then zeros |
//!
//! A device writes a block completely or not at all, so a block cannot be partly the value's. The
//! checksum's bits are inverted because log blocks have their checksum at the same offset, and a
//! user's bytes must not pass for a log block. For the same reason no block begins with bytes of a
//! user.

use super::Name;
use crate::types::{BLOCK_SIZE, Lba, StoreId};

const HEADER: usize = 48;

/// Bytes of a value in one block.
pub(crate) const PAYLOAD: usize = BLOCK_SIZE - HEADER;

const MAGIC: [u8; 4] = *b"OVFL";

/// A run of consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: Lba,
    pub(crate) blocks: u32,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: Name,
    pub(crate) index: u32,
    pub(crate) next: Option<Run>,
    pub(crate) len: u32,
    pub(crate) key: u64,
}

/// Returns the hash of a key that the blocks of its value carry.
pub(crate) fn key_sum(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

impl Header {
    /// Formats `block` as one of `store`: this header, `payload`, zeros.
    pub(crate) fn seal(&self, block: &mut [u8], payload: &[u8], store: StoreId) {
        block[4..8].copy_from_slice(&MAGIC);
        block[8..16].copy_from_slice(&self.name.number.to_le_bytes());
        block[16..20].copy_from_slice(&self.name.epoch.to_le_bytes());
        block[20..24].copy_from_slice(&self.index.to_le_bytes());
        let (next, blocks) = self.next.map_or((0, 0), |run| (run.first.0, run.blocks));
        block[24..32].copy_from_slice(&next.to_le_bytes());
        block[32..36].copy_from_slice(&blocks.to_le_bytes());
        block[36..40].copy_from_slice(&self.len.to_le_bytes());
        block[40..48].copy_from_slice(&self.key.to_le_bytes());
        block[HEADER..HEADER + payload.len()].copy_from_slice(payload);
        block[HEADER + payload.len()..].fill(0);
        let crc = !store.crc(&block[4..]);
        block[0..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the header of a block of `store`. Returns `None` if the block is not a long value's or
    /// is not whole.
    pub(crate) fn read(block: &[u8], store: StoreId) -> Option<Header> {
        let u32_at = |o: usize| u32::from_le_bytes(block[o..o + 4].try_into().expect("four bytes"));
        let u64_at =
            |o: usize| u64::from_le_bytes(block[o..o + 8].try_into().expect("eight bytes"));
        if block[4..8] != MAGIC || u32_at(0) != !store.crc(&block[4..]) {
            return None;
        }
        let next = Run {
            first: Lba(u64_at(24)),
            blocks: u32_at(32),
        };
        Some(Header {
            name: Name {
                epoch: u32_at(16),
                number: u64_at(8),
            },
            index: u32_at(20),
            next: (next.blocks > 0).then_some(next),
            len: u32_at(36),
            key: u64_at(40),
        })
    }
}

/// Returns the bytes of the value in a block, and the zeros behind them in its last block.
pub(crate) fn payload(block: &[u8]) -> &[u8] {
    &block[HEADER..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;
    use crate::types::PageId;
    use crate::wal::BlockHeader;

    #[test]
    fn a_block_says_what_it_is_and_any_flipped_byte_is_noticed() {
        let header = Header {
            name: Name {
                epoch: 2,
                number: 7,
            },
            index: 4,
            next: Some(Run {
                first: Lba(99),
                blocks: 3,
            }),
            len: 20_000,
            key: key_sum(b"key"),
        };
        let mut block = vec![9; BLOCK_SIZE];
        header.seal(&mut block, b"payload", StoreId(5));
        assert_eq!(Header::read(&block, StoreId(5)), Some(header));
        assert_eq!(&payload(&block)[..8], b"payload\0");
        assert_eq!(Header::read(&block, StoreId(6)), None, "another store's");
        // No other reader of blocks mistakes it for one of its own.
        assert!(BlockHeader::read_any(&block, StoreId(5)).is_none());
        assert!(node::check(&block, PageId(0)).is_err());
        for at in 0..BLOCK_SIZE {
            block[at] ^= 0x20;
            assert_eq!(Header::read(&block, StoreId(5)), None, "byte {at}");
            block[at] ^= 0x20;
        }
    }
}
