//! Where the blocks of a file lie on the drive.
//!
//! ```text
//! file     0 1 2 3 . . . 7 8        a run a line: first block of the file -> first block of the
//! drive    5 6 7 8       2 3        drive, length
//! runs     0 -> 5, 4 blocks;  7 -> 2, 2 blocks
//! ```
//!
//! Blocks between runs are holes. Runs that continue each other both in the file and on the drive
//! are one run, so memory goes by fragments, not by blocks.

use std::collections::BTreeMap;

use crate::recording::Extent;

/// Consecutive blocks of a file: a hole, or on consecutive blocks of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// First block of the file.
    pub(super) block: u64,
    /// Number of blocks.
    pub(super) blocks: u64,
    /// First block of the drive; `None` for a hole.
    pub(super) lba: Option<u64>,
}

/// The runs of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    /// By first block of the file; neither empty, nor overlapping, nor to be merged.
    runs: BTreeMap<u64, Extent>,
    blocks: u64,
}

impl Extents {
    /// Blocks that are mapped.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The first block behind all mapped ones.
    pub(super) fn end(&self) -> u64 {
        self.runs
            .last_key_value()
            .map_or(0, |(block, run)| block + run.blocks)
    }

    /// All runs as pieces.
    pub(super) fn iter(&self) -> impl Iterator<Item = Piece> + '_ {
        let piece = |(&block, run): (&u64, &Extent)| Piece {
            block,
            blocks: run.blocks,
            lba: Some(run.lba),
        };
        self.runs.iter().map(piece)
    }

    /// The pieces of a range of blocks, in order and without gaps.
    pub(super) fn pieces(&self, first: u64, blocks: u64) -> Vec<Piece> {
        let (mut pieces, mut at, end) = (Vec::with_capacity(1), first, first + blocks);
        for (start, run) in self.runs_from(first) {
            if start >= end {
                break;
            }
            if at < start {
                pieces.push(Piece {
                    block: at,
                    blocks: start - at,
                    lba: None,
                });
                at = start;
            }
            let blocks = end.min(start + run.blocks) - at;
            pieces.push(Piece {
                block: at,
                blocks,
                lba: Some(run.lba + at - start),
            });
            at += blocks;
        }
        if at < end {
            pieces.push(Piece {
                block: at,
                blocks: end - at,
                lba: None,
            });
        }
        pieces
    }

    /// The first mapped block at or after `block`.
    pub(super) fn next_mapped(&self, block: u64) -> Option<u64> {
        self.runs_from(block)
            .next()
            .map(|(start, _)| start.max(block))
    }

    /// The first hole at or after `block`.
    pub(super) fn next_hole(&self, block: u64) -> u64 {
        let mut at = block;
        for (start, run) in self.runs_from(block) {
            if start > at {
                break;
            }
            at = start + run.blocks;
        }
        at
    }

    /// Good places for a block that is not mapped: such that the file stays in one piece, and
    /// behind the run before it.
    pub(super) fn hints(&self, block: u64) -> Vec<u64> {
        match self.runs.range(..block).next_back() {
            Some((start, run)) => vec![run.lba + (block - start), run.lba + run.blocks],
            None => match self.runs.first_key_value() {
                Some((start, run)) => run.lba.checked_sub(start - block).into_iter().collect(),
                None => Vec::new(),
            },
        }
    }

    /// Maps blocks that were a hole.
    pub(super) fn insert(&mut self, block: u64, extent: Extent) {
        let (mut block, mut run) = (block, extent);
        self.blocks += run.blocks;
        if let Some((&start, &before)) = self.runs.range(..block).next_back()
            && start + before.blocks == block
            && before.lba + before.blocks == run.lba
        {
            self.runs.remove(&start);
            block = start;
            run = Extent {
                lba: before.lba,
                blocks: before.blocks + run.blocks,
            };
        }
        if let Some(&after) = self.runs.get(&(block + run.blocks))
            && run.lba + run.blocks == after.lba
        {
            self.runs.remove(&(block + run.blocks));
            run.blocks += after.blocks;
        }
        self.runs.insert(block, run);
    }

    /// Makes a range of blocks a hole; the blocks of the drive that are no longer needed.
    pub(super) fn remove(&mut self, first: u64, blocks: u64) -> Vec<Extent> {
        if blocks == 0 {
            return Vec::new();
        }
        let end = first.saturating_add(blocks);
        let touched: Vec<(u64, Extent)> = self
            .runs_from(first)
            .take_while(|(start, _)| *start < end)
            .collect();
        let mut freed = Vec::with_capacity(touched.len());
        for (start, run) in touched {
            self.runs.remove(&start);
            let (from, to) = (first.max(start), end.min(start + run.blocks));
            if start < from {
                self.runs.insert(
                    start,
                    Extent {
                        lba: run.lba,
                        blocks: from - start,
                    },
                );
            }
            if to < start + run.blocks {
                let rest = Extent {
                    lba: run.lba + to - start,
                    blocks: start + run.blocks - to,
                };
                self.runs.insert(to, rest);
            }
            freed.push(Extent {
                lba: run.lba + from - start,
                blocks: to - from,
            });
            self.blocks -= to - from;
        }
        freed
    }

    /// The runs that end behind `block`, in order.
    fn runs_from(&self, block: u64) -> impl Iterator<Item = (u64, Extent)> + '_ {
        let before = self.runs.range(..block).next_back();
        let before = before.filter(|(start, run)| *start + run.blocks > block);
        before
            .into_iter()
            .chain(self.runs.range(block..))
            .map(|(start, run)| (*start, *run))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_that_continue_each_other_are_one() {
        let mut extents = Extents::default();
        extents.insert(0, Extent { lba: 5, blocks: 2 });
        extents.insert(3, Extent { lba: 8, blocks: 1 });
        assert_eq!(extents.hints(2), [7, 7]);
        extents.insert(2, Extent { lba: 7, blocks: 1 });
        let whole = Piece {
            block: 0,
            blocks: 4,
            lba: Some(5),
        };
        assert_eq!(extents.iter().collect::<Vec<_>>(), [whole]);
        assert_eq!((extents.next_hole(1), extents.next_mapped(1)), (4, Some(1)));
        assert_eq!((extents.next_mapped(4), extents.end()), (None, 4));
    }

    proptest! {
        /// Runs say the same as one entry a block.
        #[test]
        fn runs_agree_with_blocks(
            steps in prop::collection::vec((0..40u64, 0..10u64, any::<bool>()), 1..60),
        )
        {
            let (mut extents, mut blocks) = (Extents::default(), vec![None; 64]);
            let mut next = 0;
            for (first, count, map) in steps {
                let range = first as usize..(first + count) as usize;
                if map {
                    for piece in extents.pieces(first, count) {
                        if piece.lba.is_none() {
                            let extent = Extent { lba: next, blocks: piece.blocks };
                            extents.insert(piece.block, extent);
                            for at in 0..piece.blocks {
                                blocks[(piece.block + at) as usize] = Some(next + at);
                            }
                            // A gap now and then, so that not everything merges.
                            next += piece.blocks + u64::from(first % 3 == 0);
                        }
                    }
                } else {
                    let freed = extents.remove(first, count);
                    let freed = freed.iter().flat_map(|e| e.lba..e.lba + e.blocks);
                    let expected = blocks[range.clone()].iter().flatten().copied();
                    prop_assert_eq!(freed.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
                    blocks[range].fill(None);
                }
                let pieces = extents.pieces(0, 64);
                let found = pieces.iter().flat_map(|p| (0..p.blocks).map(|i| p.lba.map(|l| l + i)));
                prop_assert_eq!(found.collect::<Vec<_>>(), blocks.clone());
                let mapped = blocks.iter().flatten().count() as u64;
                prop_assert_eq!(extents.blocks(), mapped);
                let next_mapped = (first..64).find(|b| blocks[*b as usize].is_some());
                prop_assert_eq!(extents.next_mapped(first), next_mapped);
                let hole = (first..64).find(|b| blocks[*b as usize].is_none());
                prop_assert_eq!(extents.next_hole(first), hole.unwrap_or(64));
            }
        }
    }
}
