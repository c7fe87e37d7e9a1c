//! Rows of the tables that compare measured with predicted values, which all renderings share.

use super::predicted::PredictedValue;

/// Components below this share of the total have no error in the report, because a relative error
/// of a tiny value means nothing.
pub const LEAST_SHARE: f64 = 0.03;

/// `measured / predicted − 1`; `None` for a component that is small in both.
pub fn error(measured: f64, predicted: f64, measured_total: f64) -> Option<f64> {
    (counts(measured, predicted, measured_total) && predicted > 0.0)
        .then(|| measured / predicted - 1.0)
}

/// Whether a component is at least 3 % of the total, measured or predicted.
fn counts(measured: f64, predicted: f64, measured_total: f64) -> bool {
    measured.max(predicted) >= LEAST_SHARE * measured_total
}

/// A figure, measured beside predicted.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Where JSON has it, as `outside` names it.
    pub(super) path: &'static str,
    pub(super) measured: f64,
    pub(super) predicted: Option<PredictedValue>,
    pub(super) error: Option<f64>,
    /// The measured total that it is a part of.
    pub(super) total: f64,
    /// Whether the prediction is outside the range in which predictions were tested.
    pub(super) untried: bool,
}

/// Marks a value that is predicted outside the range in which predictions were tested.
const UNTRIED_MARK: &str = " ?";
/// Marks an error whose measured value is outside the interval of its prediction.
const OUTSIDE_MARK: &str = " !";

impl Row {
    /// The predicted value and its interval for tables, with a mark if it is outside the tested
    /// range.
    pub(super) fn predicted(&self) -> Option<String> {
        let mark = if self.untried { UNTRIED_MARK } else { "" };
        self.predicted.map(|p| p.said() + mark)
    }

    /// A mark after the error if the measured value is outside the interval.
    pub(super) fn mark(&self) -> &'static str {
        if self.is_outside() { OUTSIDE_MARK } else { "" }
    }

    /// Whether the measured value is outside the interval of the prediction. A component that is
    /// small in both is not asked.
    pub(super) fn is_outside(&self) -> bool {
        self.predicted.is_some_and(|p| {
            counts(self.measured, p.value(), self.total) && !p.holds(self.measured)
        })
    }
}

/// The line that explains error, interval and mark; `None` if no row has a prediction.
pub(super) fn legend(rows: &[Row]) -> Option<String> {
    let mut legend = String::from("error: measured / predicted − 1");
    if !rows.iter().any(|row| row.predicted.is_some()) {
        return None;
    }
    if rows
        .iter()
        .any(|row| row.predicted.is_some_and(|p| p.has_interval()))
    {
        legend += "; ±: 90 % interval of the prediction";
    }
    if rows.iter().any(Row::is_outside) {
        legend += "; !: measured outside it";
    }
    Some(legend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::Model;

    fn row(measured: f64, predicted: f64, half_width: Option<f64>) -> Row {
        Row {
            name: "host log",
            path: "host.log",
            measured,
            predicted: Some(PredictedValue::new(predicted, half_width, Model::Played)),
            error: error(measured, predicted, 10.0),
            total: 10.0,
            untried: false,
        }
    }

    #[test]
    fn a_measured_value_outside_its_interval_is_marked_and_explained() {
        let rows = [row(2.0, 2.1, Some(0.1)), row(2.0, 2.3, Some(0.1))];
        assert_eq!(rows.each_ref().map(Row::mark), ["", " !"]);
        let line = legend(&rows).expect("there are predictions");
        assert!(
            line.contains("90 % interval") && line.contains("outside"),
            "{line}"
        );
        let line = legend(&rows[..1]).expect("there are predictions");
        assert!(!line.contains("outside"), "{line}");
    }

    #[test]
    fn small_components_and_values_without_an_interval_are_never_outside() {
        assert!(!row(0.2, 0.1, Some(0.1)).is_outside(), "2 % of the total");
        assert!(row(0.4, 0.0, Some(0.1)).is_outside(), "none was predicted");
        let bare = [row(2.0, 4.0, None)];
        assert!(!bare[0].is_outside());
        let line = legend(&bare).expect("a prediction");
        assert_eq!(line, "error: measured / predicted − 1");
        assert!(legend(&[]).is_none());
    }
}
