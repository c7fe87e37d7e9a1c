//! The report as plain text for a terminal, at most 100 columns wide.

use std::fmt::Write as _;

use super::numbers::{bytes, duration, grouped, percent};
use super::preload::preloaded;
use super::row::{Row, legend};
use super::{KernelReport, Latency, ReplayReport, WriteDifference};

/// Maximum length of a line.
const COLUMNS: usize = 100;

/// Renders the whole report.
pub fn render(report: &ReplayReport) -> String {
    let mut out = String::new();
    header(report, &mut out);
    write_amplification(report, &mut out);
    operations(report, &mut out);
    state(report, &mut out);
    for warning in &report.warnings {
        line(&mut out, &format!("Warning: {warning}"));
    }
    out
}

pub(super) fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// Columns of a bar in a waterfall.
const BAR: usize = 34;

/// Where the bytes go: the steps from the least that the memory allows to what was written. Says why
/// there are none.
#[must_use]
pub fn waterfall(r: &ReplayReport) -> String {
    let mut out = String::from("\n");
    let steps = &r.wa.waterfall;
    let Some(last) = steps.last() else {
        let why = "Where the bytes go: unknown. There is a limit for complete runs of trees of pages \
                   that write something.";
        wrapped("", why, &mut out);
        return out;
    };
    line(&mut out, "Where the bytes go (bytes / user bytes)");
    let most = steps.iter().map(|step| step.sum).fold(last.sum, f64::max);
    let column = |wa: f64| (wa.max(0.0) / most * BAR as f64).round() as usize;
    for step in steps {
        let before = step.sum - step.wa;
        let (from, to) = (column(before.min(step.sum)), column(before.max(step.sum)));
        let bar = " ".repeat(from) + &"█".repeat((to - from).max(1));
        line(
            &mut out,
            &format!("  {:<16} {:>10.3}  {bar}", step.name, step.wa),
        );
        wrapped("      ", &step.what, &mut out);
    }
    let all = match r.wa.device {
        Some(_) => "device total",
        None => "host total",
    };
    line(&mut out, &format!("  {all:<16} {:>10.3}", last.sum));
    out
}

fn header(r: &ReplayReport, out: &mut String) {
    let measured = r.trace.ops - r.trace.warmup_ops;
    line(out, &format!("{}: {}", r.trace.name, r.trace.source));
    line(
        out,
        &format!(
            "  {} operations measured after {} of warm-up; {} keys put; {} written by the user",
            grouped(measured),
            grouped(r.trace.warmup_ops),
            grouped(r.trace.records),
            bytes(r.user_bytes as f64)
        ),
    );
    if let Some(blocks) = r.trace.blocks {
        line(out, &format!("  {blocks}"));
    }
    if let Some(loaded) = preloaded(&r.preload) {
        line(out, &format!("  {loaded}"));
    }
    line(
        out,
        &format!(
            "  {} on {} ({}), {}",
            r.tree,
            r.device.kind,
            r.device.profile,
            match r.direct {
                None => format!("store {}", r.store.kind),
                Some(_) => "without a store: the trace's own writes".into(),
            }
        ),
    );
    if let (Some(op), Some(alpha), Some(effective)) = (
        r.device.over_provisioning,
        r.device.alpha,
        r.device.effective_alpha,
    ) {
        line(
            out,
            &format!(
                "  {} addressable, over-provisioning {:.1} % ({}), α {alpha:.3}, effective α {effective:.3}",
                bytes(r.device.logical_blocks as f64 * 4096.0),
                op * 100.0,
                r.device.over_provisioning_definition
            ),
        );
    }
    out.push('\n');
}

fn write_amplification(r: &ReplayReport, out: &mut String) {
    line(
        out,
        "Write amplification (bytes / user bytes)         measured        predicted      error",
    );
    let mut all = r.amplification();
    rows(&all, out);
    let mini_pages = r.mini_pages();
    if !mini_pages.is_empty() {
        line(
            out,
            "Mini-pages (gets: shares; others: per operation) measured        predicted      error",
        );
        rows(&mini_pages, out);
    }
    all.extend(mini_pages);
    let legend = legend(&all);
    let note = r.wa.untried_note();
    for paragraph in [&legend, &note].into_iter().flatten() {
        wrapped("", paragraph, out);
    }
    if legend.is_some() || note.is_some() {
        out.push('\n');
    }
    if let Some(limit) = &r.wa.limit {
        wrapped("Limit:      ", &limit.said(), out);
        out.push('\n');
    }
}

