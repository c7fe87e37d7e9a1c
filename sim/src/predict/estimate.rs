//! Error bars of predictions.
//!
//! A model that knows its own error, from repeated samples or from windows that disagree, gives
//! the relative half-width of each component in [`Bars`]. An [`Estimate`] is a predicted value with
//! the interval that follows from it. The interval is meant to hold the measured value in 90 % of
//! runs.

use serde::Serialize;

use super::flash::Effort;

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
}

impl Default for Method {
    fn default() -> Method {
        Method {
            model: Model::Played,
            effort: Effort::Full,
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
}
