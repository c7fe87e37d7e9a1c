//! The bytes of files as states share them: copying a file costs a pointer for each 256 KiB.
//!
//! A block of 4 KiB is zeros, a piece of a recording, or bytes of its own where a write covered
//! only a part of it. Chunks of blocks are shared between states until one changes.

use std::sync::Arc;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::DriveError;
use crate::recording::{PIECE, PieceId, Pieces};

/// Blocks of a chunk.
const CHUNK: u64 = 64;

/// Bytes of a block.
pub(super) const BLOCK: u64 = PIECE as u64;

/// A block with bytes of its own.
#[derive(Debug)]
pub(super) struct Bytes {
    hash: u64,
    bytes: Box<[u8; PIECE]>,
}

/// What a block holds.
#[derive(Clone, Debug, Default)]
pub(super) enum Cell {
    /// Zeros.
    #[default]
    Zeros,
    /// A whole piece of a recording.
    Piece(Source, PieceId),
    /// Bytes that no recording has as one piece.
    Own(Arc<Bytes>),
}

impl Cell {
    /// A block with these bytes.
    pub(super) fn of(bytes: Box<[u8; PIECE]>) -> Cell {
        if bytes.iter().all(|byte| *byte == 0) {
            return Cell::Zeros;
        }
        let hash = xxh3_64(&bytes[..]);
        Cell::Own(Arc::new(Bytes { hash, bytes }))
    }

    /// Equal for equal cells; 0 for zeros.
    fn hash(&self) -> u64 {
        match self {
            Cell::Zeros => 0,
            Cell::Piece(source, piece) => mix(u64::from(source.0) << 48 ^ piece.0),
            Cell::Own(own) => own.hash | 1,
        }
    }
}

/// Tells the number of a block from that of a piece.
const PLACE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Spreads the bits of a number.
pub(super) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[derive(Clone, Debug)]
struct Chunk {
    cells: [Cell; CHUNK as usize],
    /// The sum of its cells' hashes, each mixed with its place.
    hash: u64,
}

impl Chunk {
    fn new() -> Chunk {
        Chunk {
            cells: [const { Cell::Zeros }; CHUNK as usize],
            hash: 0,
        }
    }
}

/// The blocks of a file. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    chunks: Vec<Option<Arc<Chunk>>>,
    /// Chunks of places beyond [`DENSE`], for sparse files.
    far: std::collections::BTreeMap<u64, Arc<Chunk>>,
}

/// Chunks that lie in a vector: 16 GiB of a file.
const DENSE: u64 = 1 << 16;

impl Blocks {
    fn chunk(&self, number: u64) -> Option<&Arc<Chunk>> {
        if number < DENSE {
            self.chunks.get(number as usize)?.as_ref()
        } else {
            self.far.get(&number)
        }
    }

    /// What a block holds.
    pub(super) fn get(&self, block: u64) -> &Cell {
        static ZEROS: Cell = Cell::Zeros;
        let chunk = self.chunk(block / CHUNK);
        chunk.map_or(&ZEROS, |chunk| &chunk.cells[(block % CHUNK) as usize])
    }

    /// Lets a block hold something else.
    pub(super) fn set(&mut self, block: u64, cell: Cell) {
        let number = block / CHUNK;
        if matches!(cell, Cell::Zeros) && self.chunk(number).is_none() {
            return;
        }
        let chunk = if number < DENSE {
            if self.chunks.len() <= number as usize {
                self.chunks.resize(number as usize + 1, None);
            }
            self.chunks[number as usize].get_or_insert_with(|| Arc::new(Chunk::new()))
        } else {
            let new = || Arc::new(Chunk::new());
            self.far.entry(number).or_insert_with(new)
        };
        let chunk = Arc::make_mut(chunk);
        let slot = &mut chunk.cells[(block % CHUNK) as usize];
        let placed = |cell: &Cell| match cell.hash() {
            0 => 0,
            // Pieces are small numbers, too: a place must not look like one.
            hash => mix(hash ^ mix(block ^ PLACE)),
        };
        let change = placed(&cell).wrapping_sub(placed(slot));
        *slot = cell;
        chunk.hash = chunk.hash.wrapping_add(change);
    }

