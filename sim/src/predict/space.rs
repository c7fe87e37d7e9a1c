//! How much space each page layout takes, predicted from a sample of keys: "which layout suits my
//! keys?", without building a tree.
//!
//! What a leaf holds follows from the keys *around* it: how much they share, how near each other
//! they are, in which order they came. So a sample of single keys would not do, and the sample is
//! one of key ranges, each whole:
//!
//! ```text
//!   all keys, in order   |----------------------------------------------------------------------|
//!   some ranges                |-----|            |----|             |------|        |-----|
//!   in each: keys as they came, first to last; leaves grown from them (module `leaf`)
//!   bytes per record = page bytes x mean over the ranges of (leaves / records)
//! ```
//!
//! *Where the ranges are cut.* All leaves of a tree of random inserts split at about the same time,
//! so records per leaf go up and down by tens of per cent as it grows (the *growth wave*), and a
//! range must be at the phase that the tree is at. A tree halves its key space again and again,
//! each time at the median of the page that is full, of `m` records that chance put there: at a
//! share `Beta(m/2, m/2)` of the range's keys, of which the variance is `1 / (4 (m + 1))` (order
//! statistics of uniform numbers), moved to where the separator is short (B-Trees Are Back §2). The
//! cuts are such halvings, each followed into the side where a random record is; so each record is
//! as likely to be in the sample, and a range's own ratio counts without a weight (Hansen and
//! Hurwitz, *On the theory of sampling from finite populations*, Ann. Math. Stat. 1943).
//!
//! Many cuts are drawn and only some ranges taken, evenly from the smallest to the largest: what a
//! range holds depends most on its size, of which the distribution costs nothing.
//!
//! *Edges.* A fence is there once a page with keys on both of its sides is full, so the range has
//! it from the beginning only if keys beyond it came no later than its own; with ascending keys the
//! page that fills is the rightmost one, and none of its keys' bytes are left out. The last leaf of
//! a range is left out if its records end only because the range does.
//!
//! The ranks of some keys must be known; here all keys are sorted for that. With a share of 1 there
//! is nothing to sample: what comes out is exact, but for updates and deletes (see
//! [`super::leaf`]).

use std::collections::BTreeMap;
use std::ops::Range;

use treering_engine::node::{ENVELOPE_BYTES, LayoutChoice, PageLayout};
use treering_traces::{Op, OpKind, OpSource, TraceError};

pub use super::grow::PartitionSplit;
use super::grow::common_prefix;
use super::leaf::LeafLevel;
use super::workload::{Span, Workload};
use crate::ssd::gc::SplitMix;

/// Full pages of records that a range has, or more: so many that whole pages of it could not be
/// dense, else it would not be split in halves.
const LEAST_PAGES: usize = 8;
/// Most ranges of a sample.
const RANGES: usize = 1024;
/// Ranges that are cut for each that is taken.
const DRAWN: usize = 32;
/// What a slot takes, more or less: cuts are where a tree's might be, whatever its layout.
const SLOT_BYTES: f64 = 10.0;

/// Some key ranges with the records in them, in the order in which they came.
#[derive(Debug)]
pub struct KeySample {
    parts: Vec<Part>,
    node_bytes: usize,
    records: usize,
}

#[derive(Debug)]
struct Part {
    workload: Workload,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    /// Whether more keys are above, none of which came before most of these.
    open: bool,
}

/// The records of a part as operations.
struct Puts<'a, K> {
    records: &'a [(K, u32)],
    /// Indices into them.
    which: std::slice::Iter<'a, u32>,
}

impl<K: AsRef<[u8]>> OpSource for Puts<'_, K> {
    fn next_op(&mut self, op: &mut Op) -> Result<bool, TraceError> {
        let Some(&index) = self.which.next() else {
            return Ok(false);
        };
        let (key, value_len) = &self.records[index as usize];
        op.kind = OpKind::Put;
        op.key.clear();
        op.key.extend_from_slice(key.as_ref());
        op.value_len = *value_len;
        Ok(true)
    }
}

impl KeySample {
    /// A `share` (1: all) of `records`, which are keys and lengths of values in the order in which
    /// they were put, for pages of `node_bytes` bytes without their envelopes. Of a key that comes
    /// twice the last value counts. The sample is larger than asked for where that were less than a
    /// range.
    ///
    /// # Errors
    /// None today: records in memory can be read. What [`Workload::analyze`] says of its source.
    pub fn draw<K: AsRef<[u8]>>(
        records: &[(K, u32)],
        node_bytes: usize,
        share: f64,
        seed: u64,
    ) -> Result<KeySample, TraceError> {
        let cuts = Cuts::new(records, node_bytes, share, seed);
        let mut parts = Vec::new();
        for range in cuts.ranges() {
            let (below, above) = cuts.come_first(&range);
            let mut which = cuts.puts(range.clone()).to_vec();
            // In the order in which they came.
            which.sort_unstable();
            let mut puts = Puts {
                records,
                which: which.iter(),
            };
            let span = Span {
                memory_bytes: usize::MAX,
                ..Span::after(0)
            };
            parts.push(Part {
                workload: Workload::analyze(&mut puts, span)?,
                lower: match below {
                    true => cuts.separator(range.start),
                    false => Vec::new(),
                },
                upper: above.then(|| cuts.separator(range.end)),
                open: !above && range.end < cuts.starts.len(),
            });
        }
        let count = cuts.starts.len();
        Ok(KeySample {
            parts,
            node_bytes,
            records: count,
        })
    }

