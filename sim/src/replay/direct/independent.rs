//! Predicts the drive from the popularity of records alone: writes are taken for independent
//! draws, and garbage collection is that of the closed forms ([`crate::predict::device`]).
//!
//! Records that are written equally often are a kind of block. *Ignored*: the order of writes, and
//! that deleted records take no space.

use std::collections::BTreeMap;

use treering_engine::BLOCK_SIZE;

use crate::predict::device::{self, Traffic};
use crate::predict::{Before, DeviceParams};

/// Writes of each record in the measured part.
pub(super) struct Popularity {
    /// By rank: whether the record was ever put, and how often it was put when measured.
    puts: Vec<Option<u32>>,
    /// Flash bytes of the measured writes, and their number.
    stored: u64,
    writes: u64,
}

/// What the closed forms say, in bytes of the measured part.
pub(super) struct Closed {
    pub(super) host_bytes: f64,
    pub(super) gc_bytes: f64,
}

impl Popularity {
    pub(super) fn new(records: usize) -> Popularity {
        Popularity {
            puts: vec![None; records],
            stored: 0,
            writes: 0,
        }
    }

    /// A record of blocks that take these bytes of flash is put.
    pub(super) fn put(&mut self, rank: usize, stored: impl Iterator<Item = u16>) {
        let count = self.puts[rank].get_or_insert(0);
        *count += 1;
        for bytes in stored {
            self.stored += u64::from(bytes);
            self.writes += 1;
        }
    }

    /// Forgets the counts of the warm-up.
    pub(super) fn begin_measured(&mut self) {
        self.puts.iter_mut().flatten().for_each(|count| *count = 0);
        (self.stored, self.writes) = (0, 0);
    }

    /// The prediction for a drive; `blocks` says how many blocks the record of a rank takes.
    pub(super) fn predict(&self, params: &DeviceParams, blocks: impl Fn(usize) -> u64) -> Closed {
        let mut kinds: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (rank, count) in self.puts.iter().enumerate() {
            if let Some(count) = count {
                let (of_kind, writes) = kinds.entry(*count).or_default();
                *of_kind += blocks(rank);
                *writes += blocks(rank) * u64::from(*count);
            }
        }
        // Flash pages that a block takes.
        let size = self.stored as f64 / (self.writes as f64).max(1.0) / BLOCK_SIZE as f64;
        // Values that are shorter than the longest of their record take fewer blocks.
        let all: u64 = kinds.values().map(|(_, writes)| writes).sum();
        let share = self.writes as f64 / (all as f64).max(1.0);
        let mut traffic = Traffic::default();
        let mut data = 0.0;
        for (of_kind, writes) in kinds.into_values() {
            traffic.add(of_kind as f64 * size, writes as f64 * share * size);
            data += of_kind as f64;
        }
        let idle = (params.capacity_blocks as f64 - data).max(0.0) * params.before_block;
        match params.before {
            Before::Nothing => {}
            Before::InOrder => traffic.settled = idle,
            Before::Scattered => traffic.add(idle, 0.0),
        }
        let packed = DeviceParams {
            pages_per_block: (f64::from(params.pages_per_block) / size.max(1e-3)) as u32,
            ..*params
        };
        let wa = device::predict(&packed, &traffic, 1.0);
        Closed {
            host_bytes: self.stored as f64,
            gc_bytes: wa.gc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::{Cleaning, ftl};

    #[test]
    fn uniform_writes_are_cleaned_as_the_closed_form_says() {
        let params = DeviceParams {
            capacity_blocks: 10_000,
            physical_pages: 12_000.0,
            pages_per_block: 64,
            before: Before::Nothing,
            before_block: 1.0,
            cleaning: Cleaning::Greedy,
            compression: None,
            flash: None,
        };
        let mut popularity = Popularity::new(10_000);
        for _ in 0..3 {
            (0..10_000).for_each(|rank| popularity.put(rank, [BLOCK_SIZE as u16].into_iter()));
        }
        let closed = popularity.predict(&params, |_| 1);
        let found = 1.0 + closed.gc_bytes / closed.host_bytes;
        let expected = ftl::greedy(1.2, 64);
        assert!(
            (found / expected - 1.0).abs() < 1e-3,
            "{found}, not {expected}"
        );
    }
}
