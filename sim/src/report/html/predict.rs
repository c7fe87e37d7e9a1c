//! The page and the charts of predictions without a run: write amplification by component, and
//! hits, over the option that varies.

use super::chart::draw;
use super::lines::{Curve, Lines, Scale};
use super::page::{escape, heading, page, sentences};
use super::tables::{Cell, Table};
use crate::predict::tried::Decides;
use crate::report::predict::{Axis, Panel, PredictReport, PredictedRun};

/// A ratio of the largest to the smallest value from which on an axis is logarithmic.
const WIDE_RANGE: f64 = 8.0;

/// Height of a chart in an SVG of several, including its legend.
const CHART_HEIGHT: u32 = 360;

/// A chart, and its title.
struct Chart {
    title: String,
    x: String,
    y: String,
    scale: Scale,
    curves: Vec<Curve>,
}

impl Chart {
    fn lines(&self) -> Lines<'_> {
        Lines {
            x: &self.x,
            y: &self.y,
            scale: self.scale,
            y_scale: Scale::Linear,
            curves: self.curves.clone(),
        }
    }
}

/// Renders the page. `command` is the command line that makes the same report, if there is one.
#[must_use]
pub fn predict_page(r: &PredictReport, command: Option<&str>) -> String {
    let title = format!("{} on {}, predicted", r.trace.name, r.tree);
    let mut about = vec![r.trace.source.clone()];
    about.extend(r.about());
    let mut out = sentences(&about);
    if !r.complete {
        out += &format!(
            "<p class=\"warn\">Interrupted: {} of {} configurations are predicted.</p>\n",
            r.configurations.len(),
            r.requested
        );
    }
    for chart in charts(r) {
        out += &heading(&chart.title);
        out += &chart.lines().picture().figure(&chart.title);
    }
    out += &heading("All configurations");
    out += &table(&r.configurations);
    for note in r.notes() {
        out += &format!("<p class=\"warn\">{}</p>\n", escape(&note));
    }
    if let Some(command) = command {
        out += &heading("How to reproduce this report");
        out += &format!("<pre><code>{}</code></pre>\n", escape(command));
    }
    page(&title, &out)
}

/// All charts in one SVG, one below the other; `None` if no option varies, because then there are
/// no curves.
#[must_use]
pub fn predict_svg(r: &PredictReport) -> Option<String> {
    let charts = charts(r);
    let count = charts.len() as u32;
    (count > 0).then(|| {
        draw(count * CHART_HEIGHT, |area| {
            for (part, chart) in area.split_evenly((charts.len(), 1)).iter().zip(&charts) {
                chart.lines().picture().with_legend(part)?;
            }
            Ok(())
        })
    })
}

fn charts(r: &PredictReport) -> Vec<Chart> {
    let runs = &r.configurations;
    let Some(axis) = Axis::main(runs) else {
        return Vec::new();
    };
    let (x, divisor) = axis.label(runs);
    let panels = axis.panels(runs);
    let charts = panels
        .iter()
        .flat_map(|panel| of_panel(panel, &axis, &x, divisor));
    charts.collect()
}

/// Write amplification and hits over one option.
fn of_panel(panel: &Panel<'_>, axis: &Axis, x: &str, divisor: f64) -> Vec<Chart> {
    let values: Vec<f64> = panel
        .points
        .iter()
        .map(|(value, _)| value / divisor)
        .collect();
    let at = |i: usize| values[i];
    let least = values.first().copied().unwrap_or(0.0);
    let most = values.last().copied().unwrap_or(0.0);
    let scale = match least > 0.0 && most / least >= WIDE_RANGE {
        true => Scale::Log,
        false => Scale::Linear,
    };
    let titled = |what: &str| match panel.title.is_empty() {
        true => format!("{what} by {}", axis.title),
        false => format!("{what} by {}, {}", axis.title, panel.title),
    };
    let chart = |title: String, y: String, curves: Vec<Curve>| Chart {
        title,
        x: x.to_string(),
        y,
        scale,
        curves,
    };
    // In a picture without headings, the axis says what the panel is of.
    let of_panel = match panel.title.is_empty() {
        true => String::new(),
        false => format!(" ({})", panel.title),
    };
    let first = panel.points.first().map(|(_, run)| run.components());
    let names = first.unwrap_or_default().into_iter().map(|(name, ..)| name);
    let mut charts = Vec::new();
    let curves: Vec<Curve> = names
        .map(|name| Curve {
            name: name.into(),
            points: (panel.points.iter().enumerate())
                .filter_map(|(i, (_, run))| Some((at(i), component(run, name)?)))
                .collect(),
        })
        .collect();
    if !curves.is_empty() {
        let title = titled("Predicted write amplification");
        charts.push(chart(
            title,
            format!("bytes written / user bytes{of_panel}"),
            curves,
        ));
    }
    let hits: Vec<(f64, f64)> = (panel.points.iter().enumerate())
        .filter_map(|(i, (_, run))| Some((at(i), 100.0 * run.hit_ratio?.estimate.value)))
        .collect();
    if !hits.is_empty() {
        let curve = Curve {
            name: "page accesses that hit the cache".into(),
            points: hits,
        };
        let title = titled("Predicted hit ratio");
        charts.push(chart(title, format!("hits, %{of_panel}"), vec![curve]));
    }
    charts
}

fn component(run: &PredictedRun, name: &str) -> Option<f64> {
    let components = run.components();
    let found = components.iter().find(|(n, ..)| *n == name);
    found.map(|(_, value, _)| value.estimate.value)
}

fn table(runs: &[PredictedRun]) -> String {
    let axes = Axis::columns(runs);
    let longest = runs
        .iter()
        .map(PredictedRun::components)
        .max_by_key(Vec::len);
    let parts = longest.unwrap_or_default();
    let mut head: Vec<&str> = axes.iter().map(|axis| axis.title).collect();
    head.extend(parts.iter().map(|(name, ..)| *name));
    let hits = runs.iter().any(|run| run.hit_ratio.is_some());
    head.extend(hits.then_some("hits"));
    let row = |run: &PredictedRun| {
        let value = |name: &str, part: Decides| {
            let mark = if run.is_untried(part) { " ?" } else { "" };
            Cell::optional(component(run, name), |v| format!("{v:.3}{mark}"))
        };
        let axes = axes.iter().map(|axis| axis.cell(run));
        let mut cells: Vec<Cell> = axes
            .map(|(text, value)| Cell::optional(value, |_| text))
            .collect();
        cells.extend(parts.iter().map(|(name, _, part)| value(name, *part)));
        let ratio = run.hit_ratio.map(|hits| 100.0 * hits.estimate.value);
        cells.extend(hits.then(|| Cell::optional(ratio, |v| format!("{v:.1} %"))));
        cells
    };
    let table = Table {
        label: "Predicted write amplification and hits of all configurations",
        head,
        rows: runs.iter().map(row).collect(),
    };
    table.html()
}
