//! Error bars of a played prediction: 90 % intervals, as relative half-widths.
//!
//! A played run differs from the real one in small things that count in whole events: which page
//! the hand meets next, whether a record still fits a block, when a flush comes. Such differences
//! are independent from one event to the next, so their sum grows like the square root of the
//! number of events (flushes, page writes, erased blocks), and their share falls with it. What a
//! model leaves out does not fall; it is the constant part. Both were fitted to the differences
//! between played and measured runs of generated traces; calibration on others is tested
//! (`sim/tests/predict_bars.rs`). Sampled flash adds the spread of its miniatures, and a checkpoint
//! near an end of the measured part the pages that it writes ([`super::rounds`]).

use super::Run;
use crate::predict::estimate::{Bars, Error};

const LOG: Error = Error {
    constant: 0.003,
    each: 0.4,
};
const PAGES: Error = Error {
    constant: 0.003,
    each: 0.6,
};
/// The error of a sum over a sample of pages, times the square root of their number: 90 % of a normal
/// distribution, if pages differ by as much as they have on average.
const SAMPLING: f64 = 1.645;

/// The share of the log's error by which the end of the log is off.
const PADDING: f64 = 0.5;

/// The bars of a run, on a drive that `compresses` or not. `hit_ratio` is that of a run without scans.
pub(super) fn of(run: &Run, hit_ratio: Option<f64>, compresses: bool) -> Bars {
    let counts = &run.counts;
    let sizes = Bars::sizes(compresses);
    let log = LOG.at(counts.redo.flushes as f64);
    // Records are known; what pads them is a part of the log's error.
    let unsure = run.rounds.unsure_writes(PADDING * log);
    let sampling = run
        .sampled
        .map_or(0.0, |pages| SAMPLING / pages.max(1.0).sqrt());
    let page = PAGES.at(counts.writes as f64) + unsure / (counts.writes as f64).max(1.0) + sampling;
    let [log_bytes, page_bytes, extra_bytes] = counts.bytes.host;
    let all = (log_bytes + page_bytes + extra_bytes).max(1.0);
    // Journal and table follow the pages, so their errors add up.
    let host_total = (log * log_bytes).hypot(page * (page_bytes + extra_bytes)) / all;
    let (mut device_gc, mut device_total) = (host_total, host_total);
    let mut nand_over_host = 0.0;
    if let Some(flash) = &run.flash {
        let moved = flash.gc_per_host / (1.0 + flash.gc_per_host);
        // A little more in use is more to move.
        device_gc = Bars::of_gc(flash, host_total + 2.0 * sizes);
        device_total = (host_total + sizes).hypot(device_gc * moved);
        nand_over_host = sizes.hypot(device_gc * moved);
    }
    Bars {
        host_log: log,
        host_page: page,
        host_extra: page,
        host_total,
        device_gc,
        device_total,
        nand_over_host,
        compression: sizes,
        hit_ratio: hit_ratio.map(|hits| Bars::of_hits(hits, counts.frames.misses as f64)),
    }
}
