//! The report as a page: pictures, and the tables that they are drawn from.

use treering_sim::report::html::{self, Cell, Curve, Lines, Scale, Table, heading, sentences};
use treering_sim::report::numbers::grouped;
use treering_traces::info::SizeStats;

use super::render::{CAUSE_HEAD, about, cause_cells, spreads};
use super::report::{CauseInfo, InfoReport};
use super::timeline::Window;

/// The most causes that have a curve: the others are drawn together.
const MOST_CURVES: usize = 7;

pub(super) fn page(info: &InfoReport) -> String {
    let about: Vec<String> = about(info)
        .iter()
        .map(|(label, text)| sentence(label, text))
        .collect();
    let mut out = sentences(&about);
    out += &by_cause(info);
    out += &over_time(info);
    for (name, stats, show) in spreads(info) {
        if let Some(stats) = stats {
            out += &spread(name, stats, show);
        }
    }
    out += &hot(info);
    html::page(&format!("Recording {}", info.file), &out)
}

fn sentence(label: &str, text: &str) -> String {
    let mut letters = label.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}: {text}.", letters.as_str())
}

fn by_cause(info: &InfoReport) -> String {
    let row = |cause: &CauseInfo| {
        let values = [
            cause.bytes as f64,
            cause.bytes as f64,
            cause.writes as f64,
            cause.bytes as f64 / cause.writes.max(1) as f64,
            cause.synced_writes as f64,
            cause.flushes as f64,
            cause.discarded_blocks as f64,
            cause.alpha.unwrap_or(f64::INFINITY),
        ];
        let cells = cause_cells(cause, info.total.bytes).into_iter().zip(values);
        let cells = cells.map(|(text, value)| match value.is_finite() {
            true => Cell::number(text, value),
            false => Cell::optional(None, |_| text),
        });
        [Cell::text(&cause.name)].into_iter().chain(cells).collect()
    };
    let table = Table {
        label: "Written bytes by cause",
        head: [&["cause"][..], &CAUSE_HEAD].concat(),
        rows: info.causes.iter().chain([&info.total]).map(row).collect(),
    };
    heading("Written bytes by cause") + &table.html()
}

/// The windows with their lengths in seconds.
fn windows(info: &InfoReport) -> impl Iterator<Item = (&Window, f64)> {
    let begins = [0]
        .into_iter()
        .chain(info.timeline.iter().map(|w| w.end_ns));
    let lengths = info.timeline.iter().zip(begins);
    lengths.map(|(window, begin)| (window, (window.end_ns - begin) as f64 / 1e9))
}

/// A curve over the windows, of what was counted a second.
fn rate(info: &InfoReport, name: &str, count: impl Fn(&Window) -> f64) -> Curve {
    let points = windows(info).map(|(window, length)| (end(window), count(window) / length));
    Curve {
        name: name.into(),
        points: points.collect(),
    }
}

fn end(window: &Window) -> f64 {
    window.end_ns as f64 / 1e9
}

fn over_time(info: &InfoReport) -> String {
    let mut out = String::new();
    let mut chart = |title: &str, y: &str, curves: Vec<Curve>| {
        let lines = Lines {
            x: "seconds since the recording began",
            y,
            scale: Scale::Linear,
            y_scale: Scale::Linear,
            curves,
        };
        out += &heading(title);
        out += &lines.figure(title);
    };
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let numbered = info.causes.iter().enumerate();
    let written: Vec<_> = numbered.filter(|(_, cause)| cause.bytes > 0).collect();
    let (shown, others) = written.split_at(written.len().min(MOST_CURVES));
    let of = |(at, cause): &(usize, &CauseInfo)| rate(info, &cause.name, |w| mib(w.bytes[*at]));
    let mut curves: Vec<Curve> = shown.iter().map(of).collect();
    if !others.is_empty() {
        let sum = |w: &Window| others.iter().map(|(at, _)| mib(w.bytes[*at])).sum();
        curves.push(rate(info, "others", sum));
    }
    if !curves.is_empty() {
        chart("Written bytes over time", "MiB a second", curves);
    }
    if info.total.flushes + info.total.discarded_blocks > 0 {
        let flushes = rate(info, "flushes", |w| w.flushes as f64);
        let discards = rate(info, "discarded blocks", |w| w.discarded_blocks as f64);
        chart(
            "Flushes and discards over time",
            "a second",
            vec![flushes, discards],
        );
    }
    let rows = info.timeline.iter().map(|w| {
        let counts = [w.bytes.iter().sum(), w.flushes, w.discarded_blocks];
        let time = Cell::number(format!("{:.3}", end(w)), end(w));
        [time].into_iter().chain(counts.map(Cell::count)).collect()
    });
    let table = Table {
        label: "The timeline, as a table",
        head: vec!["seconds", "bytes", "flushes", "discarded blocks"],
        rows: rows.collect(),
    };
    match info.timeline.is_empty() {
        true => out,
        false => out + &table.folded(),
    }
}

fn spread(name: &str, stats: &SizeStats, show: fn(f64) -> String) -> String {
    let title = sentence(name, "");
    let title = title.trim_end_matches(": .");
    let bins = stats.histogram.iter().filter(|bin| bin.from > 0);
    let points = bins.map(|bin| (bin.to as f64, bin.count as f64 / stats.count as f64));
    let points: Vec<(f64, f64)> = points.collect();
    let unit = if name.starts_with("time") {
        "µs"
    } else {
        "bytes"
    };
    let lines = Lines {
        x: unit,
        y: "share, by powers of two",
        scale: Scale::Log,
        y_scale: Scale::Linear,
        curves: vec![Curve {
            name: name.into(),
            points: points.clone(),
        }],
    };
    let note = format!(
        "{} values; median {}, mean {}, 99 % at most {}, largest {}.",
        grouped(stats.count),
        show(stats.p50 as f64),
        show(stats.mean),
        show(stats.p99 as f64),
        show(stats.max as f64)
    );
    let rows = stats.histogram.iter().map(|bin| {
        let range = format!("{} to {}", grouped(bin.from), grouped(bin.to));
        vec![Cell::number(range, bin.from as f64), Cell::count(bin.count)]
    });
    let label = format!("{title}, as a table");
    let table = Table {
        label: &label,
        head: vec![unit, "count"],
        rows: rows.collect(),
    };
    let picture = match points.len() {
        0 | 1 => String::new(),
        _ => lines.figure(title),
    };
    heading(title) + &sentences(&[note]) + &picture + &table.folded()
}

fn hot(info: &InfoReport) -> String {
    let bytes = |n: u64| Cell::number(treering_sim::report::numbers::bytes(n as f64), n as f64);
    let files = info.top_files.iter().map(|file| {
        vec![
            Cell::text(&file.path),
            Cell::text(&file.cause),
            bytes(file.bytes),
            Cell::count(file.writes),
            Cell::count(file.flushes),
        ]
    });
    let files = Table {
        label: "Files written most",
        head: vec!["file", "cause", "bytes", "writes", "flushes"],
        rows: files.collect(),
    };
    let extents = info.hot_extents.iter().map(|hot| {
        vec![
            Cell::count(hot.lba),
            Cell::count(hot.block_writes),
            Cell::count(hot.written_blocks),
            Cell::text(&hot.path),
            Cell::text(&hot.cause),
        ]
    });
    let extents = Table {
        label: "MiB of the drive written most",
        head: vec![
            "first block",
            "block writes",
            "different blocks",
            "file",
            "cause",
        ],
        rows: extents.collect(),
    };
    let mut out = String::new();
    for table in [files, extents] {
        out += &heading(table.label);
        out += &table.html();
    }
    out
}
