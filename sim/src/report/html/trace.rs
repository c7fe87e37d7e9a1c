//! The page of `treering trace info`: what caches of all sizes would do, how the working set moves
//! over the trace, and how long keys rest between operations.

use treering_traces::info::{CacheCurve, PageCurve, SizeStats, TraceInfo, Window};

use super::super::numbers::bytes;
use super::bars::{Bars, Series, bars};
use super::chart::number;
use super::lines::{Curve, Lines, Scale, colour};
use super::page::{escape, heading, page, sentences};
use super::tables::{Cell, Table};

/// Renders the page.
#[must_use]
pub fn render(info: &TraceInfo) -> String {
    let mut out = sentences(&about(info));
    if let Some(curve) = &info.cache {
        out += &section_cache(curve);
    }
    if let Some(curve) = &info.page_cache {
        out += &section_pages(curve);
    }
    if !info.windows.is_empty() {
        out += &section_windows(info);
    }
    out += &section_intervals(info);
    out += &section_working_set(info);
    out += &heading("All statistics");
    out += &format!("<pre><code>{}</code></pre>\n", escape(&info.render_text()));
    page(&info.name, &out)
}

fn about(info: &TraceInfo) -> Vec<String> {
    let mut lines = vec![info.source.clone()];
    let warmed = match info.warmup_ops {
        0 => String::new(),
        ops => format!(" after {} of warm-up", number(ops as f64)),
    };
    let about = if info.keys_exact { "" } else { "≈" };
    lines.push(format!(
        "{} operations{warmed} on {about}{} keys",
        number(info.measured.total() as f64),
        number(info.accessed_keys as f64)
    ));
    if !info.complete {
        lines.push("The trace has fewer or more operations than its header says.".into());
    }
    lines
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// What a cache of a size does: the size, misses per access, write-backs per write.
type Point = (u64, f64, Option<f64>);

/// A picture of the points and a folded table below it. `what` is in the cache.
fn caches(what: &str, title: &str, notes: &[String], points: &[Point]) -> String {
    let misses = points
        .iter()
        .map(|(size, misses, _)| (*size as f64, *misses));
    let back = points
        .iter()
        .filter_map(|(size, _, back)| Some((*size as f64, (*back)?)));
    let mut curves = vec![Curve {
        name: "misses per access".into(),
        points: misses.collect(),
    }];
    let back: Vec<_> = back.collect();
    if !back.is_empty() {
        curves.push(Curve {
            name: "write-backs per write".into(),
            points: back,
        });
    }
    let lines = Lines {
        x: &format!("{what} in a least-recently-used cache"),
        y: "per access, or per write",
        scale: Scale::Log,
        y_scale: Scale::Linear,
        curves,
    };
    let rows = points.iter().map(|&(size, misses, back)| {
        vec![
            Cell::count(size),
            Cell::number(percent(misses), misses),
            Cell::optional(back, |back| format!("{back:.4}")),
        ]
    });
    let table = Table {
        label: &format!("Misses and write-backs of {what}, as a table"),
        head: vec![what, "misses", "write-backs per write"],
        rows: rows.collect(),
    };
    heading(title) + &sentences(notes) + &lines.picture().figure(title) + &table.folded()
}

fn section_cache(curve: &CacheCurve) -> String {
    let mut notes = vec![
        "A write-back is an evicted key that was written since it came into the cache. \
         First accesses to a key are misses."
            .to_string(),
    ];
    if curve.estimated {
        notes.push(format!(
            "Estimated from {} of the keys.",
            percent(curve.sampled)
        ));
    }
    let points = curve.points.iter();
    let points: Vec<Point> = points
        .map(|point| (point.keys, point.misses, point.written_back))
        .collect();
    let title = "Misses and write-backs of keys by cache size";
    caches("keys", title, &notes, &points)
}

fn section_pages(curve: &PageCurve) -> String {
    let about = if curve.estimated { "≈" } else { "" };
    let mut notes = vec![format!(
        "All keys of the trace, in order, fill {about}{} pages of {} to {:.0} %: {} records each. \
         A page is written back if it is evicted after a write to one of its keys.",
        number(curve.pages as f64),
        bytes(f64::from(curve.page_bytes)),
        100.0 * curve.fill,
        number(f64::from(curve.records_per_page))
    )];
    notes.extend(
        curve
            .pages_per_scan
            .map(|pages| format!("A scan accesses {about}{pages:.2} pages.")),
    );
    if curve.estimated {
        let share = percent(curve.sampled);
        notes.push(format!("Estimated from {share} of the pages."));
    }
    let points = curve.points.iter();
    let points: Vec<Point> = points
        .map(|point| (point.pages, point.misses, point.written_back))
        .collect();
    let title = "Misses and write-backs of pages by cache size";
    caches("pages", title, &notes, &points)
}

/// A curve over the windows, at their ends.
fn over_time(name: &str, windows: &[Window], value: impl Fn(&Window) -> Option<f64>) -> Curve {
    let points = windows.iter();
    let points = points.filter_map(|window| Some((window.end_op as f64, value(window)?)));
    Curve {
        name: name.into(),
        points: points.collect(),
    }
}

fn chart<'a>(y: &'a str, curves: Vec<Curve>) -> Lines<'a> {
    Lines {
        x: "operations",
        y,
        scale: Scale::Linear,
        y_scale: Scale::Linear,
        curves,
    }
}

