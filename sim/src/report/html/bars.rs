//! Bar charts: groups of bars, or stacked shares of a whole.

use plotters::prelude::*;
use plotters::style::FontTransform;
use plotters::style::text_anchor::HPos;

use super::chart::{
    Area, Drawn, LINE, NARROW, Picture, Plain, anchored, font, mark, number, up_to,
};
use super::lines::colour;

/// Bars in groups; each name on the x axis is a group.
pub(super) struct Bars<'a> {
    pub(super) groups: Vec<String>,
    pub(super) series: Vec<Series<'a>>,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
}

/// One bar of each group: its name in the legend (empty if it is the only series), heights, and
/// labels above the bars.
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    pub(super) colour: RGBColor,
    pub(super) heights: Vec<f64>,
    pub(super) labels: Vec<String>,
}

pub(super) fn bars(all: Bars<'_>) -> Picture<'_> {
    let named = all.series.iter().filter(|s| !s.name.is_empty());
    Picture {
        names: named.map(|s| (s.name.to_string(), s.colour)).collect(),
        height: 300,
        narrow_extra: Below::extra(&all.groups),
        paint: Box::new(move |area| groups(area, &all)),
    }
}

/// A chart of bars in groups: a bar of each of the named series above each name on the x axis. A
/// series without a name has no legend.
///
/// ```
/// use treering_sim::report::html::bar_picture;
///
/// let groups = vec!["load".into(), "updates".into()];
/// let series = vec![("host", vec![1.0, 3.5]), ("gc", vec![0.0, 1.2])];
/// let figure = bar_picture(groups, series, ("phase", "bytes over user bytes")).figure("by phase");
/// assert!(figure.contains("updates") && figure.contains("gc"));
/// ```
#[must_use]
pub fn bar_picture<'a>(
    groups: Vec<String>,
    series: Vec<(&'a str, Vec<f64>)>,
    (x, y): (&'a str, &'a str),
) -> Picture<'a> {
    let of = |(i, (name, heights)): (usize, (&'a str, Vec<f64>))| Series {
        name,
        colour: colour(i),
        labels: heights.iter().map(|height| number(*height)).collect(),
        heights,
    };
    let series = series.into_iter().enumerate().map(of).collect();
    bars(Bars {
        groups,
        series,
        x,
        y,
    })
}

/// Axes of a bar chart, with names on the x axis.
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

/// Height of the first row of names in pixels, of a further one, and how many there are at most.
const ROW: u32 = 24;
const NEXT_ROW: u32 = 15;
const MOST_ROWS: usize = 3;

/// Pixels of a letter.
const LETTER: u32 = 7;

/// The names below the bars: in several rows or rotated if they would overlap.
struct Below {
    /// The rows of each name. If they are rotated, there is one.
    names: Vec<Vec<String>>,
    upright: bool,
    /// Their height in pixels.
    height: u32,
}

impl Below {
    fn new(area: &Area<'_>, names: &[String]) -> Below {
        Below::within(area.dim_in_pixel().0, names)
    }

    /// The additional height that they need in a narrow chart.
    fn extra(names: &[String]) -> u32 {
        Below::within(NARROW, names).height - ROW
    }

    fn within(pixels: u32, names: &[String]) -> Below {
        let letters = pixels.saturating_sub(80) / names.len().max(1) as u32 / LETTER;
        let rows: Option<Vec<_>> = names
            .iter()
            .map(|name| rows(name, letters as usize))
            .collect();
        if let Some(names) = rows {
            let most = names.iter().map(Vec::len).max().unwrap_or(1).max(1) as u32;
            return Below {
                names,
                upright: false,
                height: ROW + NEXT_ROW * (most - 1),
            };
        }
        let longest = names.iter().map(|name| name.chars().count()).max();
        Below {
            names: names.iter().map(|name| vec![name.clone()]).collect(),
            upright: true,
            height: LETTER * longest.unwrap_or(0) as u32 + ROW,
        }
    }

    fn draw(&self, chart: &mut Plain<'_, '_>) -> Drawn {
        for (group, rows) in self.names.iter().enumerate() {
            for (row, text) in rows.iter().enumerate() {
                let (style, down) = if self.upright {
                    let style = anchored(HPos::Left).transform(FontTransform::Rotate90);
                    (style, 8)
                } else {
                    (anchored(HPos::Center), 14 + NEXT_ROW as i32 * row as i32)
                };
                let below = Text::new(text.clone(), (0, down), style);
                chart.draw_series([EmptyElement::at((group as f64 + 0.5, 0.0)) + below])?;
            }
        }
        Ok(())
    }
}

/// A name in few rows of at most so many letters: it is broken before `+` and `(` and after spaces.
/// `None` if that is not enough.
fn rows(name: &str, letters: usize) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        let last = parts.last_mut()?;
        if !last.is_empty() && (matches!(letter, '+' | '(') || last.ends_with(' ')) {
            parts.push(letter.into());
        } else {
            last.push(letter);
        }
    }
    let mut rows: Vec<String> = Vec::new();
    for part in parts {
        let room = letters.checked_sub(part.trim_end().chars().count())?;
        match rows.last_mut().filter(|row| row.chars().count() <= room) {
            Some(row) => row.push_str(&part),
            None => rows.push(part),
        }
    }
    let trimmed = rows.iter().map(|row| row.trim_end().into());
    (rows.len() <= MOST_ROWS).then(|| trimmed.collect())
}

