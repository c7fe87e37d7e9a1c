//! The drive's blocks: which are free, and where a file that grows gets its next ones.
//!
//! ```text
//! growth:  where the file already is, one block further, if that is free
//!          else the lowest free place that is large enough
//!          else the largest places there are, until it is enough
//! ```
//!
//! So a file that is alone on the drive lies in one piece, and two files that grow in turns
//! interleave, as on a file system without preallocation. Nothing is random: the same operations
//! give the same places.
//!
//! Free runs are kept by their start, and their starts by the logarithm of their length, so that a
//! place is found without a walk over a fragmented drive.

use std::collections::{BTreeMap, BTreeSet};

use crate::recording::Extent;

/// The free and used blocks of a drive.
#[derive(Debug)]
pub struct Space {
    blocks: u64,
    free_blocks: u64,
    peak_used: u64,
    /// Free runs: first block and length. Neighbours are always merged.
    free: BTreeMap<u64, u64>,
    /// Starts of free runs whose length has this many bits.
    by_length: Vec<BTreeSet<u64>>,
}

/// The class of a run: the bits of its length.
fn class(blocks: u64) -> usize {
    (u64::BITS - blocks.leading_zeros()) as usize
}

impl Space {
    /// An empty drive.
    #[must_use]
    pub fn new(blocks: u64) -> Space {
        let mut space = Space {
            blocks,
            free_blocks: 0,
            peak_used: 0,
            free: BTreeMap::new(),
            by_length: vec![BTreeSet::new(); 65],
        };
        if blocks > 0 {
            space.insert(0, blocks);
        }
        space.free_blocks = blocks;
        space
    }

    /// Size of the drive in blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Blocks that are free.
    #[must_use]
    pub fn free_blocks(&self) -> u64 {
        self.free_blocks
    }

