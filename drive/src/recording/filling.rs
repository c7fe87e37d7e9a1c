//! A chunk of contents that is being filled. The bytes of its pieces stay where they are.
//!
//! ```text
//! payload   ┌───────────────┬────────┬─ ─ ─┬────────┬───────────┐
//!           │ carried       │ part   │     │ part   │ lengths   │
//!           └───────────────┴────────┴─ ─ ─┴────────┴───────────┘
//!             copied from     lie in the queue's
//!             queues before   bytes at hand
//! ```
//!
//! New pieces that follow each other are one part. Only what is left in a chunk when the writing
//! thread is through with a queue is copied, so that the program can fill the queue again.

use std::ops::Range;

use super::codec::PIECE;

/// A sample has this many pairs of runs of bytes.
const PAIRS: usize = 4;
const RUN: usize = 512;
/// Where the runs of the pairs begin in their blocks differs by this.
const QUARTER: usize = PIECE / PAIRS;

/// Pieces of contents for the next chunk. `bytes` of its methods are those of the queue at hand.
#[derive(Default)]
pub(super) struct Filling {
    carried: Vec<u8>,
    parts: Vec<Range<usize>>,
    // invariant: the bytes of `carried` and of all `parts`.
    len: usize,
    /// Two bytes a piece.
    lengths: Vec<u8>,
}

impl Filling {
    /// The number of pieces.
    pub(super) fn count(&self) -> usize {
        self.lengths.len() / 2
    }

    /// Bytes of the chunk's payload.
    pub(super) fn payload_len(&self) -> usize {
        self.len + self.lengths.len()
    }

    /// Adds a piece that lies in the queue at hand.
    pub(super) fn push(&mut self, piece: Range<usize>) {
        self.len += piece.len();
        let length = piece.len() as u16;
        self.lengths.extend_from_slice(&length.to_le_bytes());
        match self.parts.last_mut() {
            Some(last) if last.end == piece.start => last.end = piece.end,
            _ => self.parts.push(piece),
        }
    }

    /// Copies what lies in the queue at hand, which will be filled again.
    pub(super) fn carry(&mut self, bytes: &[u8]) {
        for part in self.parts.drain(..) {
            self.carried.extend_from_slice(&bytes[part]);
        }
    }

    /// Forgets all pieces.
    pub(super) fn clear(&mut self) {
        self.carried.clear();
        self.parts.clear();
        self.lengths.clear();
        self.len = 0;
    }

    fn pieces<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let parts = self.parts.iter().map(|part| &bytes[part.clone()]);
        std::iter::once(&self.carried[..]).chain(parts)
    }

    /// The payload, in parts.
    pub(super) fn payload<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.pieces(bytes).chain(std::iter::once(&self.lengths[..]))
    }

    /// Copies runs of bytes from all over the pieces into `sample`: of the first quarter of a
    /// block, the second, and so on, as blocks often have one kind of bytes at their beginning and
    /// another at their end. Each run is followed by the one 4 KiB later: a block that is written
    /// again and again, as the end of a log is, has runs that zstd finds in the block before.
    /// Copies all if there is little.
    pub(super) fn sample(&self, bytes: &[u8], sample: &mut Vec<u8>) {
        sample.clear();
        if self.len < 4 * PAIRS * PIECE {
            self.pieces(bytes).for_each(|p| sample.extend_from_slice(p));
            return;
        }
        // Whole blocks, so that the last pair ends before the last block.
        let stride = (self.len / PIECE - 2) / PAIRS * PIECE + QUARTER;
        let begins = (0..2 * PAIRS).map(|n| n / 2 * stride + n % 2 * PIECE);
        let mut begins = begins.peekable();
        let mut at = 0;
        for piece in self.pieces(bytes) {
            while let Some(begin) = begins.next_if(|begin| *begin < at + piece.len()) {
                // A run that a part ends within is shorter: it is only a sample.
                let run = &piece[begin - at..];
                sample.extend_from_slice(&run[..run.len().min(RUN)]);
            }
            at += piece.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(filling: &Filling, bytes: &[u8]) -> Vec<u8> {
        filling.payload(bytes).flatten().copied().collect()
    }

    #[test]
    fn what_is_carried_stands_before_what_comes_later() {
        let mut filling = Filling::default();
        filling.push(0..2);
        filling.push(2..3);
        filling.push(5..6);
        assert_eq!(payload(&filling, b"abcdef"), b"abcf\x02\0\x01\0\x01\0");
        filling.carry(b"abcdef");
        filling.push(1..2);
        let expected = b"abcfy\x02\0\x01\0\x01\0\x01\0";
        assert_eq!(payload(&filling, b"xyz"), expected);
        assert_eq!((filling.count(), filling.payload_len()), (4, 13));
        filling.clear();
        assert_eq!((filling.count(), filling.payload_len()), (0, 0));
    }

    #[test]
    fn a_sample_has_each_quarter_of_a_block() {
        let quarters = (0..512 << 10).map(|at| (at / QUARTER % PAIRS) as u8);
        let bytes: Vec<u8> = quarters.collect();
        let mut filling = Filling::default();
        let mut sample = Vec::new();
        for piece in 0..128 {
            filling.push(piece * 4096..(piece + 1) * 4096);
        }
        filling.sample(&bytes, &mut sample);
        let expected: Vec<u8> = (0..PAIRS).flat_map(|n| vec![n as u8; 2 * RUN]).collect();
        assert!(sample == expected);
        filling.carry(&bytes);
        filling.sample(&[], &mut sample);
        assert!(sample == expected);
    }
}
