//! Counts how many measured values lie within the intervals of their predictions.

use treering_sim::report::PredictedValue;

/// Measured values beside their predictions.
#[derive(Default)]
pub(crate) struct Tally {
    /// Whether each is inside, its relative error, and the half-width of its interval.
    values: Vec<(bool, f64, f64)>,
}

impl Tally {
    /// Adds a component that is at least 3 % of the measured `total`; others do not count.
    pub(crate) fn add(&mut self, what: &str, measured: f64, p: PredictedValue, total: f64) {
        if measured < 0.03 * total || measured == 0.0 {
            return;
        }
        let (low, high) = (
            p.estimate.low.expect("a bar"),
            p.estimate.high.expect("a bar"),
        );
        let is_inside = measured >= low * (1.0 - 1e-9) && measured <= high * (1.0 + 1e-9);
        let error = (measured / p.value() - 1.0).abs();
        let half_width = high / p.value() - 1.0;
        let mark = if is_inside { "" } else { " outside" };
        println!("{what}: {error:.4} of {half_width:.4}{mark}");
        self.values.push((is_inside, error, half_width));
    }

    /// Checks how many are inside, and that the middle of the full widths is not wide. Prints and
    /// returns the median and the 90th percentile of the errors.
    pub(crate) fn check(&self, least_share: f64, widest: f64) -> [f64; 2] {
        let inside = self.values.iter().filter(|(inside, ..)| *inside).count();
        let share = inside as f64 / self.values.len() as f64;
        let mut widths: Vec<f64> = self.values.iter().map(|(.., half)| 2.0 * half).collect();
        widths.sort_by(f64::total_cmp);
        let middle = widths[widths.len() / 2];
        let mut errors: Vec<f64> = self.values.iter().map(|(_, error, _)| *error).collect();
        errors.sort_by(f64::total_cmp);
        let quantile = |share: f64| errors[(share * (errors.len() - 1) as f64) as usize];
        let [half, most] = [0.5, 0.9].map(quantile);
        let story = format!(
            "{inside} of {} inside, median width {middle:.4}; errors: median {half:.4}, p90 {most:.4}",
            self.values.len()
        );
        println!("{story}");
        assert!(share >= least_share && middle <= widest, "{story}");
        [half, most]
    }
}
