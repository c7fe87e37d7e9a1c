//! Tables of the page. The page's script sorts them by the attribute `data-v`; without the script
//! they keep their order.

use std::fmt::Write as _;

use super::page::escape;

/// A cell: its text, and its numeric value if it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    text: String,
    value: Option<f64>,
    /// Whether it is aligned like a number.
    numeric: bool,
}

impl Cell {
    /// A text cell.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            value: None,
            numeric: false,
        }
    }

    /// A number, formatted as `text`.
    #[must_use]
    pub fn number(text: impl Into<String>, value: f64) -> Cell {
        Cell {
            text: text.into(),
            value: Some(value),
            numeric: true,
        }
    }

    /// A number with all its digits.
    #[must_use]
    pub fn count(n: u64) -> Cell {
        Cell::number(crate::report::numbers::grouped(n), n as f64)
    }

    /// A number, or a dash if there is none.
    #[must_use]
    pub fn optional(value: Option<f64>, text: impl FnOnce(f64) -> String) -> Cell {
        let none = || Cell {
            numeric: true,
            ..Cell::text("–")
        };
        value.map_or_else(none, |v| Cell::number(text(v), v))
    }

    /// A cell that is numeric if the whole text is a number, apart from commas and a per cent sign.
    #[must_use]
    pub fn read(text: &str) -> Cell {
        let digits = text.trim_end_matches('%').trim_end().replace(',', "");
        match digits.parse() {
            Ok(n) if f64::is_finite(n) => Cell::number(text, n),
            _ => Cell::text(text),
        }
    }

    fn html(&self) -> String {
        let class = if self.numeric { " class=\"n\"" } else { "" };
        let value = (self.value).map_or(String::new(), |value| format!(" data-v=\"{value}\""));
        format!("<td{class}{value}>{}</td>", escape(&self.text))
    }
}

/// A table.
pub struct Table<'a> {
    /// Title of the table, for screen readers.
    pub label: &'a str,
    /// Names of the columns.
    pub head: Vec<&'a str>,
    /// Rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table<'_> {
    /// A table of two text columns.
    #[must_use]
    pub fn named<'a>(
        label: &'a str,
        head: [&'a str; 2],
        rows: impl IntoIterator<Item = (String, String)>,
    ) -> Table<'a> {
        let row = |(name, value)| vec![Cell::text(name), Cell::text(value)];
        Table {
            label,
            head: head.to_vec(),
            rows: rows.into_iter().map(row).collect(),
        }
    }

    /// Renders the table, which scrolls if it is wider than the page.
    #[must_use]
    pub fn html(&self) -> String {
        let mut out = format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead><tr>",
            escape(self.label)
        );
        for (i, name) in self.head.iter().enumerate() {
            let numbers = self
                .rows
                .iter()
                .any(|row| row.get(i).is_some_and(|cell| cell.numeric));
            let class = if numbers { " class=\"n\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(name));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            let cells = row.iter().map(Cell::html).collect::<String>();
            let _ = writeln!(out, "<tr>{cells}</tr>");
        }
        out + "</tbody></table></div>\n"
    }

    /// Renders the table in a section that can be opened.
    #[must_use]
    pub fn folded(&self) -> String {
        let summary = escape(self.label);
        let table = self.html();
        format!("<details><summary>{summary}</summary>{table}</details>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_sorted_by_and_dashes_stand_among_them() {
        let table = Table {
            label: "all & some",
            head: vec!["name", "count"],
            rows: vec![
                vec![Cell::text("<a>"), Cell::count(1234)],
                vec![Cell::text("b"), Cell::optional(None, |n| n.to_string())],
            ],
        };
        let html = table.html();
        for part in [
            "aria-label=\"all &amp; some\"",
            "<th scope=\"col\">name</th><th scope=\"col\" class=\"n\">count</th>",
            "<td>&lt;a&gt;</td><td class=\"n\" data-v=\"1234\">1,234</td>",
            "<td>b</td><td class=\"n\">–</td>",
        ] {
            assert!(html.contains(part), "no {part} in {html}");
        }
    }

    #[test]
    fn text_is_a_number_where_all_of_it_is() {
        assert_eq!(Cell::read("+1.5%").value, Some(1.5));
        assert_eq!(Cell::read("12,345").value, Some(12345.0));
        for words in ["hints", "", "NaN", "4.0 KiB", "1 of 2"] {
            assert_eq!(Cell::read(words).value, None, "{words}");
        }
    }
}
