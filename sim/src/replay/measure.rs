//! What is noted while a replay runs: latencies by kind, and write amplification over time.

use hdrhistogram::Histogram;
use treering_engine::ClassBytes;
use treering_traces::OpKind;

use super::outcome::Phase;
use crate::report::{ByOp, HostWa, Latency, SeriesPoint};

/// Longest latency that is told apart from longer ones: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Points of a latency distribution in the report.
const CDF_POINTS: usize = 100;

/// Points of WA over time.
pub(super) const SERIES_POINTS: u64 = 100;

/// Latencies of one kind of operation: in all, and the part spent waiting.
struct Kind {
    total: Histogram<u64>,
    queue: Histogram<u64>,
}

/// Latencies of all kinds. About 200 KB a kind, allocated when the first operation of it is noted.
#[derive(Default)]
pub(super) struct Latencies {
    kinds: [Option<Box<Kind>>; 4],
}

impl Latencies {
    pub(super) fn note(&mut self, kind: OpKind, total_ns: u64, queue_ns: u64) {
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

    /// Adds what another thread noted.
    pub(super) fn merge(&mut self, other: Latencies) {
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

    pub(super) fn report(&self) -> ByOp<Option<Latency>> {
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

/// WA between two points, over and over.
pub(super) struct Series {
    began_ns: u64,
    every: u64,
    next: u64,
    user_bytes: u64,
    written: ClassBytes,
    gc_bytes: u64,
    pub(super) points: Vec<SeriesPoint>,
}

impl Series {
    /// A series over `ops` measured operations that starts now, from these counters.
    pub(super) fn new(began_ns: u64, ops: u64, written: ClassBytes, gc_bytes: u64) -> Series {
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
    pub(super) fn due(&self, ops: u64) -> bool {
        ops >= self.next
    }

    /// A point: the counts of `phase` now.
    pub(super) fn note(&mut self, now_ns: u64, phase: &Phase, written: ClassBytes, gc_bytes: u64) {
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