    /// Records of which this is a sample: distinct keys.
    #[must_use]
    pub fn records(&self) -> usize {
        self.records
    }

    /// Records in the sample.
    #[must_use]
    pub fn sampled_records(&self) -> usize {
        let keys = self.parts.iter().map(|part| part.workload.sampled_keys());
        keys.sum()
    }

    /// What the leaves of these records take if they are laid out so.
    #[must_use]
    pub fn forecast(&self, choice: LayoutChoice) -> Forecast {
        self.forecast_with(choice, PartitionSplit::default())
    }

    /// As [`KeySample::forecast`], of a tree that splits partitions off elsewhere.
    #[must_use]
    pub fn forecast_with(&self, choice: LayoutChoice, partitions: PartitionSplit) -> Forecast {
        let mut forecast = Forecast {
            node_bytes: self.node_bytes,
            records: self.records as f64,
            leaves: 0.0,
            kinds: BTreeMap::new(),
        };
        let page_size = self.node_bytes + ENVELOPE_BYTES;
        for part in &self.parts {
            let fences = (&part.lower[..], part.upper.as_deref());
            let level =
                LeafLevel::grow_between(&part.workload, page_size, (choice, partitions), fences);
            let mut leaves = &level.leaves[..];
            if part.open && leaves.len() > 1 {
                leaves = &leaves[..leaves.len() - 1];
            }
            let records: f64 = leaves.iter().map(|leaf| f64::from(leaf.records)).sum();
            let weight = self.records as f64 / self.parts.len() as f64 / records.max(1.0);
            forecast.leaves += leaves.len() as f64 * weight;
            for leaf in leaves {
                let kind = forecast.kinds.entry(leaf.layout.name()).or_default();
                kind.leaves += weight;
                kind.records += f64::from(leaf.records) * weight;
            }
        }
        forecast
    }
}

/// Where a sample's ranges begin and end, in ranks.
struct Cuts<'a, K> {
    records: &'a [(K, u32)],
    /// Indices of records in key order.
    sorted: Vec<u32>,
    /// Where in `sorted` the puts of each key begin.
    starts: Vec<u32>,
    /// Records that a full page has, more or less.
    page_records: f64,
    share: f64,
    seed: u64,
}

impl<'a, K: AsRef<[u8]>> Cuts<'a, K> {
    fn new(records: &'a [(K, u32)], node_bytes: usize, share: f64, seed: u64) -> Self {
        let key = |index: u32| records[index as usize].0.as_ref();
        let mut sorted: Vec<u32> = (0..records.len() as u32).collect();
        sorted.sort_unstable_by(|a, b| key(*a).cmp(key(*b)));
        let begins = |at: &u32| {
            let at = *at as usize;
            at == 0 || key(sorted[at - 1]) != key(sorted[at])
        };
        let starts = (0..records.len() as u32).filter(begins).collect();
        let bytes: f64 = (records.iter())
            .map(|(key, value)| SLOT_BYTES + key.as_ref().len() as f64 + f64::from(*value))
            .sum();
        let mean = bytes / records.len().max(1) as f64;
        Cuts {
            records,
            sorted,
            starts,
            page_records: (node_bytes as f64 / mean).max(2.0),
            share,
            seed,
        }
    }

    fn key(&self, rank: usize) -> &[u8] {
        let first = self.sorted[self.starts[rank] as usize];
        self.records[first as usize].0.as_ref()
    }

    /// Index of the first put of a key.
    fn first_put(&self, rank: usize) -> u32 {
        let puts = self.puts(rank..rank + 1).iter();
        puts.copied().min().unwrap_or(u32::MAX)
    }

    /// Indices of the puts of these keys.
    fn puts(&self, ranks: Range<usize>) -> &[u32] {
        let at = |rank: usize| {
            self.starts
                .get(rank)
                .map_or(self.sorted.len(), |at| *at as usize)
        };
        &self.sorted[at(ranks.start)..at(ranks.end)]
    }

    /// The shortest string above the key before this one and not above it; nothing at the
    /// beginning.
    fn separator(&self, rank: usize) -> Vec<u8> {
        if rank == 0 {
            return Vec::new();
        }
        let key = self.key(rank);
        let shared = common_prefix(self.key(rank - 1), key);
        key[..(shared + 1).min(key.len())].to_vec()
    }

