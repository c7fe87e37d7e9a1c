//! The base of all charts: drawing into SVG with plotters, a legend, and marks.
//!
//! A *mark* is a part of a chart that has a tooltip: a bar, a curve, a point in time. In the page
//! it is a `<g>` with the tooltip as its title and, if it belongs to a component of the chart, that
//! component's number. The page's script shows tooltips and hides components. plotters has no
//! groups, so marks are drawn as special texts that are replaced by groups when the chart is
//! finished:
//!
//! ```text
//! draw ──▶ <text>⟨open⟩0⟨title⟩page: 3.2</text> <rect/> <text>⟨close⟩</text>
//!      ──▶ <g data-s="0"><title>page: 3.2</title><rect/></g>
//! ```
//!
//! A stand-alone chart includes its legend and has no marks. In a page, the legend consists of
//! buttons beside the chart, which is drawn twice: wide, and narrow for phones.
//!
//! The colours are those of Okabe and Ito, which colour-blind readers can tell apart.

use std::fmt::Write as _;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::page::escape;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
pub(super) type Plain<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

/// Components: host log, page, extra, and the drive's garbage collection.
pub(super) const PARTS: [(&str, RGBColor); 4] = [
    ("host log", RGBColor(0x00, 0x72, 0xb2)),
    ("host page", RGBColor(0xe6, 0x9f, 0x00)),
    ("host extra", RGBColor(0x00, 0x9e, 0x73)),
    ("device gc", RGBColor(0xcc, 0x79, 0xa7)),
];
pub(super) const INK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
pub(super) const LINE: RGBColor = RGBColor(0xd8, 0xdd, 0xe3);
const WIDE: u32 = 860;
/// The width on a phone, so that letters are as large as those of the page.
pub(super) const NARROW: u32 = 340;
const LEGEND_ROW: i32 = 24;

// Private-use characters occur in no trace's name, and plotters does not change them.
const OPEN: char = '\u{e000}';
const TITLE: char = '\u{e001}';
const CLOSE: char = '\u{e002}';

/// A chart that can be drawn at several widths.
pub struct Picture<'a> {
    /// Components and their colours; empty if there is only one.
    pub(super) names: Vec<(String, RGBColor)>,
    /// Height of the chart below the legend, in pixels.
    pub(super) height: u32,
    /// Additional height if the chart is narrow.
    pub(super) narrow_extra: u32,
    /// Draws it.
    pub(super) paint: Box<dyn Fn(&Area<'_>) -> Drawn + 'a>,
}

impl Picture<'_> {
    /// Draws a stand-alone chart as SVG: legend above, no marks. `height` includes one row of legend.
    #[must_use]
    pub fn alone(&self) -> String {
        let first_row = if self.names.is_empty() {
            0
        } else {
            10 + LEGEND_ROW as u32
        };
        draw(self.height + first_row, |area| self.with_legend(area))
    }

    /// Draws legend and chart.
    pub(super) fn with_legend(&self, area: &Area<'_>) -> Drawn {
        if self.names.is_empty() {
            return (self.paint)(area);
        }
        let names = self.names.iter().map(|(name, colour)| (&**name, *colour));
        (self.paint)(&legend(area, names)?)
    }

    /// The chart as a figure of a page.
    pub fn figure(&self, label: &str) -> String {
        let mut out = format!("<figure aria-label=\"{}\">", escape(label));
        if !self.names.is_empty() {
            out.push_str("<div class=\"legend\">");
            for (i, (name, RGBColor(r, g, b))) in self.names.iter().enumerate() {
                let _ = write!(
                    out,
                    "<button type=\"button\" data-s=\"{i}\"><i style=\"background:#{r:02x}{g:02x}{b:02x}\"></i>{}</button>",
                    escape(name)
                );
            }
            out.push_str("</div>");
        }
        for (class, width, extra) in [("wide", WIDE, 0), ("narrow", NARROW, self.narrow_extra)] {
            let svg = svg((width, self.height + extra), &self.paint);
            let _ = write!(out, "<div class=\"{class}\">{}</div>", grouped(&svg));
        }
        out + "</figure>\n"
    }
}

/// Draws a stand-alone chart.
pub(super) fn draw(height: u32, picture: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    unmarked(&svg((WIDE, height), picture))
}

fn svg(size: (u32, u32), picture: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    let drawn = {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        (area.fill(&WHITE))
            .and_then(|()| picture(&area))
            .and_then(|()| area.present())
    };
    match drawn {
        Ok(()) => svg,
        Err(e) => format!("<p>{}</p>", escape(&e.to_string())),
    }
}

/// Draws a part with the tooltip `title` that belongs to a component.
pub(super) fn mark(
    area: &Area<'_>,
    component: Option<usize>,
    title: &str,
    part: impl FnOnce() -> Drawn,
) -> Drawn {
    let note = |text: String| area.draw(&Text::new(text, (0, 0), font(14)));
    let component = component.map_or(String::new(), |i| i.to_string());
    note(format!("{OPEN}{component}{TITLE}{title}"))?;
    part()?;
    note(CLOSE.into())
}

