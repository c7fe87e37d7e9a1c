//! Finds pieces that were recorded before, by their hash, in a table of fixed size.
//!
//! Pieces are called equal if their XXH3-128 are: among a billion pieces, the chance that any two
//! different ones are taken for equal is 10⁻²¹. The table is sets of four, the last used first;
//! when a set is full, its last one is forgotten, and its piece is stored again if it comes again.

use super::codec::{PIECE, PieceId};

/// Number of pieces that are remembered: 4 GiB of full ones. The table has 24 MiB.
pub(super) const REMEMBERED: usize = 1 << 20;

const WAYS: usize = 4;

/// The XXH3-128 of a piece.
#[derive(Clone, Copy)]
pub(super) struct Hash([u64; 2]);

impl Hash {
    fn of(piece: &[u8]) -> Hash {
        let hash = xxhash_rust::xxh3::xxh3_128(piece);
        Hash([hash as u64, (hash >> 64) as u64])
    }
}

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

    fn index(&self, hash: Hash) -> usize {
        hash.0[0] as usize & (self.sets.len() - 1)
    }

    /// Brings the places of hashes into the processor's caches. The table is larger than they are,
    /// and looking up a piece at a time would wait for each cache miss; these loads overlap.
    pub(super) fn fetch(&self, hashes: &[Option<Hash>]) {
        let ids = hashes.iter().flatten().map(|hash| {
            let set = &self.sets[self.index(*hash)];
            set[0].id ^ set[WAYS - 1].id
        });
        std::hint::black_box(ids.fold(0, |all, id| all ^ id));
    }

    /// Returns the piece with this hash, or remembers `new` as that piece.
    pub(super) fn find_or_insert(&mut self, hash: Hash, new: PieceId) -> Option<PieceId> {
        let index = self.index(hash);
        let hash = hash.0;
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

/// The hash of a piece; `None` if all its bytes are zeros.
pub(super) fn hash_unless_zeros(piece: &[u8]) -> Option<Hash> {
    static ZEROS: [u8; PIECE] = [0; PIECE];
    let is_zeros = piece.first() == Some(&0) && *piece == ZEROS[..piece.len()];
    (!is_zeros).then(|| Hash::of(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pieces_are_found_and_the_least_used_are_forgotten() {
        let mut table = Equal::new(WAYS);
        let piece = |n: u64| Hash::of(&n.to_le_bytes());
        for n in 1..=4 {
            assert_eq!(table.find_or_insert(piece(n), PieceId(n)), None);
        }
        assert_eq!(table.find_or_insert(piece(1), PieceId(9)), Some(PieceId(1)));
        assert_eq!(table.find_or_insert(piece(5), PieceId(5)), None);
        assert_eq!(table.find_or_insert(piece(1), PieceId(9)), Some(PieceId(1)));
        assert_eq!(table.find_or_insert(piece(2), PieceId(6)), None);
    }
}
