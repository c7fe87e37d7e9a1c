//! Measurements during a replay: operations, latencies by kind, write amplification over time.

use hdrhistogram::Histogram;
use treering_engine::{ClassBytes, Nanos, RingUse, Stats};
use treering_traces::OpKind;

use crate::report::{ByOp, HostWa, Latency, SeriesPoint};

/// Maximum latency that is recorded exactly: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Points of a latency distribution in the report.
const CDF_POINTS: usize = 100;

/// Number of points of WA over time.
const SERIES_POINTS: u64 = 100;

/// Points of it between two looks at the ring, which cost more.
const POINTS_A_LOOK: usize = 4;

/// Operations and user bytes of the current part.
#[derive(Clone, Copy, Default)]
pub(super) struct Phase {
    ops: [u64; 4],
    pub(super) user_bytes: u64,
    pub(super) skipped: u64,
}

impl Phase {
    pub(super) fn count(&mut self, kind: OpKind, user_bytes: u64) {
        self.ops[kind as usize] += 1;
        self.user_bytes += user_bytes;
    }

    pub(super) fn ops(&self) -> u64 {
        self.ops.iter().sum()
    }

    /// Adds the counts of another thread.
    fn add(&mut self, other: &Phase) {
        for (mine, theirs) in self.ops.iter_mut().zip(other.ops) {
            *mine += theirs;
        }
        self.user_bytes += other.user_bytes;
        self.skipped += other.skipped;
    }

    pub(super) fn by_op(&self) -> ByOp<u64> {
        let of = |kind: OpKind| self.ops[kind as usize];
        ByOp {
            get: of(OpKind::Get),
            put: of(OpKind::Put),
            delete: of(OpKind::Delete),
            scan: of(OpKind::Scan),
        }
    }
}

/// Counters at one moment: the engine's, and the device's.
pub(super) struct Moment<C> {
    pub(super) at: Nanos,
    pub(super) stats: Stats,
    pub(super) device: C,
}

/// A finished run.
pub(super) struct Outcome<C> {
    /// When the measured part began and ended.
    pub(super) before: Moment<C>,
    pub(super) after: Moment<C>,
    /// Operations done, including warm-up.
    pub(super) done_ops: u64,
    pub(super) measures: Measures,
}

/// The measurements of one thread.
#[derive(Default)]
pub(super) struct Measures {
    pub(super) phase: Phase,
    latencies: Latencies,
    series: Option<Series>,
    /// What the ring of mini-pages held, at some moments.
    pub(super) ring: RingMean,
    /// Whether latencies are recorded.
    pub(super) timed: bool,
    measuring: bool,
}

impl Measures {
    /// Creates empty measurements; `timed` says whether latencies are recorded.
    pub(super) fn new(timed: bool) -> Measures {
        Measures {
            timed,
            ..Measures::default()
        }
    }

    /// Whether warm-up is over.
    pub(super) fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Ends the warm-up: from here on `ops` operations are measured, starting from these counters.
    pub(super) fn begin(&mut self, at: Nanos, ops: u64, (written, gc_bytes): (ClassBytes, u64)) {
        self.phase = Phase::default();
        self.series = Some(Series::new(at.0, ops, written, gc_bytes));
        self.measuring = true;
    }

    /// As [`Measures::begin`], for one thread of several, which records no series.
    pub(super) fn begin_thread(&mut self, measuring: bool) {
        self.measuring = measuring;
    }

    /// Records an operation, its latency, and the part of it spent waiting.
    pub(super) fn note(&mut self, kind: OpKind, total_ns: u64, queue_ns: u64) {
        if self.timed && self.measuring {
            self.latencies.note(kind, total_ns, queue_ns.min(total_ns));
        }
    }

    /// Records a point of the series if it is due; `reached` returns what has been written so far,
    /// and `ring` what the ring holds.
    #[inline]
    pub(super) fn sample(
        &mut self,
        now: Nanos,
        reached: impl FnOnce() -> (ClassBytes, u64),
        ring: impl FnOnce() -> Option<RingUse>,
    ) {
        if let Some(series) = &mut self.series
            && series.due(self.phase.ops())
        {
            series.note(now.0, &self.phase, reached());
            if series.points.len().is_multiple_of(POINTS_A_LOOK)
                && let Some(held) = ring()
            {
                self.ring.add(&held);
            }
        }
    }

    /// Records a point of the series, due or not.
    pub(super) fn last_sample(&mut self, now: Nanos, reached: (ClassBytes, u64)) {
        if let Some(series) = &mut self.series {
            series.note(now.0, &self.phase, reached);
        }
    }

    /// Adds the measurements of another thread.
    pub(super) fn merge(&mut self, other: Measures) {
        self.phase.add(&other.phase);
        self.latencies.merge(other.latencies);
    }

    pub(super) fn latencies(&self) -> Option<ByOp<Option<Latency>>> {
        self.timed.then(|| self.latencies.report())
    }

