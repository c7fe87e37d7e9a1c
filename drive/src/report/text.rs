//! The report as text.

use std::fmt::Write as _;

use treering_sim::report::PredictedValue;
use treering_sim::report::numbers::{bytes, duration, grouped, percent};

use super::{Chain, Device, DriveReport};

/// Renders the report.
#[must_use]
pub fn render(r: &DriveReport) -> String {
    let mut out = String::new();
    for (name, value) in summary(r) {
        let _ = writeln!(out, "{name:<10} {value}");
    }
    let _ = writeln!(out, "\nWrite amplification by cause");
    out += &table(&causes(r));
    let over = r.measured.over;
    let _ = writeln!(
        out,
        "\nDrives: bytes over {over} bytes, measured beside predicted"
    );
    out += &table(&devices(r));
    let _ = writeln!(out, "  {LEGEND}");
    if !r.files.is_empty() {
        let _ = writeln!(out, "\nFiles with the most bytes");
        out += &table(&files(r));
    }
    for (at, warning) in r.all_warnings().iter().enumerate() {
        let _ = writeln!(out, "{}warning: {warning}", if at == 0 { "\n" } else { "" });
    }
    out
}

/// What the columns of the drives mean.
pub(super) const LEGEND: &str = "error: measured / predicted − 1; ±: 90 % interval of the \
                                 prediction; !: measured outside it";

/// Names and values of the run as a whole.
pub(super) fn summary(r: &DriveReport) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if !r.program.command.is_empty() {
        rows.push(("Program", r.program.command.join(" ")));
    }
    if let Some(ended) = &r.program.ended {
        let how = match (ended.status, ended.signal) {
            (Some(status), _) => format!("exit status {status}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "unknown".into(),
        };
        let (wall, cpu) = (ended.wall_seconds, ended.cpu_seconds);
        rows.push((
            "Ended",
            format!("{how}, after {wall:.1} s; {cpu:.1} s of CPU"),
        ));
    }
    let recording = &r.recording;
    let time = duration(recording.wall_ns as f64);
    let events = grouped(recording.events);
    let file = &recording.file;
    rows.push((
        "Recording",
        format!("{file}: {events} events in {time}, face {}", r.face),
    ));
    let (writes, flushes) = (grouped(recording.writes), grouped(recording.flushes));
    let time = duration(r.measured.wall_ns as f64);
    rows.push((
        "Measured",
        format!("{writes} writes, {flushes} flushes, {time}"),
    ));
    rows.push(("Bytes", chain(&r.chain)));
    rows
}

/// user 1.0 GiB → files 2.1 GiB (2.10) → …
fn chain(c: &Chain) -> String {
    let first = c.user_bytes.unwrap_or(c.file_bytes);
    let step = |name: &str, n: u64| match first {
        0 => format!("{name} {}", bytes(n as f64)),
        first => format!(
            "{name} {} ({:.2})",
            bytes(n as f64),
            n as f64 / first as f64
        ),
    };
    let user = c.user_bytes.map(|user| step("user", user));
    let rest = [
        ("files", c.file_bytes),
        ("host", c.host_bytes),
        ("flash", c.nand_bytes),
    ];
    let steps = user.into_iter().chain(rest.map(|(name, n)| step(name, n)));
    steps.collect::<Vec<_>>().join(" → ")
}

/// A table with its head: the first column is left-aligned, the others right-aligned.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let space = " ".repeat(widths[at] - cell.chars().count());
            match at {
                0 => line += &format!("  {cell}{space}"),
                _ => line += &format!("  {space}{cell}"),
            }
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

/// A cell without a value.
fn dash() -> String {
    "–".into()
}

/// Causes: each with its bytes on their way down.
pub(super) fn causes(r: &DriveReport) -> Vec<Vec<String>> {
    let (over, over_bytes) = (r.measured.over, r.measured.over_bytes);
    let share = |n: u64| match over_bytes {
        0 => dash(),
        over => format!("{:.3}", n as f64 / over as f64),
    };
    let compresses = r.causes.iter().any(|cause| cause.alpha.is_some());
    let (host, gc) = (format!("host/{over}"), format!("gc/{over}"));
    let mut first = head(&[
        "cause",
        "bytes",
        "host",
        &host,
        &gc,
        "writes",
        "flushes",
        "discarded",
        "metadata ops",
    ]);
    if compresses {
        first.push("α".into());
    }
    let mut rows = vec![first];
    for cause in &r.causes {
        let mut row = vec![
            cause.name.clone(),
            bytes(cause.bytes as f64),
            bytes(cause.host_bytes as f64),
            share(cause.host_bytes),
            share(cause.gc_bytes.first().copied().unwrap_or(0)),
            grouped(cause.writes),
            grouped(cause.flushes),
            bytes(cause.discards as f64),
            grouped(cause.metadata),
        ];
        if compresses {
            row.push(cause.alpha.map_or_else(dash, |alpha| format!("{alpha:.3}")));
        }
        rows.push(row);
    }
    rows
}

/// Drives: a row each.
pub(super) fn devices(r: &DriveReport) -> Vec<Vec<String>> {
    let times = r.devices.iter().any(|device| device.latency_ns.is_some());
    let mut first = head(&[
        "drive",
        "op",
        "host",
        "flash",
        "predicted",
        "error",
        "gc",
        "gc predicted",
        "gc error",
        "flash/host",
        "lifetime",
    ]);
    if times {
        first.extend(head(&["write p50", "p99.9"]));
    }
    let mut rows = vec![first];
    rows.extend(r.devices.iter().map(row));
    rows
}

fn row(d: &Device) -> Vec<String> {
    let measured = d.wa.device.unwrap_or_default();
    let predicted = d.wa.predicted.as_ref().and_then(|p| p.device);
    let error = d.wa.error.as_ref().and_then(|e| e.device);
    let said = |value: Option<PredictedValue>| value.map_or_else(dash, |value| value.said());
    let off = |error: Option<f64>, path: &str| {
        let mark = if d.outside.contains(&path) { " !" } else { "" };
        error.map_or_else(dash, |error| percent(error) + mark)
    };
    let op = d.device.over_provisioning;
    let mut cells = vec![
        d.device.profile.clone(),
        op.map_or_else(dash, |op| format!("{:.0} %", 100.0 * op)),
        format!("{:.3}", d.wa.host.total),
        format!("{:.3}", measured.total),
        said(predicted.map(|p| p.total)),
        off(error.and_then(|e| e.total), "device.total"),
        format!("{:.3}", measured.gc),
        said(predicted.map(|p| p.gc)),
        off(error.and_then(|e| e.gc), "device.gc"),
        format!("{:.3}", measured.nand_over_host),
        d.lifetime.years_until_pe_limit.map_or_else(dash, time),
    ];
    if let Some(times) = d.latency_ns {
        cells.push(duration(times.p50 as f64));
        cells.push(duration(times.p999 as f64));
    }
    cells
}

/// A lifetime in words.
fn time(years: f64) -> String {
    match years {
        y if y >= 100.0 => format!("{y:.0} years"),
        y if y >= 1.0 => format!("{y:.1} years"),
        y => format!("{:.1} days", y * 365.25),
    }
}

/// The files with the most bytes.
pub(super) fn files(r: &DriveReport) -> Vec<Vec<String>> {
    let mut rows = vec![head(&["file", "cause", "bytes", "host"])];
    rows.extend(r.files.iter().map(|file| {
        vec![
            file.path.clone(),
            file.cause.clone(),
            bytes(file.bytes as f64),
            bytes(file.host_bytes as f64),
        ]
    }));
    rows
}
