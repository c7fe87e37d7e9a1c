//! The outputs of `treering layout`: a table, a JSON document and a page with charts.

use serde_json::{Map, Value, json};
use treering_engine::node::PageLayout;
use treering_sim::report::html::{LayoutPage, LayoutRow};

use super::{Results, Row};

/// Measured divided by predicted, minus 1.
fn error(row: &Row) -> f64 {
    row.counts.bytes_per_record() / row.predicted.bytes_per_record() - 1.0
}

pub(super) fn document(results: &Results) -> Value {
    json!({
        "schema": "treering.layout/1",
        "complete": results.complete,
        "keys": results.records.name,
        "records": results.distinct,
        "puts": results.records.puts.len(),
        "page": results.page,
        "deletes_left_out": results.records.left_out,
        "sample": results.sample,
        "sampled_records": results.sampled,
        "estimated": results.is_estimated(),
        "layouts": results.rows.iter().map(|row| layout(row, results)).collect::<Vec<_>>(),
    })
}

impl Results {
    /// Whether the predictions come from a sample of the keys.
    fn is_estimated(&self) -> bool {
        self.sampled < self.distinct
    }
}

fn layout(row: &Row, results: &Results) -> Value {
    let (counts, predicted) = (&row.counts, &row.predicted);
    let kinds = counts.kinds.iter().map(|(name, kind)| {
        let kind = json!({ "leaves": kind.leaves, "records": kind.records });
        ((*name).to_string(), kind)
    });
    let forecast = predicted.kinds.iter().map(|(name, kind)| {
        let kind = json!({ "leaves": kind.leaves, "records": kind.records });
        ((*name).to_string(), kind)
    });
    json!({
        "layout": row.layout.name(),
        "leaves": counts.leaves,
        "inner_nodes": counts.inner,
        "records_per_leaf": counts.records_per_leaf(),
        "bytes_per_record": counts.bytes_per_record(),
        "bytes_per_record_with_inner": counts.bytes_per_record_with_inner(),
        "prefix_bytes_mean": counts.prefix_bytes_mean(),
        "distinct_heads": counts.distinct_heads(),
        "predicted_records_per_leaf": predicted.records_per_leaf(),
        "predicted_bytes_per_record": predicted.bytes_per_record(),
        "estimated": results.is_estimated(),
        "predicted_kinds": forecast.collect::<Map<_, _>>(),
        "error": error(row),
        "kinds": kinds.collect::<Map<_, _>>(),
    })
}

const HEAD: [&str; 11] = [
    "layout",
    "leaves",
    "rec/leaf",
    "B/record",
    "with inner",
    "predicted",
    "error",
    "prefix",
    "heads",
    "dense",
    "predicted",
];

const LEGEND: &str = "≈: estimated from a sample of the keys. \
    prefix: mean bytes of each key saved by prefix truncation, over all leaves. \
    heads: adjacent keys in a leaf whose heads differ. \
    dense: share of leaves in the dense layout. error: measured divided by predicted, minus 1.";

fn cells(row: &Row, results: &Results) -> Vec<String> {
    let about = if results.is_estimated() { "≈" } else { "" };
    let (counts, predicted) = (&row.counts, &row.predicted);
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let dense = PageLayout::DENSE.map(|layout| counts.share_of(layout));
    let dense = dense.iter().sum();
    vec![
        row.layout.name().into(),
        counts.leaves.to_string(),
        format!("{:.1}", counts.records_per_leaf()),
        format!("{:.2}", counts.bytes_per_record()),
        format!("{:.2}", counts.bytes_per_record_with_inner()),
        format!("{about}{:.2}", predicted.bytes_per_record()),
        format!("{:+.1}%", 100.0 * error(row)),
        format!("{:.2}", counts.prefix_bytes_mean()),
        percent(counts.distinct_heads()),
        percent(dense),
        format!("{about}{}", percent(predicted.dense())),
    ]
}

fn about(results: &Results) -> Vec<String> {
    let (all, sampled) = (results.distinct, results.sampled);
    let mut about = vec![format!(
        "{}: {all} records in pages of {} bytes (without envelopes); predicted from {sampled} keys{}",
        results.records.name,
        results.page,
        if results.is_estimated() {
            ", a sample: ≈"
        } else {
            ""
        }
    )];
    for row in &results.rows {
        let kinds = &row.counts.kinds;
        if kinds.len() > 1 {
            let share = |leaves: usize| 100.0 * leaves as f64 / row.counts.leaves.max(1) as f64;
            let kinds = (kinds.iter())
                .map(|(name, kind)| format!("{:.1} % {name}", share(kind.leaves)))
                .collect::<Vec<_>>();
            about.push(format!(
                "Leaves of {}: {}",
                row.layout.name(),
                kinds.join(", ")
            ));
        }
    }
    about.extend(least_space(&results.rows));
    about
}

/// The layouts that take the fewest bytes, including inner nodes; all of them on a tie.
fn least_space(rows: &[Row]) -> Option<String> {
    let all = |row: &Row| row.counts.bytes_per_record_with_inner();
    let least = rows.iter().map(all).min_by(f64::total_cmp)?;
    let best: Vec<_> = (rows.iter())
        .filter(|row| all(row) == least)
        .map(|row| row.layout.name())
        .collect();
    let same = if best.len() > 1 { " (equal)" } else { "" };
    Some(format!("Least space: {}{same}", best.join(", ")))
}

pub(super) fn text(results: &Results) -> String {
    use std::fmt::Write;
    let about = about(results);
    let mut text = format!("{}\n\n", about[0]);
    let head = HEAD.map(String::from).to_vec();
    for line in std::iter::once(head).chain(results.rows.iter().map(|row| cells(row, results))) {
        for (i, cell) in line.iter().enumerate() {
            let _ = match i {
                0 => write!(text, "{cell:<12}"),
                4 | 5 | 10 => write!(text, " {cell:>10}"),
                _ => write!(text, " {cell:>8}"),
            };
        }
        text.push('\n');
    }
    let _ = writeln!(text, "\n{LEGEND}");
    for line in &about[1..] {
        let _ = writeln!(text, "{line}.");
    }
    text
}

/// The data for the charts.
pub(super) fn pictured(results: &Results) -> Vec<LayoutRow> {
    let row = |row: &Row| LayoutRow {
        name: row.layout.name().into(),
        bytes_per_record: row.counts.bytes_per_record(),
        predicted: row.predicted.bytes_per_record(),
        kinds: (row.counts.kinds.iter())
            .map(|(name, kind)| {
                let leaves = row.counts.leaves.max(1) as f64;
                (*name, kind.leaves as f64 / leaves)
            })
            .collect(),
    };
    results.rows.iter().map(row).collect()
}

pub(super) fn page(results: &Results) -> String {
    let mut about: Vec<_> = about(results)
        .iter()
        .map(|line| format!("{line}."))
        .collect();
    about.push(LEGEND.into());
    let lines: Vec<_> = results.rows.iter().map(|row| cells(row, results)).collect();
    LayoutPage {
        title: &format!("Space that page layouts need for {}", results.records.name),
        about: &about,
        rows: &pictured(results),
        head: &HEAD,
        table: &lines,
    }
    .render()
}