    pub(super) fn take_series(&mut self) -> Vec<SeriesPoint> {
        self.series.take().map(|s| s.points).unwrap_or_default()
    }
}

/// What a ring held on the mean of some moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RingMean {
    sums: [f64; 7],
    moments: f64,
}

impl RingMean {
    fn add(&mut self, held: &RingUse) {
        for (sum, (_, bytes)) in self.sums.iter_mut().zip(held.parts()) {
            *sum += bytes as f64;
        }
        self.moments += 1.0;
    }

    /// Mean bytes of each part, in the order of [`RingUse::parts`]; `None` without a look.
    pub(super) fn parts(&self) -> Option<[f64; 7]> {
        (self.moments > 0.0).then(|| self.sums.map(|sum| sum / self.moments))
    }
}

/// Latencies of one kind of operation: total, and the part spent waiting.
struct Kind {
    total: Histogram<u64>,
    queue: Histogram<u64>,
}

/// Latencies of all kinds. Each takes about 200 KB, allocated at its first operation.
#[derive(Default)]
struct Latencies {
    kinds: [Option<Box<Kind>>; 4],
}

impl Latencies {
    fn note(&mut self, kind: OpKind, total_ns: u64, queue_ns: u64) {
        let kind = self.kinds[kind as usize].get_or_insert_with(|| {
            let new =
                || Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("bounds are constants");
            Box::new(Kind {
                total: new(),
                queue: new(),
            })
        });
        kind.total.saturating_record(total_ns);
        kind.queue.saturating_record(queue_ns);
    }

    /// Adds the measurements of another thread.
    fn merge(&mut self, other: Latencies) {
        for (mine, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(theirs)) => {
                    mine.total.add(&theirs.total).expect("same bounds");
                    mine.queue.add(&theirs.queue).expect("same bounds");
                }
                (None, theirs) => *mine = theirs,
                (Some(_), None) => {}
            }
        }
    }

    fn report(&self) -> ByOp<Option<Latency>> {
        let of = |kind: OpKind| self.kinds[kind as usize].as_deref().map(summary);
        ByOp {
            get: of(OpKind::Get),
            put: of(OpKind::Put),
            delete: of(OpKind::Delete),
            scan: of(OpKind::Scan),
        }
    }
}

fn summary(kind: &Kind) -> Latency {
    let h = &kind.total;
    let mut cdf: Vec<(u64, f64)> = Vec::with_capacity(CDF_POINTS);
    let mut seen = 0u64;
    let mut shown = -1.0f64;
    for step in h.iter_recorded() {
        seen += step.count_at_value();
        let share = seen as f64 / h.len() as f64;
        if share - shown >= 1.0 / CDF_POINTS as f64 || seen == h.len() {
            cdf.push((step.value_iterated_to(), share));
            shown = share;
        }
    }
    Latency {
        count: h.len(),
        mean: h.mean(),
        p50: h.value_at_quantile(0.5),
        p99: h.value_at_quantile(0.99),
        p999: h.value_at_quantile(0.999),
        max: h.max(),
        queue_mean: kind.queue.mean(),
        queue_p99: kind.queue.value_at_quantile(0.99),
        cdf,
    }
}

/// A series of WA between consecutive points.
struct Series {
    began_ns: u64,
    every: u64,
    next: u64,
    user_bytes: u64,
    written: ClassBytes,
    gc_bytes: u64,
    points: Vec<SeriesPoint>,
}

impl Series {
    /// A series over `ops` measured operations that starts now, from these counters.
    fn new(began_ns: u64, ops: u64, written: ClassBytes, gc_bytes: u64) -> Series {
        let every = (ops / SERIES_POINTS).max(1);
        Series {
            began_ns,
            every,
            next: every,
            user_bytes: 0,
            written,
            gc_bytes,
            points: Vec::new(),
        }
    }

    /// Whether a point is due after `ops` measured operations.
    fn due(&self, ops: u64) -> bool {
        ops >= self.next
    }

    /// Records a point with the current counts of `phase`.
    fn note(&mut self, now_ns: u64, phase: &Phase, (written, gc_bytes): (ClassBytes, u64)) {
        let ops = phase.ops();
        self.next = ops + self.every;
        let user = phase.user_bytes - self.user_bytes;
        if user > 0 {
            let over = |bytes: u64| bytes as f64 / user as f64;
            let since = written.since(&self.written);
            self.points.push(SeriesPoint {
                ops,
                elapsed_ns: now_ns.saturating_sub(self.began_ns),
                host: HostWa {
                    log: over(since.log),
                    page: over(since.page),
                    extra: over(since.extra),
                    total: over(since.total()),
                },
                gc: over(gc_bytes - self.gc_bytes),
            });
            self.user_bytes = phase.user_bytes;
            self.written = written;
            self.gc_bytes = gc_bytes;
        }
    }
}
