//! The charts of a replay: write amplification by component and over time, leaves, latencies.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::chart::{
    Area, Drawn, INK, LINE, PARTS, Picture, Plain, anchored, font, is_narrow, mark, mesh, number,
    up_to, x_labels,
};
use crate::report::numbers::{duration, grouped};
use crate::report::{
    Amplification, ByOp, DeviceWa, HostWa, Latency, PredictedValue, ReplayReport, SeriesPoint,
};

/// An invisible mark over a point of a chart over time, which shows the values in its tooltip.
const VEIL: f64 = 0.01;

/// Names of the components, and their colours.
pub(super) fn names(r: &ReplayReport) -> Vec<(String, RGBColor)> {
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
    (names.into_iter().zip(PARTS))
        .map(|(name, (_, colour))| (name.to_string(), colour))
        .collect()
}

fn parts_of_medium(a: &Amplification<f64>) -> [f64; 4] {
    [a.xbi_log, a.xbi_leaf, a.xbi_extra, 0.0]
}

fn parts(host: &HostWa<f64>, gc: f64) -> [f64; 4] {
    [host.log, host.page, host.extra, gc]
}

/// The components of a point over time.
pub(super) fn parts_of_point(point: &SeriesPoint) -> [f64; 4] {
    parts(&point.host, point.gc)
}

pub(super) fn short(n: f64) -> String {
    if n >= 100.0 {
        format!("{n:.0}")
    } else if n >= 10.0 {
        format!("{n:.1}")
    } else {
        format!("{n:.2}")
    }
}

/// A bar of write amplification.
struct Bar {
    name: &'static str,
    parts: [f64; 4],
    /// The total, if it has an interval.
    interval: Option<PredictedValue>,
}

impl Bar {
    fn measured(parts: [f64; 4]) -> Bar {
        Bar {
            name: "measured",
            parts,
            interval: None,
        }
    }

    /// A bar whose total is as certain as `total`, which may include a little more.
    fn predicted(parts: [f64; 4], total: PredictedValue) -> Bar {
        let sum = parts.iter().sum();
        let half_width = total.half_width();
        Bar {
            name: "predicted",
            parts,
            interval: half_width.map(|half| PredictedValue::new(sum, Some(half), total.model)),
        }
    }

    fn total(&self) -> f64 {
        self.parts.iter().sum()
    }

    /// How far it reaches, with its interval.
    fn end(&self) -> f64 {
        let high = self.interval.and_then(|total| total.estimate.high);
        high.map_or(self.total(), |high| high.max(self.total()))
    }
}

/// The bars of write amplification, measured above predicted.
fn bars(r: &ReplayReport) -> Vec<Bar> {
    let gc = |device: &Option<DeviceWa<f64>>| device.as_ref().map_or(0.0, |d| d.gc);
    if let Some(pm) = &r.pm {
        let mut bars = vec![Bar::measured(parts_of_medium(&pm.measured))];
        let predicted = pm.predicted.iter();
        bars.extend(predicted.map(|p| Bar::predicted(parts_of_medium(&p.values()), p.xbi)));
        return bars;
    }
    // Garbage collection moves compressed data, so the other components are compressed bytes, too.
    let host = r.wa.csd.as_ref().map_or(*r.wa.host, |csd| csd.stored);
    let mut bars = vec![Bar::measured(parts(&host, gc(&r.wa.device)))];
    bars.extend(r.wa.predicted.as_ref().map(|p| {
        let values = p.values();
        let host = values.csd.unwrap_or(values.host);
        let total = p.device.map_or(p.host.total, |device| device.total);
        Bar::predicted(parts(&host, gc(&values.device)), total)
    }));
    bars
}

/// Write amplification stacked by component, measured above predicted, as SVG.
pub fn write_amplification(r: &ReplayReport) -> String {
    amplification(r).alone()
}

/// Write amplification stacked by component, measured above predicted.
pub(super) fn amplification(r: &ReplayReport) -> Picture<'_> {
    let bars = bars(r);
    let names = names(r);
    Picture {
        height: 66 + 56 * bars.len() as u32,
        narrow_extra: 0,
        names: names.clone(),
        paint: Box::new(move |area| stacked(area, &bars, &names)),
    }
}

