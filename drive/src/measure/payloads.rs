//! Compressed sizes of recorded blocks, for drives that compress.
//!
//! A whole block that was recorded has a number, and equal blocks have the same one: each is
//! compressed once a codec. A write of a part of a block needs what the block held before; so blocks
//! that were written in part are kept with their bytes.
//!
//! Memory: 2 bytes a recorded piece, 16 for each block of the drive, and 4 KiB for each block whose
//! last write was a part of it.

use rustc_hash::FxHashMap;
use treering_engine::BLOCK_SIZE;
use treering_sim::csd::{Codec, Compressor};

use crate::error::DriveError;
use crate::recording::event::Write;
use crate::recording::{PieceId, Pieces};

/// A size that is not known yet; blocks compress to at most 4096 bytes.
const UNKNOWN: u16 = u16::MAX;

/// What a block holds.
enum Held {
    /// A recorded piece of 4096 bytes.
    Piece(PieceId),
    /// Bytes that no piece has.
    Bytes(Box<[u8; BLOCK_SIZE]>),
}

/// Compressed sizes by one codec.
pub(super) struct Payloads {
    compressor: Compressor,
    pieces: Pieces,
    /// By number of the piece.
    sizes: Vec<u16>,
    held: FxHashMap<u64, Held>,
    /// Of the blocks of the last write.
    of_write: Vec<u16>,
}

impl Payloads {
    pub(super) fn new(codec: Codec, pieces: Pieces) -> Payloads {
        Payloads {
            compressor: Compressor::new(codec),
            sizes: vec![UNKNOWN; pieces.count() as usize + 1],
            pieces,
            held: FxHashMap::default(),
            of_write: Vec::new(),
        }
    }

    /// The compressed size of each block of a write, in the order of its pieces: 0 for zeros.
    ///
    /// # Errors
    /// Those of reading contents.
    pub(super) fn of(
        &mut self,
        write: &Write,
        contents: &[PieceId],
        lbas: &[u64],
    ) -> Result<&[u16], DriveError> {
        self.of_write.clear();
        let block = BLOCK_SIZE as u64;
        let end = write.offset + u64::from(write.len);
        let first = write.offset / block;
        for ((at, &piece), &lba) in (first..).zip(contents).zip(lbas) {
            let from = write.offset.max(at * block) - at * block;
            let to = end.min((at + 1) * block) - at * block;
            let size = match (from, to) {
                (0, to) if to == block => self.whole(piece, lba)?,
                range => self.part(piece, lba, (range.0 as usize, range.1 as usize))?,
            };
            self.of_write.push(size);
        }
        Ok(&self.of_write)
    }

    fn whole(&mut self, piece: PieceId, lba: u64) -> Result<u16, DriveError> {
        self.held.insert(lba, Held::Piece(piece));
        self.size(piece)
    }

    /// The size of a piece of a whole block.
    fn size(&mut self, piece: PieceId) -> Result<u16, DriveError> {
        if piece == PieceId::ZEROS {
            return Ok(0);
        }
        let known = self.sizes.get(piece.0 as usize).copied();
        if let Some(size) = known.filter(|size| *size != UNKNOWN) {
            return Ok(size);
        }
        let mut bytes = [0; BLOCK_SIZE];
        fill(&mut bytes, self.pieces.bytes(piece)?);
        let size = compressed(&mut self.compressor, &bytes);
        if let Some(known) = self.sizes.get_mut(piece.0 as usize) {
            *known = size;
        }
        Ok(size)
    }

    /// A part of a block is written.
    fn part(
        &mut self,
        piece: PieceId,
        lba: u64,
        (from, to): (usize, usize),
    ) -> Result<u16, DriveError> {
        let mut bytes = match self.held.remove(&lba) {
            Some(Held::Bytes(bytes)) => bytes,
            Some(Held::Piece(before)) => {
                let mut bytes = Box::new([0; BLOCK_SIZE]);
                fill(&mut bytes[..], self.pieces.bytes(before)?);
                bytes
            }
            None => Box::new([0; BLOCK_SIZE]),
        };
        match piece {
            PieceId::ZEROS => bytes[from..to].fill(0),
            piece => fill(&mut bytes[from..to], self.pieces.bytes(piece)?),
        }
        let size = compressed(&mut self.compressor, &bytes);
        self.held.insert(lba, Held::Bytes(bytes));
        Ok(size)
    }

    /// The drive forgets a block.
    pub(super) fn discard(&mut self, lba: u64) {
        self.held.remove(&lba);
    }
}

/// Copies as much as there is.
fn fill(into: &mut [u8], from: &[u8]) {
    let len = into.len().min(from.len());
    into[..len].copy_from_slice(&from[..len]);
}

fn compressed(compressor: &mut Compressor, block: &[u8; BLOCK_SIZE]) -> u16 {
    match block.iter().all(|byte| *byte == 0) {
        true => 0,
        false => compressor.size(block),
    }
}
