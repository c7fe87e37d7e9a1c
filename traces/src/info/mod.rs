//! Statistics of a trace (`trace info`), in one pass and bounded memory (about 80 MiB for any
//! length).
//!
//! | part | how | bounded by |
//! |---|---|---|
//! | counts, bytes, time | sums | |
//! | distinct keys | a table of key hashes; exact to 3.6 M keys, then within 0.1 % | `count` |
//! | working set | distinct keys among the first 1, 2, 5, 10, … operations | 60 points |
//! | cache curve | depths of accesses in the order of last use; sampled above 65,536 keys | `reuse` |
//! | popularity | Zipf exponent by maximum likelihood on the frequencies of counts | `fit` |
//! | sizes | counts by length, exact below 64 KiB | `sizes` |
//!
//! Operations that the header marks as warm-up count only towards the totals and the set of keys.
//! They load the store, and would bias popularity, sizes and the write share. A scan is an access
//! to its first key.

mod count;
mod fit;
mod render;
mod reuse;
mod sizes;
mod steps;

pub use reuse::{CacheCurve, CachePoint};
pub use sizes::{SizeBin, SizeStats};

use rustc_hash::FxHashSet;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::import::ImportOptions;
use crate::{Blocks, Header, Op, OpKind, OpSource, TraceError};
use count::{EXACT_KEYS, KeyCounts};
use reuse::Reuse;
use sizes::Sizes;
use steps::next_point;

/// The statistics of a trace. All except `all` are about the operations after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Always [`TraceInfo::SCHEMA`].
    pub schema: &'static str,
    /// Whether the number of operations read matches the header.
    pub complete: bool,
    /// The trace's name.
    pub name: String,
    /// The trace's source, from its header.
    pub source: String,
    /// How a block trace's blocks are replayed; `None` for other traces. If the trace has no puts,
    /// the size is that of the records that a replay loads first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// Operations, warm-up included.
    pub ops: u64,
    /// How many of them are warm-up.
    pub warmup_ops: u64,
    /// Operations by kind, warm-up included.
    pub all: OpCounts,
    /// Operations by kind after the warm-up.
    pub measured: OpCounts,
    /// Share of puts and deletes among all operations; `None` without operations.
    pub write_share: Option<f64>,
    /// Key and value bytes of puts and key bytes of deletes.
    pub user_bytes: u64,
    /// Share of zero bytes in the values of puts, by bytes.
    pub zeros: f64,
    /// Distinct keys of the trace, warm-up included.
    pub distinct_keys: u64,
    /// Distinct keys after the warm-up.
    pub accessed_keys: u64,
    /// Whether the two numbers above are exact, which holds up to 3.6 M keys.
    pub keys_exact: bool,
    /// The opposite of `keys_exact`: whether these numbers are estimates from a sample.
    pub estimated: bool,
    /// Relative standard error of these numbers; 0 if they are exact.
    pub keys_error: f64,
    /// Keys whose first operation, warm-up included, is not a put, so they existed before the
    /// trace. An estimate if the numbers of keys are.
    pub keys_there_before: u64,
    /// Gets after the warm-up of keys that no earlier operation wrote. An estimate if the numbers
    /// of keys are.
    pub reads_of_unwritten: u64,
    /// Distinct keys as a function of operations.
    pub working_set: Vec<WorkingSet>,
    /// Misses and write-backs of caches of any size, after the warm-up; `None` without operations.
    pub cache: Option<CacheCurve>,
    /// How unevenly keys are accessed; `None` if there are fewer than two keys or none is accessed
    /// twice.
    pub popularity: Option<Popularity>,
    /// Key lengths of all operations.
    pub key_bytes: Option<SizeStats>,
    /// Value lengths of puts.
    pub value_bytes: Option<SizeStats>,
    /// Number of records that a scan asks for.
    pub scan_records: Option<SizeStats>,
    /// Distinct clients, counted up to a million.
    pub clients: u64,
    /// Time between the first and the last timestamp, in nanoseconds.
    pub duration_ns: Option<u64>,
}

/// Operations by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpCounts {
    /// Gets.
    pub get: u64,
    /// Puts.
    pub put: u64,
    /// Deletes.
    pub delete: u64,
    /// Scans.
    pub scan: u64,
}

impl OpCounts {
    fn add(&mut self, kind: OpKind) {
        match kind {
            OpKind::Get => self.get += 1,
            OpKind::Put => self.put += 1,
            OpKind::Delete => self.delete += 1,
            OpKind::Scan => self.scan += 1,
        }
    }

    /// Returns the sum over all kinds.
    pub fn total(&self) -> u64 {
        self.get + self.put + self.delete + self.scan
    }
}

/// One point of the working-set curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WorkingSet {
    /// A number of operations from the start of the trace.
    pub ops: u64,
    /// The distinct keys that they access.
    pub distinct_keys: u64,
    /// Whether the number of keys is an estimate from a sample.
    pub estimated: bool,
}

