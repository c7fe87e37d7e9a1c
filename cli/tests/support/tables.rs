//! Access to the tables of documents by names and cells.

use super::told::read;

/// A document with tables that a command fills in, each between `<!-- NAME -->` and `<!-- end -->`.
pub(crate) struct Document {
    name: String,
    text: String,
}

impl Document {
    /// Reads a document by its path from the project's root.
    pub(crate) fn open(name: &str) -> Document {
        Document {
            name: name.to_owned(),
            text: read(name),
        }
    }

    /// The names of the tables.
    pub(crate) fn tables(&self) -> Vec<&str> {
        let marks = self.text.lines().filter_map(|line| {
            let name = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
            (name != "end").then_some(name)
        });
        marks.collect()
    }

    /// The rows of a table, without its header.
    fn rows(&self, table: &str) -> Vec<Vec<&str>> {
        let start = format!("<!-- {table} -->");
        let lines = self.text.lines().skip_while(|line| *line != start).skip(1);
        let rows: Vec<Vec<&str>> = lines
            .take_while(|line| *line != "<!-- end -->")
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        assert!(rows.len() > 2, "{}: no table {table}", self.name);
        rows[2..].to_vec()
    }

    /// The number in a column of the row that begins with `row`. Cells are separated by ` | `.
    pub(crate) fn cell(&self, table: &str, row: &str, column: usize) -> f64 {
        let wanted: Vec<&str> = row.split(" | ").collect();
        let rows = self.rows(table);
        let found = rows.iter().find(|cells| cells.starts_with(&wanted));
        let cells = found.unwrap_or_else(|| panic!("{}: {table}: no row {row}", self.name));
        number(cells[column]).unwrap_or_else(|| panic!("{}: {table}: {row}: {cells:?}", self.name))
    }

    /// All numbers of a column.
    pub(crate) fn column(&self, table: &str, column: usize) -> Vec<f64> {
        let rows = self.rows(table);
        rows.iter()
            .filter_map(|cells| number(cells[column]))
            .collect()
    }

    /// The text with every run of white space replaced by one space.
    pub(crate) fn flat(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns an error if the text does not contain the sentence.
    pub(crate) fn says(&self, sentence: &str) -> Option<String> {
        let missing = !self.flat().contains(sentence);
        missing.then(|| {
            format!(
                "{}: missing, according to its tables: {sentence}",
                self.name
            )
        })
    }
}

/// Parses a cell as a number, whatever its unit.
fn number(cell: &str) -> Option<f64> {
    let digits: String = cell
        .chars()
        .filter(|c| !matches!(c, ',' | '+' | '`'))
        .collect();
    digits.split_whitespace().next()?.parse().ok()
}
