//! Predictions as a plain table for a terminal: a row for each configuration.

use super::{Axis, PredictReport, PredictedRun};
use crate::predict::tried::Decides;
use crate::report::text::{line, wrapped};

/// Renders the whole report.
pub fn render(report: &PredictReport) -> String {
    let mut out = String::new();
    let trace = &report.trace;
    wrapped("", &format!("{}: {}", trace.name, trace.source), &mut out);
    for sentence in report.about() {
        wrapped("  ", &sentence, &mut out);
    }
    out.push('\n');
    let runs = &report.configurations;
    if runs.iter().any(|run| !run.components().is_empty()) {
        line(
            &mut out,
            "Predicted write amplification (bytes / user bytes)",
        );
        table(&columns(runs), &mut out);
        if let Some(legend) = report.legend() {
            line(&mut out, legend);
        }
        out.push('\n');
    }
    for note in report.notes() {
        wrapped("", &note, &mut out);
    }
    if !report.complete {
        let (done, all) = (runs.len(), report.requested);
        let sentence =
            format!("Warning: Interrupted: {done} of {all} configurations are predicted.");
        line(&mut out, &sentence);
    }
    out
}

/// A column: its head and its cells.
type Column = (String, Vec<String>);

fn columns(runs: &[PredictedRun]) -> Vec<Column> {
    let axes = Axis::columns(runs).into_iter();
    let axes = axes.map(|axis| {
        let cells = runs.iter().map(|run| axis.said(run));
        (axis.title.to_string(), cells.collect())
    });
    let mut columns: Vec<Column> = axes.collect();
    let parts = runs.iter().map(PredictedRun::components);
    let longest = parts.max_by_key(Vec::len).unwrap_or_default();
    columns.extend(longest.iter().map(|(name, _, part)| {
        let cells = runs.iter().map(|run| {
            let found = run.components().into_iter().find(|(n, ..)| n == name);
            found.map_or("-".into(), |(_, value, _)| {
                value.said_shortly() + mark(runs, run, *part)
            })
        });
        ((*name).to_string(), cells.collect())
    }));
    if runs.iter().any(|run| run.hit_ratio.is_some()) {
        let said = |run: &PredictedRun| match run.hit_ratio {
            Some(hits) => format!("{:.1} %", 100.0 * hits.value()),
            None => "-".into(),
        };
        columns.push(("hits".into(), runs.iter().map(said).collect()));
    }
    columns
}

/// Marks a value outside the tested range. If any value of the column has the mark, the others have
/// its width.
fn mark(runs: &[PredictedRun], run: &PredictedRun, part: Decides) -> &'static str {
    match (
        run.is_untried(part),
        runs.iter().any(|r| r.is_untried(part)),
    ) {
        (true, _) => " ?",
        (false, true) => "  ",
        (false, false) => "",
    }
}

/// Columns, aligned to the right. A head of two words takes two lines, so that lines stay short.
fn table(columns: &[Column], out: &mut String) {
    let heads = columns.iter().map(|(head, _)| match head.rsplit_once(' ') {
        Some((first, second)) => [first, second],
        None => ["", head],
    });
    let heads: Vec<[&str; 2]> = heads.collect();
    let width = |text: &str| text.chars().count();
    let widths = columns.iter().zip(&heads).map(|((_, cells), head)| {
        let texts = cells.iter().map(String::as_str).chain(*head);
        texts.map(width).max().unwrap_or(0)
    });
    let widths: Vec<usize> = widths.collect();
    let mut row = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(&widths);
        let cells = cells.map(|(cell, width)| format!("  {cell:>width$}"));
        line(out, &cells.collect::<String>());
    };
    if heads.iter().any(|[above, _]| !above.is_empty()) {
        row(&mut heads.iter().map(|[above, _]| *above));
    }
    row(&mut heads.iter().map(|[_, below]| *below));
    let rows = columns.first().map_or(0, |(_, cells)| cells.len());
    for i in 0..rows {
        row(&mut columns.iter().map(|(_, cells)| cells[i].as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_heads_of_two_words_take_two_lines() {
        let columns = [
            ("cache".to_string(), vec!["1 %".to_string(), "20 %".into()]),
            ("host log".into(), vec!["1.234".into(), "12.345".into()]),
        ];
        let mut out = String::new();
        table(&columns, &mut out);
        let expected = "           host\n  cache     log\n    1 %   1.234\n   20 %  12.345\n";
        assert_eq!(out, expected);
    }
}
