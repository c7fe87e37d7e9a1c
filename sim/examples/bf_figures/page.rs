//! The output of a figure: pictures and tables, and the page of Markdown that shows them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use treering_sim::report::html::Lines;

/// The pictures and tables of a figure.
#[derive(Default)]
pub(crate) struct Sheet {
    /// SVG by file name, without `.svg`.
    pub(crate) pictures: Vec<(String, String)>,
    /// Markdown by table name.
    pub(crate) tables: Vec<(String, String)>,
}

impl Sheet {
    pub(crate) fn picture(&mut self, name: &str, lines: &Lines<'_>) {
        self.drawn(name, lines.svg());
    }

    /// As [`Sheet::picture`], for an SVG that is already drawn.
    pub(crate) fn drawn(&mut self, name: &str, svg: String) {
        self.pictures.push((name.into(), svg + "\n"));
    }

    pub(crate) fn table(&mut self, name: &str, table: Table) {
        self.tables.push((name.into(), table.0));
    }

    /// Writes pictures to `docs/` and tables into the page, a path from the project's root. With
    /// `out`, writes both to that folder instead.
    pub(crate) fn write(&self, out: Option<&Path>, page: &str) -> Result<(), String> {
        let told = |path: &Path, e: io::Error| format!("{}: {e}", path.display());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let pictures = out.map_or_else(|| root.join("docs"), Path::to_path_buf);
        fs::create_dir_all(&pictures).map_err(|e| told(&pictures, e))?;
        self.save(&pictures).map_err(|e| told(&pictures, e))?;
        let (path, page) = match out {
            Some(out) => {
                let tables = self.tables.iter();
                let all = tables.map(|(name, table)| format!("{name}\n\n{table}\n"));
                (out.join("tables.md"), all.collect())
            }
            None => {
                let path = root.join(page);
                let page = fs::read_to_string(&path).map_err(|e| told(&path, e))?;
                let filled = fill_in(&page, &self.tables)
                    .map_err(|why| format!("{}: {why}", path.display()))?;
                (path, filled)
            }
        };
        fs::write(&path, page).map_err(|e| told(&path, e))
    }

    /// Writes the pictures, one file each.
    fn save(&self, folder: &Path) -> io::Result<()> {
        self.pictures
            .iter()
            .try_for_each(|(name, svg)| fs::write(folder.join(format!("{name}.svg")), svg))
    }
}

/// A table in Markdown.
pub(crate) struct Table(String);

impl Table {
    pub(crate) fn new(head: &[&str]) -> Table {
        let mut table = Table(String::new());
        table.line(head.iter().copied());
        let rules = head.iter().enumerate();
        table.line(rules.map(|(i, _)| if i == 0 { "---" } else { "---:" }));
        table
    }

    fn line<'a>(&mut self, cells: impl Iterator<Item = &'a str>) {
        self.0.push('|');
        for cell in cells {
            let _ = write!(self.0, " {cell} |");
        }
        self.0.push('\n');
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        self.line(cells.iter().map(String::as_str));
    }
}

/// Replaces the tables between `<!-- NAME -->` and `<!-- end -->`. Fails if the page has no place
/// for one of them.
pub(crate) fn fill_in(page: &str, tables: &[(String, String)]) -> Result<String, String> {
    let mut page = page.to_string();
    for (name, table) in tables {
        let mark = format!("<!-- {name} -->\n");
        let place = page.find(&mark).and_then(|at| {
            let from = at + mark.len();
            let end = page[from..].find("<!-- end -->")?;
            Some(from..from + end)
        });
        let place = place.ok_or_else(|| format!("no place for the table {name}"))?;
        page.replace_range(place, table);
    }
    Ok(page)
}

/// Formats a share in per cent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
