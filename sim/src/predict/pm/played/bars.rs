//! Error bars of a played prediction for persistent memory: 90 % intervals, as relative half-widths.
//!
//! The tree is played exactly, apart from what values of eight bytes look like. What differs from
//! the real run is which line leaves an XPBuffer, and so when a line is written again. These are
//! single events, so the error of a class falls with the square root of its XPLines. The constants
//! were fitted to the differences between played and measured runs; `sim/tests/predict_bars_pm.rs`
//! holds them against others. What several clients and queues add is in
//! [`PmBars::with_clients`].

use super::lines::{Class, Written};
use crate::predict::estimate::Error;
use crate::predict::pm::PmBars;

/// Of bytes that reach the XPBuffer, by lines.
const LINES: Error = Error {
    constant: 0.002,
    each: 0.5,
};
/// Of a class of XPLines written to the medium, by their number.
const XPLINES: Error = Error {
    constant: 0.005,
    each: 1.0,
};

/// The bars of a run with one client on an idle device.
pub(super) fn of(written: &Written) -> PmBars {
    let lines: u64 = written.lines.iter().sum();
    let xplines = |class: Class| written.xplines[class as usize] as f64;
    let half_width = |class: Class| XPLINES.at(xplines(class));
    let classes = [Class::Page, Class::Log, Class::Extra];
    let all: f64 = classes.iter().map(|class| xplines(*class)).sum();
    let squares = classes.map(|class| (half_width(class) * xplines(class)).powi(2));
    PmBars {
        cli: LINES.at(lines as f64),
        xbi: squares.iter().sum::<f64>().sqrt() / all.max(1.0),
        leaf: half_width(Class::Page),
        log: half_width(Class::Log),
        extra: half_width(Class::Extra),
    }
}
