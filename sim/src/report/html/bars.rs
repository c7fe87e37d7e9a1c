//! Bars: side by side in groups, or shares of a whole upon each other.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::pictures::{Area, Drawn, INK, LINE, Plain, anchored, draw, font, legend, number, up_to};

/// Bars side by side in groups, one group a name on the x axis.
pub(super) struct Bars<'a> {
    pub(super) groups: Vec<String>,
    pub(super) series: Vec<Series<'a>>,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
}

/// One bar of each group: what the legend calls them (nothing if there is but one), heights, and what stands above them.
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    pub(super) colour: RGBColor,
    pub(super) heights: Vec<f64>,
    pub(super) labels: Vec<String>,
}

pub(super) fn bars(all: &Bars<'_>) -> String {
    let heights = all.series.iter().flat_map(|s| &s.heights);
    let most = heights.copied().fold(0.0, f64::max);
    let names = all.series.iter().filter(|s| !s.name.is_empty());
    let names: Vec<_> = names.map(|s| (s.name, s.colour)).collect();
    draw(300, |area| {
        if names.is_empty() {
            return groups(area, all, most);
        }
        let below = legend(area, names.iter().copied())?;
        groups(&below, all, most)
    })
}

/// Axes of bars, whose own names stand on the x axis.
fn mesh(chart: &mut Plain<'_, '_>, x: Option<&str>, y: &str) -> Drawn {
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LINE)
        .axis_style(LINE)
        .y_desc(y)
        .label_style(font(14))
        .x_labels(0)
        .y_label_formatter(&|y| number(*y));
    if let Some(x) = x {
        mesh.x_desc(x);
    }
    mesh.draw()
}

pub(super) fn groups(area: &Area<'_>, all: &Bars<'_>, most: f64) -> Drawn {
    let count = all.groups.len().max(1);
    let range = up_to(most, 1.12);
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .margin_top(12)
        .x_label_area_size(60)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..count as f64, range.clone())?;
    mesh(&mut chart, Some(all.x), all.y)?;
    let width = 0.8 / all.series.len().max(1) as f64;
    for (i, series) in all.series.iter().enumerate() {
        for (group, (height, label)) in series.heights.iter().zip(&series.labels).enumerate() {
            let from = group as f64 + 0.1 + i as f64 * width;
            let corners = [(from, 0.0), (from + width, *height)];
            let mut bar = Rectangle::new(corners, series.colour.filled());
            bar.set_margin(0, 0, 1, 1);
            chart.draw_series([bar])?;
            let above = Text::new(label.clone(), (0, -9), centred());
            chart.draw_series([EmptyElement::at((from + width / 2.0, *height)) + above])?;
        }
    }
    for (group, name) in all.groups.iter().enumerate() {
        let below = Text::new(name.clone(), (0, 14), centred());
        chart.draw_series([EmptyElement::at((group as f64 + 0.5, 0.0)) + below])?;
    }
    Ok(())
}

fn centred() -> TextStyle<'static> {
    anchored(HPos::Center).color(&INK)
}

/// Shares of a whole, one bar a name on the x axis.
pub(super) struct Stacks<'a> {
    pub(super) bars: Vec<String>,
    /// Names of the parts, their colours, and what share of each bar they are.
    pub(super) parts: Vec<(&'a str, RGBColor, Vec<f64>)>,
    pub(super) y: &'a str,
}

pub(super) fn stacks(area: &Area<'_>, all: &Stacks<'_>) -> Drawn {
    let named = all.parts.iter().map(|(name, colour, _)| (*name, *colour));
    let below = legend(area, named)?;
    let mut chart = ChartBuilder::on(&below)
        .margin_right(20)
        .margin_top(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..all.bars.len().max(1) as f64, 0.0..100.0)?;
    mesh(&mut chart, None, all.y)?;
    for (bar, name) in all.bars.iter().enumerate() {
        let (left, right) = (bar as f64 + 0.2, bar as f64 + 0.8);
        let mut from = 0.0;
        for (_, colour, shares) in &all.parts {
            let to = from + 100.0 * shares.get(bar).copied().unwrap_or(0.0);
            if to > from {
                let corners = [(left, from), (right, to)];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
            }
            from = to;
        }
        let below = Text::new(name.clone(), (0, 14), centred());
        chart.draw_series([EmptyElement::at((bar as f64 + 0.5, 0.0)) + below])?;
    }
    Ok(())
}
