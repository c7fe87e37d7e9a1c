//! The options that vary among configurations: the axes of tables and charts.

use super::PredictedRun;
use crate::report::numbers::bytes;

/// How the values of an option are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A share of the data set if all configurations have one, otherwise bytes.
    Cache,
    Bytes,
    Share,
    Number,
}

/// The options that can vary: flag, title, unit.
const OPTIONS: [(&str, &str, Unit); 5] = [
    ("cache", "cache", Unit::Cache),
    ("page", "page", Unit::Bytes),
    ("op", "over-provisioning", Unit::Share),
    ("threshold", "threshold", Unit::Bytes),
    ("nbatch", "nbatch", Unit::Number),
];

/// An option that varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::report) struct Axis {
    flag: &'static str,
    /// Title of a column.
    pub(in crate::report) title: &'static str,
    unit: Unit,
    /// Number of different values.
    values: usize,
}

/// Configurations that differ in one option only, for one chart.
pub(in crate::report) struct Panel<'a> {
    /// The other options, or nothing if no other option varies.
    pub(in crate::report) title: String,
    /// The option's value and the configuration, by value.
    pub(in crate::report) points: Vec<(f64, &'a PredictedRun)>,
}

impl Axis {
    /// The options that vary among these configurations.
    pub(in crate::report) fn varied(runs: &[PredictedRun]) -> Vec<Axis> {
        let axes = OPTIONS.iter().map(|option| Axis::of(option, runs));
        axes.filter(|axis| axis.values > 1).collect()
    }

    /// The columns of a table: the options that vary, or the cache if none does.
    pub(in crate::report) fn columns(runs: &[PredictedRun]) -> Vec<Axis> {
        let varied = Axis::varied(runs);
        if !varied.is_empty() {
            return varied;
        }
        let first = Axis::of(&OPTIONS[0], runs);
        Vec::from_iter((first.values > 0).then_some(first))
    }

