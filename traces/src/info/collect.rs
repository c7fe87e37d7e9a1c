//! The pass over a trace that gathers all statistics.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_64;

use super::clock::Clock;
use super::count::{EXACT_KEYS, KeyCounts};
use super::kinds::{OpCounts, is_write};
use super::lives::Deaths;
use super::pages::{self, KeySample};
use super::pairs::{self, Pairs};
use super::reuse::{self, Reuse};
use super::runs::Neighbours;
use super::sizes::Sizes;
use super::steps::next_point;
use super::times::Times;
use super::together::{self, Fates};
use super::windows::{self, Windows};
use super::{Hottest, Popularity, TraceInfo, WorkingSet, fit};
use crate::import::ImportOptions;
use crate::{Blocks, Header, Op, OpKind, OpSource, TraceError};

/// With fewer keys than this, the hottest are counted as whole keys, because a share of the keys is
/// rarely a whole number.
const FEW_KEYS: u64 = 100;

/// The most clients that are counted.
const MAX_CLIENTS: usize = 1_000_000;

/// Number of operations whose keys are looked up at once.
const BATCH: usize = 64;

/// Reads a trace to its end and returns its statistics.
///
/// ```
/// use treering_traces::{generate::{GenParams, Workload, build}, info};
///
/// let (header, mut source) = build(&GenParams::new(Workload::YcsbB, 2000))?;
/// let info = info::collect(&mut *source, &header)?;
/// assert_eq!((info.ops, info.warmup_ops, info.distinct_keys), (4000, 2000, 2000));
/// assert_eq!(info.write_share, Some(0.05));
/// let theta = info.popularity.expect("keys repeat").theta;
/// assert!((theta - 0.99).abs() < 0.1);
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
///
/// # Errors
/// Those of `source`.
pub fn collect(source: &mut dyn OpSource, header: &Header) -> Result<TraceInfo, TraceError> {
    collect_with(source, header, EXACT_KEYS)
}

/// As [`collect`], and with the curve of caches of pages ([`TraceInfo::page_cache`]). `open` begins
/// the trace anew: once for the statistics, once for the curve, and once more in between above
/// 900,000 keys or 48 MiB of keys. `page_bytes` is the size of a page.
///
/// ```
/// use treering_traces::{generate::{GenParams, Workload, build}, info};
///
/// let params = GenParams::new(Workload::YcsbA, 2000);
/// let header = build(&params)?.0;
/// let info = info::collect_with_pages(&header, 4096, || Ok(build(&params)?.1))?;
/// // 24 records of 116 bytes are 69 % of a page.
/// let curve = info.page_cache.expect("there are operations");
/// assert_eq!((curve.records_per_page, curve.pages), (24, 84));
/// # Ok::<(), treering_traces::TraceError>(())
/// ```
///
/// # Errors
/// Those of `open` and of the sources. A page smaller than 512 bytes or larger than 1 MiB.
pub fn collect_with_pages<S: OpSource>(
    header: &Header,
    page_bytes: u32,
    open: impl FnMut() -> Result<S, TraceError>,
) -> Result<TraceInfo, TraceError> {
    collect_pages_with(header, page_bytes, pages::Limits::default(), open)
}

/// As [`collect_with_pages`], within other limits.
pub(super) fn collect_pages_with<S: OpSource>(
    header: &Header,
    page_bytes: u32,
    limits: pages::Limits,
    mut open: impl FnMut() -> Result<S, TraceError>,
) -> Result<TraceInfo, TraceError> {
    pages::check(page_bytes)?;
    let sample = Some(KeySample::new(limits));
    let (mut info, sample) = pass(&mut open()?, header, EXACT_KEYS, sample)?;
    if let Some(sample) = sample {
        info.page_cache = pages::curve(sample, header, page_bytes, open)?;
    }
    Ok(info)
}

/// As [`collect`], with a table of at most `exact_keys` keys.
pub(super) fn collect_with(
    source: &mut dyn OpSource,
    header: &Header,
    exact_keys: usize,
) -> Result<TraceInfo, TraceError> {
    Ok(pass(source, header, exact_keys, None)?.0)
}

