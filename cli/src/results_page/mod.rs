//! The page of a sweep's results: facets, axes chosen by hand, a Pareto front, filters, and the
//! table. It is one file that needs no network.
//!
//! The chart is drawn by Observable Plot and D3, whose files and licences are in `assets/`.

mod serve;

use serde_json::{Map, Value, json};

pub(crate) use serve::run;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const D3: &str = include_str!("assets/d3.min.js");
const PLOT: &str = include_str!("assets/plot.umd.min.js");

/// The page of a table: its columns, which of them are parameters, and its rows. `base` is what
/// leads to the report of a run; `None` if there is none.
pub(crate) fn html(
    columns: &[String],
    parameters: &[String],
    rows: &[Vec<Value>],
    base: Option<&str>,
) -> String {
    // Most columns of most sweeps have one value. It is there once, which halves the page.
    let (same, varied) = columns_of_one_value(columns.len(), rows);
    let of_one_value = same
        .iter()
        .map(|at| (columns[*at].clone(), rows[0][*at].clone()));
    let values =
        |row: &Vec<Value>| -> Vec<Value> { (varied.iter().map(|at| row[*at].clone())).collect() };
    let data = json!({
        "columns": columns,
        "parameters": parameters,
        "same": of_one_value.collect::<Map<String, Value>>(),
        "rows": rows.iter().map(values).collect::<Vec<_>>(),
        "base": base,
    });
    // A value must not end the script.
    let data = data.to_string().replace('<', "\\u003c");
    let parts = [
        ("/*D3*/", D3),
        ("/*PLOT*/", PLOT),
        ("/*DATA*/", &data),
        ("/*SCRIPT*/", SCRIPT),
    ];
    let mut page = String::with_capacity(PAGE.len() + D3.len() + PLOT.len() + data.len());
    let mut rest = PAGE;
    for (mark, text) in parts {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        page += before;
        page += text;
        rest = after;
    }
    page + rest
}

/// The columns in which all of the rows have the same, if there are rows, and the others.
fn columns_of_one_value(count: usize, rows: &[Vec<Value>]) -> (Vec<usize>, Vec<usize>) {
    let is_same = |at: &usize| {
        let mut pairs = rows.iter().zip(rows.iter().skip(1));
        !rows.is_empty() && pairs.all(|(a, b)| a[*at] == b[*at])
    };
    (0..count).partition(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_rows_and_no_value_ends_its_script() {
        let columns = ["tree", "wa", "ops"].map(String::from);
        let row = |tree: &str, wa: f64| vec![tree.into(), wa.into(), 7.into()];
        let rows = vec![row("</script>", 1.5), row("bf", 1.25)];
        let page = html(&columns, &columns[..1], &rows, Some("runs/"));
        assert!(
            page.contains(r#""rows":[["\u003c/script>",1.5],["bf",1.25]],"same":{"ops":7}"#),
            "escaped, and what is the same once"
        );
        assert!(page.contains(r#""base":"runs/""#) && page.trim_end().ends_with("</html>"));
        for mark in ["/*D3*/", "/*PLOT*/", "/*DATA*/", "/*SCRIPT*/"] {
            assert!(!page.contains(mark), "{mark}");
        }
    }
}
