//! The pictures, as SVG: drawn by plotters, without fonts of its own.
//!
//! Colours are those of Okabe and Ito, which stay apart for colour-blind readers.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::escape;
use crate::report::text::duration;
use crate::report::{Amplification, HostWa, ReplayReport};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Host log, page, extra and the drive's garbage collection.
pub(super) const PARTS: [(&str, RGBColor); 4] = [
    ("host log", RGBColor(0x00, 0x72, 0xb2)),
    ("host page", RGBColor(0xe6, 0x9f, 0x00)),
    ("host extra", RGBColor(0x00, 0x9e, 0x73)),
    ("device gc", RGBColor(0xcc, 0x79, 0xa7)),
];
pub(super) const INK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
pub(super) const LINE: RGBColor = RGBColor(0xd8, 0xdd, 0xe3);
const WIDTH: u32 = 860;
const LEGEND_ROW: i32 = 24;

pub(super) fn draw(height: u32, picture: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    let drawn = {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        (area.fill(&WHITE))
            .and_then(|()| picture(&area))
            .and_then(|()| area.present())
    };
    match drawn {
        Ok(()) => svg,
        Err(e) => format!("<p>{}</p>", escape(&e.to_string())),
    }
}

pub(super) fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

pub(super) fn anchored(horizontal: HPos) -> TextStyle<'static> {
    font(15).pos(Pos::new(horizontal, VPos::Center))
}

/// Names with their colours, side by side, in as many rows as they need; gives what is left below them.
pub(super) fn legend<'d, 'a>(
    area: &Area<'d>,
    names: impl Iterator<Item = (&'a str, RGBColor)>,
) -> Result<Area<'d>, DrawingAreaErrorKind<std::io::Error>> {
    let (mut x, mut y) = (20, 10);
    for (name, colour) in names {
        let width = 20 + 8 * name.len() as i32;
        if x > 20 && x + width > WIDTH as i32 {
            (x, y) = (20, y + LEGEND_ROW);
        }
        area.draw(&Rectangle::new([(x, y), (x + 14, y + 14)], colour.filled()))?;
        area.draw(&Text::new(
            name.to_string(),
            (x + 20, y + 7),
            anchored(HPos::Left),
        ))?;
        x += width + 40;
    }
    Ok(area.split_vertically(y + LEGEND_ROW).1)
}

/// What the parts are called.
fn names(r: &ReplayReport) -> impl Iterator<Item = (&'static str, RGBColor)> {
    let names = match (&r.pm, &r.wa.csd) {
        (Some(_), _) => vec!["medium, logs", "medium, leaves", "medium, the rest"],
        (None, Some(_)) => vec![
            "compressed log",
            "compressed page",
            "compressed extra",
            "device gc",
        ],
        (None, None) => PARTS.map(|(name, _)| name).to_vec(),
    };
    names
        .into_iter()
        .zip(PARTS)
        .map(|(name, (_, colour))| (name, colour))
}

fn parts_of_medium(a: &Amplification<f64>) -> [f64; 4] {
    [a.xbi_log, a.xbi_leaf, a.xbi_extra, 0.0]
}

fn parts(host: &HostWa<f64>, gc: f64) -> [f64; 4] {
    [host.log, host.page, host.extra, gc]
}

/// From nothing to a little more than `most`, never empty.
pub(super) fn up_to(most: f64, room: f64) -> Range<f64> {
    if most.is_finite() && most > 0.0 {
        0.0..most * room
    } else {
        0.0..1.0
    }
}

fn short(n: f64) -> String {
    if n >= 100.0 {
        format!("{n:.0}")
    } else if n >= 10.0 {
        format!("{n:.1}")
    } else {
        format!("{n:.2}")
    }
}

/// Write amplification stacked by component, measured above predicted.
pub fn write_amplification(r: &ReplayReport) -> String {
    let gc = |device: &Option<crate::report::DeviceWa<f64>>| device.as_ref().map_or(0.0, |d| d.gc);
    // Garbage collection moves what is compressed, so below it stands what was compressed, too.
    let host = r.wa.csd.as_ref().map_or(r.wa.host, |csd| csd.stored);
    let mut bars = vec![("measured", parts(&host, gc(&r.wa.device)))];
    if let Some(p) = &r.wa.predicted {
        bars.push(("predicted", parts(&p.csd.unwrap_or(p.host), gc(&p.device))));
    }
    if let Some(pm) = &r.pm {
        bars = vec![("measured", parts_of_medium(&pm.measured))];
        bars.extend(
            pm.predicted
                .iter()
                .map(|p| ("predicted", parts_of_medium(p))),
        );
    }
    let sums = bars.iter().map(|(_, p)| p.iter().sum::<f64>());
    let range = up_to(sums.fold(0.0, f64::max), 1.08);
    let rows = bars.len() as f64;
    draw(100 + 56 * bars.len() as u32, |area| {
        let below = legend(area, names(r))?;
        let mut chart = ChartBuilder::on(&below)
            .margin_right(20)
            .set_label_area_size(LabelAreaPosition::Left, 90)
            .set_label_area_size(LabelAreaPosition::Bottom, 50)
            .build_cartesian_2d(range.clone(), rows..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LINE)
            .axis_style(LINE)
            .x_desc("bytes written over user bytes")
            .label_style(font(14))
            .x_label_formatter(&|x| number(*x))
            .draw()?;
        for (i, (name, parts)) in bars.iter().enumerate() {
            let (y0, y1) = (i as f64 + 0.18, i as f64 + 0.82);
            let middle = i as f64 + 0.5;
            let at = |x: f64, offset: i32, text: String, anchor| {
                EmptyElement::at((x, middle)) + Text::new(text, (offset, 0), anchored(anchor))
            };
            chart.draw_series([at(0.0, -10, (*name).to_string(), HPos::Right)])?;
            let mut from = 0.0;
            for (part, (_, colour)) in parts.iter().zip(PARTS) {
                let corners = [(from, y0), (from + part, y1)];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                if *part > 0.06 * range.end {
                    chart.draw_series([at(from + part / 2.0, 0, short(*part), HPos::Center)])?;
                }
                from += part;
            }
            chart.draw_series([at(from, 8, short(from), HPos::Left)])?;
        }
        Ok(())
    })
}