    /// Forgets all blocks from `block` on.
    pub(super) fn cut(&mut self, block: u64) {
        let first = block / CHUNK;
        if block.is_multiple_of(CHUNK) {
            self.chunks.truncate(first.min(DENSE) as usize);
        } else {
            self.chunks.truncate((first + 1).min(DENSE) as usize);
            for at in block..(first + 1) * CHUNK {
                self.set(at, Cell::Zeros);
            }
        }
        let from = block.div_ceil(CHUNK);
        drop(self.far.split_off(&from));
    }

    /// Makes the blocks `first..end` zeros. Costs the chunks that are there, not the blocks.
    pub(super) fn clear(&mut self, first: u64, end: u64) {
        let near = first / CHUNK..end.div_ceil(CHUNK).min(self.chunks.len() as u64);
        let near = near.filter(|number| self.chunk(*number).is_some());
        let from = (first / CHUNK).max(DENSE);
        let until = end.div_ceil(CHUNK).max(from);
        let far = self.far.range(from..until).map(|(number, _)| *number);
        let numbers: Vec<u64> = near.chain(far).collect();
        for number in numbers {
            let (begin, behind) = (number * CHUNK, (number + 1) * CHUNK);
            if first > begin || end < behind {
                for block in begin.max(first)..behind.min(end) {
                    self.set(block, Cell::Zeros);
                }
            } else if number < DENSE {
                self.chunks[number as usize] = None;
            } else {
                self.far.remove(&number);
            }
        }
    }

    /// The blocks that are not zeros, in order.
    pub(super) fn written(&self) -> impl Iterator<Item = u64> + '_ {
        let near = (0..)
            .zip(&self.chunks)
            .filter_map(|(n, c)| Some((n, c.as_ref()?)));
        let far = self.far.iter().map(|(n, c)| (*n, c));
        near.chain(far).flat_map(|(number, chunk)| {
            let cells = (number * CHUNK..).zip(&chunk.cells);
            cells.filter_map(|(block, cell)| (!matches!(cell, Cell::Zeros)).then_some(block))
        })
    }

    /// Equal for equal contents, whatever their history.
    pub(super) fn hash(&self) -> u64 {
        let near = self.chunks.iter().flatten();
        let hashes = near.chain(self.far.values()).map(|chunk| chunk.hash);
        hashes.fold(0, u64::wrapping_add)
    }
}

/// A recording whose pieces are used, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Source(u16);

/// The recordings that cells refer to. Any number of threads may read.
#[derive(Debug, Default)]
pub(super) struct Store {
    sources: Mutex<Vec<Option<Recording>>>,
}

struct Recording {
    first: Pieces,
    /// Readers that nobody uses just now, each with its own chunks decompressed.
    idle: Vec<Pieces>,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").finish_non_exhaustive()
    }
}

impl Store {
    /// Adds a recording. Its number is that of one that was removed, if there is one.
    pub(super) fn add(&self, pieces: Pieces) -> Source {
        let mut sources = self.sources.lock();
        let added = Some(Recording {
            first: pieces,
            idle: Vec::new(),
        });
        let number = match sources.iter().position(Option::is_none) {
            Some(free) => {
                sources[free] = added;
                free
            }
            None => {
                sources.push(added);
                sources.len() - 1
            }
        };
        // There are as many as there are recoveries under way.
        Source(number as u16)
    }

    /// Forgets a recording; no cell refers to it any more.
    pub(super) fn remove(&self, source: Source) {
        if let Some(slot) = self.sources.lock().get_mut(usize::from(source.0)) {
            *slot = None;
        }
    }

