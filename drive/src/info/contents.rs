//! Equal contents, and how well whole blocks compress.

use rustc_hash::FxHashMap;
use treering_sim::csd::{Codec, Compressor};
use xxhash_rust::xxh3::xxh3_64;

use super::report::ContentsInfo;
use crate::error::DriveError;
use crate::recording::{PIECE, PieceId, Pieces};

/// With more different pieces than this, a sample of about as many is compressed.
const SAMPLE: u64 = 20_000;

/// Sizes of the sampled blocks of a cause.
#[derive(Clone, Copy, Default)]
struct Sum {
    blocks: u64,
    compressed: u64,
}

/// What is known of contents so far.
pub(super) struct Sampled {
    pieces: Pieces,
    compressor: Compressor,
    /// One of so many different pieces is sampled.
    one_of: u64,
    /// Compressed sizes of the sampled pieces; `None` of those that are no whole block.
    sizes: FxHashMap<PieceId, Option<u16>>,
    causes: Vec<Sum>,
    count: u64,
    zeros: u64,
}

impl Sampled {
    pub(super) fn new(pieces: Pieces) -> Self {
        Sampled {
            compressor: Compressor::new(Codec::Zlib(1)),
            one_of: pieces.count().div_ceil(SAMPLE).max(1),
            pieces,
            sizes: FxHashMap::default(),
            causes: Vec::new(),
            count: 0,
            zeros: 0,
        }
    }

    /// Counts the pieces of a write.
    pub(super) fn write(&mut self, ids: &[PieceId], cause: u8) -> Result<(), DriveError> {
        let cause = usize::from(cause);
        if cause >= self.causes.len() {
            self.causes.resize(cause + 1, Sum::default());
        }
        for id in ids {
            self.count += 1;
            self.zeros += u64::from(*id == PieceId::ZEROS);
            if self.one_of > 1 && !xxh3_64(&id.0.to_le_bytes()).is_multiple_of(self.one_of) {
                continue;
            }
            let size = match self.sizes.get(id) {
                Some(size) => *size,
                None => {
                    let block = <&[u8; PIECE]>::try_from(self.pieces.bytes(*id)?).ok();
                    let size = block.map(|block| self.compressor.size(block));
                    self.sizes.insert(*id, size);
                    size
                }
            };
            if let Some(size) = size {
                self.causes[cause].blocks += 1;
                self.causes[cause].compressed += u64::from(size);
            }
        }
        Ok(())
    }

    /// Compressed over uncompressed bytes of a cause, and the number of blocks.
    pub(super) fn alpha(&self, cause: usize) -> (Option<f64>, u64) {
        ratio(self.causes.get(cause).copied().unwrap_or_default())
    }

    /// The same of all causes.
    pub(super) fn alpha_of_all(&self) -> (Option<f64>, u64) {
        ratio(self.causes.iter().fold(Sum::default(), |a, b| Sum {
            blocks: a.blocks + b.blocks,
            compressed: a.compressed + b.compressed,
        }))
    }

    /// The counts; `None` without contents.
    pub(super) fn finish(&self) -> Option<ContentsInfo> {
        let different = self.pieces.count().min(self.count - self.zeros);
        let stored = self.count - self.zeros;
        (self.count > 0).then(|| ContentsInfo {
            pieces: self.count,
            zero_pieces: self.zeros,
            equal_pieces: stored - different,
            dedup_ratio: stored as f64 / different.max(1) as f64,
            sampled: 1.0 / self.one_of as f64,
        })
    }
}

fn ratio(sum: Sum) -> (Option<f64>, u64) {
    let bytes = sum.blocks * PIECE as u64;
    let ratio = (bytes > 0).then(|| sum.compressed as f64 / bytes as f64);
    (ratio, sum.blocks)
}
