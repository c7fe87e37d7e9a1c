//! Measured beside predicted: the rows, and the table over them.

use std::fmt::{self, Write as _};

use treering_sim::predict::Estimate;
use treering_sim::replay::{ReplayConfig, run as replay};
use treering_sim::report::{LEAST_SHARE, PredictedValue, ReplayReport};

use crate::choice::{Choice, What};
use crate::designs::Cell;
use crate::inputs::Input;

/// Groups of rows in the table, with the most that `quick` accepts of the median, the 90th
/// percentile and the worst, in per cent. The worst one of a generated trace on a drive is that of a
/// queue whose log compresses (docs/PREDICTION.md).
const GROUPS: [(&str, [f64; 3]); 6] = [
    ("real, host", [2.0, 5.0, 10.0]),
    ("real, device", [4.0, 8.0, 15.0]),
    ("real, persistent memory", [2.0, 5.0, 10.0]),
    ("generated, host", [2.0, 5.0, 10.0]),
    ("generated, device", [4.0, 8.0, 25.0]),
    ("generated, persistent memory", [2.0, 5.0, 10.0]),
];

/// The kinds of values, in the order of [`GROUPS`].
const HOST: usize = 0;
const DEVICE: usize = 1;
const PM: usize = 2;

/// A component: measured, predicted, and the relative half-width of its error bar.
struct Value {
    kind: usize,
    component: &'static str,
    measured: f64,
    predicted: f64,
    bar: Option<f64>,
    /// Measured value of the total that it is a part of.
    total: f64,
}

impl Value {
    /// Whether it is at least 3 % of its total.
    fn counts(&self) -> bool {
        let largest = self.measured.max(self.predicted);
        largest > 0.0 && largest >= LEAST_SHARE * self.total
    }
}

/// One compared value.
pub(crate) struct Row {
    /// Index into [`GROUPS`].
    group: usize,
    cell: String,
    value: Value,
}

impl Row {
    fn error(&self) -> f64 {
        self.value.measured / self.value.predicted - 1.0
    }

    /// Whether the measured value lies within the error bar; `None` without one.
    fn is_inside(&self) -> Option<bool> {
        self.value.bar.map(|bar| self.error().abs() <= bar)
    }
}

/// Runs a cell and compares.
pub(crate) fn run(choice: &Choice, input: &Input, cell: &Cell) -> Vec<Row> {
    let report = |config: &ReplayConfig| {
        replay(config, &mut |_| {}).unwrap_or_else(|e| panic!("{}: {e}", cell.name))
    };
    let values = match choice.what {
        What::Prefix => of_prefix(&cell.config, &report),
        What::Points(_) | What::Curves => values(&report(&cell.config)),
    };
    let side = GROUPS.len() / 2 * usize::from(!input.is_real);
    (values.into_iter().filter(Value::counts))
        .map(|value| Row {
            group: side + value.kind,
            cell: cell.name.clone(),
            value,
        })
        .collect()
}

/// The second half of a run, beside what the second quarter of the measured operations predicts.
/// The first quarter shows how much windows disagree, which widens the error bar.
fn of_prefix(config: &ReplayConfig, report: &impl Fn(&ReplayConfig) -> ReplayReport) -> Vec<Value> {
    let header = treering_traces::open(&config.trace).expect("a trace");
    let (ops, warmup) = (header.header().ops, header.header().warmup_ops);
    let quarter = (ops - warmup) / 4;
    let part = |from: u64, to: u64, predict: bool| {
        let mut config = config.clone();
        config.limit = Some(to);
        config.warmup = Some(from as f64 / to as f64);
        config.predict = predict;
        report(&config)
    };
    let first = values(&part(warmup, warmup + quarter, true));
    let second = values(&part(warmup + quarter, warmup + 2 * quarter, true));
    let rest = part(warmup + 2 * quarter, ops, false);
    let rest = measured(&rest);
    let known = second.into_iter().filter_map(|value| {
        let named = |v: &&Value| v.component == value.component;
        let (measured, total) = rest.iter().find(|v| v.0 == value.component)?.1;
        let other = first.iter().find(named)?.predicted;
        let apart = (other / value.predicted - 1.0).abs();
        Some(Value {
            measured,
            total,
            bar: Some(value.bar.unwrap_or(0.0).hypot(apart)),
            ..value
        })
    });
    known.collect()
}

/// Each measured component with its total.
fn measured(report: &ReplayReport) -> Vec<(&'static str, (f64, f64))> {
    if let Some(pm) = &report.pm {
        let (m, total) = (&pm.measured, pm.measured.xbi);
        return vec![
            ("pm cli", (m.cli, m.cli)),
            ("pm total", (m.xbi, total)),
            ("pm leaf", (m.xbi_leaf, total)),
            ("pm log", (m.xbi_log, total)),
            ("pm extra", (m.xbi_extra, total)),
        ];
    }
    let host = &report.wa.host;
    let mut all = vec![
        ("host log", (host.log, host.total)),
        ("host page", (host.page, host.total)),
        ("host extra", (host.extra, host.total)),
        ("host total", (host.total, host.total)),
    ];
    if let Some(device) = &report.wa.device {
        all.push(("device gc", (device.gc, device.total)));
        all.push(("device total", (device.total, device.total)));
    }
    all
}

