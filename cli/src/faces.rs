//! The report for people: a short text. The pages of `treering_sim::report` take over once they are there.

use std::fmt::Write;

use treering_sim::report::{HostWa, ReplayReport};

/// The report in a few lines.
pub(crate) fn text(report: &ReplayReport) -> String {
    let mut out = String::new();
    let host = |wa: &HostWa<f64>| {
        format!(
            "{:.3} (log {:.3}, page {:.3}, extra {:.3})",
            wa.total, wa.log, wa.page, wa.extra
        )
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{} on {} {}: {} operations, {} of them warm-up, {} records",
        report.trace.name,
        report.device.kind,
        report.device.profile,
        report.trace.ops,
        report.trace.warmup_ops,
        report.trace.records
    );
    let _ = writeln!(out, "host WA       {}", host(&report.wa.host));
    if let Some(predicted) = &report.wa.predicted {
        let _ = writeln!(out, "  predicted   {}", host(&predicted.host));
    }
    if let Some(device) = &report.wa.device {
        let _ = writeln!(
            out,
            "device WA     {:.3} (GC {:.3}, drive's own ratio {:.3})",
            device.total, device.gc, device.nand_over_host
        );
    }
    let _ = writeln!(
        out,
        "cache         {:.2} % hits, {} evictions, {} frames",
        100.0 * report.cache.hit_ratio,
        report.cache.evictions,
        report.cache.frames
    );
    let _ = writeln!(
        out,
        "space         {} leaves, {:.1} records each, {:.1} % full",
        report.space.leaves,
        report.space.records_per_leaf,
        100.0 * report.space.fill
    );
    for warning in &report.warnings {
        let _ = writeln!(out, "note          {warning}");
    }
    out
}
