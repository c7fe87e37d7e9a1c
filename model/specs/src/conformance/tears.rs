//! Power failures that tear blocks: of some blocks, pieces of several versions are left.

use std::ops::Range;

use treering_engine::device::{Block, CrashDevice, Image};
use treering_engine::{BLOCK_SIZE, Lba};

use treering_oracle::random::Random;

/// The blocks that a power failure may tear, and where.
#[derive(Clone, Debug)]
pub(crate) struct Tears {
    pub(crate) blocks: Range<u64>,
    /// Where the pieces of a block begin, except for the first.
    pub(crate) cuts: Vec<usize>,
}

impl Tears {
    /// One of the contents that `device` may have after a power failure, chosen by `seed`.
    pub(super) fn cut_power(&self, device: &CrashDevice, seed: u64) -> Image {
        let mut rng = Random::new(seed);
        let mut image = device.crash_seeded(rng.word());
        let others = [rng.word(), rng.word()].map(|seed| device.crash_seeded(seed));
        let mut left = vec![0; BLOCK_SIZE];
        let mut other = vec![0; BLOCK_SIZE];
        for lba in self.blocks.clone().map(Lba) {
            image.read(lba, &mut left);
            let whole = left.clone();
            let ends = self.cuts.iter().copied().chain([BLOCK_SIZE]);
            let mut from = 0;
            for to in ends {
                if from > 0 && rng.one_in(3) {
                    others[rng.below(2) as usize].read(lba, &mut other);
                    left[from..to].copy_from_slice(&other[from..to]);
                }
                from = to;
            }
            if left != whole {
                image.set(lba, Some(Block::new(&left)));
            }
        }
        image
    }
}
