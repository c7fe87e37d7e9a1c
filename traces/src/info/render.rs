//! Renders the statistics as text.

use std::fmt::Write as _;

use super::{OpCounts, SizeStats, TraceInfo, correlation};

/// Writing to a `String` cannot fail, so the result is ignored.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {{
        let _ = writeln!($out, $($arg)*);
    }};
}
pub(super) use line;

pub(super) fn text(info: &TraceInfo) -> String {
    let mut out = String::new();
    line!(out, "{}", info.name);
    line!(out, "  source         {}", info.source);
    if let Some(blocks) = info.blocks {
        line!(out, "  blocks         {blocks}");
    }
    let cut = if info.complete {
        ""
    } else {
        "  (fewer or more than its header says)"
    };
    line!(
        out,
        "  operations     {}, of which {} warm-up{cut}",
        count(info.ops),
        count(info.warmup_ops)
    );
    kinds(&mut out, &info.measured, info.warmup_ops > 0);
    if let Some(share) = info.write_share {
        line!(out, "  write share    {:.2} %", share * 100.0);
    }
    line!(out, "  user bytes     {}", bytes(info.user_bytes as f64));
    line!(
        out,
        "  zero bytes     {:.1} % of values",
        info.zeros * 100.0
    );
    let about = if info.keys_exact { "" } else { "≈" };
    line!(
        out,
        "  distinct keys  {about}{}, of which {about}{} accessed{}",
        count(info.distinct_keys),
        count(info.accessed_keys),
        if info.estimated {
            format!(" (estimated, ± {:.2} %)", 100.0 * info.keys_error)
        } else {
            String::new()
        }
    );
    if info.reads_of_unwritten > 0 {
        let share = info.reads_of_unwritten as f64 / info.measured.get.max(1) as f64;
        line!(
            out,
            "  there before   {about}{} keys; {about}{:.1} % of the gets \
             read keys never written before",
            count(info.keys_there_before),
            share.min(1.0) * 100.0
        );
    }
    line!(out, "  clients        {}", count(info.clients));
    if let Some(ns) = info.duration_ns {
        line!(out, "  duration       {:.3} s", ns as f64 / 1e9);
    }
    popularity(&mut out, info);
    correlation::order(&mut out, info);
    line!(
        out,
        "\nsizes            count       min      mean       p50       p99       max"
    );
    size_row(&mut out, "key bytes", &info.key_bytes);
    size_row(&mut out, "value bytes", &info.value_bytes);
    size_row(&mut out, "scan records", &info.scan_records);
    if let Some(values) = info.value_bytes.as_ref().filter(|v| v.min < v.max) {
        histogram(&mut out, values);
    }
    correlation::intervals(&mut out, info);
    working_set(&mut out, info);
    cache(&mut out, info);
    pages(&mut out, info);
    out
}

fn kinds(out: &mut String, ops: &OpCounts, warmed: bool) {
    let total = ops.total().max(1) as f64;
    let note = if warmed {
        "  (after the warm-up, like everything below)"
    } else {
        ""
    };
    let part = |n: u64| format!("{} ({:.1} %)", count(n), n as f64 / total * 100.0);
    line!(
        out,
        "  by kind        get {}, put {}, delete {}, scan {}{note}",
        part(ops.get),
        part(ops.put),
        part(ops.delete),
        part(ops.scan)
    );
}

fn popularity(out: &mut String, info: &TraceInfo) {
    let Some(popularity) = &info.popularity else {
        line!(out, "  popularity     unknown: no key is accessed twice");
        return;
    };
    line!(
        out,
        "  popularity     Zipf ≈{:.3} (± {:.3}) over {} keys, Kolmogorov-Smirnov distance {:.3}{}",
        popularity.theta,
        popularity.theta_error,
        if popularity.population_error > 0.0 {
            let error = 100.0 * popularity.population_error;
            let about = count(popularity.population);
            match popularity.population_error < 1.0 {
                true => format!("≈{about} (± {error:.1} %)"),
                false => format!("≈{about} or more"),
            }
        } else {
            count(popularity.population)
        },
        popularity.ks_distance,
        if popularity.ks_distance > 0.1 {
            " (a poor fit)"
        } else {
            ""
        }
    );
    let about = if info.estimated { "≈" } else { "" };
    let shares: Vec<String> = popularity
        .hottest
        .iter()
        .map(|hot| {
            let keys = match hot.number {
                None => format!("{:.1} % of keys", hot.keys * 100.0),
                Some(1) => "the hottest key".into(),
                Some(number) => format!("the {number} hottest"),
            };
            format!("{keys} {about}{:.1} %", hot.accesses * 100.0)
        })
        .collect();
    line!(out, "  accesses to    {}", shares.join(", "));
}

