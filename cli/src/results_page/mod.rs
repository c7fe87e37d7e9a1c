//! The page of a sweep's results: facets, axes chosen by hand, a Pareto front, filters, and the
//! table. It is one file that needs no network.
//!
//! The chart is drawn by Observable Plot and D3, whose files and licences are in `assets/`.

mod serve;

use serde_json::{Value, json};

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
    let data = json!({
        "columns": columns,
        "parameters": parameters,
        "rows": rows,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_rows_and_no_value_ends_its_script() {
        let columns = ["tree".to_owned(), "wa".to_owned()];
        let rows = vec![vec!["</script>".into(), 1.5.into()]];
        let page = html(&columns, &columns[..1], &rows, Some("runs/"));
        assert!(
            page.contains(r#""rows":[["\u003c/script>",1.5]]"#),
            "escaped"
        );
        assert!(page.contains(r#""base":"runs/""#) && page.trim_end().ends_with("</html>"));
        for mark in ["/*D3*/", "/*PLOT*/", "/*DATA*/", "/*SCRIPT*/"] {
            assert!(!page.contains(mark), "{mark}");
        }
    }
}