fn stacked(area: &Area<'_>, bars: &[Bar], names: &[(String, RGBColor)]) -> Drawn {
    let ends = bars.iter().map(Bar::end);
    let narrow = is_narrow(area);
    let room = if narrow { 1.25 } else { 1.08 };
    let range = up_to(ends.fold(0.0, f64::max), room);
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .set_label_area_size(LabelAreaPosition::Left, if narrow { 80 } else { 90 })
        .set_label_area_size(LabelAreaPosition::Bottom, 50)
        .build_cartesian_2d(range.clone(), bars.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LINE)
        .axis_style(LINE)
        .x_desc("bytes written / user bytes")
        .x_labels(x_labels(narrow))
        .label_style(font(14))
        .x_label_formatter(&|x| number(*x))
        .draw()?;
    for (i, bar) in bars.iter().enumerate() {
        let (y0, y1) = (i as f64 + 0.18, i as f64 + 0.82);
        let middle = i as f64 + 0.5;
        let at = |x: f64, offset: i32, text: String, style: TextStyle<'static>| {
            EmptyElement::at((x, middle)) + Text::new(text, (offset, 0), style)
        };
        chart.draw_series([at(0.0, -10, bar.name.into(), anchored(HPos::Right))])?;
        let mut from = 0.0;
        for (component, (part, (name, colour))) in bar.parts.iter().zip(names).enumerate() {
            let title = format!("{}, {name}: {part:.3}", bar.name);
            let corners = [(from, y0), (from + part, y1)];
            mark(area, Some(component), &title, || {
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                let least = if narrow { 0.15 } else { 0.06 };
                if *part > least * range.end {
                    let label = anchored(HPos::Center).color(ink_on(*colour));
                    chart.draw_series([at(from + part / 2.0, 0, short(*part), label)])?;
                }
                Ok(())
            })?;
            from += part;
        }
        if let Some(total) = bar.interval {
            whisker(area, &mut chart, total, middle)?;
        }
        chart.draw_series([at(bar.end(), 8, short(from), anchored(HPos::Left))])?;
    }
    Ok(())
}

/// Height of the ends of a whisker, in rows.
const CAP: f64 = 0.14;

/// Draws the interval of a total at this height.
fn whisker(area: &Area<'_>, chart: &mut Plain<'_, '_>, total: PredictedValue, y: f64) -> Drawn {
    let Some((low, high)) = total.estimate.low.zip(total.estimate.high) else {
        return Ok(());
    };
    let title = format!(
        "predicted total: {:.3}; 90 % interval {low:.3} to {high:.3}",
        total.value()
    );
    let cap = |x: f64| vec![(x, y - CAP), (x, y + CAP)];
    let lines = [vec![(low, y), (high, y)], cap(low), cap(high)];
    mark(area, None, &title, || {
        chart.draw_series(lines.map(|line| PathElement::new(line, INK.stroke_width(2))))?;
        Ok(())
    })
}

/// A text colour that is readable on this colour: the blue is darker than the others.
fn ink_on(colour: RGBColor) -> &'static RGBColor {
    if colour == PARTS[0].1 { &WHITE } else { &INK }
}

/// Write amplification over the run, stacked by component.
pub(super) fn over_time(r: &ReplayReport) -> Picture<'_> {
    let names = names(r);
    Picture {
        height: 296,
        narrow_extra: 0,
        names: names.clone(),
        paint: Box::new(move |area| areas(area, &r.series, &names)),
    }
}

fn areas(area: &Area<'_>, series: &[SeriesPoint], names: &[(String, RGBColor)]) -> Drawn {
    let total = |p: &SeriesPoint| parts_of_point(p).iter().sum::<f64>();
    let most = series.iter().map(total).fold(0.0, f64::max);
    let last = series.last().map_or(0.0, |p| p.ops as f64);
    let height = up_to(most, 1.05);
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .margin_top(6)
        .x_label_area_size(50)
        .y_label_area_size(60)
        .build_cartesian_2d(up_to(last, 1.0), height.clone())?;
    let axes = ("measured operations", "write amplification");
    mesh(&mut chart, axes, is_narrow(area))?;
    let mut base = vec![0.0; series.len()];
    for (component, (_, colour)) in names.iter().enumerate() {
        let heights = series.iter().map(|p| parts_of_point(p)[component]);
        let top: Vec<f64> = base.iter().zip(heights).map(|(b, h)| b + h).collect();
        let along = |ys: &[f64]| -> Vec<(f64, f64)> {
            let xs = series.iter().map(|p| p.ops as f64);
            xs.zip(ys.iter().copied()).collect()
        };
        let mut outline = along(&top);
        outline.extend(along(&base).into_iter().rev());
        if outline.len() > 2 {
            mark(area, Some(component), "", || {
                chart.draw_series([Polygon::new(outline, colour.filled())])?;
                Ok(())
            })?;
        }
        base = top;
    }
    // Drawn last, so that the tooltips are on top.
    let mut from = 0.0;
    for point in series {
        let to = point.ops as f64;
        let values = (names.iter().zip(parts_of_point(point)))
            .map(|((name, _), value)| format!("{name} {}", short(value)));
        let title = format!(
            "after {} operations: {}; total {}",
            grouped(point.ops),
            values.collect::<Vec<_>>().join(", "),
            short(total(point))
        );
        mark(area, None, &title, || {
            let corners = [(from, 0.0), (to, height.end)];
            chart.draw_series([Rectangle::new(corners, WHITE.mix(VEIL).filled())])?;
            Ok(())
        })?;
        from = to;
    }
    Ok(())
}