/// How unevenly keys are accessed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Popularity {
    /// Always `true`: the law is fitted to the counts.
    pub estimated: bool,
    /// The maximum-likelihood Zipf exponent; 0 is uniform.
    pub theta: f64,
    /// Its standard error, if the trace follows a Zipf law; see [`Popularity::ks_distance`].
    pub theta_error: f64,
    /// Kolmogorov-Smirnov distance: the largest difference between the observed and the fitted
    /// distribution of access counts. 0 is a perfect fit; above 0.1 the trace is not Zipf.
    pub ks_distance: f64,
    /// Number of keys under the fitted law: the trace's keys if a load shows them all, else an
    /// estimate that includes keys that happened not to be accessed.
    pub population: u64,
    /// Relative error of `population`, at one standard error of the exponent.
    pub population_error: f64,
    /// The shares of accesses that go to the most popular keys.
    pub hottest: Vec<Hottest>,
}

/// The most popular keys and their share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hottest {
    /// Share of the distinct keys of the trace.
    pub keys: f64,
    /// Share of the accesses that these keys get.
    pub accesses: f64,
    /// The number of these keys, if they are a fraction of a key or only a few keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

impl TraceInfo {
    /// The schema's name and version.
    pub const SCHEMA: &'static str = "treering.trace-info/1";

    /// Renders the statistics as text.
    pub fn render_text(&self) -> String {
        render::text(self)
    }
}

/// With fewer keys than this, the hottest are counted as whole keys, because a share of the keys is
/// rarely a whole number.
const FEW_KEYS: u64 = 100;

/// The most clients that are counted.
const MAX_CLIENTS: usize = 1_000_000;

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

fn collect_with(
    source: &mut dyn OpSource,
    header: &Header,
    exact_keys: usize,
) -> Result<TraceInfo, TraceError> {
    let mut collector = Collector::new(exact_keys);
    let mut op = Op::default();
    let mut ops = 0;
    while source.next_op(&mut op)? {
        if ops < header.warmup_ops {
            collector.warm_up(&op);
        } else {
            collector.measure(&op, header.zeros);
        }
        ops += 1;
    }
    Ok(collector.finish(header, ops))
}

/// The sums in progress.
struct Collector {
    keys: KeyCounts,
    reuse: Reuse,
    all: OpCounts,
    measured: OpCounts,
    user_bytes: u64,
    value_bytes: f64,
    zero_bytes: f64,
    key_sizes: Sizes,
    value_sizes: Sizes,
    scan_sizes: Sizes,
    clients: FxHashSet<u32>,
    times: Option<(u64, u64)>,
    seen: u64,
    working_set: Vec<WorkingSet>,
    next_point: u64,
}

impl Collector {
    fn new(exact_keys: usize) -> Self {
        Collector {
            keys: KeyCounts::new(exact_keys),
            reuse: Reuse::new(reuse::MOST_KEYS),
            all: OpCounts::default(),
            measured: OpCounts::default(),
            user_bytes: 0,
            value_bytes: 0.0,
            zero_bytes: 0.0,
            key_sizes: Sizes::default(),
            value_sizes: Sizes::default(),
            scan_sizes: Sizes::default(),
            clients: FxHashSet::default(),
            times: None,
            seen: 0,
            working_set: Vec::new(),
            next_point: 1,
        }
    }

    fn warm_up(&mut self, op: &Op) {
        self.all.add(op.kind);
        self.keys.meet(op);
    }

    fn measure(&mut self, op: &Op, default_zeros: f64) {
        self.all.add(op.kind);
        self.measured.add(op.kind);
        let hash = xxh3_64(&op.key);
        self.keys.access(hash, op.kind);
        let is_write = matches!(op.kind, OpKind::Put | OpKind::Delete);
        self.reuse.access(hash, is_write);
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
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        self.seen += 1;
        if self.seen == self.next_point {
            self.mark();
            self.next_point = next_point(self.next_point);
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
            popularity: self.popularity(header),
            working_set: self.working_set,
            cache: self.reuse.finish(),
            key_bytes: self.key_sizes.stats(),
            value_bytes,
            scan_records: self.scan_sizes.stats(),
            clients: self.clients.len() as u64,
            duration_ns: self.times.map(|(first, last)| last - first),
        }
    }

    fn popularity(&self, header: &Header) -> Option<Popularity> {
        let frequencies = self.keys.frequencies();
        let closed = header.warmup_ops > 0;
        let fit = fit::zipf(fit::Observed {
            frequencies: &frequencies,
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
                    accesses: accesses_of_hottest(&frequencies, most) / accesses,
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
fn accesses_of_hottest(frequencies: &std::collections::BTreeMap<u32, u64>, most: f64) -> f64 {
    let (mut left, mut sum) = (most, 0.0);
    for (&count, &keys) in frequencies.iter().rev() {
        let taken = left.min(keys as f64);
        sum += taken * f64::from(count);
        left -= taken;
    }
    sum
}

#[cfg(test)]
mod tests;
