//! Draws a sequence of visits with the key counts of the trace, in random order.
//!
//! Keys are drawn without replacement. If the counts served as probabilities, a key that was
//! visited once would be drawn as if it came back, and be found in the cache
//! ([`crate::predict::cache`], "Finite traces").

use super::model::Key;
use super::{LEAST_RING, MOST_VISITS, Setting};
use crate::predict::leaf::LeafLevel;
use crate::predict::workload::{NEVER, Workload};

/// The fixed seed, so that every run has the same order.
const SEED: u64 = 0x5eed_0bf7_1ee5_eed5;

/// The kind of a visit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    /// A put or a delete.
    Put,
    /// A scan reads the leaf even if the mini-page has the records (§5.3).
    Scan,
}

/// One visit.
#[derive(Clone, Copy)]
pub(super) struct Visit {
    /// Index in [`Visits::keys`].
    pub(super) key: u32,
    pub(super) kind: Kind,
}

/// Properties of a leaf that the model needs.
#[derive(Clone, Copy)]
pub(super) struct LeafSize {
    /// Free bytes.
    pub(super) free: u32,
    /// Its range in [`Visits::keys`].
    pub(super) keys: (u32, u32),
}

/// All visits, in order.
pub(super) struct Visits {
    pub(super) keys: Vec<Key>,
    pub(super) leaves: Vec<LeafSize>,
    /// First puts, in order, and then the other visits of the warm-up.
    pub(super) before: Vec<Visit>,
    /// Number of first puts in `before`.
    pub(super) first_puts: usize,
    pub(super) measured: Vec<Visit>,
    /// Number of the tree's leaves that one of `leaves` represents.
    pub(super) weight: f64,
}

impl Visits {
    /// Builds the visits to `level`.
    pub(super) fn of(workload: &Workload, level: &LeafLevel, setting: Setting<'_>) -> Visits {
        let all = workload.warmup.all_ops() + workload.measured.all_ops();
        let mut apart = 1usize;
        let part = |all: u64, apart: usize| (all as f64 / level.weight) as u64 / apart as u64;
        while part(all, apart) > MOST_VISITS && part(setting.shape.ring, 2 * apart) >= LEAST_RING {
            apart *= 2;
        }
        let mut visits = Visits {
            keys: Vec::new(),
            leaves: Vec::new(),
            before: Vec::new(),
            first_puts: 0,
            measured: Vec::new(),
            weight: level.weight * apart as f64,
        };
        let shape = setting.shape;
        let (mut first_puts, mut again) = (Vec::new(), Vec::new());
        for (i, leaf) in level.leaves.iter().enumerate().step_by(apart) {
            let end = (level.starts.get(i + 1)).map_or(level.order.len(), |at| *at as usize);
            let keys = &level.order[level.starts[i] as usize..end];
            for (rank, &key) in keys.iter().enumerate() {
                let stats = workload.keys.get(key);
                let index = visits.keys.len() as u32;
                let value = workload.stored_len(key, setting.page_size) as u32;
                let record = u32::from(stats.key_len) + value;
                visits.keys.push(Key {
                    leaf: visits.leaves.len() as u32,
                    rank: rank as u32,
                    bytes: shape.mini_slot as u32 + record,
                    growth: shape.leaf_slot as u32 + record,
                });
                let scans = workload.keys.scans(key);
                let add = |list: &mut Vec<Visit>, count, kind| {
                    list.extend((0..count).map(|_| Visit { key: index, kind }));
                };
                add(&mut visits.measured, stats.reads - scans, Kind::Get);
                add(&mut visits.measured, stats.writes, Kind::Put);
                add(&mut again, stats.warmup_reads, Kind::Get);
                add(&mut again, stats.warmup_writes, Kind::Put);
                if rank == 0 {
                    add(&mut visits.measured, leaf.scans.round() as u32, Kind::Scan);
                }
                let loaded = u64::from(stats.first_put) * workload.tick < workload.warmup.all_ops();
                if stats.first_put != NEVER && loaded {
                    let put = Visit {
                        key: index,
                        kind: Kind::Put,
                    };
                    first_puts.push((stats.first_put, put));
                }
            }
            let end = visits.keys.len() as u32;
            visits.leaves.push(LeafSize {
                keys: (end - keys.len() as u32, end),
                free: (setting.page_size as u32).saturating_sub(leaf.used_bytes),
            });
        }
        first_puts.sort_unstable_by_key(|(time, _)| *time);
        visits.before = first_puts.into_iter().map(|(_, visit)| visit).collect();
        visits.first_puts = visits.before.len();
        visits.before.extend(again);
        visits
    }

    /// Number of visits.
    pub(super) fn len(&self) -> u64 {
        (self.before.len() + self.measured.len()) as u64
    }

    /// Shuffles the visits. The warm-up and the measured part are shuffled separately.
    pub(super) fn shuffle(&mut self, order: u64) {
        let mut random = SplitMix(SEED ^ order);
        random.shuffle(&mut self.before[self.first_puts..]);
        random.shuffle(&mut self.measured);
    }
}

/// The generator of Steele, Lea, Flood, OOPSLA 2014.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        ((u128::from(word) * bound as u128) >> 64) as usize
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i + 1));
        }
    }
}
