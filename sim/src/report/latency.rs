//! Latencies in a report, and the columns that the tables of all renderings show.

use serde::Serialize;

/// The latencies of one kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Number of operations measured.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest.
    pub max: u64,
    /// Mean time spent waiting for the busy device (and, with `commit`, for the previous flush).
    pub queue_mean: f64,
    /// 99th percentile of the waiting time.
    pub queue_p99: u64,
    /// Points of the cumulative distribution: nanoseconds, and share of operations at or below.
    pub cdf: Vec<(u64, f64)>,
}

impl Latency {
    /// The columns of times, in nanoseconds. A new one is a field and a line here, and is filled
    /// where the operations are measured.
    pub(super) fn columns(&self) -> [(&'static str, f64); 5] {
        [
            ("mean", self.mean),
            ("p50", self.p50 as f64),
            ("p99", self.p99 as f64),
            ("p99.9", self.p999 as f64),
            ("max", self.max as f64),
        ]
    }

    /// The mean share of the latency that is spent waiting.
    pub(super) fn waiting_share(&self) -> f64 {
        match self.mean > 0.0 {
            true => self.queue_mean / self.mean,
            false => 0.0,
        }
    }
}
