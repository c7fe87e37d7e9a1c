//! The tables and pictures of a study, and its page.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use treering_sim::report::html::{Curve, Lines, Scale, bar_picture};

use super::claims::{self, Judged};
use super::found::{self, Found};
use super::shown::{ChartOf, Figure, ScaleOf, Shown, TableOf};
use crate::failure::Failure;
use crate::output;

/// The most curves of a chart, which is the number of colours.
const MOST_CURVES: usize = 8;

/// What a study makes of its results.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    /// Markdown by name.
    pub(super) tables: Vec<(String, String)>,
    /// SVG by name.
    pub(super) pictures: Vec<(String, String)>,
    pub(super) claims: Vec<Judged>,
}

impl Made {
    /// Makes all of it; `small` if the results are those of the small version.
    ///
    /// # Errors
    /// If a table or chart cannot be made of the results.
    pub(super) fn of(shown: &Shown, all: &[Found<'_>], small: bool) -> Result<Made, Failure> {
        let mut made = Made::default();
        let bad = |name: &str, why: String| Failure::usage(format!("{name}: {why}"));
        for it in &shown.tables {
            let text = table(it, all).map_err(|why| bad(&it.name, why))?;
            made.tables.extend(text.map(|text| (it.name.clone(), text)));
        }
        for it in &shown.charts {
            let svg = chart(it, all).map_err(|why| bad(&it.name, why))?;
            made.pictures.extend(svg.map(|svg| (it.name.clone(), svg)));
        }
        let claims = shown.claims.iter();
        made.claims = claims.map(|it| claims::judge(it, all, small)).collect();
        if !made.claims.is_empty() {
            made.tables
                .push(("claims".into(), claims_table(&made.claims)));
        }
        Ok(made)
    }

    /// All tables, each below its name.
    pub(super) fn text(&self) -> String {
        let tables = self.tables.iter();
        tables
            .map(|(name, table)| format!("{name}\n\n{table}\n"))
            .collect()
    }

    /// Rewrites the tables in a page, between `<!-- NAME -->` and `<!-- end -->`, and the pictures
    /// beside it.
    ///
    /// # Errors
    /// If the page has no place for a table, or a file cannot be written.
    pub(super) fn fill(&self, path: &Path) -> Result<(), Failure> {
        let name = path.display().to_string();
        let mut page = std::fs::read_to_string(path).map_err(|e| Failure::file(&name, &e))?;
        for (table, text) in &self.tables {
            let place = place(&page, table).ok_or_else(|| no_place(&name, table))?;
            page.replace_range(place, text);
        }
        write(path, page.as_bytes())?;
        self.save(output::folder(path))
    }

    /// Writes the pictures to a folder.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn save(&self, folder: &Path) -> Result<(), Failure> {
        self.pictures
            .iter()
            .try_for_each(|(name, svg)| write(&folder.join(format!("{name}.svg")), svg.as_bytes()))
    }
}

/// The place of a table in a page, between its marks.
fn place(page: &str, table: &str) -> Option<Range<usize>> {
    let mark = format!("<!-- {table} -->\n");
    let from = page.find(&mark)? + mark.len();
    let end = page[from..].find("<!-- end -->")?;
    Some(from..from + end)
}

fn no_place(page: &str, table: &str) -> Failure {
    Failure::usage(format!(
        "{page}: expected <!-- {table} --> and <!-- end --> on lines of their own"
    ))
}

