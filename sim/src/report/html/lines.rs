//! Curves over one axis, for experiments that sweep something.

use std::ops::Range;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::pictures::{Area, Drawn, LEGEND, LINE, PARTS, draw, font, legend, number, up_to};

/// How far apart values are on the x axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By their difference.
    Linear,
    /// By their ratio.
    Log,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What the legend calls it.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// A picture of curves over one axis; the y axis begins at zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines<'a> {
    /// What the x axis shows.
    pub x: &'a str,
    /// What the y axis shows.
    pub y: &'a str,
    /// The x axis.
    pub scale: Scale,
    /// At most as many as there are colours: 7.
    pub curves: Vec<Curve>,
}

fn colour(i: usize) -> RGBColor {
    let more = [
        RGBColor(0xd5, 0x5e, 0x00),
        RGBColor(0x56, 0xb4, 0xe9),
        RGBColor(0x1b, 0x1f, 0x24),
    ];
    let parts = PARTS.map(|(_, colour)| colour);
    *parts.iter().chain(&more).cycle().nth(i).expect("endless")
}

impl Lines<'_> {
    /// The picture, as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let xs = || self.curves.iter().flat_map(|c| &c.points).map(|(x, _)| *x);
        let ys = self.curves.iter().flat_map(|c| &c.points).map(|(_, y)| *y);
        let most = up_to(ys.fold(0.0, f64::max), 1.08);
        let (least_x, most_x) = (
            xs().fold(f64::INFINITY, f64::min),
            xs().fold(0.0, f64::max).max(f64::MIN_POSITIVE),
        );
        draw(360, |area| {
            let (top, below) = area.split_vertically(LEGEND);
            let names = self.curves.iter().enumerate();
            legend(&top, names.map(|(i, c)| (c.name.as_str(), colour(i))))?;
            match self.scale {
                Scale::Linear => self.chart(&below, up_to(most_x, 1.0), most.clone()),
                Scale::Log => self.chart(&below, (least_x..most_x).log_scale(), most.clone()),
            }
        })
    }

    fn chart<X>(&self, area: &Area<'_>, x: X, y: Range<f64>) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
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
            .label_style(font(14))
            .x_label_formatter(&|x| number(*x))
            .y_label_formatter(&|y| number(*y))
            .draw()?;
        for (i, curve) in self.curves.iter().enumerate() {
            let points = curve.points.iter().copied();
            chart.draw_series(LineSeries::new(points.clone(), colour(i).stroke_width(2)))?;
            // Of few points each is shown.
            if curve.points.len() <= 20 {
                chart.draw_series(points.map(|at| Circle::new(at, 3, colour(i).filled())))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_is_drawn_and_named_on_either_scale() {
        for scale in [Scale::Linear, Scale::Log] {
            let curves = ["one", "two"].map(|name| Curve {
                name: name.into(),
                points: vec![(1.0, 0.5), (10.0, 0.25), (100.0, 0.0)],
            });
            let lines = Lines {
                x: "across",
                y: "up",
                scale,
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
}