/// A paragraph after its label, in lines of at most [`COLUMNS`]; continuation lines are indented.
pub(super) fn wrapped(head: &str, text: &str, out: &mut String) {
    let indent = " ".repeat(head.chars().count().max(2));
    let mut row = head.to_string();
    for word in text.split(' ') {
        if row.chars().count() + 1 + word.chars().count() > COLUMNS {
            line(out, &row);
            row.clone_from(&indent);
        } else if !row.is_empty() && !row.ends_with(' ') {
            row.push(' ');
        }
        row.push_str(word);
    }
    line(out, &row);
}

/// Rows of a table of figures, measured beside predicted.
fn rows(rows: &[Row], out: &mut String) {
    for row in rows {
        let predicted = row.predicted().unwrap_or_else(|| "-".into());
        let error = row.error.map_or("-".into(), percent);
        line(
            out,
            &format!(
                "  {:<44} {:>10.3} {:>16} {:>10}{}",
                row.name,
                row.measured,
                predicted,
                error,
                row.mark()
            ),
        );
    }
    out.push('\n');
}

fn operations(r: &ReplayReport, out: &mut String) {
    let Some(latency) = &r.latency_ns else {
        let counts: Vec<String> = (r.ops.iter().iter())
            .filter(|(_, n)| **n > 0)
            .map(|(name, n)| format!("{} {name}", grouped(**n)))
            .collect();
        line(
            out,
            &format!(
                "Operations: {} (--timing adds latencies)",
                counts.join(", ")
            ),
        );
        out.push('\n');
        return;
    };
    let kinds = latency.iter().into_iter();
    let kinds: Vec<_> = kinds
        .filter_map(|(name, l)| Some((name, l.as_ref()?)))
        .collect();
    let mut head = format!("{:<10} {:>10}", "Operation", "count");
    for (name, _) in Latency::default().columns() {
        let _ = write!(head, " {name:>10}");
    }
    line(out, &(head + "  waiting share"));
    for (name, latency) in kinds {
        let mut row = format!("  {name:<8} {:>10}", grouped(latency.count));
        for (_, ns) in latency.columns() {
            let _ = write!(row, " {:>10}", duration(ns));
        }
        let _ = write!(row, " {:>12.0} %", 100.0 * latency.waiting_share());
        line(out, &row);
    }
    if r.kernel.is_none() {
        line(
            out,
            "  Latency is device and queueing time, without CPU time and waits for latches.",
        );
    }
    out.push('\n');
}

fn state(r: &ReplayReport, out: &mut String) {
    for (label, said) in r.state() {
        line(out, &format!("{label:<12}{said}"));
    }
    if let Some(pm) = &r.pm {
        named(&pm.rows(), "Persistent memory:", out);
    }
    if let Some(m) = &r.cache.mini_pages {
        named(&m.rows(), "Mini-pages:", out);
    }
    lifetime(r, out);
    if let Some(kernel) = &r.kernel {
        written_by_the_kernel(kernel, out);
    }
}

/// Bytes as counted by engine, kernel and block device, and the causes of the differences.
fn written_by_the_kernel(kernel: &KernelReport, out: &mut String) {
    const INDENT: &str = "            ";
    let said = kernel.write_bytes.map_or("nothing".into(), grouped);
    let engine = grouped(kernel.engine_bytes);
    let sentence = format!(
        "counted {said} bytes written by this process; the engine counted {engine} ({})",
        kernel.how
    );
    wrapped("Kernel:     ", &sentence, out);
    if let (Some(device), Some(bytes)) = (&kernel.block_device, kernel.block_device_bytes) {
        let file_system = kernel.file_system.as_deref().unwrap_or("a file system");
        let bytes = grouped(bytes);
        let sentence =
            format!("{device}, below {file_system}, received {bytes} bytes from all programs");
        wrapped(INDENT, &sentence, out);
    }
    for difference in &kernel.differences {
        let sign = if difference.bytes < 0 { "-" } else { "+" };
        let bytes = grouped(difference.bytes.unsigned_abs());
        let WriteDifference { between, name, .. } = difference;
        wrapped(INDENT, &format!("{between}: {sign}{bytes}, {name}"), out);
    }
}

fn lifetime(r: &ReplayReport, out: &mut String) {
    if let Some(life) = &r.lifetime {
        named(&life.rows(), "Lifetime:", out);
    }
}

/// Names and values; long values continue on the next line.
fn named(rows: &[(&'static str, String)], title: &str, out: &mut String) {
    line(out, title);
    for (name, value) in rows {
        let mut row = format!("  {name:<18}");
        for part in value.split_inclusive(", ") {
            if row.chars().count() + part.trim_end().chars().count() > COLUMNS {
                line(out, &row);
                row = " ".repeat(20);
            }
            row.push_str(part);
        }
        line(out, &row);
    }
}