fn groups(area: &Area<'_>, all: &Bars<'_>) -> Drawn {
    let heights = all.series.iter().flat_map(|s| &s.heights);
    let most = heights.copied().fold(0.0, f64::max);
    let count = all.groups.len().max(1);
    let below = Below::new(area, &all.groups);
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .margin_top(12)
        .x_label_area_size(36 + below.height)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..count as f64, up_to(most, 1.12))?;
    mesh(&mut chart, Some(all.x), all.y)?;
    let width = 0.8 / all.series.len().max(1) as f64;
    let bar_pixels = chart.plotting_area().dim_in_pixel().0 as f64 * width / count as f64;
    for (i, series) in all.series.iter().enumerate() {
        let component = (!series.name.is_empty()).then_some(i);
        for (group, (height, label)) in series.heights.iter().zip(&series.labels).enumerate() {
            let from = group as f64 + 0.1 + i as f64 * width;
            let corners = [(from, 0.0), (from + width, *height)];
            let mut bar = Rectangle::new(corners, series.colour.filled());
            bar.set_margin(0, 0, 1, 1);
            mark(area, component, &title(all, series, group), || {
                chart.draw_series([bar])?;
                Ok(())
            })?;
            // Without room for the label, only the bar's tooltip has it.
            if (8 * label.chars().count()) as f64 > 1.4 * bar_pixels {
                continue;
            }
            let above = Text::new(label.clone(), (0, -9), anchored(HPos::Center));
            let above = EmptyElement::at((from + width / 2.0, *height)) + above;
            mark(area, component, "", || {
                chart.draw_series([above])?;
                Ok(())
            })?;
        }
    }
    below.draw(&mut chart)
}

/// Steps from one sum to the next, each a bar from where the one before ended.
pub(super) struct Steps<'a> {
    /// Name, height (negative for a step down), and what it is.
    pub(super) steps: Vec<(&'a str, f64, &'a str)>,
    pub(super) y: &'a str,
}