/// The pass over the trace, which adds its keys to `sample`.
fn pass(
    source: &mut dyn OpSource,
    header: &Header,
    exact_keys: usize,
    sample: Option<KeySample>,
) -> Result<(TraceInfo, Option<KeySample>), TraceError> {
    let measured = header.ops.saturating_sub(header.warmup_ops);
    let mut collector = Collector::new(exact_keys, measured, sample);
    let mut batch = vec![(Op::default(), 0); BATCH];
    let mut ops = 0;
    loop {
        let mut len = 0;
        while len < BATCH && source.next_op(&mut batch[len].0)? {
            let (op, hash) = &mut batch[len];
            *hash = xxh3_64(&op.key);
            len += 1;
        }
        let read = &batch[..len];
        collector.keys.fetch(read.iter().map(|(_, hash)| *hash));
        for (op, hash) in read {
            if ops < header.warmup_ops {
                collector.warm_up(op, *hash);
            } else {
                collector.measure(op, *hash, header.zeros);
            }
            ops += 1;
        }
        if len < BATCH {
            let sample = collector.sample.take();
            return Ok((collector.finish(header, ops), sample));
        }
    }
}

/// The sums in progress.
struct Collector {
    clock: Clock,
    keys: KeyCounts,
    reuse: Reuse,
    windows: Windows,
    times: Times,
    pairs: Pairs,
    /// The keys, if pages are made of them later.
    sample: Option<KeySample>,
    neighbours: Neighbours,
    fates: Fates,
    deaths: Deaths,
    all: OpCounts,
    measured: OpCounts,
    user_bytes: u64,
    value_bytes: f64,
    zero_bytes: f64,
    key_sizes: Sizes,
    value_sizes: Sizes,
    scan_sizes: Sizes,
    clients: FxHashSet<u32>,
    timestamps: Option<(u64, u64)>,
    seen: u64,
    working_set: Vec<WorkingSet>,
    next_point: u64,
}

impl Collector {
    /// Creates the sums for about `ops` measured operations.
    fn new(exact_keys: usize, ops: u64, sample: Option<KeySample>) -> Self {
        let clock = Clock::new(ops);
        let window = windows::length(ops);
        Collector {
            clock,
            keys: KeyCounts::new(exact_keys, clock.time(window)),
            reuse: Reuse::new(reuse::MOST_KEYS),
            windows: Windows::new(clock, window),
            times: Times::new(clock),
            pairs: Pairs::new(pairs::APART),
            sample,
            neighbours: Neighbours::default(),
            fates: Fates::new(together::MOST, together::APART),
            deaths: Deaths::new(clock),
            all: OpCounts::default(),
            measured: OpCounts::default(),
            user_bytes: 0,
            value_bytes: 0.0,
            zero_bytes: 0.0,
            key_sizes: Sizes::default(),
            value_sizes: Sizes::default(),
            scan_sizes: Sizes::default(),
            clients: FxHashSet::default(),
            timestamps: None,
            seen: 0,
            working_set: Vec::new(),
            next_point: 1,
        }
    }

    fn warm_up(&mut self, op: &Op, hash: u64) {
        self.all.add(op.kind);
        let is_new = self.keys.meet(hash, op.kind);
        self.note(op, hash, is_new);
    }

    /// Adds to what pages are made of.
    #[inline]
    fn note(&mut self, op: &Op, hash: u64, is_new_key: bool) {
        let Some(sample) = &mut self.sample else {
            return;
        };
        if is_new_key {
            sample.meet(&op.key, hash);
        }
        if op.kind == OpKind::Put {
            sample.put(op.value_len);
        }
    }

    fn measure(&mut self, op: &Op, hash: u64, default_zeros: f64) {
        self.all.add(op.kind);
        self.measured.add(op.kind);
        self.access(op, hash);
        self.user_bytes += op.user_bytes();
        self.key_sizes
            .add(u32::try_from(op.key.len()).unwrap_or(u32::MAX));
        match op.kind {
            OpKind::Put => {
                self.value_sizes.add(op.value_len);
                let share = op.zeros.map_or(default_zeros, |z| f64::from(z) / 255.0);
                self.value_bytes += f64::from(op.value_len);
                self.zero_bytes += f64::from(op.value_len) * share;
            }
            OpKind::Scan => self.scan_sizes.add(op.scan_len),
            OpKind::Get | OpKind::Delete => {}
        }
        if self.clients.len() < MAX_CLIENTS {
            self.clients.insert(op.client);
        }
        if let Some(time) = op.time_ns {
            let (first, last) = self.timestamps.unwrap_or((time, time));
            self.timestamps = Some((first.min(time), last.max(time)));
        }
        if self.seen == self.next_point {
            self.mark();
            self.next_point = next_point(self.next_point);
        }
    }

    /// Adds an access to all statistics of keys.
    fn access(&mut self, op: &Op, hash: u64) {
        self.seen += 1;
        let now = self.clock.time(self.seen);
        let before = self.keys.access(hash, op.kind, now);
        let is_new = before.as_ref().is_some_and(|before| !before.is_known);
        self.note(op, hash, is_new);
        self.reuse.access(hash, is_write(op.kind));
        self.windows.add(op.kind, before.as_ref());
        self.neighbours.add(op);
        self.pairs.add(op, hash);
        if is_write(op.kind) && self.clock.is_exact() {
            let written = before.as_ref().and_then(|before| before.written);
            self.fates.write(hash, now, written);
        }
        if let Some(before) = &before {
            self.times.add(op.kind, now, before);
            self.deaths.add(op.kind, now, before);
        }
    }

