//! Chooses the record of an operation.

use super::mixgraph::KeyRanges;
use super::params::{GenParams, Order, Workload};
use super::permute::Permutation;
use super::random::{Random, derive};
use super::zipf::Zipf;

/// Maps a record's age to its place: the position of record `id`, the id-th to be created, is its
/// rank in key order.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// `None` if ids ascend with keys.
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

/// Number of records drawn at a time.
const BATCH: usize = 64;

/// Draws records by a law of popularity.
///
/// A Zipf sample has about 60 ns of floating-point *latency*, but costs half of that in a loop of
/// independent samples. So records are drawn in batches, from a random stream of their own.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    law: Law,
    drawn: Drawn,
    random: Random,
    batch: [u64; BATCH],
    next: usize,
}

/// What a drawn number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drawn {
    /// A position, for laws without inserts.
    Position,
    /// An id. If that record is not inserted yet, another id is drawn, as in YCSB.
    Id,
    /// The number of newer records.
    Age,
}

/// A law of popularity.
#[derive(Clone, Debug)]
enum Law {
    /// All records are equally popular.
    Uniform { records: u64 },
    /// Zipf ranks, scrambled by a permutation.
    Scrambled { zipf: Zipf, scramble: Permutation },
    /// Zipf ranks, unchanged.
    Ranks { zipf: Zipf },
    /// `hot` of the scrambled records get `share` of the operations.
    Hotspot {
        records: u64,
        hot: u64,
        share: f64,
        scramble: Permutation,
    },
    /// As `Hotspot`, but the hot ranks begin at a place that moves on: after `every` operations,
    /// all of them are others.
    Shifting {
        records: u64,
        hot: u64,
        share: f64,
        every: u64,
        drawn: u64,
        scramble: Permutation,
    },
    /// One record after the other.
    Sequential { records: u64, next: u64 },
    /// Key ranges and power laws.
    Mixgraph(KeyRanges),
}

impl Law {
    fn new(params: &GenParams, positions: u64) -> Self {
        let records = params.records;
        let hot = libm::round(params.hot_keys.unwrap_or(0.2) * records as f64) as u64;
        let (hot, share) = (hot.min(records), params.hot_ops.unwrap_or(0.8));
        let scramble = |n| Permutation::new(n, derive(params.seed, 4));
        let scrambled = |n| Law::Scrambled {
            zipf: Zipf::new(n, params.exponent()),
            scramble: scramble(n),
        };
        match params.workload {
            Workload::YcsbA
            | Workload::YcsbB
            | Workload::YcsbC
            | Workload::YcsbF
            | Workload::Zipf => scrambled(records),
            Workload::YcsbE => scrambled(positions),
            Workload::YcsbD | Workload::Latest => Law::Ranks {
                zipf: Zipf::new(records, params.exponent()),
            },
            Workload::Hotspot => Law::Hotspot {
                records,
                hot,
                share,
                scramble: scramble(records),
            },
            Workload::Shifting => Law::Shifting {
                records,
                hot,
                share,
                every: params.shift_operations(),
                drawn: 0,
                scramble: scramble(records),
            },
            Workload::Mixgraph => {
                Law::Mixgraph(KeyRanges::new(&params.mixgraph, records, params.seed))
            }
            Workload::Sequential => Law::Sequential { records, next: 0 },
            // A log chooses its records by itself.
            Workload::Uniform | Workload::Load | Workload::Log => Law::Uniform { records },
        }
    }

    fn fill(&mut self, random: &mut Random, present: u64, batch: &mut [u64; BATCH]) {
        match self {
            Law::Uniform { records } => batch.fill_with(|| random.below(*records)),
            // Two loops, because each is short enough for the processor to overlap its iterations.
            Law::Scrambled { zipf, scramble } => {
                batch.fill_with(|| zipf.sample(random));
                for rank in batch {
                    *rank = scramble.apply(*rank);
                }
            }
            // Records inserted during a batch join the law with the next batch. Until then its far
            // tail ends at most 63 records early.
            Law::Ranks { zipf } => {
                zipf.resize(present);
                batch.fill_with(|| zipf.sample(random));
            }
            Law::Hotspot {
                records,
                hot,
                share,
                scramble,
            } => {
                batch.fill_with(|| scramble.apply(hot_or_cold(random, *records, *hot, *share)));
            }
            Law::Shifting {
                records,
                hot,
                share,
                every,
                drawn,
                scramble,
            } => batch.fill_with(|| {
                let moved = u128::from(*drawn) * u128::from(*hot) / u128::from(*every);
                *drawn += 1;
                let rank = hot_or_cold(random, *records, *hot, *share);
                let rank = (u128::from(rank) + moved) % u128::from(*records);
                scramble.apply(rank as u64)
            }),
            Law::Sequential { records, next } => batch.fill_with(|| {
                let position = *next;
                *next = if position + 1 == *records {
                    0
                } else {
                    position + 1
                };
                position
            }),
            Law::Mixgraph(ranges) => batch.fill_with(|| ranges.sample(random)),
        }
    }
}

/// Draws a rank: with probability `share` one of the first `hot` ones, else one of the others. If
/// there are no hot (or no cold) records, all operations go to the others.
fn hot_or_cold(random: &mut Random, records: u64, hot: u64, share: f64) -> u64 {
    let cold = records - hot;
    let is_hot = random.unit() < share;
    if (is_hot && hot > 0) || cold == 0 {
        random.below(hot)
    } else {
        hot + random.below(cold)
    }
}

impl Chooser {
    pub(crate) fn new(params: &GenParams, positions: u64) -> Self {
        Chooser {
            law: Law::new(params, positions),
            drawn: match params.workload {
                Workload::YcsbD | Workload::Latest => Drawn::Age,
                Workload::YcsbE => Drawn::Id,
                _ => Drawn::Position,
            },
            random: Random::new(derive(params.seed, 5)),
            batch: [0; BATCH],
            next: BATCH,
        }
    }

    #[inline]
    fn draw(&mut self, present: u64) -> u64 {
        if self.next == BATCH {
            self.law.fill(&mut self.random, present, &mut self.batch);
            self.next = 0;
        }
        self.next += 1;
        self.batch[self.next - 1]
    }

    /// Returns the position of an existing record. Records with ids below `present` exist;
    /// `present` never decreases.
    #[inline]
    pub(crate) fn choose(&mut self, present: u64, places: &Places) -> u64 {
        match self.drawn {
            Drawn::Position => self.draw(present),
            Drawn::Age => places.position(present - 1 - self.draw(present)),
            Drawn::Id => {
                // All redraws miss only if inserts greatly outnumber the records. Then any record
                // will do.
                for _ in 0..64 {
                    let id = self.draw(present);
                    if id < present {
                        return places.position(id);
                    }
                }
                places.position(self.random.below(present))
            }
        }
    }
}