    /// Blocks that are in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.blocks - self.free_blocks
    }

    /// The most blocks that were in use at once.
    #[must_use]
    pub fn peak_used(&self) -> u64 {
        self.peak_used
    }

    /// The free runs, by their place.
    pub fn free_runs(&self) -> impl Iterator<Item = Extent> + '_ {
        self.free
            .iter()
            .map(|(&lba, &blocks)| Extent { lba, blocks })
    }

    /// Takes `want` blocks, preferably from one of the `hints` on. `None` if there are not as many.
    pub fn take(&mut self, hints: &[u64], want: u64) -> Option<Vec<Extent>> {
        if want > self.free_blocks {
            return None;
        }
        let mut taken = Vec::with_capacity(1);
        let mut left = want;
        while left > 0 {
            let hints = if taken.is_empty() { hints } else { &[] };
            let at = hints.iter().copied().find(|&at| self.is_free(at));
            let at = at
                .or_else(|| self.lowest(left))
                .or_else(|| self.largest())?;
            let extent = Extent {
                lba: at,
                blocks: left.min(self.run_from(at)),
            };
            self.claim(extent);
            left -= extent.blocks;
            taken.push(extent);
        }
        Some(taken)
    }

    /// Marks blocks as used. `false`, and nothing changes, if one is used already or does not
    /// exist.
    pub fn reserve(&mut self, extent: Extent) -> bool {
        let fits = self.is_free(extent.lba) && self.run_from(extent.lba) >= extent.blocks;
        if fits {
            self.claim(extent);
        }
        fits
    }

    /// Gives blocks back.
    pub fn give(&mut self, extent: Extent) {
        let Extent {
            mut lba,
            mut blocks,
        } = extent;
        debug_assert!(!self.is_free(lba), "block {lba} is given back twice");
        self.free_blocks += blocks;
        if let Some((&before, &length)) = self.free.range(..lba).next_back()
            && before + length == lba
        {
            self.remove(before, length);
            (lba, blocks) = (before, length + blocks);
        }
        if let Some(&length) = self.free.get(&(lba + blocks)) {
            self.remove(lba + blocks, length);
            blocks += length;
        }
        self.insert(lba, blocks);
    }

    fn is_free(&self, at: u64) -> bool {
        self.run_of(at).is_some()
    }

    /// The free run that holds a block.
    fn run_of(&self, at: u64) -> Option<(u64, u64)> {
        let (&start, &length) = self.free.range(..=at).next_back()?;
        (at < start + length).then_some((start, length))
    }

    /// Free blocks from `at` on.
    fn run_from(&self, at: u64) -> u64 {
        self.run_of(at)
            .map_or(0, |(start, length)| start + length - at)
    }

    /// The lowest free run of at least `want` blocks.
    fn lowest(&self, want: u64) -> Option<u64> {
        let own = class(want);
        let above = &self.by_length[own + 1..];
        let certain = above
            .iter()
            .filter_map(|starts| starts.first().copied())
            .min();
        // A run of the same class may be too short; those behind `certain` do not matter.
        let same = self.by_length[own].range(..certain.unwrap_or(u64::MAX));
        let same = same.copied().find(|start| self.free[start] >= want);
        same.or(certain)
    }

    /// The lowest of the longest class of free runs.
    fn largest(&self) -> Option<u64> {
        self.by_length
            .iter()
            .rev()
            .find_map(|starts| starts.first().copied())
    }

    /// Takes blocks out of the run that holds them all.
    fn claim(&mut self, extent: Extent) {
        let Some((start, length)) = self.run_of(extent.lba) else {
            return;
        };
        self.remove(start, length);
        if start < extent.lba {
            self.insert(start, extent.lba - start);
        }
        let (end, run_end) = (extent.lba + extent.blocks, start + length);
        if end < run_end {
            self.insert(end, run_end - end);
        }
        self.free_blocks -= extent.blocks;
        self.peak_used = self.peak_used.max(self.used());
    }

    fn insert(&mut self, start: u64, length: u64) {
        self.free.insert(start, length);
        self.by_length[class(length)].insert(start);
    }

    fn remove(&mut self, start: u64, length: u64) {
        self.free.remove(&start);
        self.by_length[class(length)].remove(&start);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(lba: u64, blocks: u64) -> Extent {
        Extent { lba, blocks }
    }

    #[test]
    fn growth_goes_where_the_file_ends_else_to_the_lowest_place_large_enough() {
        let mut space = Space::new(100);
        assert_eq!(space.take(&[], 10), Some(vec![extent(0, 10)]));
        assert_eq!(space.take(&[50], 10), Some(vec![extent(50, 10)]));
        assert_eq!(
            space.take(&[10], 5),
            Some(vec![extent(10, 5)]),
            "after the first file"
        );
        assert_eq!(
            space.take(&[0], 36),
            Some(vec![extent(60, 36)]),
            "15..50 is too short"
        );
        assert_eq!(
            space.take(&[], 39),
            Some(vec![extent(15, 35), extent(96, 4)])
        );
        assert_eq!(space.take(&[], 1), None);
        space.give(extent(50, 10));
        assert_eq!((space.free_blocks(), space.peak_used()), (10, 100));
    }

    proptest! {
        /// Whatever is taken and given back: no block is handed out twice, and none is lost.
        #[test]
        fn no_block_has_two_owners(steps in prop::collection::vec((0..3u8, 0..64u64, 1..20u64),
            1..200))
        {
            let mut space = Space::new(64);
            let mut owned: Vec<Extent> = Vec::new();
            for (what, at, blocks) in steps {
                if what == 0 && !owned.is_empty() {
                    space.give(owned.swap_remove(at as usize % owned.len()));
                } else if what == 1 {
                    let free = !(at..at + blocks).any(|b| b >= 64 || holds(&owned, b));
                    prop_assert_eq!(space.reserve(extent(at, blocks)), free);
                    owned.extend(free.then_some(extent(at, blocks)));
                } else {
                    let enough = blocks <= space.free_blocks();
                    let taken = space.take(&[at], blocks);
                    prop_assert_eq!(taken.is_some(), enough);
                    for taken in taken.into_iter().flatten() {
                        let (lba, end) = (taken.lba, taken.lba + taken.blocks);
                        prop_assert!(!(lba..end).any(|b| b >= 64 || holds(&owned, b)));
                        owned.push(taken);
                    }
                }
                let used: u64 = owned.iter().map(|e| e.blocks).sum();
                prop_assert_eq!(space.used(), used);
                let free: u64 = space.free_runs().map(|e| e.blocks).sum();
                prop_assert_eq!(free, 64 - used);
            }
        }
    }

    fn holds(owned: &[Extent], block: u64) -> bool {
        owned
            .iter()
            .any(|e| (e.lba..e.lba + e.blocks).contains(&block))
    }
}