    /// Adds a point to the working-set curve.
    fn mark(&mut self) {
        self.working_set.push(WorkingSet {
            ops: self.seen,
            distinct_keys: self.keys.distinct_accessed(),
            estimated: !self.keys.is_exact(),
        });
    }

    fn finish(mut self, header: &Header, ops: u64) -> TraceInfo {
        if self.working_set.last().is_some_and(|p| p.ops < self.seen) {
            self.mark();
        }
        let writes = self.measured.put + self.measured.delete;
        let total = self.measured.total();
        let value_bytes = self.value_sizes.stats();
        let value_mean = value_bytes
            .as_ref()
            .map_or(u64::from(ImportOptions::default().value_size), |values| {
                values.mean.round() as u64
            });
        let frequencies = self.keys.frequencies();
        let end = self.clock.time(self.seen.max(1));
        TraceInfo {
            schema: TraceInfo::SCHEMA,
            complete: ops == header.ops,
            name: header.name.clone(),
            source: header.source.clone(),
            blocks: (header.addresses).then(|| Blocks::with_values_of(value_mean)),
            ops,
            warmup_ops: header.warmup_ops.min(ops),
            all: self.all,
            measured: self.measured,
            write_share: (total > 0).then(|| writes as f64 / total as f64),
            user_bytes: self.user_bytes,
            zeros: if self.value_bytes > 0.0 {
                self.zero_bytes / self.value_bytes
            } else {
                header.zeros
            },
            distinct_keys: self.keys.distinct(),
            accessed_keys: self.keys.distinct_accessed(),
            keys_exact: self.keys.is_exact(),
            estimated: !self.keys.is_exact(),
            keys_error: self.keys.error(),
            keys_there_before: self.keys.was_there(),
            reads_of_unwritten: self.keys.unwritten_reads(),
            popularity: self.popularity(header, &frequencies),
            working_set: self.working_set,
            cache: self.reuse.finish(),
            page_cache: None,
            windows: self.windows.finish(),
            reuse_times: (self.times).finish(&self.pairs, &self.keys, &frequencies, self.seen),
            runs: self.neighbours.finish(),
            written_together: self.fates.finish(end, self.keys.level()),
            lives: self.deaths.finish(!self.keys.is_exact()),
            key_bytes: self.key_sizes.stats(),
            value_bytes,
            scan_records: self.scan_sizes.stats(),
            clients: self.clients.len() as u64,
            duration_ns: self.timestamps.map(|(first, last)| last - first),
        }
    }

    fn popularity(&self, header: &Header, frequencies: &BTreeMap<u32, u64>) -> Option<Popularity> {
        let closed = header.warmup_ops > 0;
        let fit = fit::zipf(fit::Observed {
            frequencies,
            accesses: self.seen,
            keys: if closed {
                self.keys.distinct()
            } else {
                self.keys.distinct_accessed()
            },
            closed,
        })?;
        let keys: u64 = frequencies.values().sum();
        let accesses: f64 = frequencies
            .iter()
            .map(|(&count, &keys)| f64::from(count) * keys as f64)
            .sum();
        let mut hottest: Vec<Hottest> = [0.001, 0.01, 0.1, 0.2, 0.5]
            .map(|share| {
                let most = share * keys as f64;
                let number = (keys < FEW_KEYS || most < 1.0).then(|| most.ceil() as u64);
                let most = number.map_or(most, |number| number as f64);
                Hottest {
                    keys: number.map_or(share, |_| most / keys as f64),
                    accesses: accesses_of_hottest(frequencies, most) / accesses,
                    number,
                }
            })
            .to_vec();
        hottest.dedup();
        Some(Popularity {
            estimated: true,
            theta: fit.theta,
            theta_error: fit.theta_error,
            ks_distance: fit.ks,
            population: fit.population,
            population_error: fit.population_error,
            hottest,
        })
    }
}

/// Returns the accesses to the `most` most popular keys.
fn accesses_of_hottest(frequencies: &BTreeMap<u32, u64>, most: f64) -> f64 {
    let (mut left, mut sum) = (most, 0.0);
    for (&count, &keys) in frequencies.iter().rev() {
        let taken = left.min(keys as f64);
        sum += taken * f64::from(count);
        left -= taken;
    }
    sum
}
