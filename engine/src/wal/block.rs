//! A 4 KiB block of the log: its header, and the arithmetic between positions and blocks.

use crate::types::{BLOCK_SIZE, StoreId};

/// Bytes of header in each block.
pub const BLOCK_HEADER: usize = 24;
/// Bytes of records that fit a block.
pub const BLOCK_PAYLOAD: usize = BLOCK_SIZE - BLOCK_HEADER;

pub(crate) const B: u64 = BLOCK_SIZE as u64;
const VERSION: u8 = 1;
/// Flag: the block is the first of its epoch.
const STARTS_EPOCH: u8 = 1;
/// Flag: the rest of the block stays empty, and the log continues in the next block.
const CLOSED: u8 = 2;
/// Flag: see [`Header::witness`].
const WITNESS: u8 = 4;
/// Flag: see [`Header::end_mark`].
const END_MARK: u8 = 8;

/// The index of the block that contains the byte at `pos`.
pub(crate) fn block_of(pos: u64) -> u64 {
    pos / B
}

/// The offset in its block of a record appended at `pos`. A block boundary stands for the first
/// byte behind the header.
pub(crate) fn offset_of(pos: u64) -> usize {
    ((pos % B) as usize).max(BLOCK_HEADER)
}

/// The position behind `len > 0` bytes of records appended at `pos`.
pub(crate) fn behind(pos: u64, len: usize) -> u64 {
    let (block, offset) = (block_of(pos), offset_of(pos));
    let room = BLOCK_SIZE - offset;
    if len <= room {
        return block * B + (offset + len) as u64;
    }
    let rest = len - room;
    let full = (rest - 1) / BLOCK_PAYLOAD;
    let last = BLOCK_HEADER + rest - full * BLOCK_PAYLOAD;
    (block + 1 + full as u64) * B + last as u64
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) epoch: u32,
    /// Absolute: position / 4096.
    pub(crate) index: u64,
    /// Bytes in use, including the header; the rest is zero.
    pub(crate) used: usize,
    /// Offset of the first record that begins in this block; 0 if none does. The bytes between the
    /// header and this offset belong to a record that began earlier.
    pub(crate) first: usize,
    /// Number of blocks just before this one that were written in the same flush, and so were not
    /// known to be durable.
    pub(crate) unforced: u16,
    pub(crate) starts_epoch: bool,
    /// Nothing more is added to this block, even if it is not full: it is the last block of a flush
    /// of the sparse log.
    pub(crate) closed: bool,
    /// The block has no records, and only states that everything before it is durable. Written when
    /// a store is closed or dropped ([`super::Log::witness`]).
    pub(crate) witness: bool,
    /// The block has no records: recovery has found the log's end here ([`super::Log::mark_end`]).
    pub(crate) end_mark: bool,
}

/// Why a block does not continue the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotMine {
    /// Zeros, or a block of an earlier lap.
    Unwritten,
    /// The checksum does not match.
    Torn,
}

impl Header {
    /// The first block of the flush that wrote this one: everything before was durable by then.
    pub(crate) fn flush_start(&self) -> u64 {
        self.index.saturating_sub(u64::from(self.unforced))
    }

