//! Pictures of mini-pages: what answered lookups, how large they are, how many records they merge at once.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::pictures::{Area, Drawn, INK, LINE, PARTS, anchored, draw, font, legend, number, up_to};
use crate::report::MiniPagesReport;
use crate::report::text::{bytes, grouped};

/// Bars side by side in groups, one group a name on the x axis.
struct Bars<'a> {
    groups: Vec<String>,
    series: Vec<Series<'a>>,
    x: &'a str,
    y: &'a str,
}

/// One bar of each group: what the legend calls them (nothing if there is but one), heights, and what stands above them.
struct Series<'a> {
    name: &'a str,
    colour: RGBColor,
    heights: Vec<f64>,
    labels: Vec<String>,
}

/// Lookups by the kind of record that answered, and those that the leaf had to answer.
pub(super) fn hits(m: &MiniPagesReport) -> String {
    let mut counts: Vec<(&str, u64)> = m.hits.iter().to_vec();
    counts.push(("none: leaf read", m.misses));
    let all: u64 = counts.iter().map(|(_, n)| n).sum();
    let share = |n: u64| 100.0 * n as f64 / all.max(1) as f64;
    bars(&Bars {
        groups: counts.iter().map(|(name, _)| (*name).to_string()).collect(),
        series: vec![Series {
            name: "",
            colour: PARTS[0].1,
            heights: counts.iter().map(|(_, n)| share(*n)).collect(),
            labels: counts.iter().map(|(_, n)| grouped(*n)).collect(),
        }],
        x: "kind of record that answered a lookup",
        y: "share of lookups, %",
    })
}

/// Mini-pages by size: those in the ring at the end, and those that were made.
pub(super) fn sizes(m: &MiniPagesReport) -> String {
    let series = |name, colour, of: &dyn Fn(usize) -> u64| {
        let counts: Vec<u64> = (0..m.sizes.len()).map(of).collect();
        let all: u64 = counts.iter().sum();
        let share = |n: &u64| 100.0 * *n as f64 / all.max(1) as f64;
        Series {
            name,
            colour,
            heights: counts.iter().map(share).collect(),
            labels: counts.iter().map(|n| short_count(*n)).collect(),
        }
    };
    bars(&Bars {
        groups: m.sizes.iter().map(|s| bytes(s.bytes as f64)).collect(),
        series: vec![
            series("in the ring at the end", PARTS[0].1, &|i| m.sizes[i].live),
            series("made, all along", PARTS[1].1, &|i| m.sizes[i].allocated),
        ],
        x: "size of the mini-page",
        y: "share of mini-pages, %",
    })
}

/// Merges by how many records went down together.
pub(super) fn merges(m: &MiniPagesReport) -> String {
    let share = |n: u64| 100.0 * n as f64 / m.merges.max(1) as f64;
    bars(&Bars {
        groups: m.merge_sizes.iter().map(|bin| bin.name()).collect(),
        series: vec![Series {
            name: "",
            colour: PARTS[2].1,
            heights: m.merge_sizes.iter().map(|bin| share(bin.merges)).collect(),
            labels: m
                .merge_sizes
                .iter()
                .map(|bin| grouped(bin.merges))
                .collect(),
        }],
        x: "records merged at once",
        y: "share of merges, %",
    })
}

/// 12,345, and 1.2M where that is shorter.
fn short_count(n: u64) -> String {
    match n {
        0..10_000 => grouped(n),
        10_000..1_000_000 => format!("{:.0}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

fn bars(all: &Bars<'_>) -> String {
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

fn groups(area: &Area<'_>, all: &Bars<'_>, most: f64) -> Drawn {
    let count = all.groups.len().max(1);
    let range = up_to(most, 1.12);
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .margin_top(12)
        .x_label_area_size(60)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..count as f64, range.clone())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LINE)
        .axis_style(LINE)
        .x_desc(all.x)
        .y_desc(all.y)
        .label_style(font(14))
        // The groups' own names stand there.
        .x_labels(0)
        .y_label_formatter(&|y| number(*y))
        .draw()?;
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
