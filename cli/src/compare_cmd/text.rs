//! The differences in words.

use serde_json::Value;

use super::Document;
use super::difference::Difference;

/// The differences as text; with `all`, also those of minor figures.
pub(super) fn render(document: &Document, all: bool) -> String {
    let mut text = String::new();
    if let Some((first, others)) = document.reports.split_first() {
        text += &format!("Compared with {first}: {}\n", others.join(", "));
    }
    text += &in_words(document);
    text += "\nInput:\n";
    text += &lines(&document.inputs, all);
    text += "\nOutcome:\n";
    text += &lines(&document.outcomes, all);
    if !document.checks.is_empty() {
        text += "\nChecks:\n";
    }
    for check in &document.checks {
        let verdict = if check.holds {
            "holds"
        } else {
            "does not hold"
        };
        text += &format!(
            "  {} {verdict} for {}: {} → {}\n",
            check.expression,
            check.report,
            number(check.first),
            number(check.value)
        );
    }
    text
}

/// What the differences of some figures mean: path, sentence, and its word for more and for less.
const MEANINGS: [(&str, &str, &str, &str); 6] = [
    (
        "wa.device.total",
        "the device writes {} per user byte",
        "more",
        "less",
    ),
    (
        "latency_ns.get.p99",
        "the 99th percentile of gets is {}",
        "higher",
        "lower",
    ),
    (
        "latency_ns.put.p99",
        "the 99th percentile of puts is {}",
        "higher",
        "lower",
    ),
    ("cache.hit_ratio", "the hit ratio is {}", "higher", "lower"),
    (
        "space.physical_bytes",
        "the store takes {} space",
        "more",
        "less",
    ),
    (
        "lifetime.years_until_pe_limit",
        "the device lasts {}",
        "longer",
        "shorter",
    ),
];

/// A sentence on each report but the first; empty if no such figure differs.
fn in_words(document: &Document) -> String {
    let mut text = String::new();
    for (at, name) in document.reports.iter().skip(1).enumerate() {
        let said = MEANINGS.iter().filter_map(|(path, sentence, more, less)| {
            let mut found = document.outcomes.iter();
            let growth = found.find(|found| found.path == *path)?.growth[at]?;
            let word = if growth > 0.0 { more } else { less };
            let share = format!("{:.1} % {word}", 100.0 * growth.abs());
            let is_there = growth.abs() >= 0.0005;
            is_there.then(|| sentence.replace("{}", &share))
        });
        let said: Vec<String> = said.collect();
        if !said.is_empty() {
            text += &format!("\nIn {name}, {}.\n", said.join("; "));
        }
    }
    text
}

/// A line for each difference; without `all`, only for the main ones.
fn lines(found: &[Difference], all: bool) -> String {
    if found.is_empty() {
        return "  the same\n".into();
    }
    let shown: Vec<&Difference> = found.iter().filter(|found| all || found.main).collect();
    let mut text: String = shown.iter().map(|found| line(found)).collect();
    let hidden = found.len() - shown.len();
    if hidden > 0 {
        text += &format!("  {hidden} other values differ; --all lists them\n");
    }
    text
}

/// `wa.device.total  4.1 → 5.2 (+26.8 %)`.
fn line(found: &Difference) -> String {
    let mut values = found.values.iter();
    let mut said = values.next().map(shown).unwrap_or_default();
    for (value, growth) in values.zip(&found.growth) {
        said += &format!(" → {}", shown(value));
        if let Some(growth) = growth {
            said += &format!(" ({:+.1} %)", 100.0 * growth);
        }
    }
    format!("  {:<40} {said}\n", found.path)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_f64() => n.as_f64().map(number).unwrap_or_default(),
        other => other.to_string(),
    }
}

/// A number with at most four digits behind the point, or as many as a small one needs.
fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.001 {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.4}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
