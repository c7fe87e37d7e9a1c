//! Error bars of a played prediction: 90 % intervals, as relative half-widths.
//!
//! A played run differs from the real one in small things that count in whole events: which page
//! the hand meets next, whether a record still fits a block, when a flush comes. Such differences
//! are independent from one event to the next, so their sum grows like the square root of the
//! number of events (flushes, page writes, erased blocks), and their share falls with it. What a
//! model leaves out does not fall; it is the constant part. Both were fitted to the differences
//! between played and measured runs of generated traces; calibration on others is tested
//! (`sim/tests/predict_bars.rs`). Sampled flash adds the spread of its miniatures.

use super::Run;
use crate::predict::Bars;

/// The part of an error that does not fall with the number of events, and the part that does, as a
/// share of its square root.
struct Error {
    constant: f64,
    each: f64,
}

const LOG: Error = Error {
    constant: 0.003,
    each: 0.4,
};
const PAGES: Error = Error {
    constant: 0.003,
    each: 0.6,
};
const GC: Error = Error {
    constant: 0.012,
    each: 0.4,
};

/// 90 % of a normal distribution lie within so many standard deviations.
const NINETY: f64 = 1.645;

impl Error {
    fn at(&self, events: f64) -> f64 {
        self.constant + self.each / events.max(1.0).sqrt()
    }
}

/// What sampled blocks say of sizes after compression.
const SIZES: f64 = 0.025;

/// The bars of a run, on a drive that `compresses` or not.
pub(super) fn of(run: &Run, compresses: bool) -> Bars {
    let counts = &run.counts;
    let log = LOG.at(counts.redo.flushes as f64);
    let page = PAGES.at(counts.writes as f64);
    let [log_bytes, page_bytes, extra_bytes] = counts.bytes.host;
    let all = (log_bytes + page_bytes + extra_bytes).max(1.0);
    // Journal and table follow the pages, so their errors add up.
    let host_total = (log * log_bytes).hypot(page * (page_bytes + extra_bytes)) / all;
    let (mut device_gc, mut device_total) = (host_total, host_total);
    if let Some(flash) = &run.flash {
        let per_host = flash.gc_per_host;
        let spread = NINETY * flash.standard_error / per_host.max(1e-9);
        let sizes = if compresses { SIZES } else { 0.0 };
        // A little more in use is more to move.
        device_gc = (GC.at(flash.erases) + host_total + 2.0 * sizes)
            .hypot(spread)
            .min(1.0);
        device_total = (host_total + sizes).hypot(device_gc * per_host / (1.0 + per_host));
    }
    Bars {
        host_log: log,
        host_page: page,
        host_extra: page,
        host_total,
        device_gc,
        device_total,
    }
}
