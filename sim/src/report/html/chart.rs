//! A small plotting surface: scales, axes, bars, bands and steps as SVG.

use std::fmt::Write as _;

use super::escape;

/// From values to a share of the axis.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// A linear scale; an empty range is widened.
    pub(super) fn linear(low: f64, high: f64) -> Scale {
        let high = if high.is_finite() && high > low {
            high
        } else {
            low + 1.0
        };
        Scale {
            low,
            high,
            log: false,
        }
    }

    /// A logarithmic scale over positive values.
    pub(super) fn log(low: f64, high: f64) -> Scale {
        Scale {
            low: low.ln(),
            high: high.max(low * 1.01).ln(),
            log: true,
        }
    }

    fn share(&self, value: f64) -> f64 {
        let value = if self.log {
            value.max(f64::MIN_POSITIVE).ln()
        } else {
            value
        };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Round values along the axis.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let (first, last) = (
                self.low / std::f64::consts::LN_10,
                self.high / std::f64::consts::LN_10,
            );
            return (first.ceil() as i32..=last.floor() as i32)
                .map(|e| 10f64.powi(e))
                .collect();
        }
        let raw = (self.high - self.low) / 6.0;
        let magnitude = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|m| m * magnitude)
            .into_iter()
            .find(|s| *s >= raw);
        let step = step.unwrap_or(10.0 * magnitude);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

/// One picture. Margins are left, top, right, bottom.
pub(super) struct Plot {
    width: f64,
    height: f64,
    margins: [f64; 4],
    x: Scale,
    y: Scale,
    body: String,
}

impl Plot {
    pub(super) fn new(width: f64, height: f64, margins: [f64; 4], x: Scale, y: Scale) -> Plot {
        Plot {
            width,
            height,
            margins,
            x,
            y,
            body: String::new(),
        }
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        let [left, _, right, _] = self.margins;
        left + self.x.share(value) * (self.width - left - right)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        let [_, top, _, bottom] = self.margins;
        self.height - bottom - self.y.share(value) * (self.height - top - bottom)
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        );
    }

    pub(super) fn label(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let _ = write!(
            self.body,
            "<text class=\"t\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        );
    }

    /// A label on a coloured bar.
    pub(super) fn label_on(&mut self, x: f64, y: f64, text: &str) {
        let _ = write!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#000\">{}</text>",
            escape(text)
        );
    }

    pub(super) fn x_axis(&mut self, name: &str) {
        self.x_axis_with(name, &plain);
    }

    pub(super) fn x_axis_with(&mut self, name: &str, show: &dyn Fn(f64) -> String) {
        let [left, _, right, bottom] = self.margins;
        let base = self.height - bottom;
        self.rule(left, base, self.width - right, base);
        for tick in self.x.ticks() {
            let x = self.x(tick);
            self.rule(x, base, x, base + 5.0);
            self.label(x, base + 19.0, "middle", &show(tick));
        }
        self.label(
            (left + self.width - right) / 2.0,
            self.height - 6.0,
            "middle",
            name,
        );
    }

    pub(super) fn y_axis(&mut self, name: &str) {
        let [left, top, right, _] = self.margins;
        for tick in self.y.ticks() {
            let y = self.y(tick);
            self.rule(left, y, self.width - right, y);
            self.label(left - 8.0, y + 4.0, "end", &plain(tick));
        }
        let middle = self.y((self.y.low + self.y.high) / 2.0).max(top);
        let _ = write!(
            self.body,
            "<text class=\"t\" transform=\"translate(14 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(name)
        );
    }

    fn rule(&mut self, x0: f64, y0: f64, x1: f64, y1: f64) {
        let _ = write!(
            self.body,
            "<line class=\"r\" x1=\"{x0:.1}\" y1=\"{y0:.1}\" x2=\"{x1:.1}\" y2=\"{y1:.1}\"/>"
        );
    }

    /// The area between two curves.
    pub(super) fn band(&mut self, xs: &[f64], low: &[f64], high: &[f64], colour: &str) {
        if xs.is_empty() {
            return;
        }
        let mut points = String::new();
        for (x, y) in xs.iter().zip(high).chain(xs.iter().zip(low).rev()) {
            let _ = write!(points, "{:.1},{:.1} ", self.x(*x), self.y(*y));
        }
        let _ = write!(
            self.body,
            "<polygon points=\"{}\" fill=\"{colour}\"/>",
            points.trim_end()
        );
    }

    /// A rising staircase through the points, out to `end`.
    pub(super) fn steps(&mut self, points: &[(f64, f64)], end: f64, colour: &str) {
        let mut path = String::new();
        let mut height = 0.0;
        for (x, y) in points {
            let at = self.x(*x);
            let op = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(
                path,
                "{op}{at:.1} {:.1} L{at:.1} {:.1} ",
                self.y(height),
                self.y(*y)
            );
            height = *y;
        }
        let _ = write!(path, "L{:.1} {:.1}", self.x(end), self.y(height));
        if !points.is_empty() {
            let _ = write!(
                self.body,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
            );
        }
    }

    pub(super) fn legend(&mut self, names: &[&str], colours: &[&str]) {
        let mut x = self.margins[0];
        for (name, colour) in names.iter().zip(colours) {
            self.rect(x, 8.0, 14.0, 14.0, colour);
            self.label(x + 20.0, 20.0, "start", name);
            x += 50.0 + 8.0 * name.len() as f64;
        }
    }

    /// The whole picture, with a title for those who cannot see it.
    pub(super) fn finish(self, title: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" font-family=\"system-ui,sans-serif\" \
             font-size=\"13\"><title>{}</title><style>.t{{fill:#1b1f24}}.r{{stroke:#9aa4b0;stroke-opacity:.5}}\
             @media(prefers-color-scheme:dark){{.t{{fill:#e8ebef}}}}</style>{}</svg>",
            self.width,
            self.height,
            escape(title),
            self.body
        )
    }
}

/// A number on an axis.
fn plain(n: f64) -> String {
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
