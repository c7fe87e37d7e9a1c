//! The part of the log that is in memory: whole blocks, in the layout in which they go to the
//! device.

use super::block::{B, Header, behind, block_of, offset_of};
use super::record::Encoded;
use crate::device::AlignedBuf;
use crate::mutation;
use crate::options::LogPacking;
use crate::types::{BLOCK_SIZE, StoreId};

/// The values that all headers of one log share.
#[derive(Clone, Copy)]
pub(crate) struct Under {
    pub(crate) store: StoreId,
    pub(crate) epoch: u32,
    /// The first block of the epoch.
    pub(crate) epoch_start: u64,
    pub(crate) packing: LogPacking,
}

/// Consecutive blocks, beginning with the one that contains the first unflushed byte.
pub(crate) struct Buffer {
    bytes: AlignedBuf,
    /// For each block, the offset of the first record that begins in it; 0 if none does.
    firsts: Box<[u16]>,
    /// Index of the first block.
    first_block: u64,
    /// The position of the next record.
    pos: u64,
}

impl Buffer {
    pub(crate) fn new(blocks: usize, pos: u64) -> Buffer {
        Buffer {
            bytes: AlignedBuf::zeroed(blocks * BLOCK_SIZE),
            firsts: vec![0; blocks].into_boxed_slice(),
            first_block: block_of(pos),
            pos,
        }
    }

    /// Enlarges the buffer by the room for a record of `len` bytes.
    pub(crate) fn grow(&mut self, len: usize) {
        let blocks = self.firsts.len() + len / super::BLOCK_PAYLOAD + 2;
        let mut bytes = AlignedBuf::zeroed(blocks * BLOCK_SIZE);
        bytes[..self.bytes.len()].copy_from_slice(&self.bytes);
        let mut firsts = vec![0; blocks];
        firsts[..self.firsts.len()].copy_from_slice(&self.firsts);
        (self.bytes, self.firsts) = (bytes, firsts.into_boxed_slice());
    }

    /// Bytes of memory that the buffer takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.bytes.len() + size_of_val(&*self.firsts)) as u64
    }

    pub(crate) fn pos(&self) -> u64 {
        self.pos
    }

    pub(crate) fn first_block(&self) -> u64 {
        self.first_block
    }

    /// Bytes of records that fit an empty buffer, whatever its first offset.
    pub(crate) fn max_record(&self) -> usize {
        (self.firsts.len() - 1) * super::BLOCK_PAYLOAD
    }

    /// Returns whether a record that ends at `end` fits.
    pub(crate) fn fits(&self, end: u64) -> bool {
        block_of(end - 1) - self.first_block < self.firsts.len() as u64
    }

    /// Copies a record into the buffer. The caller has checked that it fits and ends at `end`.
    pub(crate) fn push(&mut self, record: &Encoded<'_>, end: u64) {
        debug_assert!(self.fits(end) && end == behind(self.pos, record.len()));
        let block = (block_of(self.pos) - self.first_block) as usize;
        let offset = offset_of(self.pos);
        if self.firsts[block] == 0 {
            self.firsts[block] = offset as u16;
        }
        let mut at = block * BLOCK_SIZE + offset;
        for piece in record.pieces() {
            at = self.copy(at, piece);
        }
        self.pos = end;
    }

    /// Copies `piece` to `at`, around block headers. Returns the offset for the next piece.
    fn copy(&mut self, mut at: usize, mut piece: &[u8]) -> usize {
        while !piece.is_empty() {
            let room = BLOCK_SIZE - at % BLOCK_SIZE;
            if piece.len() < room {
                self.bytes[at..at + piece.len()].copy_from_slice(piece);
                return at + piece.len();
            }
            let (now, later) = piece.split_at(room);
            self.bytes[at..at + room].copy_from_slice(now);
            at += room;
            let next = at / BLOCK_SIZE;
            if let Some(first) = self.firsts.get_mut(next) {
                *first = 0;
            }
            at += super::BLOCK_HEADER;
            piece = later;
        }
        at
    }

    /// Makes this buffer continue where `full` ends. The sparse log begins a new block; the packed
    /// log begins with a copy of the last block if that is not full.
    pub(crate) fn continue_after(&mut self, full: &Buffer, packing: LogPacking) {
        self.pos = match packing {
            LogPacking::Packed => full.pos,
            LogPacking::Sparse if mutation::on("sparse-goes-on-in-block") => full.pos,
            LogPacking::Sparse => full.pos.next_multiple_of(B),
        };
        self.first_block = block_of(self.pos);
        self.firsts[0] = 0;
        if packing == LogPacking::Sparse {
            return;
        }
        let used = (full.pos % B) as usize;
        if used != 0 {
            let tail = (self.first_block - full.first_block) as usize;
            self.firsts[0] = full.firsts[tail];
            let from = tail * BLOCK_SIZE;
            self.bytes[..used].copy_from_slice(&full.bytes[from..from + used]);
        }
    }

    /// Writes the headers of all blocks in use and returns the blocks.
    pub(crate) fn seal(&mut self, under: Under) -> &[u8] {
        let Under {
            store,
            epoch,
            epoch_start,
            packing,
        } = under;
        let last = block_of(self.pos - 1);
        for index in self.first_block..=last {
            let i = (index - self.first_block) as usize;
            let used = if index == last {
                (self.pos - last * B) as usize
            } else {
                BLOCK_SIZE
            };
            let header = Header {
                epoch,
                index,
                used,
                first: usize::from(self.firsts[i]),
                unforced: match mutation::on("log-counts-no-unforced") {
                    true => 0,
                    false => i as u16,
                },
                starts_epoch: index == epoch_start,
                closed: index == last && packing == LogPacking::Sparse,
                witness: false,
                end_mark: false,
            };
            header.seal(&mut self.bytes[i * BLOCK_SIZE..(i + 1) * BLOCK_SIZE], store);
        }
        &self.bytes[..(last + 1 - self.first_block) as usize * BLOCK_SIZE]
    }
}
