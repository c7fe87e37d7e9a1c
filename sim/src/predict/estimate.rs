//! Error bars of predictions.
//!
//! A model that knows its own error, from repeated samples or from windows that disagree, gives
//! the relative half-width of each component in [`Bars`]. An [`Estimate`] is a predicted value with
//! the interval that follows from it. The interval is meant to hold the measured value in 90 % of
//! runs.

use serde::Serialize;

use super::flash::{Effort, Forecast};

/// The model that made a prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Visits to pages are independent draws (the independent reference model).
    #[default]
    Independent,
    /// The accesses in the order of the trace, on models of cache, log, page store and flash.
    Played,
}

/// How to predict.
///
/// ```
/// use treering_sim::predict::{Effort, Method, Model};
///
/// let method = Method::default();
/// assert_eq!((method.model, method.effort), (Model::Played, Effort::Full));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The model.
    pub model: Model,
    /// How much of a played run is played.
    pub effort: Effort,
    /// Whether warm-up and measured part each end with a checkpoint that leaves no change in memory
    /// ([`crate::replay::ReplayConfig::drain`]). The independent model does not look at that.
    pub drain: bool,
}

impl Default for Method {
    fn default() -> Method {
        Method {
            model: Model::Played,
            effort: Effort::Full,
            drain: false,
        }
    }
}

/// A predicted value with its 90 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The predicted value.
    pub value: f64,
    /// Lower end of the interval; `None` (JSON `null`) if the model gives no error bar.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` (JSON `null`) if the model gives no error bar.
    pub high: Option<f64>,
}

impl Estimate {
    /// The interval around `value`, a value that cannot be negative. `half_width` is relative: 0.1
    /// is 10 % of the value on each side.
    ///
    /// ```
    /// use treering_sim::predict::Estimate;
    ///
    /// let estimate = Estimate::new(8.0, Some(0.25));
    /// assert_eq!((estimate.low, estimate.high), (Some(6.0), Some(10.0)));
    /// assert_eq!(Estimate::new(8.0, None).low, None);
    /// ```
    #[must_use]
    pub fn new(value: f64, half_width: Option<f64>) -> Estimate {
        Estimate {
            value,
            low: half_width.map(|half| (value * (1.0 - half)).max(0.0)),
            high: half_width.map(|half| value * (1.0 + half)),
        }
    }
}

/// The relative half-width of the 90 % interval of each predicted component: 0.1 is 10 % of the
/// predicted value on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bars {
    /// Of [`HostWa::log`](super::HostWa::log).
    pub host_log: f64,
    /// Of [`HostWa::page`](super::HostWa::page).
    pub host_page: f64,
    /// Of [`HostWa::extra`](super::HostWa::extra).
    pub host_extra: f64,
    /// Of [`HostWa::total`](super::HostWa::total).
    pub host_total: f64,
    /// Of [`DeviceWa::gc`](super::DeviceWa::gc).
    pub device_gc: f64,
    /// Of [`DeviceWa::total`](super::DeviceWa::total).
    pub device_total: f64,
    /// Of the bytes programmed divided by host bytes.
    pub nand_over_host: f64,
    /// What compression adds to the half-width of each class of bytes after compression.
    pub compression: f64,
    /// Of [`Prediction::hit_ratio`](super::Prediction::hit_ratio); `None` with scans, whose accesses
    /// to pages the model does not count as the engine does.
    pub hit_ratio: Option<f64>,
}

/// A relative error: the part that does not fall with the number of events, and the part that
/// does, as a share of its square root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Error {
    pub(super) constant: f64,
    pub(super) each: f64,
}

impl Error {
    /// The half-width of the interval of a value that so many events make up.
    pub(super) fn at(self, events: f64) -> f64 {
        self.constant + self.each / events.max(1.0).sqrt()
    }
}

/// Of a count of events in the tree.
const COUNTED: Error = Error {
    constant: 0.01,
    each: 1.0,
};

/// Of garbage collection, by erased blocks.
const GC: Error = Error {
    constant: 0.012,
    each: 0.4,
};

/// By how much, as a share of a block, the valid part of a collected block differs between the drive
/// and a miniature, times the pages of the miniature's erase blocks: the smaller these are, the less
/// they are like the drive's.
const SAMPLED: f64 = 0.16;

/// What sampled blocks say of sizes after compression.
const SIZES: f64 = 0.025;

/// 90 % of a normal distribution lie within so many standard deviations.
const NINETY: f64 = 1.645;

impl Bars {
    /// The half-width of a count of events.
    pub(crate) fn of_count(events: f64) -> f64 {
        COUNTED.at(events)
    }

    /// The half-width of a hit ratio, from the number of misses: hits and misses have the same
    /// error, and together they are known.
    pub(crate) fn of_hits(ratio: f64, misses: f64) -> f64 {
        COUNTED.at(misses) * (1.0 - ratio) / ratio.max(1e-9)
    }

    /// The half-width of bytes after compression, on a drive that `compresses` or not.
    pub(super) fn sizes(compresses: bool) -> f64 {
        if compresses { SIZES } else { 0.0 }
    }

    /// The half-width of garbage collection: of its events and of what it got together, and of the
    /// sample.
    pub(super) fn of_gc(flash: &Forecast, of_writes: f64) -> f64 {
        let ratio = flash.gc_per_host.max(1e-9);
        let spread = NINETY * flash.standard_error / ratio;
        // A collected block of which a share `v` is valid moves `v / (1 - v)` per byte of the host.
        let sampled = flash.sampled_pages.map_or(0.0, |pages| {
            SAMPLED / f64::from(pages.max(1)) * (1.0 + ratio).powi(2) / ratio
        });
        (GC.at(flash.erases) + of_writes + sampled)
            .hypot(spread)
            .min(1.0)
    }

    /// The bars of a drive without a tree, which `compresses` or not. What the host writes is
    /// known.
    pub(crate) fn of_drive(flash: &Forecast, compresses: bool) -> Bars {
        let sizes = Bars::sizes(compresses);
        let moved = flash.gc_per_host / (1.0 + flash.gc_per_host);
        let device_gc = Bars::of_gc(flash, 2.0 * sizes);
        let device_total = sizes.hypot(device_gc * moved);
        Bars {
            device_gc,
            device_total,
            nand_over_host: device_total,
            compression: sizes,
            ..Bars::default()
        }
    }
}