/// Names of the bins, and the number of leaves in each.
pub(super) fn fill_bins(r: &ReplayReport) -> impl Iterator<Item = (String, u64)> {
    let width = 100.0 / r.page_fill.len().max(1) as f64;
    r.page_fill.iter().enumerate().map(move |(i, leaves)| {
        let (from, to) = (i as f64 * width, (i + 1) as f64 * width);
        (format!("{from:.0} to {to:.0} %"), *leaves)
    })
}

/// Leaves by fill.
pub(super) fn leaf_fill(r: &ReplayReport) -> Picture<'_> {
    let most = r.page_fill.iter().copied().max().unwrap_or(0) as f64;
    Picture {
        height: 280,
        narrow_extra: 0,
        names: Vec::new(),
        paint: Box::new(move |area| {
            let mut chart = ChartBuilder::on(area)
                .margin_right(20)
                .margin_top(16)
                .x_label_area_size(50)
                .y_label_area_size(60)
                .build_cartesian_2d(0.0..100.0, up_to(most, 1.05))?;
            let axes = ("used share of the page, %", "leaves");
            mesh(&mut chart, axes, is_narrow(area))?;
            let width = 100.0 / r.page_fill.len().max(1) as f64;
            for (i, (bin, count)) in fill_bins(r).enumerate() {
                let from = i as f64 * width;
                let corners = [(from, 0.0), (from + width, count as f64)];
                let mut bar = Rectangle::new(corners, PARTS[0].1.filled());
                bar.set_margin(0, 0, 1, 1);
                let title = format!("{bin} used: {} leaves", grouped(count));
                mark(area, None, &title, || {
                    chart.draw_series([bar])?;
                    Ok(())
                })?;
            }
            Ok(())
        }),
    }
}

/// Cumulative distribution of latencies, by kind of operation.
pub(super) fn latency(latency: &ByOp<Option<Latency>>) -> Picture<'_> {
    let kinds: Vec<_> = (latency.iter().into_iter())
        .filter_map(|(name, l)| l.as_ref().map(|l| (name, l)))
        .zip(PARTS)
        .map(|((name, l), (_, colour))| (name, l, colour))
        .collect();
    let names = kinds.iter().map(|(name, _, c)| ((*name).to_string(), *c));
    Picture {
        height: 296,
        narrow_extra: 0,
        names: names.collect(),
        paint: Box::new(move |area| distributions(area, &kinds)),
    }
}

fn distributions(area: &Area<'_>, kinds: &[(&str, &Latency, RGBColor)]) -> Drawn {
    let curves = kinds.iter().flat_map(|(_, l, _)| &l.cdf);
    let all: Vec<f64> = curves.map(|(ns, _)| *ns as f64).collect();
    let positive = all.iter().copied().filter(|ns| *ns > 0.0);
    let least = positive.fold(f64::INFINITY, f64::min).clamp(1.0, 1e12);
    let most = all.iter().copied().fold(10.0 * least, f64::max);
    let mut chart = ChartBuilder::on(area)
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
        .x_labels(x_labels(is_narrow(area)))
        .label_style(font(14))
        .x_label_formatter(&|ns| duration(*ns))
        .y_label_formatter(&|share| number(*share))
        .draw()?;
    for (i, (name, l, colour)) in kinds.iter().enumerate() {
        // Operations without I/O are on the left edge; the curve steps up at each point.
        let mut height = 0.0;
        let mut stairs = Vec::with_capacity(2 * l.cdf.len() + 1);
        for (ns, share) in &l.cdf {
            let x = (*ns as f64).max(least);
            stairs.extend([(x, height), (x, *share)]);
            height = *share;
        }
        stairs.push((most, height));
        let times = l
            .columns()
            .map(|(what, ns)| format!("{what} {}", duration(ns)));
        let title = format!("{name}: {}", times.join(", "));
        // Later curves are thinner, so that equal curves are both visible.
        let width = 2 * (kinds.len() - i) as u32;
        mark(area, Some(i), &title, || {
            chart.draw_series(LineSeries::new(stairs, colour.stroke_width(width)))?;
            Ok(())
        })?;
    }
    Ok(())
}