    /// Reads a piece.
    pub(super) fn piece(
        &self,
        source: Source,
        piece: PieceId,
        read: impl FnOnce(&[u8]),
    ) -> Result<(), DriveError> {
        let number = usize::from(source.0);
        let taken = {
            let mut sources = self.sources.lock();
            let recording = sources.get_mut(number).and_then(Option::as_mut);
            recording.map(|r| r.idle.pop().unwrap_or_else(|| r.first.another()))
        };
        let Some(mut pieces) = taken else {
            let gone = std::io::ErrorKind::NotFound.into();
            return Err(DriveError::system("a recording that was removed")(gone));
        };
        let done = pieces.bytes(piece).map(read);
        let mut sources = self.sources.lock();
        if let Some(recording) = sources.get_mut(number).and_then(Option::as_mut) {
            recording.idle.push(pieces);
        }
        done
    }

    /// Reads the bytes of a block.
    pub(super) fn read(&self, cell: &Cell, into: &mut [u8; PIECE]) -> Result<(), DriveError> {
        match cell {
            Cell::Zeros => into.fill(0),
            Cell::Own(own) => into.copy_from_slice(&own.bytes[..]),
            Cell::Piece(source, piece) => self.piece(*source, *piece, |bytes| {
                let len = bytes.len().min(PIECE);
                into[..len].copy_from_slice(&bytes[..len]);
                into[len..].fill(0);
            })?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(byte: u8) -> Cell {
        Cell::of(Box::new([byte; PIECE]))
    }

    #[test]
    fn a_piece_at_a_place_looks_like_no_other() {
        let mut seen = std::collections::BTreeMap::from([(0, (0, 0))]);
        for piece in 1..40 {
            for block in 0..40 {
                let mut blocks = Blocks::default();
                blocks.set(block, Cell::Piece(Source::default(), PieceId(piece)));
                let same = seen.insert(blocks.hash(), (piece, block));
                assert_eq!(same, None, "piece {piece} at block {block}");
            }
        }
    }

    #[test]
    fn equal_contents_have_equal_hashes_whatever_their_history() {
        let (mut one, mut other) = (Blocks::default(), Blocks::default());
        for block in [3, 70, DENSE * CHUNK + 5] {
            one.set(block, cell(1));
        }
        for block in [DENSE * CHUNK + 5, 70, 4, 3] {
            other.set(block, cell(2));
            other.set(block, cell(1));
        }
        assert_ne!(one.hash(), other.hash());
        other.set(4, Cell::Zeros);
        assert_eq!(one.hash(), other.hash());
        // The same bytes elsewhere are something else.
        one.set(3, Cell::Zeros);
        one.set(2, cell(1));
        assert_ne!(one.hash(), other.hash());
    }

    #[test]
    fn a_range_is_cleared_and_nothing_else() {
        let far = DENSE * CHUNK;
        let all = [0, 1, 63, 64, 65, 127, 128, 200, far, far + 1, far + 70];
        let places = [
            0,
            1,
            64,
            66,
            128,
            129,
            far,
            far + 1,
            far + 64,
            far + 71,
            u64::MAX / 4096,
        ];
        for first in places {
            for end in places.into_iter().filter(|end| *end >= first) {
                let mut blocks = Blocks::default();
                all.iter().for_each(|block| blocks.set(*block, cell(7)));
                blocks.clear(first, end);
                let left: Vec<u64> = blocks.written().collect();
                let expected = all.into_iter().filter(|b| !(first..end).contains(b));
                assert_eq!(left, expected.collect::<Vec<u64>>(), "{first}..{end}");
            }
        }
    }

    #[test]
    fn a_cut_forgets_what_is_behind_it() {
        let mut blocks = Blocks::default();
        let all = [0, 1, 63, 64, 65, 200, DENSE * CHUNK, DENSE * CHUNK + 1];
        for cut in [0, 1, 2, 64, 65, 100, DENSE * CHUNK + 1, DENSE * CHUNK + 2] {
            for block in all {
                blocks.set(block, cell(7));
            }
            let shared = blocks.clone();
            blocks.cut(cut);
            let left: Vec<u64> = blocks.written().collect();
            let expected: Vec<u64> = all.into_iter().filter(|b| *b < cut).collect();
            assert_eq!(left, expected, "cut at {cut}");
            assert_eq!(shared.written().count(), all.len(), "another state");
        }
    }
}
