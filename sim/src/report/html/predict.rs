//! The page and the charts of predictions without a run: write amplification by component, and
//! hits, over the option that varies.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::chart::{Picture, anchored, draw};
use super::lines::{Band, Curve, Lines, Scale};
use super::page::{escape, heading, page, sentences};
use super::tables::{Cell, Table};
use crate::predict::Estimate;
use crate::predict::tried::Decides;
use crate::report::PredictedValue;
use crate::report::predict::{Axis, Panel, PredictReport, PredictedRun};

/// Height of a chart in an SVG of several: its title, and the rest with the legend.
const TITLE_HEIGHT: i32 = 26;
const CHART_HEIGHT: i32 = 360;

/// A chart, and its title.
struct Chart {
    title: String,
    x: String,
    y: String,
    scale: Scale,
    curves: Vec<Curve>,
    /// The intervals of the curves.
    bands: Vec<Band>,
}

impl Chart {
    fn picture(&self) -> Picture<'_> {
        let lines = Lines {
            x: &self.x,
            y: &self.y,
            scale: self.scale,
            y_scale: Scale::Linear,
            curves: self.curves.clone(),
        };
        lines.with_bands(self.bands.clone())
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
        out += &chart.picture().figure(&chart.title);
    }
    out += &heading("All configurations");
    out += &table(&r.configurations);
    out += &sentences(&Vec::from_iter(r.legend().map(String::from)));
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
    let height = charts.len() as i32 * (TITLE_HEIGHT + CHART_HEIGHT);
    (!charts.is_empty()).then(|| {
        draw(height as u32, |area| {
            for (part, chart) in area.split_evenly((charts.len(), 1)).iter().zip(&charts) {
                let (above, below) = part.split_vertically(TITLE_HEIGHT);
                let at = (20, TITLE_HEIGHT / 2 + 4);
                above.draw(&Text::new(chart.title.clone(), at, anchored(HPos::Left)))?;
                chart.picture().with_legend(&below)?;
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
    let panels = axis.panels(runs);
    let charts = panels
        .iter()
        .flat_map(|panel| of_panel(panel, &axis, axis.label(runs)));
    charts.collect()
}

/// Write amplification and hits over one option; its values are divided by `divisor`.
fn of_panel(panel: &Panel<'_>, axis: &Axis, (x, divisor): (String, f64)) -> Vec<Chart> {
    let curve = |name: &str, unit: f64, of: &dyn Fn(&PredictedRun) -> Option<PredictedValue>| {
        let points = panel.points.iter();
        let points = points.filter_map(|(value, run)| Some((value / divisor, of(run)?.estimate)));
        let points: Vec<(f64, Estimate)> = points.collect();
        let ends = |(x, of): &(f64, Estimate)| Some((*x, unit * of.low?, unit * of.high?));
        let band: Option<Band> = points.iter().map(ends).collect();
        let curve = Curve {
            name: name.into(),
            points: points.iter().map(|(x, of)| (*x, unit * of.value)).collect(),
        };
        (curve, band.unwrap_or_default())
    };
    let first = panel.points.first().map(|(_, run)| run.components());
    let names = first.unwrap_or_default().into_iter().map(|(name, ..)| name);
    let amplification = names.map(|name| curve(name, 1.0, &|run| component(run, name)));
    let hits = curve("page accesses that hit the cache", 100.0, &|run| {
        run.hit_ratio
    });
    let charts = [
        (
            "Predicted write amplification",
            "bytes written / user bytes",
            amplification.collect::<Vec<_>>(),
        ),
        ("Predicted hit ratio", "hits, %", vec![hits]),
    ];
    let drawn = |all: &[(Curve, Band)]| all.iter().any(|(curve, _)| !curve.points.is_empty());
    let charts = charts.into_iter().filter(|(.., curves)| drawn(curves));
    let chart = charts.map(|(what, y, curves)| (what, y, curves.into_iter().unzip()));
    let chart = chart.map(|(what, y, (curves, bands))| Chart {
        title: match panel.title.is_empty() {
            true => format!("{what} by {}", axis.title),
            false => format!("{what} by {}, {}", axis.title, panel.title),
        },
        x: x.clone(),
        y: y.into(),
        scale: scale(axis, panel),
        curves,
        bands,
    });
    chart.collect()
}

/// Sizes and shares are compared by ratio, unless they are close together.
fn scale(axis: &Axis, panel: &Panel<'_>) -> Scale {
    let values = || panel.points.iter().map(|(value, _)| *value);
    let (least, most) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    match axis.is_size() && least > 0.0 && most >= 3.0 * least {
        true => Scale::Log,
        false => Scale::Linear,
    }
}

fn component(run: &PredictedRun, name: &str) -> Option<PredictedValue> {
    let components = run.components();
    let found = components.iter().find(|(n, ..)| *n == name);
    found.map(|(_, value, _)| *value)
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
            let found = component(run, name);
            let said = found.map(|value| value.said() + mark);
            Cell::optional(found.map(|value| value.value()), |_| {
                said.unwrap_or_default()
            })
        };
        let axes = axes.iter().map(|axis| axis.cell(run));
        let mut cells: Vec<Cell> = axes
            .map(|(text, value)| Cell::optional(value, |_| text))
            .collect();
        cells.extend(parts.iter().map(|(name, _, part)| value(name, *part)));
        let ratio = run.hit_ratio.map(|hits| 100.0 * hits.value());
        let said = run.hit_ratio.map(|hits| hits.said_of_share());
        cells.extend(hits.then(|| Cell::optional(ratio, |_| said.unwrap_or_default())));
        cells
    };
    let table = Table {
        label: "Predicted write amplification and hits of all configurations",
        head,
        rows: runs.iter().map(row).collect(),
    };
    table.html()
}