fn section_windows(info: &TraceInfo) -> String {
    let windows = &info.windows[..];
    let (sets, drift) = ("Working set over time", "Drift of popularity over time");
    let count = |keys: u64| Some(keys as f64);
    let keys = chart(
        "keys in a window",
        vec![
            over_time("accessed", windows, |w| count(w.distinct_keys)),
            over_time("written", windows, |w| count(w.written_keys)),
            over_time("new in the trace", windows, |w| count(w.new_keys)),
        ],
    );
    let moved = chart(
        "share of a window's keys",
        vec![
            over_time("also in the window before", windows, |w| w.in_window_before),
            over_time("also in the first window", windows, |w| w.in_first_window),
        ],
    );
    let rows = windows.iter().map(|w| {
        vec![
            Cell::count(w.end_op),
            Cell::count(w.ops.get),
            Cell::count(w.ops.put),
            Cell::count(w.ops.delete),
            Cell::count(w.ops.scan),
            Cell::count(w.distinct_keys),
            Cell::count(w.written_keys),
            Cell::count(w.new_keys),
            Cell::optional(w.in_window_before, percent),
            Cell::optional(w.in_first_window, percent),
        ]
    });
    let table = Table {
        label: "Windows, as a table",
        head: vec![
            "end", "get", "put", "delete", "scan", "keys", "written", "new", "in last", "in first",
        ],
        rows: rows.collect(),
    };
    let mut notes = vec![format!(
        "The trace in {} windows of {} operations.",
        windows.len(),
        number(windows[0].end_op as f64)
    )];
    let error = windows.iter().map(|w| w.keys_error).fold(0.0, f64::max);
    if error > 0.0 {
        notes.push(format!(
            "Numbers of keys are estimates with a standard error of at most {}.",
            percent(error)
        ));
    }
    let mut out = heading(sets) + &sentences(&notes) + &keys.picture().figure(sets);
    if windows.len() > 1 {
        let note = "If popularity is stationary, both shares are equal. If it moves, the share \
                    that is also in the first window falls.";
        out += &(heading(drift) + &sentences(&[note.into()]) + &moved.picture().figure(drift));
    }
    out + &table.folded()
}

