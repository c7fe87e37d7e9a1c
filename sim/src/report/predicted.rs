//! A predicted value in a report: the value, its 90 % interval, and the model that it comes from.

use serde::Serialize;

use crate::predict::{Estimate, Model};

/// A predicted value, its 90 % interval, and the model that it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PredictedValue {
    /// The value and its interval.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The model.
    pub model: Model,
}

/// The rounding of a computed value, as a share of it: not more than this is no difference.
const ROUNDING: f64 = 1e-9;

impl PredictedValue {
    /// A value with the half-width of its interval as a share of it, if the model gives one.
    pub(crate) fn new(value: f64, half_width: Option<f64>, model: Model) -> PredictedValue {
        PredictedValue {
            estimate: Estimate::new(value, half_width),
            model,
        }
    }

    /// The value without its interval.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.estimate.value
    }

    /// Whether the model gives an interval.
    pub(super) fn has_interval(&self) -> bool {
        self.estimate.high.is_some()
    }

    /// Whether the interval holds a measured value; so does a missing one.
    #[must_use]
    pub fn holds(&self, measured: f64) -> bool {
        let Estimate { low, high, .. } = self.estimate;
        let (low, high) = (low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY));
        measured >= low * (1.0 - ROUNDING) && measured <= high * (1.0 + ROUNDING)
    }

    /// The half-width of the interval, as a share of the value; `None` without one, or if the value
    /// is zero.
    pub(super) fn half_width(&self) -> Option<f64> {
        let Estimate { value, high, .. } = self.estimate;
        let high = high.filter(|_| value > 0.0);
        high.map(|high| high / value - 1.0)
    }

    /// The half-width in per cent of the value; empty without one.
    fn plus_minus(&self) -> String {
        let Some(half_width) = self.half_width() else {
            return String::new();
        };
        match 100.0 * half_width {
            p if p < 1e-6 => " ±0%".into(),
            p if p < 9.95 => format!(" ±{p:.1}%"),
            p => format!(" ±{p:.0}%"),
        }
    }

    /// The value and its interval, for tables.
    #[must_use]
    pub fn said(&self) -> String {
        format!("{:.3}{}", self.value(), self.plus_minus())
    }

    /// As [`said`](Self::said), for tables of many columns: the half-width is rounded up.
    pub(super) fn said_shortly(&self) -> String {
        let percent = self.half_width().map(|half| (100.0 * half - 1e-6).ceil());
        let interval = percent.map_or(String::new(), |percent| format!(" ±{percent:.0}%"));
        format!("{:.2}{interval}", self.value())
    }

    /// A share in per cent, and its half-width in per cent of the whole.
    pub(super) fn said_of_share(&self) -> String {
        let percent = 100.0 * self.value();
        match self.half_width() {
            Some(half_width) => format!("{percent:.1} ±{:.1} %", percent * half_width),
            None => format!("{percent:.1} %"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f64, half_width: f64) -> PredictedValue {
        PredictedValue::new(value, Some(half_width), Model::Played)
    }

    #[test]
    fn an_interval_is_shown_with_two_figures() {
        assert_eq!(of(3.2104, 0.0131).said(), "3.210 ±1.3%");
        assert_eq!(of(3.2104, 0.314).said(), "3.210 ±31%");
        assert_eq!(of(1.0, 0.0).said(), "1.000 ±0%");
        assert_eq!(of(0.0, 0.1).said(), "0.000");
        let bare = PredictedValue::new(3.2104, None, Model::Independent);
        assert_eq!(bare.said(), "3.210");
        assert_eq!(of(0.9, 0.01).said_of_share(), "90.0 ±0.9 %");
        assert_eq!(bare.said_of_share(), "321.0 %");
    }

    #[test]
    fn an_interval_holds_its_ends_and_a_missing_one_everything() {
        let value = of(2.0, 0.1);
        assert!(value.holds(1.8) && value.holds(2.2) && value.holds(2.0));
        assert!(!value.holds(1.79) && !value.holds(2.21));
        assert!(of(1.0, 0.0).holds(1.0 + 1e-12));
        assert!(PredictedValue::new(2.0, None, Model::Independent).holds(9.0));
    }
}
