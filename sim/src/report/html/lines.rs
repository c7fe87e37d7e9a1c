//! Line charts, for experiments that sweep a parameter.

use std::ops::{Deref, Range};

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::chart::{
    Area, Drawn, LINE, PARTS, Picture, font, is_narrow, mark, number, up_to, x_labels,
};

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear: equal differences are equally far apart.
    Linear,
    /// Logarithmic: equal ratios are equally far apart.
    Log,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A chart of curves over one axis; a linear y axis starts at zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines<'a> {
    /// Label of the x axis.
    pub x: &'a str,
    /// Label of the y axis.
    pub y: &'a str,
    /// Scale of the x axis. A logarithmic axis takes positive values only, and is labelled at the
    /// points if they are few, else at powers of ten.
    pub scale: Scale,
    /// Scale of the y axis. A logarithmic axis takes positive values only.
    pub y_scale: Scale,
    /// The curves; at most 8, the number of colours.
    pub curves: Vec<Curve>,
}

/// Maximum number of points at which a logarithmic axis is labelled. If there are more points, the
/// labels are at powers of ten.
const MARKS: usize = 12;
/// Least distance between labels, as a share of a logarithmic axis.
const LABEL: f64 = 0.06;
/// Maximum number of points of a curve that are drawn as dots.
const MOST_DOTS: usize = 40;

/// Minimum and maximum; a non-empty range even without values.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), x| {
        (least.min(x), most.max(x))
    });
    (least.min(most), most.max(f64::MIN_POSITIVE))
}

pub(super) fn colour(i: usize) -> RGBColor {
    let more = [
        RGBColor(0xd5, 0x5e, 0x00),
        RGBColor(0x56, 0xb4, 0xe9),
        RGBColor(0x1b, 0x1f, 0x24),
        RGBColor(0xf0, 0xe4, 0x42),
    ];
    let parts = PARTS.map(|(_, colour)| colour);
    *parts.iter().chain(&more).cycle().nth(i).expect("endless")
}

/// The values on the axes of a chart of curves.
struct Spans {
    x: (f64, f64),
    y: (f64, f64),
    /// The x of all points, ascending, each once.
    marks: Vec<f64>,
}

impl<'a> Lines<'a> {
    /// Renders the chart as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        self.clone().picture().alone()
    }

    /// Renders the chart as a figure of a page, with this label.
    #[must_use]
    pub fn figure(self, label: &str) -> String {
        self.picture().figure(label)
    }

    /// The chart, for a page.
    #[must_use]
    pub fn picture(self) -> Picture<'a> {
        self.with_bands(Vec::new())
    }

    /// The chart with a band around each curve, for a page. `bands` are those of the curves, in their
    /// order; missing ones are not drawn.
    pub(super) fn with_bands(self, bands: Vec<Band>) -> Picture<'a> {
        let names = self.curves.iter().enumerate();
        let names = names.map(|(i, c)| (c.name.clone(), colour(i))).collect();
        let banded = Banded { lines: self, bands };
        Picture {
            names,
            height: 326,
            narrow_extra: 0,
            paint: Box::new(move |area| banded.paint(area)),
        }
    }
}

/// The interval at each point of a curve: x, its lower and its upper end.
pub(super) type Band = Vec<(f64, f64, f64)>;

/// Opacity of a band.
const SHADE: f64 = 0.22;

/// A chart of curves, and the bands around them.
struct Banded<'a> {
    lines: Lines<'a>,
    bands: Vec<Band>,
}

impl<'a> Deref for Banded<'a> {
    type Target = Lines<'a>;

    fn deref(&self) -> &Lines<'a> {
        &self.lines
    }
}