pub(super) fn steps(all: Steps<'_>) -> Picture<'_> {
    let names: Vec<String> = all.steps.iter().map(|(name, ..)| (*name).into()).collect();
    Picture {
        names: Vec::new(),
        height: 380,
        narrow_extra: Below::extra(&names),
        paint: Box::new(move |area| stepped(area, &all, &names)),
    }
}

fn stepped(area: &Area<'_>, all: &Steps<'_>, names: &[String]) -> Drawn {
    let mut sum = 0.0;
    let spans = all.steps.iter().map(|(_, height, _)| {
        let from = sum;
        sum += height;
        (from, sum)
    });
    let spans: Vec<(f64, f64)> = spans.collect();
    let most = spans
        .iter()
        .map(|(from, to)| from.max(*to))
        .fold(0.0, f64::max);
    let below = Below::new(area, names);
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .margin_top(12)
        .x_label_area_size(16 + below.height)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..names.len().max(1) as f64, up_to(most, 1.12))?;
    mesh(&mut chart, None, all.y)?;
    for (i, ((name, height, what), (from, to))) in all.steps.iter().zip(spans).enumerate() {
        let corners = [
            (i as f64 + 0.1, from.min(to)),
            (i as f64 + 0.9, from.max(to)),
        ];
        let bar = Rectangle::new(corners, colour(0).filled());
        let title = format!(
            "{name}: {} ({what}); {} so far",
            number(*height),
            number(to)
        );
        mark(area, None, &title, || {
            chart.draw_series([bar])?;
            Ok(())
        })?;
        let above = Text::new(number(*height), (0, -9), anchored(HPos::Center));
        chart.draw_series([EmptyElement::at((i as f64 + 0.5, from.max(to))) + above])?;
    }
    below.draw(&mut chart)
}

/// The tooltip of a bar.
fn title(all: &Bars<'_>, series: &Series<'_>, group: usize) -> String {
    let mut title = all.groups[group].clone();
    if !series.name.is_empty() {
        title += &format!(", {}", series.name);
    }
    title += &format!(": {:.2} ({})", series.heights[group], all.y);
    if !series.labels[group].is_empty() {
        title += &format!("; {}", series.labels[group]);
    }
    title
}

/// Stacked bars of shares; each name on the x axis is a bar.
pub(super) struct Stacks<'a> {
    pub(super) bars: Vec<String>,
    /// Names of the parts, their colours, and their share of each bar.
    pub(super) parts: Vec<(&'a str, RGBColor, Vec<f64>)>,
    pub(super) y: &'a str,
}

pub(super) fn stacks(all: Stacks<'_>) -> Picture<'_> {
    let named = all.parts.iter();
    Picture {
        names: (named.map(|(name, colour, _)| ((*name).to_string(), *colour))).collect(),
        height: 266,
        narrow_extra: Below::extra(&all.bars),
        paint: Box::new(move |area| stacked(area, &all)),
    }
}

fn stacked(area: &Area<'_>, all: &Stacks<'_>) -> Drawn {
    let below = Below::new(area, &all.bars);
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .margin_top(12)
        .x_label_area_size(16 + below.height)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..all.bars.len().max(1) as f64, 0.0..100.0)?;
    mesh(&mut chart, None, all.y)?;
    for (bar, name) in all.bars.iter().enumerate() {
        let (left, right) = (bar as f64 + 0.2, bar as f64 + 0.8);
        let mut from = 0.0;
        for (component, (part, colour, shares)) in all.parts.iter().enumerate() {
            let share = 100.0 * shares.get(bar).copied().unwrap_or(0.0);
            let to = from + share;
            if to > from {
                let corners = [(left, from), (right, to)];
                let title = format!("{name}: {share:.1} % {part}");
                mark(area, Some(component), &title, || {
                    chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                    Ok(())
                })?;
            }
            from = to;
        }
    }
    below.draw(&mut chart)
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn a_long_name_is_broken_where_a_spec_or_a_sentence_may_be() {
        let broken = |name, letters| rows(name, letters).map(|rows| rows.join("|"));
        let told = |text: &str| Some(text.to_owned());
        assert_eq!(broken("btree", 18), told("btree"));
        let spec = "btree+cow(table=each-flush)";
        assert_eq!(broken(spec, 30), told(spec));
        assert_eq!(broken(spec, 18), told("btree+cow|(table=each-flush)"));
        assert_eq!(broken(spec, 17), None, "the part in parentheses is longer");
        assert_eq!(broken("free room", 5), told("free|room"));
        assert_eq!(broken("a b c d", 1), None, "too many rows");
        assert_eq!(broken("", 0), told(""));
    }
}