/// Write amplification over the run, stacked by component.
pub(super) fn over_time(r: &ReplayReport) -> String {
    let total = |p: &crate::report::SeriesPoint| parts(&p.host, p.gc).iter().sum::<f64>();
    let most = r.series.iter().map(total).fold(0.0, f64::max);
    let last = r.series.last().map_or(0.0, |p| p.ops as f64);
    draw(330, |area| {
        let below = legend(area, names(r))?;
        let mut chart = ChartBuilder::on(&below)
            .margin_right(20)
            .margin_top(6)
            .x_label_area_size(50)
            .y_label_area_size(60)
            .build_cartesian_2d(up_to(last, 1.0), up_to(most, 1.05))?;
        mesh(&mut chart, "measured operations", "write amplification")?;
        let mut base = vec![0.0; r.series.len()];
        for (part, (_, colour)) in PARTS.iter().enumerate() {
            let heights = r.series.iter().map(|p| parts(&p.host, p.gc)[part]);
            let top: Vec<f64> = base.iter().zip(heights).map(|(b, h)| b + h).collect();
            let along = |ys: &[f64]| -> Vec<(f64, f64)> {
                let xs = r.series.iter().map(|p| p.ops as f64);
                xs.zip(ys.iter().copied()).collect()
            };
            let mut outline = along(&top);
            outline.extend(along(&base).into_iter().rev());
            if outline.len() > 2 {
                chart.draw_series([Polygon::new(outline, colour.filled())])?;
            }
            base = top;
        }
        Ok(())
    })
}

/// Leaves by how full they are.
pub(super) fn leaf_fill(r: &ReplayReport) -> String {
    let most = r.page_fill.iter().copied().max().unwrap_or(0) as f64;
    draw(280, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(20)
            .margin_top(16)
            .x_label_area_size(50)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..100.0, up_to(most, 1.05))?;
        mesh(&mut chart, "used share of the page, %", "leaves")?;
        let width = 100.0 / r.page_fill.len().max(1) as f64;
        chart.draw_series(r.page_fill.iter().enumerate().map(|(i, count)| {
            let from = i as f64 * width;
            let corners = [(from, 0.0), (from + width, *count as f64)];
            let mut bar = Rectangle::new(corners, PARTS[0].1.filled());
            bar.set_margin(0, 0, 1, 1);
            bar
        }))?;
        Ok(())
    })
}

/// Share of operations that took no longer, by kind.
pub(super) fn latency(r: &ReplayReport) -> String {
    let Some(latency) = &r.latency_ns else {
        return String::new();
    };
    let kinds: Vec<_> = (latency.iter().into_iter())
        .filter_map(|(name, l)| l.as_ref().map(|l| (name, l)))
        .zip(PARTS)
        .map(|((name, l), (_, colour))| (name, l, colour))
        .collect();
    let all = || {
        kinds
            .iter()
            .flat_map(|(_, l, _)| l.cdf.iter().map(|(ns, _)| *ns as f64))
    };
    let positive = all().filter(|ns| *ns > 0.0);
    let least = positive.fold(f64::INFINITY, f64::min).clamp(1.0, 1e12);
    let most = all().fold(10.0 * least, f64::max);
    draw(330, |area| {
        let below = legend(area, kinds.iter().map(|(name, _, colour)| (*name, *colour)))?;
        let mut chart = ChartBuilder::on(&below)
            .margin_right(30)
            .margin_top(6)
            .x_label_area_size(50)
            .y_label_area_size(60)
            .build_cartesian_2d((least..most).log_scale(), 0.0..1.0)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LINE)
            .axis_style(LINE)
            .x_desc("latency")
            .y_desc("share of operations")
            .label_style(font(14))
            .x_label_formatter(&|ns| duration(*ns))
            .y_label_formatter(&|share| number(*share))
            .draw()?;
        for (i, (_, l, colour)) in kinds.iter().enumerate() {
            // Operations that needed no I/O sit on the left edge; a staircase rises at each point.
            let mut height = 0.0;
            let mut stairs = Vec::with_capacity(2 * l.cdf.len() + 1);
            for (ns, share) in &l.cdf {
                let x = (*ns as f64).max(least);
                stairs.extend([(x, height), (x, *share)]);
                height = *share;
            }
            stairs.push((most, height));
            // Thinner upon thicker: equal curves both show.
            let width = 2 * (kinds.len() - i) as u32;
            chart.draw_series(LineSeries::new(stairs, colour.stroke_width(width)))?;
        }
        Ok(())
    })
}

pub(super) type Plain<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn mesh(chart: &mut Plain<'_, '_>, x: &str, y: &str) -> Drawn {
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LINE)
        .axis_style(LINE)
        .x_desc(x)
        .y_desc(y)
        .label_style(font(14))
        .x_label_formatter(&|x| number(*x))
        .y_label_formatter(&|y| number(*y))
        .draw()
}

/// A number on an axis.
pub(super) fn number(n: f64) -> String {
    match n.abs() {
        a if a >= 1e9 => format!("{}G", n / 1e9),
        a if a >= 1e6 => format!("{}M", n / 1e6),
        a if a >= 1e4 => format!("{}k", n / 1e3),
        _ => {
            let text = format!("{n:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    }
}
