//! Pictures of what page layouts take: bytes per record, measured beside predicted, and which layouts leaves have (B-Trees Are Back, Figure 15).

use std::fmt::Write as _;

use plotters::prelude::*;
use treering_engine::node::PageLayout;

use super::bars::{Bars, Series, Stacks, groups, stacks};
use super::lines::colour;
use super::pictures::{Area, Drawn, PARTS, draw, legend};
use super::{STYLE, escape};

/// What a tree of one layout takes.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutRow {
    /// The layout's name.
    pub name: String,
    /// Bytes of leaves a record.
    pub bytes_per_record: f64,
    /// The same, predicted.
    pub predicted: f64,
    /// Names of the layouts that leaves have, and what share of the leaves has each.
    pub kinds: Vec<(&'static str, f64)>,
}

/// Of which the page is made.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutPage<'a> {
    /// The key set's name.
    pub title: &'a str,
    /// Sentences below the title.
    pub about: &'a [String],
    /// What the pictures show.
    pub rows: &'a [LayoutRow],
    /// Names of the table's columns.
    pub head: &'a [&'a str],
    /// Its lines.
    pub table: &'a [Vec<String>],
}

impl LayoutPage<'_> {
    /// The page: pictures, and all numbers under them.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width,initial-scale=1\"><title>{0}</title><style>{STYLE}</style></head><body>\n<h1>{0}</h1>\n",
            escape(self.title)
        );
        for text in self.about {
            let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(text));
        }
        super::section(
            &mut out,
            "Space and leaves by layout",
            &layouts_svg(self.rows),
        );
        out.push_str("<table>");
        for (line, tag) in std::iter::once((self.head.iter().map(|h| (*h).into()).collect(), "th"))
            .chain(self.table.iter().map(|line| (line.clone(), "td")))
        {
            let line: Vec<String> = line;
            let cells = (line.iter()).map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
            let _ = writeln!(out, "<tr>{}</tr>", cells.collect::<String>());
        }
        out.push_str("</table></body></html>\n");
        out
    }
}

/// Bytes a record above, leaves by layout below.
#[must_use]
pub fn layouts_svg(rows: &[LayoutRow]) -> String {
    draw(620, |area| {
        let (above, below) = area.split_vertically(320);
        bytes(&above, rows)?;
        stacks(&below, &kinds(rows))
    })
}

/// Leaves by layout alone.
#[must_use]
pub fn leaf_kinds_svg(rows: &[LayoutRow]) -> String {
    draw(300, |area| stacks(area, &kinds(rows)))
}

fn bytes(area: &Area<'_>, rows: &[LayoutRow]) -> Drawn {
    let bars = [
        (
            "measured",
            PARTS[0].1,
            rows.iter().map(|r| r.bytes_per_record).collect(),
        ),
        (
            "predicted",
            PARTS[1].1,
            rows.iter().map(|r| r.predicted).collect(),
        ),
    ];
    let bars: [(&str, RGBColor, Vec<f64>); 2] = bars;
    let most = bars.iter().flat_map(|(.., heights)| heights);
    let most = most.copied().fold(0.0, f64::max);
    let below = legend(area, bars.iter().map(|(name, colour, _)| (*name, *colour)))?;
    let series = bars.map(|(name, colour, heights)| Series {
        name,
        colour,
        // Two numbers would stand in each other's way.
        labels: (heights.iter())
            .map(|bytes| match name {
                "measured" => format!("{bytes:.1}"),
                _ => String::new(),
            })
            .collect(),
        heights,
    });
    let bars = Bars {
        groups: rows.iter().map(|row| row.name.clone()).collect(),
        series: series.into(),
        x: "",
        y: "bytes of leaves a record",
    };
    groups(&below, &bars, most)
}

fn kinds(rows: &[LayoutRow]) -> Stacks<'static> {
    let layouts = PageLayout::ALL.into_iter().chain(PageLayout::DENSE);
    let share = |row: &LayoutRow, name: &str| {
        let kind = row.kinds.iter().find(|(kind, _)| *kind == name);
        kind.map_or(0.0, |(_, share)| *share)
    };
    let parts = layouts.enumerate().map(|(i, layout)| {
        let name = layout.name();
        let shares: Vec<f64> = rows.iter().map(|row| share(row, name)).collect();
        (name, colour(i), shares)
    });
    Stacks {
        bars: rows.iter().map(|row| row.name.clone()).collect(),
        parts: (parts.filter(|(.., shares)| shares.iter().any(|share| *share > 0.0))).collect(),
        y: "share of leaves, %",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_drawn_and_named_and_leaves_of_none_left_out() {
        let row = |name: &str, kinds: &[(&'static str, f64)]| LayoutRow {
            name: name.into(),
            bytes_per_record: 24.5,
            predicted: 25.5,
            kinds: kinds.to_vec(),
        };
        let rows = [
            row("hints", &[("hints", 1.0)]),
            row("adaptive <", &[("hints", 0.25), ("fully-dense", 0.75)]),
        ];
        let svg = layouts_svg(&rows);
        for part in [
            "measured",
            "predicted",
            "24.5",
            "fully-dense",
            "adaptive &lt;",
        ] {
            assert!(svg.contains(part), "no {part} in {svg}");
        }
        assert!(!svg.contains("fingerprint"), "{svg}");
        let page = LayoutPage {
            title: "keys & more",
            about: &["All of them.".into()],
            rows: &rows,
            head: &["layout", "bytes"],
            table: &[vec!["hints".into(), "24.50".into()]],
        };
        let page = page.render();
        for part in [
            "keys &amp; more",
            "<svg",
            "<th>bytes</th>",
            "<td>24.50</td>",
        ] {
            assert!(page.contains(part), "no {part} in {page}");
        }
    }
}