    fn ranges(&self) -> Vec<Range<usize>> {
        let count = self.starts.len();
        let wanted = (count as f64 * self.share).ceil() as usize;
        let least = LEAST_PAGES * self.page_records.ceil() as usize;
        let size = (wanted / RANGES).max(least);
        if wanted >= count || size >= count {
            return std::iter::once(0..count).collect();
        }
        let mut random = SplitMix(self.seed);
        let taken = wanted.div_ceil(size);
        let mut drawn: Vec<_> = (0..taken * DRAWN)
            .map(|_| {
                let record = random.below(count as u64) as usize;
                self.around(record, size, &mut random)
            })
            .collect();
        drawn.sort_by_key(|range| (range.len(), range.start));
        let middles = drawn.into_iter().skip(DRAWN / 2);
        middles.step_by(DRAWN).collect()
    }

    /// Whether there are keys below and above of which as many as make a page split had come when
    /// most of the range's own had not.
    fn come_first(&self, range: &Range<usize>) -> (bool, bool) {
        let half = (self.page_records / 2.0).ceil() as usize;
        // When the one of this rank in time came, of the first puts of some keys.
        let time = |ranks: Range<usize>, nth: usize| {
            let mut times: Vec<u32> = ranks.map(|rank| self.first_put(rank)).collect();
            let last = times.len().checked_sub(1)?;
            let (_, time, _) = times.select_nth_unstable(nth.min(last));
            Some(*time)
        };
        let most = time(range.clone(), range.len() / 2);
        let before = |ranks: Range<usize>| time(ranks, half) < most;
        let below = range.start.saturating_sub(range.len())..range.start;
        let above = range.end..(range.end + range.len()).min(self.starts.len());
        (
            !below.is_empty() && before(below),
            !above.is_empty() && before(above),
        )
    }

    /// The range with this record that halving comes to when it is no larger than `size` or hardly
    /// so.
    fn around(&self, record: usize, size: usize, random: &mut SplitMix) -> Range<usize> {
        let mut range = 0..self.starts.len();
        while range.len() as f64 > size as f64 * std::f64::consts::SQRT_2 {
            let cut = self.cut(&range, random);
            if record < cut {
                range.end = cut;
            } else {
                range.start = cut;
            }
        }
        range
    }

    /// Where a page with keys of the range may be split.
    fn cut(&self, range: &Range<usize>, random: &mut SplitMix) -> usize {
        let deviation = 0.5 / (self.page_records + 1.0).sqrt();
        let share = (0.5 + deviation * normal(random)).clamp(0.1, 0.9);
        let len = range.len() as f64;
        let middle = range.start + (share * len) as usize;
        // Of the keys around the median, which are a sixteenth of the page's, the first where the
        // separator is short.
        let window = (len / 32.0) as usize;
        let (first, last) = (middle - window, middle + window);
        let shared = common_prefix(self.key(first), self.key(last));
        let lowest = self.key(first).get(shared).copied();
        let (mut low, mut high) = (first, last);
        while low < high {
            let rank = low + (high - low) / 2;
            if self.key(rank).get(shared).copied() == lowest {
                low = rank + 1;
            } else {
                high = rank;
            }
        }
        low.clamp(range.start + 1, range.end - 1)
    }
}

/// A normal deviate (Box and Muller).
fn normal(random: &mut SplitMix) -> f64 {
    let mut uniform = || (random.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (radius, angle) = (
        (-2.0 * uniform().ln()).sqrt(),
        std::f64::consts::TAU * uniform(),
    );
    radius * angle.cos()
}

/// Leaves of one layout, as they are predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// How many leaves.
    pub leaves: f64,
    /// Records in them.
    pub records: f64,
}

/// What the leaves of a tree take, as it is predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Bytes of a node, its envelope aside.
    pub node_bytes: usize,
    /// Number of leaves.
    pub leaves: f64,
    /// Number of records.
    pub records: f64,
    /// Leaves by layout.
    pub kinds: BTreeMap<&'static str, Share>,
}

impl Forecast {
    /// Records in a leaf on average.
    #[must_use]
    pub fn records_per_leaf(&self) -> f64 {
        self.records / self.leaves.max(1.0)
    }

    /// Bytes of leaves for each record.
    #[must_use]
    pub fn bytes_per_record(&self) -> f64 {
        self.node_bytes as f64 * self.leaves / self.records.max(1.0)
    }

    /// Share of the leaves that have this layout.
    #[must_use]
    pub fn share_of(&self, layout: PageLayout) -> f64 {
        let kind = self.kinds.get(layout.name()).copied().unwrap_or_default();
        kind.leaves / self.leaves.max(1.0)
    }

    /// Share of the leaves that are dense.
    #[must_use]
    pub fn dense(&self) -> f64 {
        let shares = PageLayout::DENSE.map(|layout| self.share_of(layout));
        shares.iter().sum()
    }
}
