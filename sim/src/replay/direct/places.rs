//! Where the records of a trace lie on the drive.
//!
//! The keys of the trace, in their order, get blocks one after another: each as many as its longest
//! value needs, which is one for the blocks of a block trace. So neighbours stay neighbours, and
//! addresses that the trace never touches take no space. A key that is never put has no blocks,
//! except in a block trace, where every block exists.
//!
//! Memory: the keys while they are sorted, then 24 bytes a key.

use rustc_hash::FxHashMap;
use treering_engine::BLOCK_SIZE;
use treering_traces::{Op, OpKind};
use xxhash_rust::xxh3::xxh3_64;

use crate::replay::config::ReplayConfig;
use crate::replay::error::ReplayError;
use crate::replay::look::Looked;
use crate::replay::source::{Next, Source};

/// The blocks of every key.
#[derive(Debug, Default)]
pub(in crate::replay) struct Places {
    /// Rank of each key, by the hash of the key.
    ranks: FxHashMap<u64, u32>,
    /// First block of each key, by rank, and the number of all blocks.
    starts: Vec<u64>,
}

impl Places {
    /// Finds all keys of the trace, and of the records loaded before it.
    pub(in crate::replay) fn find(
        config: &ReplayConfig,
        looked: &Looked,
    ) -> Result<Places, ReplayError> {
        let mut source = Source::open(config, looked)?;
        let least = u32::from(looked.header.addresses);
        let mut keys: FxHashMap<Box<[u8]>, u32> = FxHashMap::default();
        let mut op = Op::default();
        loop {
            match source.next(&mut op)? {
                Next::Over => break,
                Next::Skip => continue,
                Next::Op => {}
            }
            let needed = match op.kind {
                OpKind::Put => blocks_of(op.value_len as usize) as u32,
                OpKind::Get | OpKind::Delete | OpKind::Scan => least,
            };
            match keys.get_mut(&op.key[..]) {
                Some(blocks) => *blocks = needed.max(*blocks),
                None => drop(keys.insert(op.key.clone().into(), needed)),
            }
        }
        let mut keys: Vec<_> = keys.into_iter().collect();
        keys.sort_unstable();
        let mut places = Places::default();
        let mut next = 0;
        for (rank, (key, blocks)) in (0..).zip(&keys) {
            places.ranks.insert(xxh3_64(key), rank);
            places.starts.push(next);
            next += u64::from(*blocks);
        }
        places.starts.push(next);
        Ok(places)
    }

    /// Number of keys.
    pub(super) fn records(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Number of blocks of all keys.
    pub(super) fn blocks(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Rank of a key of the trace.
    pub(super) fn rank(&self, key: &[u8]) -> Option<usize> {
        self.ranks.get(&xxh3_64(key)).map(|&rank| rank as usize)
    }

    /// The blocks of the key with this rank; `None` behind the last.
    pub(super) fn of(&self, rank: usize) -> Option<std::ops::Range<u64>> {
        Some(*self.starts.get(rank)?..*self.starts.get(rank + 1)?)
    }
}

/// Number of blocks that a value takes.
pub(super) fn blocks_of(value_len: usize) -> u64 {
    value_len.div_ceil(BLOCK_SIZE).max(1) as u64
}
