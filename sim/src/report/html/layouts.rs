//! Charts of page layouts: bytes per record, measured beside predicted, and the share of leaves in
//! each layout (B-Trees Are Back, Figure 15).

use treering_engine::node::PageLayout;

use super::bars::{Bars, Series, Stacks, bars, stacks};
use super::chart::{PARTS, Picture, draw};
use super::lines::colour;
use super::page::{heading, page, sentences};
use super::tables::{Cell, Table};

/// The results of one layout.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutRow {
    /// The layout's name.
    pub name: String,
    /// Bytes of leaves per record.
    pub bytes_per_record: f64,
    /// The predicted bytes per record.
    pub predicted: f64,
    /// The layouts of the leaves, and the share of leaves in each.
    pub kinds: Vec<(&'static str, f64)>,
}

/// The contents of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutPage<'a> {
    /// The key set's name.
    pub title: &'a str,
    /// Sentences below the title.
    pub about: &'a [String],
    /// The data of the charts.
    pub rows: &'a [LayoutRow],
    /// Column names of the table.
    pub head: &'a [&'a str],
    /// Rows of the table.
    pub table: &'a [Vec<String>],
}

impl LayoutPage<'_> {
    /// The page: charts, and all numbers below them.
    #[must_use]
    pub fn render(&self) -> String {
        let lines = self.table.iter();
        let table = Table {
            label: "All layouts",
            head: self.head.to_vec(),
            rows: (lines.map(|line| line.iter().map(|cell| Cell::read(cell)).collect())).collect(),
        };
        let body = [
            sentences(self.about),
            heading("Space by layout"),
            bytes(self.rows).figure("Space by layout"),
            heading("Leaves by layout"),
            stacks(kinds(self.rows)).figure("Leaves by layout"),
            table.html(),
        ];
        page(self.title, &body.concat())
    }
}

/// Both charts in one: bytes per record above, leaves by layout below.
#[must_use]
pub fn layouts_svg(rows: &[LayoutRow]) -> String {
    draw(620, |area| {
        let (above, below) = area.split_vertically(320);
        bytes(rows).with_legend(&above)?;
        stacks(kinds(rows)).with_legend(&below)
    })
}

/// The chart of leaves by layout.
#[must_use]
pub fn leaf_kinds_svg(rows: &[LayoutRow]) -> String {
    stacks(kinds(rows)).alone()
}

fn bytes(rows: &[LayoutRow]) -> Picture<'_> {
    let series = |name, colour, heights: Vec<f64>, labels| Series {
        name,
        colour,
        heights,
        labels,
    };
    let measured: Vec<f64> = rows.iter().map(|r| r.bytes_per_record).collect();
    let labels = measured.iter().map(|bytes| format!("{bytes:.1}"));
    let labels = labels.collect();
    // Two labels would overlap.
    let none = vec![String::new(); rows.len()];
    let predicted = rows.iter().map(|r| r.predicted).collect();
    bars(Bars {
        groups: rows.iter().map(|row| row.name.clone()).collect(),
        series: vec![
            series("measured", PARTS[0].1, measured, labels),
            series("predicted", PARTS[1].1, predicted, none),
        ],
        x: "",
        y: "bytes of leaves per record",
    })
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
            "<th scope=\"col\" class=\"n\">bytes</th>",
            "<td class=\"n\" data-v=\"24.5\">24.50</td>",
        ] {
            assert!(page.contains(part), "no {part} in {page}");
        }
    }
}
