//! Streams of block writes of known kinds, on which miniatures of a drive are tested.

#![allow(dead_code, unreachable_pub)]

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// What the host does.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    Write(u64),
    Trim(u64, u64),
}

/// A kind of stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Every block equally likely.
    Uniform,
    /// 80 % of the writes to 20 % of the blocks.
    HotCold,
    /// 99 % of the blocks at random; half of all writes to eight blocks.
    VeryHot,
    /// Runs of 64 to 2,048 blocks at random places.
    Runs,
    /// A circular log of a fifth of the drive takes half of the writes; the others are uniform.
    LogAndRandom,
    /// Uniform writes; now and then an extent of up to 1,024 blocks is trimmed, so that about half
    /// of the drive is in use.
    Trims,
}

pub const STREAMS: [Stream; 6] = [
    Stream::Uniform,
    Stream::HotCold,
    Stream::VeryHot,
    Stream::Runs,
    Stream::LogAndRandom,
    Stream::Trims,
];

impl Stream {
    /// Passes `writes` writes on a drive of `blocks` blocks, and the trims between them, to `each`.
    pub fn play(self, blocks: u64, writes: u64, seed: u64, mut each: impl FnMut(Request)) {
        let mut random = StdRng::seed_from_u64(seed);
        let (log, mut head) = (blocks / 5, 0);
        let mut run = 0..0;
        for _ in 0..writes {
            let lba = match self {
                Stream::Uniform => random.random_range(0..blocks),
                Stream::HotCold if random.random_bool(0.8) => {
                    // One block in five is hot, anywhere on the drive.
                    random.random_range(0..blocks / 5) * 5
                }
                Stream::HotCold => random.random_range(0..blocks),
                Stream::VeryHot if random.random_bool(0.5) => random.random_range(0..8u64) * 77,
                Stream::VeryHot => random.random_range(0..blocks),
                Stream::Runs => {
                    if run.is_empty() {
                        let start = random.random_range(0..blocks);
                        run = start..(start + random.random_range(64..2048)).min(blocks);
                    }
                    run.next().unwrap_or(0)
                }
                Stream::LogAndRandom if random.random_bool(0.5) => {
                    head = (head + 1) % log;
                    head
                }
                Stream::LogAndRandom => random.random_range(log..blocks),
                Stream::Trims => {
                    if random.random_range(0..700) == 0 {
                        let start = random.random_range(0..blocks);
                        let end = (start + random.random_range(1..1024u64)).min(blocks);
                        each(Request::Trim(start, end - start));
                    }
                    random.random_range(0..blocks)
                }
            };
            each(Request::Write(lba));
        }
    }
}