pub(super) fn size_row(out: &mut String, name: &str, sizes: &Option<SizeStats>) {
    if let Some(s) = sizes {
        line!(
            out,
            "{name:<14}{:>8}{:>10}{:>10.1}{:>10}{:>10}{:>10}",
            count(s.count),
            s.min,
            s.mean,
            s.p50,
            s.p99,
            s.max
        );
    }
}

fn histogram(out: &mut String, values: &SizeStats) {
    const WIDTH: f64 = 40.0;
    let most = values
        .histogram
        .iter()
        .map(|bin| bin.count)
        .max()
        .unwrap_or(1);
    line!(out, "\nvalue bytes");
    for bin in &values.histogram {
        let bar = (bin.count as f64 / most as f64 * WIDTH).ceil() as usize;
        let range = format!("{}-{}", bin.from, bin.to);
        line!(
            out,
            "{range:>22} {:>8} {}",
            count(bin.count),
            "#".repeat(bar)
        );
    }
}

fn working_set(out: &mut String, info: &TraceInfo) {
    line!(
        out,
        "\nworking set: distinct keys among the first operations"
    );
    for point in info
        .working_set
        .iter()
        .filter(|p| p.ops >= 100 || info.ops < 100)
    {
        line!(
            out,
            "{:>14} {:>12}  {:>5.1} %",
            count(point.ops),
            if point.estimated {
                format!("≈{}", count(point.distinct_keys))
            } else {
                count(point.distinct_keys)
            },
            point.distinct_keys as f64 / point.ops as f64 * 100.0
        );
    }
}

fn cache(out: &mut String, info: &TraceInfo) {
    let Some(curve) = &info.cache else {
        return;
    };
    let about = match curve.estimated {
        true => format!(
            " (estimated from {:.2} % of the keys)",
            curve.sampled * 100.0
        ),
        false => String::new(),
    };
    line!(
        out,
        "\nleast-recently-used caches of keys{about}\n          keys       misses  write-backs per write"
    );
    for point in &curve.points {
        cache_row(out, point.keys, point.misses, point.written_back);
    }
}

fn cache_row(out: &mut String, size: u64, misses: f64, written_back: Option<f64>) {
    let back = written_back.map_or(String::new(), |back| format!("{back:>23.3}"));
    line!(out, "{:>14} {:>10.2} %{back}", count(size), misses * 100.0);
}

fn pages(out: &mut String, info: &TraceInfo) {
    let Some(curve) = &info.page_cache else {
        return;
    };
    let (about, sampled) = match curve.estimated {
        true => {
            let share = format!(", estimated from {:.2} % of them", curve.sampled * 100.0);
            ("≈", share)
        }
        false => ("", String::new()),
    };
    let scans = curve.pages_per_scan.map_or(String::new(), |pages| {
        format!("; a scan accesses {about}{pages:.2}")
    });
    line!(
        out,
        "\nleast-recently-used caches of pages of {}, {:.0} % full ({} records); \
         {about}{} pages{sampled}{scans}\n         pages       misses  write-backs per write",
        bytes(f64::from(curve.page_bytes)),
        curve.fill * 100.0,
        count(u64::from(curve.records_per_page)),
        count(curve.pages)
    );
    for point in &curve.points {
        cache_row(out, point.pages, point.misses, point.written_back);
    }
}

/// Formats a number with at most four significant figures: 12, 9999, 12.3k, 4.50M, 1.20G.
pub(super) fn count(n: u64) -> String {
    let x = n as f64;
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{:.1}k", x / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2}M", x / 1e6),
        _ => format!("{:.2}G", x / 1e9),
    }
}

/// Formats bytes in binary units.
fn bytes(mut x: f64) -> String {
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if x < 1024.0 {
            return if unit == "B" {
                format!("{x} B")
            } else {
                format!("{x:.1} {unit}")
            };
        }
        x /= 1024.0;
    }
    format!("{x:.1} TiB")
}
