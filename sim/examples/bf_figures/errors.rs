//! Errors of predictions: the cells of a table, and a summary.

use crate::page::{Sheet, Table, percent};

/// Relative errors of predictions, measured divided by predicted, minus one.
#[derive(Default)]
pub(crate) struct Errors(Vec<f64>);

impl Errors {
    /// Records the errors that exist and formats each of them.
    pub(crate) fn note<const N: usize>(&mut self, errors: [Option<f64>; N]) -> [String; N] {
        self.0.extend(errors.into_iter().flatten().map(f64::abs));
        errors.map(|error| match error {
            Some(error) => format!("{:+.1} %", 100.0 * error),
            None => "–".into(),
        })
    }

    /// Adds the table `prediction-errors`.
    pub(crate) fn sum_up(mut self, sheet: &mut Sheet) {
        self.0.sort_by(f64::total_cmp);
        let last = self.0.len() - 1;
        let at = |share: f64| percent(self.0[(last as f64 * share) as usize]);
        let mut table = Table::new(&["figures", "median error", "90 % within", "largest"]);
        table.row(&[self.0.len().to_string(), at(0.5), at(0.9), at(1.0)]);
        sheet.table("prediction-errors", table);
    }
}