    /// Writes the header into `block` and zeroes the unused rest. The checksum covers everything
    /// but itself.
    pub(crate) fn seal(&self, block: &mut [u8], store: StoreId) {
        block[self.used..].fill(0);
        block[4..8].copy_from_slice(&self.epoch.to_le_bytes());
        block[8..16].copy_from_slice(&self.index.to_le_bytes());
        block[16..18].copy_from_slice(&(self.used as u16).to_le_bytes());
        block[18..20].copy_from_slice(&(self.first as u16).to_le_bytes());
        block[20..22].copy_from_slice(&self.unforced.to_le_bytes());
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        block[22] = flag(self.starts_epoch, STARTS_EPOCH)
            | flag(self.closed, CLOSED)
            | flag(self.witness, WITNESS)
            | flag(self.end_mark, END_MARK);
        block[23] = VERSION;
        let crc = store.crc(&block[4..]);
        block[0..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the header of a block with any index, if the block is valid.
    pub(crate) fn read_any(block: &[u8], store: StoreId) -> Option<Header> {
        let index = u64::from_le_bytes(block[8..16].try_into().expect("8 bytes"));
        Header::read(block, index, store).ok()
    }

    /// Takes the header of a block apart, whether it is valid or not.
    pub(crate) fn parse(block: &[u8]) -> Header {
        let u16_at = |o: usize| u16::from_le_bytes([block[o], block[o + 1]]);
        Header {
            epoch: u32::from_le_bytes(block[4..8].try_into().expect("4 bytes")),
            index: u64::from_le_bytes(block[8..16].try_into().expect("8 bytes")),
            used: usize::from(u16_at(16)),
            first: usize::from(u16_at(18)),
            unforced: u16_at(20),
            starts_epoch: block[22] & STARTS_EPOCH != 0,
            closed: block[22] & CLOSED != 0,
            witness: block[22] & WITNESS != 0,
            end_mark: block[22] & END_MARK != 0,
        }
    }

    /// The header of a block without records. What it says is for the caller to set.
    pub(crate) fn bare(epoch: u32, index: u64) -> Header {
        Header {
            epoch,
            index,
            // One byte, so that the header is valid.
            used: BLOCK_HEADER + 1,
            first: 0,
            unforced: 0,
            starts_epoch: false,
            closed: true,
            witness: false,
            end_mark: false,
        }
    }

    /// Whether the block is part of the log, and has records.
    pub(crate) fn has_records(&self) -> bool {
        !self.witness && !self.end_mark
    }

    /// Reads the header of block `index`.
    pub(crate) fn read(block: &[u8], index: u64, store: StoreId) -> Result<Header, NotMine> {
        let header = Header::parse(block);
        if header.index != index || header.epoch == 0 {
            return Err(NotMine::Unwritten);
        }
        let sane = (BLOCK_HEADER + 1..=BLOCK_SIZE).contains(&header.used)
            && (header.first == 0 || (BLOCK_HEADER..header.used).contains(&header.first))
            && block[23] == VERSION;
        let crc = u32::from_le_bytes(block[..4].try_into().expect("4 bytes"));
        if crc != store.crc(&block[4..]) || !sane {
            return Err(NotMine::Torn);
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_skip_headers_and_end_on_boundaries() {
        assert_eq!(behind(0, 1), 25);
        assert_eq!(behind(0, BLOCK_PAYLOAD), 4096);
        assert_eq!(behind(4096, 1), 4096 + 25);
        assert_eq!(behind(4090, 7), 4096 + 25);
        assert_eq!(behind(4090, 6), 4096);
        assert_eq!(behind(0, 2 * BLOCK_PAYLOAD), 8192);
        assert_eq!(behind(0, 2 * BLOCK_PAYLOAD + 1), 8192 + 25);
    }

    #[test]
    fn any_flipped_byte_is_noticed() {
        let header = Header {
            epoch: 3,
            index: 9,
            used: 100,
            first: 24,
            unforced: 2,
            starts_epoch: true,
            closed: true,
            witness: true,
            end_mark: true,
        };
        let mut block = vec![5u8; BLOCK_SIZE];
        let store = StoreId(7);
        header.seal(&mut block, store);
        assert_eq!(Header::read(&block, 9, store), Ok(header));
        assert_eq!(Header::read(&block, 9, StoreId(8)), Err(NotMine::Torn));
        for at in 0..BLOCK_SIZE {
            block[at] ^= 0x10;
            assert!(Header::read(&block, 9, store).is_err(), "byte {at}");
            block[at] ^= 0x10;
        }
        assert_eq!(Header::read(&block, 10, store), Err(NotMine::Unwritten));
    }
}
