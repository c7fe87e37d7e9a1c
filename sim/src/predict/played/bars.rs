//! Error bars of a played prediction: 90 % intervals, as relative half-widths.
//!
//! A played run differs from the real one in small things that count in whole events: which page
//! the hand meets next, whether a record still fits a block, when a flush comes. Such differences
//! are independent from one event to the next, so their sum grows like the square root of the
//! number of events (flushes, page writes, erased blocks), and their share falls with it. What a
//! model leaves out does not fall; it is the constant part. Both were fitted to the differences
//! between played and measured runs of generated traces; calibration on others is tested
//! (`sim/tests/predict_bars.rs`). Of the log, only what pads the blocks of a flush is unsure, and
//! whether the first and the last flush are in the measured part. Sampled flash adds the spread of
//! its miniatures, and a checkpoint near an end of the measured part the pages that it writes
//! ([`super::rounds`]).

use super::Run;
use crate::predict::estimate::{Bars, Error};
use crate::predict::flash::Forecast;

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

/// The error of what pads the blocks of a flush, as a share of it, times the square root of the number
/// of flushes: 90 % of a normal distribution, if the end of each is anywhere in its last block (a
/// uniform distribution has a standard deviation of 1/√3 of its mean).
const PADS: f64 = 0.95;

/// By how much a share that adapts is off for most of the time.
const STEP: f64 = 0.1;

/// The share of the log's error by which the end of the log is off.
const PADDING: f64 = 0.5;

/// The bars of a run on one of its drives, which `compresses` or not. `hit_ratio` is that of a run
/// without scans.
pub(super) fn of(
    run: &Run,
    flash: Option<&Forecast>,
    hit_ratio: Option<f64>,
    compresses: bool,
) -> Bars {
    let counts = &run.counts;
    let sizes = Bars::sizes(compresses);
    let [log_bytes, page_bytes, extra_bytes] = counts.bytes.host;
    let log = of_log(
        counts.redo.flushes as f64,
        counts.redo.flushed as f64,
        log_bytes,
    );
    // Records are known; what pads them is a part of the log's error.
    let (unsure, unsure_log) = match run.drained {
        // What a checkpoint does not write then, the drain does.
        true => (0.0, 0.0),
        false => run.rounds.unsure(PADDING * log),
    };
    let log = log + unsure_log / log_bytes.max(1.0);
    let sampling = run
        .sampled
        .map_or(0.0, |pages| SAMPLING / pages.max(1.0).sqrt());
    let writes = counts.writes as f64;
    let page = PAGES.at(writes) + unsure / writes.max(1.0) + sampling + of_promotion(run);
    let all = (log_bytes + page_bytes + extra_bytes).max(1.0);
    // Journal and table follow the pages, so their errors add up.
    let host_total = (log * log_bytes).hypot(page * (page_bytes + extra_bytes)) / all;
    let (mut device_gc, mut device_total) = (host_total, host_total);
    let mut nand_over_host = 0.0;
    if let Some(flash) = flash {
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

/// The error of page writes by what is promoted, if its share adapts: one decision that is taken
/// otherwise changes that share by a quarter, and the room for changes by as much.
fn of_promotion(run: &Run) -> f64 {
    run.mini_pages.as_ref().map_or(0.0, |counts| {
        STEP * (counts.promoted_bytes / counts.passed_bytes.max(1.0)).min(1.0)
    })
}

/// The error of a log of so many flushes, of so many bytes of records, in blocks of `bytes`.
///
/// Records are known, so what pads them is unsure: little if a flush fills many blocks. At most one
/// flush more or less is in the measured part.
fn of_log(flushes: f64, records: f64, bytes: f64) -> f64 {
    let padding = 1.0 - (records / bytes.max(1.0)).min(1.0);
    let each = LOG.each.min(PADS * padding);
    Error { each, ..LOG }.at(flushes) + 1.0 / flushes.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_mostly_records_has_a_narrow_bar() {
        let block = 4096.0;
        // Flushes of 1, 2, …, 64 blocks, and half a block of padding.
        let bars = [1.0, 2.0, 4.0, 16.0, 64.0].map(|blocks| {
            let bytes = 400.0 * blocks * block;
            of_log(400.0, bytes - 200.0 * block, bytes)
        });
        assert!(bars.is_sorted_by(|a, b| a >= b), "{bars:?}");
        let ends = LOG.constant + 1.0 / 400.0;
        assert!((bars[0] - ends - 0.4 / 20.0).abs() < 1e-12, "{bars:?}");
        let last = PADS / 128.0 / 20.0;
        assert!((bars[4] - ends - last).abs() < 1e-12, "{bars:?}");
        // Without padding, one flush of ten may be in the measured part or not.
        assert!((of_log(10.0, 1e6, 1e6) - LOG.constant - 0.1).abs() < 1e-12);
        assert!(of_log(0.0, 0.0, 0.0).is_finite());
    }
}