    fn of(
        &(flag, title, unit): &(&'static str, &'static str, Unit),
        runs: &[PredictedRun],
    ) -> Axis {
        let shares = runs.iter().all(|run| run.cache_share.is_some());
        let unit = match unit {
            Unit::Cache if !shares => Unit::Bytes,
            unit => unit,
        };
        let mut axis = Axis {
            flag,
            title,
            unit,
            values: 0,
        };
        let mut values: Vec<f64> = runs.iter().filter_map(|run| axis.value(run)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        axis.values = values.len();
        axis
    }

    /// The option's value: bytes, per cent or a number; `None` if the tree or device has no such
    /// option.
    fn value(&self, run: &PredictedRun) -> Option<f64> {
        let value = || run.options.get(self.flag)?.as_f64();
        match self.unit {
            Unit::Cache => run.cache_share.map(|share| 100.0 * share),
            Unit::Share => value().map(|share| 100.0 * share),
            Unit::Bytes | Unit::Number => value(),
        }
    }

    /// The option's value in words.
    pub(in crate::report) fn said(&self, run: &PredictedRun) -> String {
        let Some(value) = self.value(run) else {
            return "–".into();
        };
        // Rounded, because 100 times 0.07 is not 7.
        let rounded = (value * 1e6).round() / 1e6;
        match self.unit {
            Unit::Cache | Unit::Share => format!("{rounded} %"),
            Unit::Bytes => bytes(value),
            Unit::Number => rounded.to_string(),
        }
    }

    /// The option's value in words and as a number.
    pub(in crate::report) fn cell(&self, run: &PredictedRun) -> (String, Option<f64>) {
        (self.said(run), self.value(run))
    }

    /// The values of these options in words.
    pub(super) fn name_of(axes: &[Axis], run: &PredictedRun) -> String {
        let said = axes
            .iter()
            .map(|axis| format!("{} {}", axis.title, axis.said(run)));
        said.collect::<Vec<_>>().join(", ")
    }

    /// The option that has the most values, for the x axis of charts; `None` if none varies.
    pub(in crate::report) fn main(runs: &[PredictedRun]) -> Option<Axis> {
        let axes = Axis::varied(runs);
        // Of several, the first.
        axes.into_iter().rev().max_by_key(|axis| axis.values)
    }

    /// Whether its values are sizes or shares, not plain numbers.
    pub(in crate::report) fn is_size(&self) -> bool {
        self.unit != Unit::Number
    }

    /// The label of an x axis, and by what values are divided.
    pub(in crate::report) fn label(&self, runs: &[PredictedRun]) -> (String, f64) {
        let most = runs.iter().filter_map(|run| self.value(run));
        let most = most.fold(0.0, f64::max);
        let (unit, divisor) = match self.unit {
            Unit::Cache => ("% of the data set", 1.0),
            Unit::Share => ("%", 1.0),
            Unit::Number => return (self.title.into(), 1.0),
            Unit::Bytes if most >= f64::from(10 << 20) => ("MiB", f64::from(1 << 20)),
            Unit::Bytes if most >= f64::from(10 << 10) => ("KiB", f64::from(1 << 10)),
            Unit::Bytes => ("bytes", 1.0),
        };
        (format!("{}, {unit}", self.title), divisor)
    }

    /// The charts over this option: one for each combination of the other options.
    pub(in crate::report) fn panels<'a>(&self, runs: &'a [PredictedRun]) -> Vec<Panel<'a>> {
        let others: Vec<Axis> = Axis::varied(runs)
            .into_iter()
            .filter(|axis| axis.flag != self.flag)
            .collect();
        let mut panels: Vec<Panel<'a>> = Vec::new();
        for run in runs {
            let Some(value) = self.value(run) else {
                continue;
            };
            let title = Axis::name_of(&others, run);
            match panels.iter_mut().find(|panel| panel.title == title) {
                Some(panel) => panel.points.push((value, run)),
                None => panels.push(Panel {
                    title,
                    points: vec![(value, run)],
                }),
            }
        }
        for panel in &mut panels {
            panel.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        panels
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(cache_share: Option<f64>, page: u64, op: f64) -> PredictedRun {
        let options = [
            ("cache", json!(1 << 20)),
            ("page", json!(page)),
            ("op", json!(op)),
            ("threshold", json!(0)),
        ];
        PredictedRun {
            options: options.map(|(name, value)| (name.into(), value)).into(),
            cache_share,
            ..PredictedRun::default()
        }
    }

    #[test]
    fn options_that_vary_are_axes_and_the_longest_is_the_x_axis() {
        let runs = [4096, 8192]
            .into_iter()
            .flat_map(|page| [0.2, 0.01, 0.05].map(|cache| run(Some(cache), page, 0.07)));
        let runs: Vec<PredictedRun> = runs.collect();
        let titles: Vec<_> = Axis::varied(&runs).iter().map(|axis| axis.title).collect();
        assert_eq!(titles, ["cache", "page"]);
        let axis = Axis::main(&runs).expect("an axis");
        assert_eq!(axis.label(&runs).0, "cache, % of the data set");
        let panels = axis.panels(&runs);
        let titles: Vec<_> = panels.iter().map(|panel| &*panel.title).collect();
        assert_eq!(titles, ["page 4.0 KiB", "page 8.0 KiB"]);
        let values: Vec<_> = panels[0].points.iter().map(|(value, _)| *value).collect();
        assert_eq!(values, [1.0, 5.0, 20.0]);
        assert_eq!(axis.said(&runs[2]), "5 %");
    }

    #[test]
    fn if_nothing_varies_the_cache_is_named_in_bytes_or_as_a_share() {
        for (share, said) in [(Some(0.07), "7 %"), (None, "1.0 MiB")] {
            let runs = [run(share, 4096, 0.07)];
            assert!(Axis::varied(&runs).is_empty() && Axis::main(&runs).is_none());
            let columns = Axis::columns(&runs);
            assert_eq!(columns.len(), 1);
            assert_eq!(columns[0].said(&runs[0]), said);
        }
    }

    #[test]
    fn shares_and_bytes_together_are_compared_in_bytes() {
        let runs = [run(Some(0.1), 4096, 0.07), run(None, 4096, 0.28)];
        let axes = Axis::varied(&runs);
        assert_eq!(axes.len(), 1, "both caches have a mebibyte: {axes:?}");
        assert_eq!(axes[0].said(&runs[1]), "28 %");
    }
}
