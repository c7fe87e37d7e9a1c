//! Predicts from a sample of keys how much space each page layout takes. It answers "which layout
//! suits my keys?" without building a tree.
//!
//! How many records fit a leaf depends on the keys *around* it: the bytes they share, how close
//! they are, in which order they came. So a sample of single keys does not suffice. This module
//! samples whole key ranges:
//!
//! ```text
//!   all keys, in order   |----------------------------------------------------------------------|
//!   some ranges                |-----|            |----|             |------|        |-----|
//!   in each: keys as they came, first to last; leaves grown from them (module `leaf`)
//!   bytes per record = page bytes x mean over the ranges of (leaves / records)
//! ```
//!
//! *Where the ranges are cut.* All leaves of a tree of random inserts split at about the same time.
//! So the number of records per leaf rises and falls by tens of per cent as the tree grows (the
//! *growth wave*), and a range must be in the same phase as the tree. A tree halves its key space
//! again and again, each time at the median of a full page. The `m` records of that page are there
//! by chance, so the median falls at a share `Beta(m/2, m/2)` of the range's keys, with variance
//! `1 / (4 (m + 1))` (order statistics of uniform numbers). It is then moved to where the separator
//! is short (B-Trees Are Back §2). The cuts of the sample are such halvings; each follows the side
//! with a randomly chosen record. So every record is equally likely to be in the sample, and the
//! ratios of ranges are averaged without weights (Hansen and Hurwitz, *On the theory of sampling
//! from finite populations*, Ann. Math. Stat. 1943).
//!
//! Many cuts are drawn and only some of the ranges are used, evenly from the smallest to the
//! largest. The result depends most on the size of a range, and drawing more sizes costs nothing.
//!
//! *Edges.* A fence comes into being once a page with keys on both of its sides is full. So a range
//! has its fence from the beginning only if the keys beyond it came no later than its own. With
//! ascending keys the rightmost page fills up, so its keys have no common prefix to leave out. The
//! last leaf of a range is ignored if it ends only because the range does.
//!
//! The ranks of some keys must be known; to find them, all keys are sorted. With a share of 1
//! nothing is sampled, and the result is exact except for updates and deletes (see
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

/// Minimum size of a range, in full pages of records. Ranges are split in halves as if no page were
/// dense; with so many pages, whole pages would be too large to be.
const LEAST_PAGES: usize = 8;
/// Maximum number of ranges in a sample.
const RANGES: usize = 1024;
/// Number of ranges drawn for each range used.
const DRAWN: usize = 32;
/// Approximate bytes of a slot. Cuts are where a tree's might be, whatever its layout.
const SLOT_BYTES: f64 = 10.0;

/// A sample of key ranges with their records in the order in which they came.
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
    /// Whether there are more keys above, none of which came before most of these.
    open: bool,
}

/// Presents some of the records as put operations.
struct Puts<'a, K> {
    records: &'a [(K, u32)],
    /// Indices of the records.
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
    /// Draws a sample of `records` for pages of `node_bytes` bytes (without envelopes). A record is
    /// a key and the length of its value, in the order in which they were put. `share` is the part
    /// of the records to sample; 1 means all. If a key is put twice, the last value counts. The
    /// sample has at least one range, even if that is more than the share.
    ///
    /// # Errors
    /// Fails as [`Workload::analyze`] does. Records in memory can be read, so today it never fails.
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

    /// Number of distinct keys in the data set that was sampled.
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

    /// Predicts the leaves of all records for a layout.
    #[must_use]
    pub fn forecast(&self, choice: LayoutChoice) -> Forecast {
        self.forecast_with(choice, PartitionSplit::default())
    }

    /// As [`KeySample::forecast`], for a tree with another way to split off partitions.
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

/// Chooses where the ranges of a sample begin and end, in ranks.
struct Cuts<'a, K> {
    records: &'a [(K, u32)],
    /// Indices of records in key order.
    sorted: Vec<u32>,
    /// For each key, where its puts begin in `sorted`.
    starts: Vec<u32>,
    /// Approximate number of records in a full page.
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

    /// Indices of the puts of the keys with these ranks.
    fn puts(&self, ranks: Range<usize>) -> &[u32] {
        let at = |rank: usize| {
            self.starts
                .get(rank)
                .map_or(self.sorted.len(), |at| *at as usize)
        };
        &self.sorted[at(ranks.start)..at(ranks.end)]
    }

    /// The shortest string that is above the previous key and not above this one. Empty for the
    /// first key.
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

    /// Whether the fences below and above the range existed early. That is so if enough keys on the
    /// other side to split a page had come before half of the range's own keys.
    fn come_first(&self, range: &Range<usize>) -> (bool, bool) {
        let half = (self.page_records / 2.0).ceil() as usize;
        // The time of the `nth` first put among the keys of these ranks.
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

    /// Halves the key space until the part with this record is no larger than about `size`.
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

    /// Picks a rank at which a page with keys of the range may be split.
    fn cut(&self, range: &Range<usize>, random: &mut SplitMix) -> usize {
        let deviation = 0.5 / (self.page_records + 1.0).sqrt();
        let share = (0.5 + deviation * normal(random)).clamp(0.1, 0.9);
        let len = range.len() as f64;
        let middle = range.start + (share * len) as usize;
        // Considers the keys around the median, a sixteenth of the range, and picks the first with
        // a short separator.
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

/// A normally distributed random number (Box and Muller).
fn normal(random: &mut SplitMix) -> f64 {
    let mut uniform = || (random.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (radius, angle) = (
        (-2.0 * uniform().ln()).sqrt(),
        std::f64::consts::TAU * uniform(),
    );
    radius * angle.cos()
}

/// Predicted leaves of one layout.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Number of leaves.
    pub leaves: f64,
    /// Number of records in them.
    pub records: f64,
}

/// The predicted leaf level of a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Bytes of a node without its envelope.
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

    /// Bytes of leaves per record.
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
