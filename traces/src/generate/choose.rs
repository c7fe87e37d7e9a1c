//! Which record an operation goes to.

use super::mixgraph::KeyRanges;
use super::params::{GenParams, Order, Workload};
use super::permute::Permutation;
use super::random::{Random, derive};
use super::zipf::Zipf;

/// Age and place: record `id` is the id-th to come into being; its position is its rank in key order.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// `None`: ids ascend with keys.
    order: Option<Permutation>,
}

impl Places {
    pub(crate) fn new(params: &GenParams, positions: u64) -> Self {
        let order = match params.order {
            Order::Random => Some(Permutation::new(positions, derive(params.seed, 3))),
            Order::Sorted => None,
        };
        Places { order }
    }

    #[inline]
    pub(crate) fn position(&self, id: u64) -> u64 {
        match &self.order {
            Some(order) => order.apply(id),
            None => id,
        }
    }
}

/// A law of popularity. Laws without inserts choose positions directly; those with inserts choose ids.
#[derive(Clone, Debug)]
pub(crate) enum Chooser {
    /// All positions alike.
    Uniform { records: u64 },
    /// Zipf ranks, scrambled over the positions.
    Scrambled { zipf: Zipf, scramble: Permutation },
    /// Zipf ranks, scrambled over all ids that will ever be; those not there yet are drawn again, as YCSB does.
    Growing { zipf: Zipf, scramble: Permutation },
    /// Zipf ranks counted back from the newest id.
    Latest { zipf: Zipf },
    /// `hot` of the scrambled positions get `share` (of 2^64) of the operations.
    Hotspot {
        records: u64,
        hot: u64,
        share: f64,
        scramble: Permutation,
    },
    /// One position after the other.
    Sequential { records: u64, next: u64 },
    /// Key ranges and power laws.
    Mixgraph(KeyRanges),
}

impl Chooser {
    pub(crate) fn new(params: &GenParams, positions: u64) -> Self {
        use Workload::*;
        let records = params.records;
        let theta = params.exponent();
        let scramble = |n| Permutation::new(n, derive(params.seed, 4));
        match params.workload {
            YcsbA | YcsbB | YcsbC | YcsbF | Zipf => Chooser::Scrambled {
                zipf: super::zipf::Zipf::new(records, theta),
                scramble: scramble(records),
            },
            YcsbE => Chooser::Growing {
                zipf: super::zipf::Zipf::new(positions, theta),
                scramble: scramble(positions),
            },
            YcsbD | Latest => Chooser::Latest {
                zipf: super::zipf::Zipf::new(records, theta),
            },
            Hotspot => Chooser::Hotspot {
                records,
                hot: (libm::round(params.hot_keys.unwrap_or(0.2) * records as f64) as u64)
                    .min(records),
                share: params.hot_ops.unwrap_or(0.8),
                scramble: scramble(records),
            },
            Mixgraph => Chooser::Mixgraph(KeyRanges::new(&params.mixgraph, records, params.seed)),
            Sequential => Chooser::Sequential { records, next: 0 },
            Uniform | Load => Chooser::Uniform { records },
        }
    }

    /// A position among those that exist: ids below `present`.
    #[inline]
    pub(crate) fn choose(&mut self, random: &mut Random, present: u64, places: &Places) -> u64 {
        match self {
            Chooser::Uniform { records } => random.below(*records),
            Chooser::Scrambled { zipf, scramble } => scramble.apply(zipf.sample(random)),
            Chooser::Growing { zipf, scramble } => {
                // The odds that all redraws miss are slim unless inserts outnumber the records; then any record serves.
                for _ in 0..64 {
                    let id = scramble.apply(zipf.sample(random));
                    if id < present {
                        return places.position(id);
                    }
                }
                places.position(random.below(present))
            }
            Chooser::Latest { zipf } => places.position(present - 1 - zipf.sample(random)),
            Chooser::Hotspot {
                records,
                hot,
                share,
                scramble,
            } => {
                let is_hot = random.unit() < *share;
                let cold = *records - *hot;
                // With no hot (or no cold) records everything falls to the others.
                let rank = if (is_hot && *hot > 0) || cold == 0 {
                    random.below(*hot)
                } else {
                    *hot + random.below(cold)
                };
                scramble.apply(rank)
            }
            Chooser::Sequential { records, next } => {
                let position = *next;
                *next = if position + 1 == *records {
                    0
                } else {
                    position + 1
                };
                position
            }
            Chooser::Mixgraph(ranges) => ranges.sample(random),
        }
    }

    /// One more record is present.
    pub(crate) fn grow(&mut self, present: u64) {
        if let Chooser::Latest { zipf } = self {
            zipf.resize(present);
        }
    }
}
