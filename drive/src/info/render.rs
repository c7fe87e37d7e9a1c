//! The report as text.

use std::fmt::Write as _;

use treering_sim::report::numbers::{bytes, duration, grouped};
use treering_traces::info::SizeStats;

use super::report::{CauseInfo, InfoReport};
use crate::face::{Face, FileSystem, PageCache};
use crate::recording::Contents;

/// Writing to a `String` cannot fail, so the result is ignored.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {{
        let _ = writeln!($out, $($arg)*);
    }};
}

/// How a face is called on the command line.
pub(super) fn face(face: Face) -> &'static str {
    match face {
        Face::Files => "files",
        Face::Disk(FileSystem::Ext4) => "ext4",
        Face::Disk(FileSystem::Xfs) => "xfs",
        Face::Disk(FileSystem::Btrfs) => "btrfs",
        Face::Disk(FileSystem::None) => "none",
    }
}

/// The lines above the tables, as label and text.
pub(super) fn about(info: &InfoReport) -> Vec<(&'static str, String)> {
    let header = &info.header;
    let cache = match header.page_cache {
        PageCache::WriteBack => "write-back",
        PageCache::WriteThrough => "write-through",
    };
    let mut lines = vec![(
        "drive",
        format!(
            "{}, capacity {}, page cache {cache}",
            face(header.face),
            bytes(header.capacity_blocks as f64 * 4096.0)
        ),
    )];
    if !header.command.is_empty() {
        lines.push(("command", header.command.join(" ")));
    }
    let cut = match info.complete {
        true => "",
        false => "; it has no end: its writer was killed or could not go on",
    };
    lines.push((
        "recording",
        format!(
            "{} events in {}, {} on disk{cut}",
            grouped(info.events),
            duration(info.duration_ns as f64),
            bytes(info.file_bytes as f64)
        ),
    ));
    let flushes = info.flushes;
    lines.push((
        "flushes",
        format!(
            "{} of data, {} of files, {} of directories, {} of the drive",
            grouped(flushes.data),
            grouped(flushes.file),
            grouped(flushes.directory),
            grouped(flushes.drive)
        ),
    ));
    if let Some(user) = info.user_bytes {
        let ratio = info.total.bytes as f64 / user.max(1) as f64;
        let text = format!(
            "{}; {ratio:.2} bytes reached the drive for each",
            bytes(user as f64)
        );
        lines.push(("user bytes", text));
    }
    if info.marks > 0 {
        lines.push(("acknowledged", format!("{} lines", grouped(info.marks))));
    }
    let of_bytes = |part: u64| percent(part as f64 / info.total.bytes.max(1) as f64);
    let alignment = info.alignment;
    lines.push((
        "alignment",
        format!(
            "{} of the bytes in whole blocks, {} in whole sectors, {} unaligned; \
             {} blocks written in part",
            of_bytes(alignment.blocks),
            of_bytes(alignment.sectors),
            of_bytes(alignment.unaligned),
            grouped(alignment.partial_blocks)
        ),
    ));
    let again = &info.overwrites;
    let mut text = format!(
        "{} different; {} writes of blocks that held nothing",
        grouped(again.written_blocks),
        grouped(again.first_writes)
    );
    for hottest in &again.hottest {
        let (blocks, writes) = (hottest.blocks * 100.0, percent(hottest.writes));
        let _ = write!(text, "; hottest {blocks:.0} %: {writes}");
    }
    lines.push(("blocks", text));
    lines.push(("contents", contents(info)));
    lines
}