/// Checks that a page has a place for each table, so that a mistake is found before anything is run.
///
/// # Errors
/// If it has not, or cannot be read.
pub(super) fn check_page(path: &Path, shown: &Shown) -> Result<(), Failure> {
    let name = path.display().to_string();
    let page = std::fs::read_to_string(path).map_err(|e| Failure::file(&name, &e))?;
    let tables = shown.tables.iter().map(|table| table.name.as_str());
    let claims = (!shown.claims.is_empty()).then_some("claims");
    match tables
        .chain(claims)
        .find(|table| place(&page, table).is_none())
    {
        None => Ok(()),
        Some(table) => Err(no_place(&name, table)),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    output::write_with(path, |out| {
        out.write_all(bytes)
            .map_err(|e| Failure::file(&path.display().to_string(), &e))
    })
}

/// A table in Markdown; the first `names` columns have words.
fn markdown(head: &[String], names: usize, rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    let mut line = |cells: &[String]| {
        text.push('|');
        for cell in cells {
            // Writing to a String cannot fail.
            let _ = write!(text, " {} |", cell.replace('|', "\\|"));
        }
        text.push('\n');
    };
    line(head);
    let rule = |i| if i < names { "---" } else { "---:" };
    let rules: Vec<String> = (0..head.len()).map(|i| rule(i).to_owned()).collect();
    line(&rules);
    rows.iter().for_each(|row| line(row));
    text
}

/// A value of a parameter, as a cell or a label.
fn label(parameter: &str, value: &str, code: bool) -> String {
    match (parameter, value) {
        (_, "") => "–".into(),
        ("tree" | "layout", value) if code => format!("`{value}`"),
        // A bare number says nothing in a legend.
        (name, value) if !code && value.parse::<f64>().is_ok() => format!("{name} {value}"),
        (_, value) => value.to_owned(),
    }
}

/// The mean of the runs that a cell stands for, which differ in their seeds only.
fn mean(cell: &[&&Found<'_>], of: &str) -> Result<Option<f64>, String> {
    let alike = |found: &Found| {
        let settings = found.point.settings().filter(|(name, _)| *name != "seed");
        (
            found.point.trace.clone(),
            settings
                .map(|(a, b)| format!("{a}={b}"))
                .collect::<Vec<_>>(),
        )
    };
    let kinds = found::distinct(cell.iter().map(|found| alike(found)));
    if let [one, other, ..] = kinds.as_slice() {
        return Err(format!(
            "expected one run in each place, found {} {} and {} {}",
            one.0,
            one.1.join(" "),
            other.0,
            other.1.join(" ")
        ));
    }
    let values: Vec<f64> = cell.iter().filter_map(|found| found.value(of)).collect();
    Ok(match values.len() {
        0 => None,
        n => Some(values.iter().sum::<f64>() / n as f64),
    })
}

/// The value of a figure in a cell: itself, or its growth from the base.
fn value(figure: &Figure, cell: &[&&Found<'_>], all: &[&Found<'_>]) -> Result<Option<f64>, String> {
    let here = mean(cell, &figure.of)?;
    let (Some(base), Some(first)) = (&figure.base, cell.first()) else {
        return Ok(here);
    };
    let is_base = |f: &&&Found| f.point.trace == first.point.trace && found::matches(f.point, base);
    let bases: Vec<&&Found> = all.iter().filter(is_base).collect();
    let growth = |of: &str| -> Result<Option<f64>, String> {
        Ok(mean(cell, of)?
            .zip(mean(&bases, of)?)
            .map(|(here, base)| here - base))
    };
    let grown = growth(&figure.of)?;
    let Some(per) = &figure.per else {
        return Ok(grown);
    };
    // Where the other figure does not grow, there is nothing to divide by.
    let by = growth(per)?.filter(|by| *by > 0.0);
    Ok(grown.zip(by).map(|(grown, by)| grown / by))
}

/// Something in a table's column: a figure at a value of the pivot, and whether it is the paper's.
type Column<'a> = (&'a Figure, Option<String>, bool);

/// The table; `None` if it has no rows.
fn table(it: &TableOf, all: &[Found<'_>]) -> Result<Option<String>, String> {
    let some = found::select(all, it.part.as_ref(), &[&it.of]);
    let mut rows = found::distinct(some.iter().map(|f| found::values(f.point, &it.rows)));
    if rows.is_empty() {
        return Ok(None);
    }
    // Rows with the same first values stay together, each in the order of the study.
    let column = |at: usize| found::distinct(rows.iter().map(|row| row[at].clone()));
    let orders: Vec<Vec<String>> = (0..it.rows.len()).map(column).collect();
    rows.sort_by_key(|row| -> Vec<Option<usize>> {
        let places = row.iter().zip(&orders);
        places
            .map(|(value, order)| order.iter().position(|other| other == value))
            .collect()
    });
    let at = |pivot: &String| {
        let values = some.iter().map(|f| f.point.get(pivot).unwrap_or_default());
        found::distinct(values)
            .into_iter()
            .map(|value| Some(value.to_owned()))
            .collect()
    };
    let pivots: Vec<Option<String>> = it.columns.as_ref().map_or_else(|| vec![None], at);
    let cell = |row: &Vec<String>, pivot: &Option<String>| -> Vec<&&Found> {
        let fits = |f: &&&Found| {
            let column = it
                .columns
                .as_ref()
                .map(|name| f.point.get(name).unwrap_or_default());
            found::values(f.point, &it.rows) == *row && column == pivot.as_deref()
        };
        some.iter().filter(fits).collect()
    };
    let in_paper = |figure: &Figure, row: &Vec<String>, pivot: &Option<String>| {
        let cell = cell(row, pivot);
        let point = cell.first()?.point;
        let fits = |paper: &&super::shown::InPaper| {
            paper.figure == figure.name && found::matches(point, &paper.of)
        };
        it.paper.iter().find(fits).map(super::shown::InPaper::text)
    };
    let mut columns: Vec<Column> = Vec::new();
    for figure in &it.figures {
        for pivot in &pivots {
            columns.push((figure, pivot.clone(), false));
            if rows
                .iter()
                .any(|row| in_paper(figure, row, pivot).is_some())
            {
                columns.push((figure, pivot.clone(), true));
            }
        }
    }
    let mut head = it.rows.clone();
    head.extend(columns.iter().map(|column| heading(it, column)));
    let mut lines = Vec::new();
    for row in &rows {
        let names = it.rows.iter().zip(row);
        let mut line: Vec<String> = names
            .map(|(name, value)| label(name, value, true))
            .collect();
        for (figure, pivot, paper) in &columns {
            let unit = figure.unit.as_deref();
            line.push(match paper {
                true => in_paper(figure, row, pivot).unwrap_or_default(),
                false => value(figure, &cell(row, pivot), &some)?
                    .map_or_else(String::new, |v| found::number(v, figure.digits, unit)),
            });
        }
        lines.push(line);
    }
    Ok(Some(markdown(&head, it.rows.len(), &lines)))
}

fn heading(it: &TableOf, (figure, pivot, paper): &Column<'_>) -> String {
    let name = match (pivot, &it.columns) {
        (Some(value), Some(name)) => {
            let value = label(name, value, true);
            match it.figures.len() {
                1 => format!("{name} {value}"),
                _ => format!("{}, {name} {value}", figure.name),
            }
        }
        _ => figure.name.clone(),
    };
    match paper {
        true => format!("{name}, paper"),
        false => name,
    }
}

fn claims_table(claims: &[Judged]) -> String {
    let head = ["claim", "the paper", "measured", ""].map(String::from);
    let row = |it: &Judged| {
        let verdict = match &it.differs {
            Some(why) => format!("{}: {why}", it.verdict_in_words()),
            None => it.verdict_in_words().to_owned(),
        };
        vec![
            it.says.clone(),
            it.paper.clone(),
            it.measured.clone(),
            verdict,
        ]
    };
    let rows: Vec<Vec<String>> = claims.iter().map(row).collect();
    markdown(&head, head.len(), &rows)
}

/// The picture; `None` if there is nothing to draw.
fn chart(it: &ChartOf, all: &[Found<'_>]) -> Result<Option<String>, String> {
    let some = found::select(all, it.part.as_ref(), &[&it.of]);
    if some.is_empty() {
        return Ok(None);
    }
    let empty = Vec::new();
    let by = it.curves.as_ref().or(it.bars.as_ref()).unwrap_or(&empty);
    let named = |f: &Found| {
        let values = found::values(f.point, by);
        let words = by
            .iter()
            .zip(&values)
            .map(|(name, value)| label(name, value, false));
        words.collect::<Vec<_>>().join(", ")
    };
    let series = found::distinct(some.iter().map(|f| named(f)));
    if series.len() + it.paper.len() > MOST_CURVES {
        return Err(format!(
            "expected at most {MOST_CURVES} curves or bars, found {}",
            series.len() + it.paper.len()
        ));
    }
    let of = |name: &String| {
        some.iter()
            .filter(|f| named(f) == *name)
            .collect::<Vec<_>>()
    };
    let y = |cell: &[&&Found]| -> Result<Option<f64>, String> {
        let value = mean(cell, &it.y.of)?;
        Ok(value.map(|value| found::in_unit(value, it.y.unit.as_deref())))
    };
    let x_of = |f: &Found| f.point.get(&it.x.of).unwrap_or_default().to_owned();
    let xs = found::distinct(some.iter().map(|f| x_of(f)));
    if it.bars.is_some() {
        let mut bars = Vec::new();
        for name in &series {
            let members = of(name);
            let mut heights = Vec::new();
            for x in &xs {
                let cell: Vec<&&Found> =
                    members.iter().copied().filter(|f| x_of(f) == *x).collect();
                heights.push(y(&cell)?.unwrap_or(0.0));
            }
            bars.push((name.as_str(), heights));
        }
        for paper in &it.paper {
            let heights = paper.points.iter().map(|point| point[1]).collect();
            bars.push((paper.name.as_str(), heights));
        }
        let svg = bar_picture(xs, bars, (&it.x.name, &it.y.name)).alone();
        return Ok(Some(svg + "\n"));
    }
    let mut curves = Vec::new();
    for name in &series {
        let members = of(name);
        let mut points = Vec::new();
        for x in &xs {
            let at = found::numeric(x).ok_or_else(|| format!("{x}: expected a number"))?;
            let cell: Vec<&&Found> = members.iter().copied().filter(|f| x_of(f) == *x).collect();
            points.extend(y(&cell)?.map(|y| (at, y)));
        }
        points.sort_by(|a: &(f64, f64), b| a.0.total_cmp(&b.0));
        let name = name.clone();
        curves.push(Curve { name, points });
    }
    curves.extend(it.paper.iter().map(|paper| Curve {
        name: paper.name.clone(),
        points: paper.points.iter().map(|[x, y]| (*x, *y)).collect(),
    }));
    let scale = |scale| match scale {
        ScaleOf::Linear => Scale::Linear,
        ScaleOf::Log => Scale::Log,
    };
    let lines = Lines {
        x: &it.x.name,
        y: &it.y.name,
        scale: scale(it.x.scale),
        y_scale: scale(it.y.scale),
        curves,
    };
    Ok(Some(lines.svg() + "\n"))
}