impl Banded<'_> {
    fn spans(&self) -> Spans {
        let all = || self.curves.iter().flat_map(|c| &c.points);
        let mut marks: Vec<f64> = all().map(|(x, _)| *x).collect();
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        let ends = self.bands.iter().flatten();
        let ends = ends.flat_map(|(_, low, high)| [*low, *high]);
        Spans {
            x: span(all().map(|(x, _)| *x)),
            y: span(all().map(|(_, y)| *y).chain(ends)),
            marks,
        }
    }

    /// The interval of a curve at this x, as words of a tooltip.
    fn interval(&self, curve: usize, x: f64) -> String {
        let band = self.bands.get(curve);
        let at = band.and_then(|band| band.iter().find(|(at, ..)| *at == x));
        at.map_or(String::new(), |(_, low, high)| {
            format!("; 90 % interval {} to {}", number(*low), number(*high))
        })
    }

    fn paint(&self, area: &Area<'_>) -> Drawn {
        let Spans { x, y, marks } = self.spans();
        let by_ratio = (x.0..x.1).log_scale();
        let most = if is_narrow(area) { 5 } else { MARKS };
        match self.scale {
            Scale::Linear => self.over(area, up_to(x.1, 1.0), y.0..y.1),
            Scale::Log if marks.len() <= most => {
                let marks = apart(&marks, (x.1 / x.0).powf(LABEL));
                self.over(area, by_ratio.with_key_points(marks), y.0..y.1)
            }
            Scale::Log => {
                let marks = powers(x.0, x.1, most);
                self.over(area, by_ratio.with_key_points(marks), y.0..y.1)
            }
        }
    }

    fn over<X>(&self, area: &Area<'_>, x: X, y: Range<f64>) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
    {
        match self.y_scale {
            Scale::Linear => self.chart(area, x, up_to(y.end, 1.08)),
            Scale::Log => self.chart(area, x, (y.start / 1.2..y.end * 1.2).log_scale()),
        }
    }

    fn chart<X, Y>(&self, area: &Area<'_>, x: X, y: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .margin_right(30)
            .margin_top(6)
            .x_label_area_size(50)
            .y_label_area_size(60)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(LINE)
            .axis_style(LINE)
            .x_desc(self.x)
            .y_desc(self.y)
            .x_labels(x_labels(is_narrow(area)))
            .label_style(font(14))
            .x_label_formatter(&|x| number(*x))
            .y_label_formatter(&|y| number(*y))
            .draw()?;
        for (i, band) in self.bands.iter().enumerate() {
            let above = band.iter().map(|(x, _, high)| (*x, *high));
            let below = band.iter().rev().map(|(x, low, _)| (*x, *low));
            let outline: Vec<(f64, f64)> = above.chain(below).collect();
            if band.len() < 2 {
                continue;
            }
            mark(area, Some(i), "", || {
                let shade = colour(i).mix(SHADE);
                chart.draw_series([Polygon::new(outline, shade.filled())])?;
                Ok(())
            })?;
        }
        for (i, curve) in self.curves.iter().enumerate() {
            let points = curve.points.iter().copied();
            mark(area, Some(i), "", || {
                chart.draw_series(LineSeries::new(points.clone(), colour(i).stroke_width(2)))?;
                Ok(())
            })?;
            if curve.points.len() > MOST_DOTS {
                continue;
            }
            for at in points {
                let (x, y) = (number(at.0), number(at.1));
                let interval = self.interval(i, at.0);
                let title = format!("{}: {y} at {x} {}{interval}", curve.name, self.x);
                mark(area, Some(i), &title, || {
                    chart.draw_series([Circle::new(at, 3, colour(i).filled())])?;
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

/// Leaves out marks that are closer to the one before than this ratio.
fn apart(marks: &[f64], ratio: f64) -> Vec<f64> {
    let mut kept: Vec<f64> = Vec::new();
    for &mark in marks {
        if kept.last().is_none_or(|last| mark >= last * ratio) {
            kept.push(mark);
        }
    }
    kept
}

/// Powers of ten within a range, thinned to at most `most`.
fn powers(least: f64, most: f64, count: usize) -> Vec<f64> {
    let (from, to) = (least.log10().ceil() as i32, most.log10().floor() as i32);
    let step = ((to - from).max(0) as usize / count + 1) as i32;
    let powers = (from..=to).filter(|power| (power - from) % step == 0);
    powers.map(|power| 10f64.powi(power)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_is_drawn_and_named_on_either_scale() {
        for (scale, y_scale) in [
            (Scale::Linear, Scale::Linear),
            (Scale::Log, Scale::Linear),
            (Scale::Log, Scale::Log),
        ] {
            let curves = ["one", "two"].map(|name| Curve {
                name: name.into(),
                points: vec![(1.0, 0.5), (10.0, 0.25), (100.0, 0.125)],
            });
            let lines = Lines {
                x: "across",
                y: "up",
                scale,
                y_scale,
                curves: curves.to_vec(),
            };
            let svg = lines.svg();
            for part in ["<svg", "one", "two", "across", "up"] {
                assert!(svg.contains(part), "{scale:?}: no {part} in {svg}");
            }
            assert!(svg.matches("<polyline").count() >= 2, "{svg}");
            assert_eq!(svg.matches("<circle").count(), 6);
        }
    }

    #[test]
    fn a_band_is_drawn_behind_its_curve_and_said_at_its_points() {
        let curve = Curve {
            name: "one".into(),
            points: vec![(1.0, 2.0), (2.0, 4.0)],
        };
        let lines = Lines {
            x: "across",
            y: "up",
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves: vec![curve],
        };
        assert!(!lines.svg().contains("<polygon"));
        let band = vec![(1.0, 1.5, 2.5), (2.0, 3.0, 9.0)];
        let picture = lines.with_bands(vec![band]);
        let alone = picture.alone();
        assert!(alone.find("<polygon") < alone.rfind("<polyline"), "{alone}");
        let page = picture.figure("a label");
        let title = "one: 4 at 2 across; 90 % interval 3 to 9";
        assert!(page.contains(title), "{page}");
    }

    #[test]
    fn many_names_take_another_row() {
        let curves = (0..7).map(|i| Curve {
            name: format!("a name that takes some room, {i}"),
            points: vec![(1.0, 1.0), (2.0, 2.0)],
        });
        let lines = Lines {
            x: "across",
            y: "up",
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves: curves.collect(),
        };
        let svg = lines.svg();
        let ends = svg.split("<text x=\"").skip(1).filter_map(|text| {
            let x: f64 = text.split('"').next()?.parse().ok()?;
            text.contains("a name").then_some(x + 8.0 * 30.0)
        });
        let ends: Vec<f64> = ends.collect();
        assert_eq!(ends.len(), 7);
        assert!(ends.iter().all(|end| *end <= 860.0), "{ends:?}");
    }
}