/// Each component, measured and predicted.
fn values(report: &ReplayReport) -> Vec<Value> {
    let mut predicted: Vec<(usize, PredictedValue)> = Vec::new();
    if let Some(p) = report.pm.as_ref().and_then(|pm| pm.predicted.as_ref()) {
        let all = [p.cli, p.xbi, p.xbi_leaf, p.xbi_log, p.xbi_extra];
        predicted.extend(all.map(|value| (PM, value)));
    } else if let Some(p) = &report.wa.predicted {
        let host = [p.host.log, p.host.page, p.host.extra, p.host.total];
        predicted.extend(host.map(|value| (HOST, value)));
        if let Some(device) = &p.device {
            predicted.extend([device.gc, device.total].map(|value| (DEVICE, value)));
        }
    }
    let both = measured(report).into_iter().zip(predicted);
    both.map(|((component, (measured, total)), (kind, predicted))| {
        let Estimate { value, high, .. } = predicted.estimate;
        Value {
            kind,
            component,
            measured,
            predicted: value,
            bar: high
                .map(|high| high / value - 1.0)
                .filter(|bar| bar.is_finite()),
            total,
        }
    })
    .collect()
}

/// The errors of a cell in one line.
pub(crate) fn sentence(rows: &[Row]) -> String {
    let of = |row: &Row| {
        let mark = if row.is_inside() == Some(false) {
            "!"
        } else {
            ""
        };
        format!(
            "{} {:+.2} %{mark}",
            row.value.component,
            100.0 * row.error()
        )
    };
    rows.iter().map(of).collect::<Vec<_>>().join("  ")
}

/// All rows as tab-separated lines.
pub(crate) fn lines(rows: &[Row]) -> String {
    let mut text = String::from("cell\tcomponent\tmeasured\tpredicted\terror\tbar\n");
    for row in rows {
        let Row { cell, value, .. } = row;
        let bar = value.bar.map_or(String::new(), |bar| bar.to_string());
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{cell}\t{}\t{}\t{}\t{}\t{bar}",
            value.component,
            value.measured,
            value.predicted,
            row.error()
        );
    }
    text
}

/// Figures over the rows of one group.
struct Group {
    name: &'static str,
    bounds: [f64; 3],
    number: usize,
    /// Median, 90th percentile and largest of the absolute errors, in per cent.
    errors: [f64; 3],
    worst: String,
    /// Share of values within their bars, in per cent, and the median full width of a bar, in per
    /// cent of the value; `None` without bars.
    bars: Option<[f64; 2]>,
}

impl Group {
    fn new(index: usize, rows: &[Row]) -> Option<Group> {
        let (name, bounds) = GROUPS[index];
        let mut rows: Vec<&Row> = rows.iter().filter(|row| row.group == index).collect();
        rows.sort_by(|a, b| a.error().abs().total_cmp(&b.error().abs()));
        let last = rows.last()?;
        let at = |share: f64| {
            let place = (share * (rows.len() - 1) as f64).round() as usize;
            100.0 * rows[place].error().abs()
        };
        let inside: Vec<bool> = rows.iter().filter_map(|row| row.is_inside()).collect();
        let mut widths: Vec<f64> = rows.iter().filter_map(|row| row.value.bar).collect();
        widths.sort_by(f64::total_cmp);
        let share = inside.iter().filter(|inside| **inside).count() as f64 / inside.len() as f64;
        Some(Group {
            name,
            bounds,
            number: rows.len(),
            errors: [at(0.5), at(0.9), at(1.0)],
            worst: format!("{}: {}", last.cell, last.value.component),
            bars: (widths.get(widths.len() / 2)).map(|half| [100.0 * share, 200.0 * half]),
        })
    }

    fn holds(&self) -> bool {
        (self.errors.iter().zip(self.bounds)).all(|(error, bound)| *error <= bound)
    }
}

/// The table that the command prints.
pub(crate) struct Table(Vec<Group>);

impl Table {
    pub(crate) fn new(rows: &[Row]) -> Table {
        Table(
            (0..GROUPS.len())
                .filter_map(|i| Group::new(i, rows))
                .collect(),
        )
    }

    /// Whether every group is within its bounds.
    pub(crate) fn holds(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(Group::holds)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| group | values | median | 90th percentile | worst | within bars | width |"
        )?;
        writeln!(f, "|---|--:|--:|--:|--:|--:|--:|")?;
        for group in &self.0 {
            let [median, most, worst] = group.errors;
            let bars = match group.bars {
                Some([share, width]) => format!("{share:.0} % | {width:.1} %"),
                None => "– | –".into(),
            };
            writeln!(
                f,
                "| {} | {} | {median:.2} % | {most:.1} % | {worst:.1} % | {bars} |",
                group.name, group.number
            )?;
        }
        for group in &self.0 {
            let mark = if group.holds() { "" } else { " (over a bound)" };
            writeln!(f, "\nworst of {}: {}{mark}", group.name, group.worst)?;
        }
        Ok(())
    }
}