/// The replacement for a text that stands for a mark.
fn replace_notes(svg: &str, with: impl Fn(&str, Option<&str>) -> String) -> String {
    let mut out = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some(at) = rest.find([OPEN, CLOSE]) {
        // plotters writes `<text …>`, the content and `</text>` on lines of their own.
        let from = rest[..at].rfind("<text").unwrap_or(at);
        let end = rest[at..].find("</text>\n").map_or(rest.len(), |n| at + n);
        out.push_str(&rest[..from]);
        let note = rest[at..end].trim_end();
        let opened = note.strip_prefix(OPEN).and_then(|n| n.split_once(TITLE));
        out.push_str(&match opened {
            Some((component, title)) => with(component, Some(title)),
            None => with("", None),
        });
        rest = rest.get(end + "</text>\n".len()..).unwrap_or_default();
    }
    out + rest
}

fn unmarked(svg: &str) -> String {
    replace_notes(svg, |_, _| String::new())
}

/// Turns marks into groups. A mark without a title is a component that can be hidden, and has no
/// tooltip.
fn grouped(svg: &str) -> String {
    replace_notes(svg, |component, title| {
        let Some(title) = title else {
            return "</g>\n".into();
        };
        let mut group = String::from("<g");
        if !component.is_empty() {
            let _ = write!(group, " data-s=\"{component}\"");
        }
        if title.is_empty() {
            return group + ">\n";
        }
        // plotters has escaped the title.
        group + &format!(" class=\"m\"><title>{title}</title>\n")
    })
}

pub(super) fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

pub(super) fn anchored(horizontal: HPos) -> TextStyle<'static> {
    font(15).pos(Pos::new(horizontal, VPos::Center))
}

/// Whether the chart is narrow.
pub(super) fn is_narrow(area: &Area<'_>) -> bool {
    area.dim_in_pixel().0 < WIDE / 2
}

/// Draws the legend, in as many rows as it needs, and returns the area below it.
pub(super) fn legend<'d, 'a>(
    area: &Area<'d>,
    names: impl Iterator<Item = (&'a str, RGBColor)>,
) -> Result<Area<'d>, DrawingAreaErrorKind<std::io::Error>> {
    let (mut x, mut y) = (20, 10);
    for (name, colour) in names {
        let width = 20 + 8 * name.len() as i32;
        if x > 20 && x + width > WIDE as i32 {
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

/// A range from zero to a little more than `most`, never empty.
pub(super) fn up_to(most: f64, room: f64) -> Range<f64> {
    if most.is_finite() && most > 0.0 {
        0.0..most * room
    } else {
        0.0..1.0
    }
}

/// Axes for two plain numbers.
pub(super) fn mesh(chart: &mut Plain<'_, '_>, (x, y): (&str, &str), narrow: bool) -> Drawn {
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(LINE)
        .axis_style(LINE)
        .x_desc(x)
        .y_desc(y)
        .x_labels(x_labels(narrow))
        .label_style(font(14))
        .x_label_formatter(&|x| number(*x))
        .y_label_formatter(&|y| number(*y))
        .draw()
}

/// Number of labels that fit on the x axis.
pub(super) fn x_labels(narrow: bool) -> usize {
    if narrow { 5 } else { 11 }
}

/// Formats the label of an axis.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn picture<'a>() -> Picture<'a> {
        Picture {
            names: vec![("<one>".into(), INK)],
            height: 100,
            narrow_extra: 0,
            paint: Box::new(|area| {
                mark(area, Some(0), "a & b", || {
                    area.draw(&Rectangle::new([(1, 1), (9, 9)], INK.filled()))
                })?;
                area.draw(&Text::new("after", (5, 5), font(14)))
            }),
        }
    }

    #[test]
    fn marks_are_groups_with_titles_in_a_page() {
        let page = picture().figure("what & why");
        let group = "<g data-s=\"0\" class=\"m\"><title>a &amp; b</title>\n<rect";
        // One in the wide chart and one in the narrow chart.
        assert_eq!(page.matches(group).count(), 2, "{page}");
        assert_eq!(page.matches("<g").count(), page.matches("</g>").count());
        assert!(page.contains("aria-label=\"what &amp; why\""), "{page}");
        assert!(page.contains("&lt;one&gt;</button>"), "{page}");
        assert!(page.contains("after"), "{page}");
        assert!(!page.contains([OPEN, TITLE, CLOSE]), "{page}");
    }

    #[test]
    fn a_picture_alone_has_its_legend_and_no_marks() {
        let alone = picture().alone();
        for part in ["&lt;one&gt;", "<rect", "after", "</svg>"] {
            assert!(alone.contains(part), "no {part} in {alone}");
        }
        assert!(!alone.contains("<g") && !alone.contains("a &amp; b"));
        assert!(!alone.contains([OPEN, TITLE, CLOSE]), "{alone}");
    }
}