fn section_intervals(info: &TraceInfo) -> String {
    let title = "Operations between accesses to the same key";
    let times = &info.reuse_times;
    let all = [
        ("from an access to a read", &times.reads),
        ("from an access to a write", &times.writes),
        ("from a write to the next write", &times.overwrites),
        ("from a put to the delete", &info.lives.life_ops),
    ];
    let some = all
        .iter()
        .filter_map(|(name, sizes)| Some((*name, (*sizes).as_ref()?)));
    let some: Vec<(&str, &SizeStats)> = some.collect();
    let bins = || some.iter().flat_map(|(_, sizes)| &sizes.histogram);
    let (Some(least), Some(most)) = (
        bins().map(|bin| bin.from).min(),
        bins().map(|bin| bin.from).max(),
    ) else {
        return String::new();
    };
    let starts: Vec<u64> = (least.ilog2()..=most.ilog2()).map(|bit| 1 << bit).collect();
    let share = |sizes: &SizeStats, start: u64| {
        let bin = sizes.histogram.iter().find(|bin| bin.from == start);
        bin.map_or(0.0, |bin| 100.0 * bin.count as f64 / sizes.count as f64)
    };
    let series = some.iter().enumerate().map(|(i, (name, sizes))| Series {
        name,
        colour: colour(i),
        heights: starts.iter().map(|&start| share(sizes, start)).collect(),
        labels: vec![String::new(); starts.len()],
    });
    let picture = bars(Bars {
        groups: starts.iter().map(|&start| power(start)).collect(),
        series: series.collect(),
        x: "operations between, up to twice this",
        y: "share of intervals, %",
    });
    let rows = some.iter().map(|(name, s)| {
        let mut row = vec![Cell::text(*name), Cell::count(s.count), Cell::count(s.min)];
        row.push(Cell::number(format!("{:.1}", s.mean), s.mean));
        row.extend([s.p50, s.p99, s.max].map(Cell::count));
        row
    });
    let table = Table {
        label: "Intervals",
        head: vec!["interval", "count", "min", "mean", "p50", "p99", "max"],
        rows: rows.collect(),
    };
    heading(title) + &picture.figure(title) + &table.html()
}

/// A power of two in binary units: 512, 1Ki, 2Mi.
fn power(n: u64) -> String {
    match n.ilog2() {
        0..10 => n.to_string(),
        10..20 => format!("{}Ki", n >> 10),
        20..30 => format!("{}Mi", n >> 20),
        _ => format!("{}Gi", n >> 30),
    }
}

fn section_working_set(info: &TraceInfo) -> String {
    let title = "Mean working set by length of the interval";
    let points = &info.reuse_times.mean_working_set;
    if points.len() < 2 {
        return String::new();
    }
    let curve = |name: &str, keys: &dyn Fn(usize) -> f64| Curve {
        name: name.into(),
        points: (points.iter().enumerate())
            .map(|(i, point)| (point.ops as f64, keys(i)))
            .filter(|(_, keys)| *keys > 0.0)
            .collect(),
    };
    let mut curves = vec![curve("accessed", &|i| points[i].accessed_keys)];
    let written = curve("written", &|i| points[i].written_keys);
    if !written.points.is_empty() {
        curves.push(written);
    }
    let lines = Lines {
        x: "operations in a row",
        y: "distinct keys",
        scale: Scale::Log,
        y_scale: Scale::Log,
        curves,
    };
    let note = "A checkpoint after this number of operations finds the written keys dirty.";
    heading(title) + &sentences(&[note.into()]) + &lines.picture().figure(title)
}

#[cfg(test)]
mod tests {
    use treering_traces::generate::{GenParams, Workload, build};
    use treering_traces::info;

    use super::*;

    fn rendered(workload: Workload, ops: u64) -> String {
        let mut params = GenParams::new(workload, 500);
        params.ops = Some(ops);
        let (header, _) = build(&params).expect("valid parameters");
        let open = || Ok(build(&params)?.1);
        let info = info::collect_with_pages(&header, 4096, open);
        render(&info.expect("generators do not fail"))
    }

    #[test]
    fn every_section_has_its_picture() {
        let page = rendered(Workload::YcsbF, 20_000);
        for part in [
            "keys in a least-recently-used cache",
            "pages in a least-recently-used cache",
            "fill 21 pages of 4.0 KiB to 69 %: 24 records each",
            "misses per access",
            "write-backs per write",
            "Working set over time",
            "also in the first window",
            "from a write to the next write",
            "operations in a row",
        ] {
            assert!(page.contains(part), "no {part} in {page}");
        }
        // Wide and narrow.
        assert_eq!(page.matches("<svg").count(), 12);
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }

    #[test]
    fn short_traces_have_what_they_can_have() {
        for ops in [0, 1, 2, 30] {
            for workload in [Workload::YcsbC, Workload::YcsbA] {
                let page = rendered(workload, ops);
                assert!(page.contains("All statistics"), "{ops}");
                assert!(
                    !page.contains("NaN") && !page.contains("<p>plotters"),
                    "{ops}"
                );
            }
        }
    }

    #[test]
    fn powers_of_two_are_short() {
        let texts = [1, 512, 1 << 10, 1 << 19, 1 << 21, 1 << 31].map(power);
        assert_eq!(texts, ["1", "512", "1Ki", "512Ki", "2Mi", "2Gi"]);
    }
}
