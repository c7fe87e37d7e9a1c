//! How often each block of the drive is written, and after how many bytes again.

use rustc_hash::FxHashMap;
use treering_traces::info::Sizes;

use super::report::{HotExtent, Hottest, Overwrites};
use crate::recording::{Extent, NodeId};

/// Blocks of a hot extent: 1 MiB.
const EXTENT: u64 = 256;

/// The most hot extents that are reported.
const MOST: usize = 16;

/// The most blocks of a discard that are looked up one by one.
const FEW: u64 = 1 << 20;

#[derive(Clone, Copy, Default)]
struct Block {
    /// Bytes written to the drive when it was last written; `None` after a discard.
    last: Option<u64>,
    writes: u32,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    writes: u64,
    blocks: u64,
    node: NodeId,
    cause: u8,
}

/// The blocks that were written.
pub(super) struct Blocks {
    blocks: FxHashMap<u64, Block>,
    sums: FxHashMap<u64, Sum>,
    first_writes: u64,
    distances: Sizes,
    lives: Sizes,
}

impl Blocks {
    pub(super) fn new() -> Self {
        Blocks {
            blocks: FxHashMap::default(),
            sums: FxHashMap::default(),
            first_writes: 0,
            distances: Sizes::of_intervals(),
            lives: Sizes::of_intervals(),
        }
    }

    /// Counts a write of these blocks, before which `written` bytes were written to the drive.
    pub(super) fn write(&mut self, extents: &[Extent], written: u64, node: NodeId, cause: u8) {
        for lba in each(extents) {
            let block = self.blocks.entry(lba).or_default();
            match block.last {
                Some(last) => self.distances.add_many(written - last, 1),
                None => self.first_writes += 1,
            }
            block.last = Some(written);
            let sum = self.sums.entry(lba / EXTENT).or_default();
            sum.blocks += u64::from(block.writes == 0);
            block.writes = block.writes.saturating_add(1);
            sum.writes += 1;
            (sum.node, sum.cause) = (node, cause);
        }
    }

    /// Counts a discard.
    pub(super) fn discard(&mut self, extents: &[Extent], written: u64) {
        let (blocks, lives) = (&mut self.blocks, &mut self.lives);
        let mut discard = |block: &mut Block| {
            if let Some(last) = block.last.take() {
                lives.add_many(written - last, 1);
            }
        };
        for extent in extents {
            let end = extent.lba.saturating_add(extent.blocks);
            if extent.blocks <= FEW {
                for lba in extent.lba..end {
                    blocks.get_mut(&lba).map(&mut discard);
                }
            } else {
                let within = blocks.iter_mut();
                let within = within.filter(|(lba, _)| (extent.lba..end).contains(lba));
                within.for_each(|(_, block)| discard(block));
            }
        }
    }

    /// The statistics; `name` gives the path of a node and the name of a cause.
    pub(super) fn finish(
        &self,
        name: impl Fn(NodeId, u8) -> (String, String),
    ) -> (Overwrites, Vec<HotExtent>) {
        let overwrites = Overwrites {
            written_blocks: self.blocks.len() as u64,
            first_writes: self.first_writes,
            distance_bytes: self.distances.stats(),
            life_bytes: self.lives.stats(),
            hottest: self.hottest(),
        };
        let mut sums: Vec<(u64, Sum)> = self.sums.iter().map(|(at, sum)| (*at, *sum)).collect();
        sums.sort_unstable_by_key(|(at, sum)| (std::cmp::Reverse(sum.writes), *at));
        let hot = sums.iter().take(MOST).map(|(at, sum)| {
            let (path, cause) = name(sum.node, sum.cause);
            HotExtent {
                lba: at * EXTENT,
                blocks: EXTENT,
                block_writes: sum.writes,
                written_blocks: sum.blocks,
                path,
                cause,
            }
        });
        (overwrites, hot.collect())
    }

    fn hottest(&self) -> Vec<Hottest> {
        let mut counts: Vec<u32> = self.blocks.values().map(|block| block.writes).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all: u64 = counts.iter().copied().map(u64::from).sum();
        let shares = [0.01, 0.05, 0.1, 0.2, 0.5].into_iter();
        let shares = shares.filter_map(|share| {
            let most = (share * counts.len() as f64) as usize;
            let writes: u64 = counts[..most].iter().copied().map(u64::from).sum();
            (most > 0).then(|| Hottest {
                blocks: share,
                writes: writes as f64 / all as f64,
            })
        });
        shares.collect()
    }
}

/// The blocks of some extents.
fn each(extents: &[Extent]) -> impl Iterator<Item = u64> {
    let ends = |e: &Extent| (e.lba, e.lba.saturating_add(e.blocks));
    extents.iter().map(ends).flat_map(|(begin, end)| begin..end)
}