fn contents(info: &InfoReport) -> String {
    let Some(found) = &info.contents else {
        return "not recorded".into();
    };
    let share = |part: u64| percent(part as f64 / found.pieces.max(1) as f64);
    let mut text = format!(
        "{} zero, {} equal to earlier ones (dedup ratio {:.2})",
        share(found.zero_pieces),
        share(found.equal_pieces),
        found.dedup_ratio
    );
    if let Some(alpha) = info.total.alpha {
        let _ = write!(text, "; α {alpha:.3} of whole blocks by zlib level 1");
    }
    if found.sampled < 1.0 {
        let _ = write!(
            text,
            ", from a sample of {} of them",
            percent(found.sampled)
        );
    }
    if info.header.contents == Contents::Watched {
        text += "; only of watched files";
    }
    text
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The cells of a row of the table of causes, after its name.
pub(super) fn cause_cells(cause: &CauseInfo, all: u64) -> [String; 8] {
    let mean = cause.bytes as f64 / cause.writes.max(1) as f64;
    [
        bytes(cause.bytes as f64),
        percent(cause.bytes as f64 / all.max(1) as f64),
        grouped(cause.writes),
        bytes(mean),
        grouped(cause.synced_writes),
        grouped(cause.flushes),
        bytes(cause.discarded_blocks as f64 * 4096.0),
        cause
            .alpha
            .map_or("–".into(), |alpha| format!("{alpha:.3}")),
    ]
}

/// The names of these cells.
pub(super) const CAUSE_HEAD: [&str; 8] = [
    "bytes",
    "share",
    "writes",
    "mean",
    "synced",
    "flushes",
    "discarded",
    "α",
];

/// The distributions: their name, the statistics, and how a value is written.
pub(super) type Spread<'a> = (&'static str, Option<&'a SizeStats>, fn(f64) -> String);

/// All distributions of a report.
pub(super) fn spreads(info: &InfoReport) -> [Spread<'_>; 5] {
    let micros: fn(f64) -> String = |us| duration(us * 1e3);
    let again = &info.overwrites;
    [
        ("size of a write", info.write_bytes.as_ref(), bytes),
        (
            "written between overwrites",
            again.distance_bytes.as_ref(),
            bytes,
        ),
        ("written before a discard", again.life_bytes.as_ref(), bytes),
        ("written between flushes", info.flush_bytes.as_ref(), bytes),
        (
            "time between flushes",
            info.flush_interval_us.as_ref(),
            micros,
        ),
    ]
}

pub(super) fn text(info: &InfoReport) -> String {
    let mut out = String::new();
    line!(out, "{}", info.file);
    for (label, text) in about(info) {
        line!(out, "  {label:<14} {text}");
    }
    let [a, b, c, d, e, f, g, h] = CAUSE_HEAD;
    line!(
        out,
        "\n{:<22}{a:>11}{b:>9}{c:>12}{d:>11}{e:>10}{f:>10}{g:>11}{h:>7}",
        "by cause"
    );
    for cause in info.causes.iter().chain([&info.total]) {
        let [a, b, c, d, e, f, g, h] = cause_cells(cause, info.total.bytes);
        let name = &cause.name;
        line!(
            out,
            "  {name:<20}{a:>11}{b:>9}{c:>12}{d:>11}{e:>10}{f:>10}{g:>11}{h:>7}"
        );
    }
    let head = "distributions";
    line!(
        out,
        "\n{head:<29}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}",
        "count",
        "min",
        "mean",
        "p50",
        "p99",
        "max"
    );
    for (name, stats, show) in spreads(info) {
        let Some(stats) = stats else { continue };
        let [min, p50, p99, max] = [stats.min, stats.p50, stats.p99, stats.max].map(|n| n as f64);
        line!(
            out,
            "  {name:<27}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}",
            grouped(stats.count),
            show(min),
            show(stats.mean),
            show(p50),
            show(p99),
            show(max)
        );
    }
    files(&mut out, info);
    out
}

fn files(out: &mut String, info: &InfoReport) {
    if !info.top_files.is_empty() {
        line!(
            out,
            "\n{:>10}{:>12}{:>10}  files written most",
            "bytes",
            "writes",
            "flushes"
        );
    }
    for file in &info.top_files {
        line!(
            out,
            "{:>10}{:>12}{:>10}  {} ({})",
            bytes(file.bytes as f64),
            grouped(file.writes),
            grouped(file.flushes),
            file.path,
            file.cause
        );
    }
    if !info.hot_extents.is_empty() {
        line!(
            out,
            "\n{:>10}{:>12}{:>10}  MiB of the drive written most",
            "at block",
            "writes",
            "of blocks"
        );
    }
    for hot in &info.hot_extents {
        line!(
            out,
            "{:>10}{:>12}{:>10}  {} ({})",
            hot.lba,
            grouped(hot.block_writes),
            grouped(hot.written_blocks),
            hot.path,
            hot.cause
        );
    }
}
