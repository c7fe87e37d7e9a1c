//! Finds pieces that were recorded before, by their hash, in a table of fixed size.
//!
//! Pieces are called equal if their XXH3-128 are: among a billion pieces, the chance that any two
//! different ones are taken for equal is 10⁻²¹. The table is sets of four, the last used first;
//! when a set is full, its last one is forgotten, and its piece is stored again if it comes again.

use super::codec::{PIECE, PieceId};

/// Number of pieces that are remembered: 4 GiB of full ones. The table has 24 MiB.
pub(super) const REMEMBERED: usize = 1 << 20;

const WAYS: usize = 4;

#[derive(Clone, Copy, Default)]
struct Known {
    hash: [u64; 2],
    id: u64,
}

/// The table.
pub(super) struct Equal {
    sets: Vec<[Known; WAYS]>,
}

impl Equal {
    /// Creates a table for `pieces`, a power of two of at least four.
    pub(super) fn new(pieces: usize) -> Self {
        Equal {
            sets: vec![[Known::default(); WAYS]; pieces / WAYS],
        }
    }

    /// Returns the piece with these bytes, or remembers `new` as that piece.
    pub(super) fn find_or_insert(&mut self, bytes: &[u8], new: PieceId) -> Option<PieceId> {
        let hash = xxhash_rust::xxh3::xxh3_128(bytes);
        let hash = [hash as u64, (hash >> 64) as u64];
        let index = hash[0] as usize & (self.sets.len() - 1);
        let set = &mut self.sets[index];
        let found = set.iter().position(|k| k.hash == hash && k.id != 0);
        let first = match found {
            Some(way) => set[way],
            None => Known { hash, id: new.0 },
        };
        set.copy_within(0..found.unwrap_or(WAYS - 1), 1);
        set[0] = first;
        found.map(|_| PieceId(first.id))
    }
}

/// Whether all bytes of a piece are zeros.
pub(super) fn is_zeros(piece: &[u8]) -> bool {
    static ZEROS: [u8; PIECE] = [0; PIECE];
    piece.first() == Some(&0) && *piece == ZEROS[..piece.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pieces_are_found_and_the_least_used_are_forgotten() {
        let mut table = Equal::new(WAYS);
        let piece = |n: u64| n.to_le_bytes();
        for n in 1..=4 {
            assert_eq!(table.find_or_insert(&piece(n), PieceId(n)), None);
        }
        assert_eq!(
            table.find_or_insert(&piece(1), PieceId(9)),
            Some(PieceId(1))
        );
        assert_eq!(table.find_or_insert(&piece(5), PieceId(5)), None);
        assert_eq!(
            table.find_or_insert(&piece(1), PieceId(9)),
            Some(PieceId(1))
        );
        assert_eq!(table.find_or_insert(&piece(2), PieceId(6)), None);
    }
}
